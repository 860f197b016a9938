"""Commands that read what other tools wrote."""
