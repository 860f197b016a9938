"""Compute ranges of the cells of a label table in closed form, instead of by a linear program.

The linear program describes a two-way table: its rows are the cells of an attribute, its columns
are the classes. Each entry has a known range [low, high], each row adds up to at least a threshold,
and each column has a sum in a known range [L, U]. Let x(S) be the sum of x over a set S of classes.
The entries x that a single row can have form a generalised polymatroid,

    p(S) = max(low(S), threshold - high(classes not in S)) <= x(S) <= high(S) = b(S)    for all S.

The column sums of all rows form another polymatroid, given by the sums of p and of b over the rows.
It has a common point with the box [L, U] if p(S) <= U(S) and L(S) <= b(S) for all S (Frank and
Tardos, Generalized polymatroids and submodular flows, Mathematical Programming 42, 1988). The
smallest and the largest count of an entry are the extreme values to which it can be fixed while
these conditions are true. The results are integers, and equal to the results of linear programming.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from aegis.safe.protect.pair_programs import contradiction

Ints = npt.NDArray[np.int64]
MOST_CLASSES = 10
"""Largest number of classes for which all sets of classes are enumerated."""


def table_ranges(
    low: Ints, high: Ints, threshold: int, least: Ints, most: Ints
) -> tuple[Ints, Ints]:
    """Return the smallest and the largest possible count of every cell.

    Parameters
    ----------
    low, high
        Known bounds of the cells, shape (K, C); at most `MOST_CLASSES` classes.
    threshold
        Smallest sum of each row of the table.
    least, most
        Bounds of the sum of each column, shape (C,).

    Raises
    ------
    DataError
        No table agrees with all bounds.
    """
    narrowest, widest = low.copy(), high.copy()
    feasible = bool((high.sum(axis=1) >= threshold).all() and (low <= high).all())
    for chosen in _sets(low.shape[1]):
        inside, outside = low[:, chosen].sum(axis=1), high[:, ~chosen].sum(axis=1)
        own = np.maximum(inside, threshold - outside)
        spare = int(most[chosen].sum()) - int(own.sum())
        short = int(least[chosen].sum()) - int(high[:, chosen].sum())
        feasible &= spare >= 0 and short <= 0
        # A cell of a class outside S makes up for what the others may not have; one inside lacks the rest.
        for label in np.flatnonzero(~chosen):
            needed = threshold - outside + high[:, label] - own - spare
            np.maximum(narrowest[:, label], needed, out=narrowest[:, label])
        for label in np.flatnonzero(chosen):
            np.maximum(narrowest[:, label], short + high[:, label], out=narrowest[:, label])
            room = spare + own - inside + low[:, label]
            np.minimum(widest[:, label], room, out=widest[:, label])
    if not feasible or bool((least > most).any()):
        raise contradiction()
    return narrowest, widest


def _sets(classes: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield every subset of the classes as flags, shape (C,)."""
    for number in range(1 << classes):
        yield np.array([number >> place & 1 for place in range(classes)], dtype=bool)
