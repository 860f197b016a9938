"""The REST API under `/api/v1`, one module for each kind of resource."""
