"""Add commands for protected summaries to the command line, and read their file format."""
