"""Centre the counts of a configuration's levels, which may be a selection from a larger matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Ridge penalties in rows: a masked value with this many rows keeps half of its effect."""
UNPOOLED = (1.0, *PENALTIES)
"""The same penalties, and one for a learner that gives half weight to a value after one row."""


class Together(NamedTuple):
    """The levels of all expected configurations, counted together, and a selection of them.

    Attributes
    ----------
    total
        Co-occurrence of the U levels of all configurations, shape (U, U); undefined between levels
        of one attribute under two masks.
    at
        Indices in `total` of the d levels of one configuration, shape (d,).
    configurations
        Number of expected configurations.
    """

    total: Floats
    at: npt.NDArray[np.intp]
    configurations: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the co-occurrence of the selected levels."""
        return len(self.at), len(self.at)

    def diagonal(self) -> Floats:
        """Return the counts of the selected levels, shape (d,)."""
        return self.total.diagonal()[self.at]


Counted = Numbers | Together
"""Co-occurrence of the levels of one configuration, as its own matrix or within that of several."""


def block_of(
    counted: Counted, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
) -> Numbers:
    """Return a copy of the co-occurrence of levels `rows` with levels `columns`."""
    if isinstance(counted, Together):
        rows, columns, counted = counted.at[rows], counted.at[columns], counted.total
    block: Numbers = counted.take(rows, 0).take(columns, 1)
    return block


def total_of(counted: Counted) -> Numbers:
    """Return the co-occurrence of all levels of a configuration."""
    if isinstance(counted, Together):
        every = np.arange(len(counted.at))
        return block_of(counted, every, every)
    return counted


@dataclass(frozen=True, eq=False)
class Centred:
    """Centred counts of pairs of the levels that vary between rows.

    Attributes
    ----------
    counted
        Co-occurrence of all levels, shape (D, D).
    varying
        Indices of the levels that vary, shape (d,).
    count
        Rows of each level that varies, shape (d,).
    rows
        Rows of each class that occurs, shape (C,).
    label
        Covariance of varying levels and classes, times n, shape (d, C).
    n
        Number of rows that are counted.
    """

    counted: Counted
    varying: npt.NDArray[np.intp]
    count: Floats
    rows: Floats
    label: Floats
    n: float

    @classmethod
    def of(
        cls, counted: Counted, joint: Numbers, class_counts: Numbers, n: float
    ) -> Centred | None:
        """Centre the counts; None if no level varies, or if there is only one class."""
        count = counted.diagonal().astype(np.float64)
        varying = np.flatnonzero((count > 0) & (count < n))
        seen = np.flatnonzero(class_counts)
        if not varying.size or seen.size < 2:
            return None
        count, rows = count[varying], class_counts[seen].astype(np.float64)
        label: Floats = joint[np.ix_(varying, seen)] - np.outer(count, rows / n)
        return cls(counted, varying, count, rows, label, n)

    def covariance(
        self,
        rows: npt.NDArray[np.intp] | None = None,
        columns: npt.NDArray[np.intp] | None = None,
    ) -> Floats:
        """Return n times the covariance of varying levels; `rows` and `columns` select levels."""
        above, beside = (
            np.arange(len(self.varying)) if which is None else which for which in (rows, columns)
        )
        block = block_of(self.counted, self.varying[above], self.varying[beside])
        both: Floats = block.astype(np.float64, copy=False)
        both -= np.outer(self.count[above] / self.n, self.count[beside])
        return both
