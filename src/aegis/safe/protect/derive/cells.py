"""Derive ranges of all cells from published tables, by linear programming.

The unknowns are the counts of the true table; the published figures bound them and their sums. For
each cell, two linear programs give the smallest and the largest count that agree with all published
figures (Cox, Linear sensitivity measures in statistical disclosure control, J. Stat. Planning and
Inference 5, 1981; Fischetti and Salazar, Management Science 47, 2001). HiGHS solves them. Counts
are whole numbers, so ranges are rounded inwards. The program of a two-way table always has integer
solutions; for few classes the ranges have a closed form (`tables`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from aegis.errors import DataError
from aegis.safe.protect.derive.tables import MOST_CLASSES, table_ranges
from aegis.safe.protect.mechanisms import keyed_range, rounded_range
from aegis.safe.protect.model import CellMethod, ProtectedSummary, ProtectionLevel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SLACK = 1e-6


@dataclass(frozen=True)
class Range:
    """The smallest and the largest integer count that a cell can have."""

    low: int
    high: int

    @property
    def values(self) -> int:
        """Number of possible counts."""
        return self.high - self.low + 1


@dataclass(frozen=True)
class Derivable:
    """A cell of a label table with a range of possible counts narrower than the threshold.

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
    asked: Sequence[int] | None = None,
    whole: bool = False,
) -> list[Range]:
    """Return the range of each cell that agrees with bounds on the cells and on their sums.

    Parameters
    ----------
    low, high
        Lower and upper bounds of the cells, shape (n,).
    sums
        0/1 flags of the cells in each published sum, shape (s, n), dense or sparse; None if there
        are no sums.
    least, most
        Lower and upper bounds of the sums, shape (s,).
    asked
        Indices of the cells whose range is returned; by default all.
    whole
        Whether all cells must be whole numbers. This is slower, and gives narrower ranges only if
        the sums are not those of a two-way table.

    Raises
    ------
    DataError
        No table agrees with all bounds, so the published figures contradict each other.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    lower, upper = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    size = len(lower)
    matrix = sparse.csr_array((0, size)) if sums is None else sparse.csr_array(sums)
    demands = LinearConstraint(
        matrix,
        np.zeros(0) if least is None else np.asarray(least, dtype=np.float64),
        np.zeros(0) if most is None else np.asarray(most, dtype=np.float64),
    )
    bounds, integral = Bounds(lower, upper), np.full(size, int(whole))

    def end(place: int, sign: float) -> float:
        aim = np.zeros(size)
        aim[place] = sign
        constraints = demands if matrix.shape[0] else ()
        solved = milp(aim, integrality=integral, bounds=bounds, constraints=constraints)
        if solved.x is None:
            raise DataError(
                "No table agrees with all of the published figures.",
                hint="They contradict one another: publish them from one table.",
            )
        return sign * float(solved.fun)

    return [
        Range(math.ceil(end(place, 1.0) - _SLACK), math.floor(end(place, -1.0) + _SLACK))
        for place in (range(size) if asked is None else asked)
    ]


def published_range(protected: ProtectedSummary, count: int) -> tuple[int, int]:
    """Return the range of true counts that level `counts` can publish as this count."""
    said = protected.protection
    step = said.step or 1
    if said.method is CellMethod.ROUNDING:
        return rounded_range(count, step)
    return keyed_range(count, step, said.variance or 1.0, max(2, (said.threshold or 2) // 2))


def derivable_cells(protected: ProtectedSummary, narrower: int | None = None) -> list[Derivable]:
    """Return the cells of label tables with a range narrower than the threshold.

    A reader of the summary knows how it was protected, but not the key. So the reader knows three
    things: the range of true counts that are published as each count; that every cell has at least
    `threshold` rows; and that the tables of all attributes count the same rows of each class,
    except for rows of unpublished cells. At level `noise` counts have no range, so nothing is
    derivable.

    Parameters
    ----------
    protected
        The published summary.
    narrower
        The threshold, if it differs from the one that the summary states.
    """
    if protected.level is not ProtectionLevel.COUNTS or not protected.attributes:
        return []
    known: dict[int, tuple[int, int]] = {}
    bounds = {}
    for attribute in protected.attributes.values():
        pairs = [[_remembered(known, protected, int(n)) for n in row] for row in attribute.table]
        bounds[attribute.name] = np.array(pairs, dtype=np.int64).reshape(*attribute.table.shape, 2)
    totals = _class_totals(list(bounds.values()), len(protected.classes))
    threshold = protected.protection.threshold or 2
    cells = []
    for name, pairs_of in bounds.items():
        cells += _narrow(name, pairs_of, totals, threshold, narrower or threshold)
    return cells


def _narrow(
    name: str, bounds: Ints, totals: Sequence[tuple[int, int]], threshold: int, narrower: int
) -> list[Derivable]:
    """Return the cells of one label table whose range is narrower than `narrower`.

    `bounds` has shape (K, C, 2): the known least and most rows by cell and class.
    """
    classes = bounds.shape[1]
    low, high = bounds[..., 0], bounds[..., 1]
    # Cells with many possible counts left over need not be looked at.
    asked = np.flatnonzero(((high > 0) & (low < narrower)).ravel()).tolist()
    if not asked:
        return []
    least, most = np.array(totals, dtype=np.int64).T
    if classes <= MOST_CLASSES:
        ends = table_ranges(low, high, threshold, least, most)
        intervals = [Range(int(ends[0].flat[i]), int(ends[1].flat[i])) for i in asked]
    else:
        intervals = _programmed(low, high, threshold, (least, most), asked)
    return [
        Derivable(name, place // classes, place % classes, own)
        for place, own in zip(asked, intervals, strict=True)
        if own.values < narrower and own.high > 0
    ]


def _programmed(
    low: Ints, high: Ints, threshold: int, totals: tuple[Ints, Ints], asked: Sequence[int]
) -> list[Range]:
    """Return the ranges of cells of a label table, with two linear programs for each."""
    cells, classes = low.shape
    rows = sparse.kron(sparse.eye_array(cells), np.ones((1, classes)))
    columns = sparse.kron(np.ones((1, cells)), sparse.eye_array(classes))
    return ranges(
        low.ravel(),
        high.ravel(),
        sums=sparse.vstack([rows, columns]),
        least=np.concatenate([np.full(cells, threshold), totals[0]]),
        most=np.concatenate([np.full(cells, np.inf), totals[1]]),
        asked=asked,
    )


def _remembered(
    known: dict[int, tuple[int, int]], protected: ProtectedSummary, count: int
) -> tuple[int, int]:
    if count not in known:
        known[count] = published_range(protected, count)
    return known[count]


def _class_totals(bounds: Sequence[Ints], classes: int) -> list[tuple[int, int]]:
    """Return the range of each class's rows with which all label tables agree."""
    full = [pairs for pairs in bounds if len(pairs)]
    return [
        (
            max((int(pairs[:, label, 0].sum()) for pairs in full), default=0),
            min((int(pairs[:, label, 1].sum()) for pairs in full), default=0),
        )
        for label in range(classes)
    ]
