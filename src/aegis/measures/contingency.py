"""Define the contingency table of an attribute and the label, which is the input of attribute
measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.arrays import Ints
from aegis.errors import DataError

_MERGE_FROM = 256
"""Number of rows from which equal rows are merged; with fewer, sorting costs more than it saves."""
_MERGE_GAIN = 0.75
"""Merged rows are kept if they are at most this share of the rows."""


@dataclass(frozen=True, eq=False)
class Contingency:
    """The number of rows by value of an attribute (rows of the table) and class of the label
    (columns).

    Build it with `Contingency.of`, which checks the counts. Measures of one attribute do not depend
    on the order of the rows, so rows with equal counts are stored once with a multiplicity. For
    example, a column of a million values that is almost a key needs only a few hundred stored rows.
    The columns are in the order of the label's classes; this order only breaks ties (see
    `held_out_error`).

    Attributes
    ----------
    table
        Counts for r stored rows and C classes, shape (r, C), int64; no row and no column is all
        zero.
    multiplicity
        Number of rows of the full table that have these counts, at least 1, shape (r,), int64.
    """

    table: Ints
    multiplicity: Ints

    @classmethod
    def of(cls, counts: npt.ArrayLike) -> Contingency:
        """Return the table of `counts`, shape (R, C): one row for each of R values, one column for
        each of C classes.

        Empty rows and columns are dropped. Nulls count only if the caller gives them a row. A table
        whose counts are all 0 is allowed; every measure of it is 0.

        Raises
        ------
        DataError
            `counts` is not two-dimensional, or contains something other than whole numbers of at
            least 0.
        """
        table = _whole_counts(counts)
        table = table[table.any(axis=1)]
        table = table[:, table.any(axis=0)]
        merged, multiplicity = _merge_equal_rows(table)
        return cls(merged, multiplicity)

    @cached_property
    def n(self) -> int:
        """The number of data rows that the table counts, N."""
        return int(self.row_totals @ self.multiplicity)

    @cached_property
    def row_totals(self) -> Ints:
        """The number of data rows n_x in each of the r rows of `table`, shape (r,), one total per
        attribute value x.
        """
        totals: Ints = self.table.sum(axis=1)
        return totals

    @cached_property
    def column_totals(self) -> Ints:
        """The total n_y of each of the C classes, shape (C,)."""
        return self.multiplicity @ self.table

    @cached_property
    def rows(self) -> int:
        """The number K_x of values that at least one data row has."""
        return int(self.multiplicity.sum())

    @property
    def columns(self) -> int:
        """The number K_y of classes that at least one data row has."""
        return int(self.table.shape[1])

    @cached_property
    def cells(self) -> int:
        """The number K_xy of pairs of a value and a class that at least one data row has."""
        return int(np.count_nonzero(self.table, axis=1) @ self.multiplicity)

    @property
    def trivial(self) -> bool:
        """Whether the attribute or the label is constant, so that neither of them can predict the
        other.
        """
        return self.rows < 2 or self.columns < 2


def _whole_counts(counts: npt.ArrayLike) -> Ints:
    given = np.asarray(counts)
    if given.ndim != 2:
        raise DataError(
            f"A contingency table was given with {given.ndim} dimensions.",
            hint="Give a table of two: one row per value, one column per class.",
        )
    if given.dtype.kind not in "biuf":
        raise DataError(
            f"A contingency table was given with entries of type {given.dtype}.",
            hint="Give counts: whole numbers from 0 up.",
        )
    bad = given < 0
    if given.dtype.kind == "f":
        bad |= ~np.isfinite(given) | (given != np.floor(given))
    if bad.any():
        raise DataError(
            f"A contingency table holds {given[bad][0]!s}, which is not a count.",
            hint="Give counts: whole numbers from 0 up.",
        )
    return np.ascontiguousarray(given, dtype=np.int64)


def _merge_equal_rows(table: Ints) -> tuple[Ints, Ints]:
    once = np.ones(len(table), dtype=np.int64)
    if len(table) < _MERGE_FROM:
        return table, once
    ordered = table[np.lexsort(table.T)]
    first = np.flatnonzero(np.append(True, (np.diff(ordered, axis=0) != 0).any(axis=1)))
    if len(first) > _MERGE_GAIN * len(table):
        return table, once
    return ordered[first], np.diff(np.append(first, len(table)))
