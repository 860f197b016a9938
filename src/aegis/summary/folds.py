"""Subtract the counts of a fold from the co-occurrence counts, for the delete-a-group jackknife.

A seeded hash of the content of each labelled row assigns it to one of a few folds
(`aegis.summary.deal`). The counts by fold are stored with the counts of all rows, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.arrays import Floats, Int32s, Ints
from aegis.summary.cooccurrence import FoldCounts, Matrix, PairCounts, is_sparse, symmetric
from aegis.summary.row_pairs import RowPairCounts

_FEW = 16
"""Entries of a fold are taken off one by one where there are this many cells for each."""


class _CountsWithoutFold(Mapping[tuple[int, int], Ints]):
    """For each pair of attributes, the number of rows outside one fold in each cell (two sets of
    values and a class). A pair is computed when it is first read.
    """

    def __init__(self, whole: PairCounts, folds: FoldCounts, left_out: int) -> None:
        self._whole, self._folds, self._left_out = whole, folds, left_out

    def __getitem__(self, pair: tuple[int, int]) -> Ints:
        out = self._folds.fold[pair] == self._left_out
        rest = self._whole.count[pair].copy()
        # A cell has at most one entry per fold.
        rest[self._folds.cell[pair][out]] -= self._folds.count[pair][out]
        return rest

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._whole.count)

    def __len__(self) -> int:
        return len(self._whole.count)


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
        size = int(self.offsets[-1])
        place, fold, count = _flat(self.whole)
        out = fold == self.left_out
        whole = self.whole.total
        if is_sparse(whole):
            diagonal = (self.whole.stacked_joint - self.stacked_joint).sum(axis=1)
            return whole - symmetric(size, place[out], count[out], diagonal)
        matrix: Floats
        if _FEW * int(out.sum()) < size * size:
            matrix = whole.copy()
            row, column = np.divmod(place[out], size)
            np.subtract.at(matrix, (row, column), count[out])  # classes share cells
            np.subtract.at(matrix, (column, row), count[out])
        else:
            upper = np.bincount(place[out], weights=count[out], minlength=size * size)
            upper = upper.reshape(size, size)
            matrix = whole - upper - upper.T
        np.fill_diagonal(matrix, self.stacked_joint.sum(axis=1))
        return matrix


def without_fold(pairs: PairCounts, fold: int) -> WithoutFold:
    """Return the counts of pairs of attributes over all rows outside one fold. `pairs` must have
    been counted by fold.
    """
    folds = pairs.folds
    if folds is None:
        raise ValueError("The counts have no folds.")
    return WithoutFold(
        names=pairs.names,
        sizes=pairs.sizes,
        classes=pairs.classes,
        rows=pairs.rows - int(folds.rows[fold]),
        weights=pairs.weights,
        in_rows=pairs.in_rows,
        joints=tuple(j - f[fold] for j, f in zip(pairs.joints, folds.joints, strict=True)),
        index=pairs.index,
        count=_CountsWithoutFold(pairs, folds, fold),
        whole=pairs,
        left_out=fold,
    )


def _flat(pairs: PairCounts) -> tuple[Ints, npt.NDArray[np.int8], Int32s]:
    """Return the counts by fold of all pairs of atoms (sets of values) as three arrays of entries:
    the flat index in the (D, D) matrix of all atoms, the fold, and the number of rows.
    """
    flat_folds = pairs.__dict__.get("_flat_folds")
    if flat_folds is None:
        flat_folds = _flattened(pairs)
        pairs.__dict__["_flat_folds"] = (
            flat_folds  # in addition to the cached properties, for all folds
        )
    return flat_folds


def _flattened(pairs: PairCounts) -> tuple[Ints, npt.NDArray[np.int8], Int32s]:
    folds = pairs.folds
    places = [np.zeros(0, dtype=np.int64)]
    fold, count = [np.zeros(0, dtype=np.int8)], [np.zeros(0, dtype=np.int32)]
    if folds is not None:
        for pair in pairs.index:
            places.append(pairs.places(pair, pairs.index[pair])[folds.cell[pair]])
            fold.append(folds.fold[pair])
            count.append(folds.count[pair])
    return np.concatenate(places), np.concatenate(fold), np.concatenate(count)
