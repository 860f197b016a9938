"""Manage Spark sessions, and the folders that Spark's executors write."""
