"""Derive ranges of all cells from published tables, by linear programming.

The unknowns are the counts of the true table; the published figures bound these counts and their
sums. For each cell, two linear programs give the smallest and the largest count that agree with all
published figures (Cox, Linear sensitivity measures in statistical disclosure control, J. Stat.
Planning and Inference 5, 1981; Fischetti and Salazar, Management Science 47, 2001). HiGHS solves
the programs. Counts are whole numbers, so ranges are rounded inwards. The program of a two-way
table always has integer solutions; for few classes the ranges have a closed form (`table_ranges`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import DataError
from aegis.safe.protect.mechanisms import keyed_range, rounded_range
from aegis.safe.protect.model import (
    CellMethod,
    ProtectedAttribute,
    ProtectedSummary,
    ProtectionLevel,
)

SLACK = 1e-6
"""Largest distance from a whole number at which a solver's result counts as this number."""
MOST_CLASSES = 10
"""Largest number of classes for which all sets of classes are enumerated."""


@dataclass(frozen=True)
class Range:
    """The smallest and the largest integer count that a cell can have."""

    low: int
    high: int

    @property
    def values(self) -> int:
        """How many different counts the cell can have."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class Derivable:
    """An entry of a table of rows by cell (set of values) and label class, whose count a reader can
    derive to a range that is too narrow.

    Attributes
    ----------
    attribute, cell, label
        The attribute, the index of the cell, and the index of the class.
    range
        The possible counts.
    """

    attribute: str
    cell: int
    label: int
    range: Range


def ranges(
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    sums: Any = None,
    least: npt.ArrayLike | None = None,
    most: npt.ArrayLike | None = None,
    cells: Sequence[int] | None = None,
    integers: bool = False,
) -> list[Range]:
    """Return the possible range of each cell, from bounds on the cells and on their sums.

    Parameters
    ----------
    low, high
        Lower and upper bounds on the counts of the n cells, shape (n,).
    sums
        For each of the s published sums and each cell, 1 if the sum contains the cell, else 0;
        shape (s, n), dense or sparse. None if there are no sums.
    least, most
        Lower and upper bounds of the sums, shape (s,).
    cells
        Indices of the cells for which a range is returned; by default all.
    integers
        Whether only tables of whole numbers are possible. This is slower, and makes no difference
        for a two-way table.

    Raises
    ------
    DataError
        No table agrees with all bounds, so the published figures contradict each other.
    """
    size = len(np.asarray(low))

    def end(cell: int, sign: float) -> float:
        aim = np.zeros(size)
        aim[cell] = sign
        table = solved(aim, low, high, sums, least, most, integers=integers)
        if table is None:
            raise contradiction()
        return float(table[cell])

    return [
        Range(math.ceil(end(cell, 1.0) - SLACK), math.floor(end(cell, -1.0) + SLACK))
        for cell in (range(size) if cells is None else cells)
    ]


def known_bounds(protected: ProtectedSummary, attribute: ProtectedAttribute) -> Ints:
    """Return the least and the most true rows per cell and class, shape (K, C, 2)."""
    protection, step = protected.protection, protected.protection.step or 1
    counts, count_index = np.unique(attribute.table, return_inverse=True)
    if protection.method is CellMethod.ROUNDING:
        count_ranges = [rounded_range(int(n), step) for n in counts]
    else:
        least = max(2, (protection.threshold or 2) // 2)
        variance = protection.variance or 1.0
        count_ranges = [keyed_range(int(n), step, variance, least) for n in counts]
    bounds = np.array(count_ranges, dtype=np.int64).reshape(-1, 2)[count_index.ravel()]
    return bounds.reshape(*attribute.table.shape, 2)


def derivable_cells(protected: ProtectedSummary, narrower: int | None = None) -> list[Derivable]:
    """Return the entries of label tables that a reader can derive to fewer than `narrower` counts.

    The reader knows how the summary was protected, but not the key: so the range of true counts of
    each published count, that every cell has at least `threshold` rows, and that all attributes
    count the same rows of each class. `narrower` is by default this threshold. At level `noise`,
    nothing is derivable.
    """
    if protected.level is not ProtectionLevel.COUNTS or not protected.attributes:
        return []
    bounds = {a.name: known_bounds(protected, a) for a in protected.attributes.values()}
    # The least and the most rows of each class with which all tables agree, one line per table.
    sums = np.array([pairs.sum(axis=0) for pairs in bounds.values() if len(pairs)], dtype=np.int64)
    if not len(sums):
        return []
    totals = sums[..., 0].max(axis=0), sums[..., 1].min(axis=0)
    threshold = protected.protection.threshold or 2
    cells = []
    for name, pairs_of in bounds.items():
        cells += _narrow(name, pairs_of, totals, threshold, narrower or threshold)
    return cells


def _narrow(
    name: str, bounds: Ints, totals: tuple[Ints, Ints], threshold: int, narrower: int
) -> list[Derivable]:
    """Return the entries of the attribute `name` that have fewer than `narrower` possible counts.

    `bounds` has the least and the most rows of each cell and class, shape (K, C, 2), and `totals`
    those of each class. Each cell has at least `threshold` rows.
    """
    classes = bounds.shape[1]
    low, high = bounds[..., 0], bounds[..., 1]
    # Cells with many possible counts left over need not be looked at.
    entries = np.flatnonzero(((high > 0) & (low < narrower)).ravel()).tolist()
    if not entries:
        return []
    if classes <= MOST_CLASSES:
        ends = table_ranges(low, high, threshold, *totals)
        intervals = [Range(int(ends[0].flat[i]), int(ends[1].flat[i])) for i in entries]
    else:
        intervals = _programmed(low, high, threshold, totals, entries)
    return [
        Derivable(name, entry // classes, entry % classes, interval)
        for entry, interval in zip(entries, intervals, strict=True)
        if interval.values < narrower and interval.high > 0
    ]


def _programmed(
    low: Ints, high: Ints, threshold: int, totals: tuple[Ints, Ints], entries: Sequence[int]
) -> list[Range]:
    """Return the possible counts of some `entries` (indices), by two linear programs for each.

    The arguments are those of `table_ranges`; `totals` are its bounds `least` and `most`.
    """
    cells, classes = low.shape
    return ranges(
        low.ravel(),
        high.ravel(),
        sums=margins(cells, classes),
        least=np.concatenate([np.full(cells, threshold), totals[0]]),
        most=np.concatenate([np.full(cells, np.inf), totals[1]]),
        cells=entries,
    )


def table_ranges(
    low: Ints, high: Ints, threshold: int, least: Ints, most: Ints
) -> tuple[Ints, Ints]:
    """Return the least and the most possible count of every entry of a label table, in closed form.

    Parameters
    ----------
    low, high
        Bounds on the entries, shape (K, C); at most `MOST_CLASSES` classes.
    threshold
        Smallest number of rows of each cell, over all classes.
    least, most
        Bounds on the number of rows in each class, shape (C,).

    Raises
    ------
    DataError
        No table agrees with all bounds.
    """
    narrowest, widest = low.copy(), high.copy()
    feasible = bool((high.sum(axis=1) >= threshold).all() and (low <= high).all())
    for chosen in _sets(low.shape[1]):
        inside, outside = low[:, chosen].sum(axis=1), high[:, ~chosen].sum(axis=1)
        least_inside = np.maximum(inside, threshold - outside)
        spare = int(most[chosen].sum()) - int(least_inside.sum())
        short = int(least[chosen].sum()) - int(high[:, chosen].sum())
        feasible &= spare >= 0 and short <= 0
        # A cell of a class outside S makes up for what the others may not have; one inside lacks the rest.
        for label in np.flatnonzero(~chosen):
            needed = threshold - outside + high[:, label] - least_inside - spare
            np.maximum(narrowest[:, label], needed, out=narrowest[:, label])
        for label in np.flatnonzero(chosen):
            np.maximum(narrowest[:, label], short + high[:, label], out=narrowest[:, label])
            room = spare + least_inside - inside + low[:, label]
            np.minimum(widest[:, label], room, out=widest[:, label])
    if not feasible or bool((least > most).any()):
        raise contradiction()
    return narrowest, widest


def _sets(classes: int) -> Iterator[Flags]:
    """Yield every subset of the classes, as an array of C flags."""
    for number in range(1 << classes):
        yield np.array([number >> label & 1 for label in range(classes)], dtype=bool)


def solved(
    aim: Floats, low: Any, high: Any, sums: Any, least: Any, most: Any, *, integers: bool = False
) -> Floats | None:
    """Return the counts within all bounds that minimise their dot product with `aim`; None if there
    are none. Each count is within `low` and `high`, and `sums` (a matrix; None: no such bounds)
    times the counts within `least` and `most`. With `integers`, counts are whole numbers.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    answer: Any = milp(
        aim,
        integrality=np.full(len(aim), int(integers)),
        bounds=Bounds(low, high),
        constraints=() if sums is None else LinearConstraint(sums, least, most),
    )
    return None if answer.x is None else np.asarray(answer.x)


def contradiction(of: str = "") -> DataError:
    """Return the error that published figures contradict each other. `of` says which figures."""
    return DataError(
        f"No table agrees with all of the published figures{of}.",
        hint="They contradict one another: publish them from one table.",
    )


@cache
def margins(rows: int, columns: int) -> Any:
    """Return the 0/1 matrix whose product with a flattened table gives its row and column sums."""
    return sparse.vstack(
        [
            sparse.kron(sparse.eye_array(rows), np.ones((1, columns))),
            sparse.kron(np.ones((1, rows)), sparse.eye_array(columns)),
        ],
        format="csr",
    )
