"""Define masks that draw random values."""
