"""Share summaries safely: protected summaries, audits of what a file reveals, privacy budgets."""

PROTECTED = ".protected"
"""Extension of a protected summary on disk."""
