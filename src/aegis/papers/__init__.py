"""The methods of the papers on masked tables: reconstruct, estimate, publish, train and compare."""
