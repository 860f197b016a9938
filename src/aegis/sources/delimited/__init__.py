"""Read text files of rows (CSV and similar): dialect, header, lines and column types."""
