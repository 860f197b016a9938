"""Support for Spark: sessions, and folders that executors write."""
