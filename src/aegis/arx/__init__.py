"""Comparison with other anonymisation tools: their losses, searches, and project files."""
