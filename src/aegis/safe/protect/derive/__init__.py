"""Derive cells, pairs and label tables from the published part of a protected summary."""
