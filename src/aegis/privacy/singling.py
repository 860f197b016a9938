"""Find a few columns that make most rows unique, if the quasi-identifiers are known, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MOST_COLUMNS = 4
"""Largest number of columns in such a set; an attacker seldom knows more about one person."""
MOST_CANDIDATES = 10
"""Largest number of columns that are tried: those with the most values."""
ENOUGH = 0.9
"""The search stops when this share of the unique rows is unique in the chosen columns."""

RowCounts = tuple[int, int]
"""The number of rows that are unique in some columns, and the number of value combinations of these
columns.
"""


@dataclass(frozen=True)
class Singling:
    """A few columns that together make many rows unique.

    Attributes
    ----------
    columns
        One to four columns that the rule does not cover; the first one distinguishes the most rows.
    unique_rows
        Number of rows that are unique in these columns and the quasi-identifiers together.
    """

    columns: tuple[str, ...]
    unique_rows: int


def find_singling(
    values: Mapping[str, int],
    unique_rows: int,
    count: Callable[[Sequence[tuple[str, ...]]], Sequence[RowCounts]],
) -> Singling | None:
    """Find a few columns that together make most rows unique; return None if there are none.

    Each step adds the column that gives the most combinations of values (in ARX: distinction).
    There may be a better set of columns.

    Parameters
    ----------
    values
        Number of values of each column that the rule does not cover.
    unique_rows
        Number of rows that are unique in all columns together.
    count
        Function that returns, for several sets of columns together with the quasi-identifiers, the
        number of unique rows and the number of combinations of values.
    """
    varying = [name for name, distinct in values.items() if distinct > 1]
    candidates = sorted(varying, key=lambda name: (-values[name], name))[:MOST_CANDIDATES]
    chosen: tuple[str, ...] = ()
    alone = 0
    while unique_rows and len(chosen) < MOST_COLUMNS and alone < ENOUGH * unique_rows:
        wider = [(*chosen, name) for name in candidates if name not in chosen]
        if not wider:
            break
        counts = count(wider)
        best = max(range(len(wider)), key=lambda place: counts[place][1])
        chosen, alone = wider[best], counts[best][0]
    return Singling(chosen, alone) if alone else None
