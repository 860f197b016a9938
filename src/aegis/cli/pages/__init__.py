"""What the commands show of larger results, as tables and sentences."""
