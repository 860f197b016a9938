"""Noise masks: their common part, one module for each kind of value, and the sampler of OpenDP."""
