"""Masks that draw random values: a common base, one module per kind of value, and OpenDP's sampler."""
