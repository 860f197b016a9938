"""Commands that the service adds to the command line."""
