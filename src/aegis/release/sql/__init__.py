"""Write a release as a single SQL query: its steps and its rule."""
