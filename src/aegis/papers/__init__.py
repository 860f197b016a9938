"""Methods of the papers on masked tables: reconstruct, estimate, publish, train, compare."""
