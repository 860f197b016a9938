"""Row folds of co-occurrence counts: what a delete-a-group jackknife leaves out, fold by fold.

Each labelled row falls into one of a few folds by a seeded hash of its place among the rows, so
that folds are a random partition. The counts by fold stand beside those of all rows, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.summary.cooccurrence import FoldCounts, PairCounts

Counts = npt.NDArray[np.int64]


class _Rest(Mapping[tuple[int, int], Counts]):
    """Rows per cell of each pair without one fold, computed when they are asked for."""

    def __init__(self, whole: PairCounts, folds: FoldCounts, left_out: int) -> None:
        self._whole, self._folds, self._left_out = whole, folds, left_out

    def __getitem__(self, pair: tuple[int, int]) -> Counts:
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
    """The co-occurrence counts of all rows but those of one fold.

    Attributes
    ----------
    whole
        The counts of all rows.
    left_out
        The fold that is left out.
    """

    whole: PairCounts = field(kw_only=True)
    left_out: int = field(kw_only=True)

    @cached_property
    def total(self) -> npt.NDArray[np.float64]:
        """Co-occurrence counts over all classes, shape (D, D), symmetric."""
        size = int(self.offsets[-1])
        place, fold, count = _flat(self.whole)
        out = fold == self.left_out
        upper = np.bincount(place[out], weights=count[out], minlength=size * size)
        upper = upper.reshape(size, size)
        matrix: npt.NDArray[np.float64] = self.whole.total - upper - upper.T
        diagonal = np.arange(size)
        matrix[diagonal, diagonal] = self.stacked_joint.sum(axis=1)
        return matrix


def without_fold(pairs: PairCounts, fold: int) -> WithoutFold:
    """Return the counts of all rows but those of one fold; `pairs` must have folds."""
    folds = pairs.folds
    if folds is None:
        raise ValueError("The counts have no folds.")
    return WithoutFold(
        names=pairs.names,
        sizes=pairs.sizes,
        classes=pairs.classes,
        rows=pairs.rows - int(folds.rows[fold]),
        joints=tuple(j - f[fold] for j, f in zip(pairs.joints, folds.joints, strict=True)),
        index=pairs.index,
        count=_Rest(pairs, folds, fold),
        whole=pairs,
        left_out=fold,
    )


def _flat(pairs: PairCounts) -> tuple[Counts, npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Return the place in the stacked (D, D) matrix, the fold and the rows of every entry."""
    found = pairs.__dict__.get("_flat_folds")
    if found is None:
        found = _flattened(pairs)
        pairs.__dict__["_flat_folds"] = found  # beside the cached properties, for all folds
    flat: tuple[Counts, npt.NDArray[np.int8], npt.NDArray[np.int32]] = found
    return flat


def _flattened(pairs: PairCounts) -> tuple[Counts, npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    folds, offsets = pairs.folds, pairs.offsets
    size = int(offsets[-1])
    places = [np.zeros(0, dtype=np.int64)]
    fold, count = [np.zeros(0, dtype=np.int8)], [np.zeros(0, dtype=np.int32)]
    if folds is not None:
        for i, j in pairs.index:
            a, b = np.divmod(pairs.index[i, j] // pairs.classes, pairs.sizes[j])
            place = (a + offsets[i]) * size + b + offsets[j]
            places.append(place[folds.cell[i, j]])
            fold.append(folds.fold[i, j])
            count.append(folds.count[i, j])
    return np.concatenate(places), np.concatenate(fold), np.concatenate(count)
