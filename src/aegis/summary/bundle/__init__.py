"""Write, read, check and merge summaries as files."""
