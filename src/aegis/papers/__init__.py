"""What the papers do with masked tables: reconstruct what masks hide, estimate, publish, train, compare."""
