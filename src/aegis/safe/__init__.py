"""Share summaries safely: protect them, audit what a file reveals, and keep privacy budgets."""

PROTECTED = ".protected"
"""Extension of a protected summary on disk."""
