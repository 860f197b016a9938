"""Summaries as files: the container and its content, written, read, checked and merged."""
