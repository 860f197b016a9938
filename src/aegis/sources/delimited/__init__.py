"""Text files of rows, as people export them: how they are read, their header, their lines, their types."""
