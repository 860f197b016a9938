"""Sections of the report on trained models."""
