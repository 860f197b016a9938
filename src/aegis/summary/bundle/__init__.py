"""Summaries as files: the container, what it holds, and how it is written, read, checked and merged."""
