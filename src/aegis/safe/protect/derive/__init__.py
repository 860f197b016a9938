"""Find which counts of values, or of pairs of values, readers of a protected summary can derive."""
