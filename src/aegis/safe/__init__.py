"""What may leave your organisation: protected summaries, what a file gives away, budgets of populations."""

PROTECTED = ".protected"
"""Extension of a protected summary on disk."""
