"""What can be derived from what a protected summary publishes: cells, pairs and label tables."""
