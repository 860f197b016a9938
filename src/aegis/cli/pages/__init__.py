"""Format larger results of commands as tables and sentences."""
