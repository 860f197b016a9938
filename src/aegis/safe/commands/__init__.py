"""Verbs that this wing adds to the command line, and its format of summaries."""
