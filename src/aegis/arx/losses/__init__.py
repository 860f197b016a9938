"""Losses that other tools minimise, with their options."""
