"""Few columns that single out most rows, for somebody who knows more than the quasi-identifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_COLUMNS = 4
"""Most columns of such a set: more are seldom known of one person."""
MOST_CANDIDATES = 10
"""Most columns that are tried, those with the most values."""
ENOUGH = 0.9
"""Share of the unique rows from which no further column is added."""

RowCounts = tuple[int, int]
"""How many rows no other equals in some columns, and how many combinations of values these have."""


@dataclass(frozen=True)
class Singling:
    """A few columns that single out rows.

    Attributes
    ----------
    columns
        One to four columns that the rule does not cover, the one that distinguishes most rows first.
    unique_rows
        Rows that no other row equals in these columns and the quasi-identifiers.
    """

    columns: tuple[str, ...]
    unique_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {"columns": list(self.columns), "unique_rows": self.unique_rows}


def find_singling(
    values: Mapping[str, int],
    unique_rows: int,
    count: Callable[[Sequence[tuple[str, ...]]], Sequence[RowCounts]],
) -> Singling | None:
    """Return a few columns that single out most rows; None if there are none.

    Columns are added one at a time. Each is the one with which the columns so far have the most
    combinations of values (ARX's distinction); this needs not find the best set of all.

    Parameters
    ----------
    values
        Number of values of each column that the rule does not cover.
    unique_rows
        Rows that no other equals in all columns.
    count
        Returns for sets of columns what `RowCounts` describes, of these and what is known already.
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
