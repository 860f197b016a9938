"""What the report shows of trained models."""
