"""Comparison with other tools: their losses, a search for them, and their projects."""
