"""Numbers of things in words."""

from __future__ import annotations

_MOST_SHOWN = 120
"""Most characters of a value that somebody gave, in a message."""


def counted(number: int, singular: str, many: str | None = None) -> str:
    """Return a number with what is counted: "1 row", "1,200 rows".

    Parameters
    ----------
    number
        How many, at least 0.
    one, many
        What a single one is called, and what several are; by default with an s.
    """
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def brief(value: object) -> str:
    """Return a value that somebody gave as Python writes it, in a message: cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]}... ({len(text):,} characters)"
