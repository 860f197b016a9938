"""Helpers of the command line's tests."""

from __future__ import annotations


def plain(text: str) -> str:
    """Return text with each run of white space as one blank."""
    return " ".join(text.split())
