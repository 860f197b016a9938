"""The version of the package, for all that write it down."""

__version__ = "0.2.0"
