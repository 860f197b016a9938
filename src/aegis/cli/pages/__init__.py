"""Larger results of commands, as tables and sentences."""
