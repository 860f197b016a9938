"""Aegis: a masking advisor. See the README for the verbs; each is a function of this package."""

from __future__ import annotations

__version__ = "0.1.0"
