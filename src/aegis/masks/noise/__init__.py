"""Masks that draw: what they share, one module per kind of value, and the sampler of OpenDP."""
