"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with what is counted: "1 row", "1,200 rows".

    Parameters
    ----------
    number
        How many, at least 0.
    one, many
        What a single one is called, and what several are; by default with an s.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
