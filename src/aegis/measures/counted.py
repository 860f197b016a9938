"""Counts of the levels of one configuration: alone, together with other levels, and centred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Rows that a masked value needs before half of what they say of it is believed."""
UNPOOLED = (1.0, *PENALTIES)
"""And one for a learner that believes a value after one row."""


class Together(NamedTuple):
    """The levels of all configurations that are expected, counted at once.

    Attributes
    ----------
    total
        Their co-occurrence, shape (U, U); of no meaning between two maskings of one attribute.
    at
        Where the levels of one configuration stand among them, shape (d,).
    configurations
        How many configurations are expected.
    """

    total: Floats
    at: npt.NDArray[np.intp]
    configurations: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the co-occurrence of the configuration's levels."""
        return len(self.at), len(self.at)

    def diagonal(self) -> Floats:
        """Return the counts of the levels of the configuration, shape (d,)."""
        return self.total.diagonal()[self.at]


Counted = Numbers | Together
"""Co-occurrence of the levels of one configuration, by itself or among those of others."""


def block_of(
    counted: Counted, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
) -> Numbers:
    """Return the co-occurrence of some levels of a configuration with others, as a copy."""
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
    """Second-order counts of the levels that some rows show and others do not, less their means.

    Attributes
    ----------
    counted
        Co-occurrence of all levels, shape (D, D).
    varying
        Places of the levels that vary, shape (d,).
    count
        Rows of each of these, shape (d,).
    rows
        Rows of each class that occurs, shape (C,).
    label
        Covariance of varying levels and classes, times n, shape (d, C).
    n
        Rows behind the counts.
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
        """Return the centred counts; None if no level or no class varies."""
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
        """Return the covariance of varying levels, times n: of all, or between some and others."""
        above, beside = (
            np.arange(len(self.varying)) if which is None else which for which in (rows, columns)
        )
        block = block_of(self.counted, self.varying[above], self.varying[beside])
        both: Floats = block.astype(np.float64, copy=False)
        both -= np.outer(self.count[above] / self.n, self.count[beside])
        return both
