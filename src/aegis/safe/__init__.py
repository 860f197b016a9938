"""Safe sharing: protected summaries, audits of files, and budgets of populations."""

PROTECTED = ".protected"
"""Extension of a protected summary on disk."""
