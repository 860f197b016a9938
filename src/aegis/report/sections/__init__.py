"""The sections of the report, each made from an advice or a release."""
