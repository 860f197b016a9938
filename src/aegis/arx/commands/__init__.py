"""Commands that read files of other tools."""
