"""Render the report section on trained models."""
