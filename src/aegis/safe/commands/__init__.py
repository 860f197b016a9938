"""Commands for protected summaries on the command line, and their file format."""
