"""Apply the papers' methods to masked tables: reconstruct, estimate, publish, train and compare."""
