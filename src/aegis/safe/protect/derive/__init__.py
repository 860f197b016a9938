"""What a reader can derive from a protected summary: cells, pairs and label tables."""
