"""Summaries as files: the container, and how it is written, read, checked and merged."""
