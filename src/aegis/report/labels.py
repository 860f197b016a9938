"""Estimate the width of text in a chart, and cut text to a width.

Vega cuts labels between UTF-16 units. This breaks characters beyond the basic plane and stops the
renderer. So labels are cut here, between characters, and Vega draws them unchanged.
"""

from __future__ import annotations

import unicodedata

SIZE = 12
"""Size of a label's type, in pixels."""

_NARROW = frozenset(" .,:;!'|ijltfrI()[]{}-/\\`")
_BROAD = frozenset("mwMW@%&")


def text_width(text: str, size: int = SIZE) -> float:
    """Return the estimated width of `text` in pixels, in the report's typeface. `size` is the type
    size in pixels.

    The estimate tends to be too large. It cannot be precise, because fonts of non-Latin scripts
    differ too much.
    """
    return size * sum(map(_ems, text))


def fit(text: str, pixels: float, size: int = SIZE) -> str:
    """Return the text. If it is wider than `pixels` at this type size, it is cut and ends in "…"."""
    if text_width(text, size) <= pixels:
        return text
    room, used = pixels - size, 0.0
    for place, character in enumerate(text):
        used += size * _ems(character)
        if used > room:
            return text[:place].rstrip() + "…"
    return text


def _ems(character: str) -> float:
    """Return the width of a character, in multiples of the type size."""
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.34
    if character in _BROAD:
        return 0.92
    return 0.7 if character.isupper() or ord(character) > 0x24F else 0.57
