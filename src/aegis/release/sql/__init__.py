"""Write a release as a single SQL query."""
