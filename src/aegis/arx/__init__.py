"""What compares Aegis with other tools: their losses, the search for them, their projects."""
