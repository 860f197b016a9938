"""Manage Spark sessions, and folders that Spark's executors write."""
