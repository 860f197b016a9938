"""Subtract the counts of a fold from the co-occurrence counts, for the delete-a-group jackknife.

A seeded hash of the content of each labelled row assigns it to one of a few folds
(`aegis.summary.deal`). The counts by fold are stored with the counts of all rows, cell by cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from aegis.array_cache import OnDemand
from aegis.arrays import Array
from aegis.summary.cooccurrence import Matrix, PairCounts
from aegis.summary.row_pairs import RowPairCounts


@dataclass(frozen=True, eq=False)
class WithoutFold(PairCounts):
    """The counts of pairs of attributes on all rows except those of one fold.

    Attributes
    ----------
    whole
        The counts of all rows.
    left_out
        The fold that is left out.
    """

    whole: PairCounts = field(kw_only=True)
    left_out: int = field(kw_only=True)

    @property
    def n(self) -> float:
        """The number of rows on which scores are based. If rows have weights w, it is the effective
        number of rows, (sum of w)^2 / (sum of w^2).
        """
        folds = self.whole.folds
        return self.whole.n - (0.0 if folds is None else float(folds.rows[self.left_out]))

    @cached_property
    def total(self) -> Matrix:
        """The number of rows outside the fold that have both atoms of each pair of the D atoms
        (sets of values that no mask distinguishes), in all classes together, shape (D, D),
        symmetric.
        """
        if isinstance(self.whole, RowPairCounts) and self.whole.dense:
            own = self.whole.total_in(self.left_out)
            return np.subtract(self.whole.total, own, out=own)
        return self.total_of_pairs()


def without_fold(pairs: PairCounts, fold: int) -> WithoutFold:
    """Return the counts of pairs of attributes over all rows outside one fold. `pairs` must have
    been counted by fold.
    """
    folds = pairs.folds
    if folds is None:
        raise ValueError("The counts have no folds.")

    def count(pair: tuple[int, int]) -> Array:
        out = folds.fold[pair] == fold
        rest = pairs.count[pair].copy()
        # A cell has at most one entry per fold.
        rest[folds.cell[pair][out]] -= folds.count[pair][out]
        return rest

    return WithoutFold(
        names=pairs.names,
        sizes=pairs.sizes,
        classes=pairs.classes,
        rows=pairs.rows - int(folds.rows[fold]),
        weights=pairs.weights,
        in_rows=pairs.in_rows,
        joints=tuple(j - f[fold] for j, f in zip(pairs.joints, folds.joints, strict=True)),
        index=pairs.index,
        count=OnDemand(pairs.count, count),
        whole=pairs,
        left_out=fold,
    )
