"""Make the sections of the report, each from an advice or a release."""
