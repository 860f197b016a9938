"""The section on trained models in the report."""
