"""Estimate the predictive utility deviation (PUD) without the unmasked table."""
