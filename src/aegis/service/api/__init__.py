"""The REST API under `/api/v1`, a file for each kind of thing."""
