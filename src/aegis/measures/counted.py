"""Centre the counts of a configuration's levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats

Counted = Array | Callable[[], Array]
"""A matrix of counts, or a function that counts it."""
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Ridge penalties, in rows. With a penalty of n rows, a masked value with n rows keeps half of its
effect.
"""
UNPOOLED = (1.0, *PENALTIES)
"""The same penalties, and a smaller one for a learner that gives a value half of its effect after
one row.
"""


@dataclass(frozen=True, eq=False)
class Centred:
    """Counts to compute covariances of levels (masked values), for the levels that some but not all
    rows have.

    Attributes
    ----------
    total
        How many rows have both levels of each pair of all D levels, shape (D, D).
    varying
        Indices of the d levels that vary, shape (d,).
    count
        Number of rows of each level that varies, shape (d,).
    rows
        Number of rows of each of the C classes that occur, shape (C,).
    label
        Covariance of the varying levels with the classes, times n, shape (d, C).
    n
        Number of rows that are counted.
    """

    total: Array
    varying: npt.NDArray[np.intp]
    count: Floats
    rows: Floats
    label: Floats
    n: float

    @classmethod
    def of(cls, total: Array, joint: Array, class_counts: Array, n: float) -> Centred | None:
        """Return the centred counts, from the rows per pair of levels (masked values), (D, D), per
        level and class, (D, C), and per class, (C,); None if no level varies, or if there is only
        one class.
        """
        count = total.diagonal().astype(np.float64)
        varying = np.flatnonzero((count > 0) & (count < n))
        seen = np.flatnonzero(class_counts)
        if not varying.size or seen.size < 2:
            return None
        count, rows = count[varying], class_counts[seen].astype(np.float64)
        label: Floats = joint[np.ix_(varying, seen)] - np.outer(count, rows / n)
        return cls(total, varying, count, rows, label, n)

    def covariance(self) -> Floats:
        """Return n times the covariance of the varying levels (masked values), shape (d, d)."""
        both: Floats = self.total[np.ix_(self.varying, self.varying)].astype(np.float64)
        both -= np.outer(self.count / self.n, self.count)
        return both
