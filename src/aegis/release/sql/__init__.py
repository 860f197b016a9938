"""A release as one SQL query: its steps, its rule, the whole."""
