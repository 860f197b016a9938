"""Co-occurrence counts of attribute pairs by class: the matrices G_y of theory.md, section 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Chunk = tuple[list[Counts], Counts, Counts | None]
"""Coded rows: the atoms of each attribute, the class, and how often each row counts."""
_DENSE_FACTOR = 4
"""A pair is counted in a dense array up to this many cells per row, above it by sorting."""


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How many rows of each class fall into each pair of atoms, for every pair of attributes.

    Attributes
    ----------
    names
        Attribute names, in order.
    sizes
        Atoms per attribute.
    classes
        Number of classes C.
    rows
        Labelled rows behind the counts: all of the table, or a sample.
    joints
        Per attribute the rows per atom and class, shape (A_i, C).
    index, count
        Per pair (i, j), i < j, the non-empty cells: flat index (a * A_j + b) * C + y in
        ascending order, and the rows in each.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    classes: int
    rows: int
    joints: tuple[Counts, ...]
    index: Mapping[tuple[int, int], Counts]
    count: Mapping[tuple[int, int], Counts]

    @cached_property
    def offsets(self) -> Counts:
        """Where each attribute's atoms start when all are stacked, shape (m + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def stacked_joint(self) -> npt.NDArray[np.float64]:
        """Rows per atom and class with all attributes stacked, shape (D, C)."""
        return np.concatenate(self.joints).astype(np.float64)

    @cached_property
    def total(self) -> npt.NDArray[np.float64]:
        """Co-occurrence counts over all classes, shape (D, D), symmetric."""
        offsets = self.offsets
        matrix = np.zeros((offsets[-1], offsets[-1]))
        for i, joint in enumerate(self.joints):
            span = slice(offsets[i], offsets[i + 1])
            matrix[span, span] = np.diag(joint.sum(axis=1))
        for (i, j), index in self.index.items():
            cells = index // self.classes
            block = np.bincount(
                cells, weights=self.count[i, j], minlength=self.sizes[i] * self.sizes[j]
            ).reshape(self.sizes[i], self.sizes[j])
            matrix[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = block
            matrix[offsets[j] : offsets[j + 1], offsets[i] : offsets[i + 1]] = block.T
        return matrix

    def cells(self, i: int, j: int) -> tuple[Counts, Counts, Counts, Counts]:
        """Return the non-empty cells of a pair: atom of i, atom of j, class, rows."""
        if i > j:
            b, a, y, n = self.cells(j, i)
            return a, b, y, n
        index = self.index[i, j]
        cell, y = np.divmod(index, self.classes)
        a, b = np.divmod(cell, self.sizes[j])
        return a, b, y, self.count[i, j]


def count_pairs(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    classes: int,
    chunks: Iterable[Chunk],
) -> PairCounts:
    """Count co-occurrences from chunks of coded rows.

    Parameters
    ----------
    names, sizes, classes
        Attributes, their atoms and the number of classes.
    chunks
        Chunks of rows: per attribute the atom of each row, the class of each row, and how often
        each row counts (None: once).
    """
    width = len(names)
    joints = [np.zeros((size, classes), dtype=np.int64) for size in sizes]
    cells: dict[tuple[int, int], tuple[Counts, Counts]] = {}
    rows = 0
    for codes, label, weights in chunks:
        rows += len(label) if weights is None else int(weights.sum())
        for i in range(width):
            own = codes[i] * classes + label
            joints[i] += _count(own, weights, sizes[i] * classes).reshape(-1, classes)
            for j in range(i + 1, width):
                key = (codes[i] * sizes[j] + codes[j]) * classes + label
                found = _tally(key, weights, sizes[i] * sizes[j] * classes)
                cells[i, j] = found if (i, j) not in cells else _merge(cells[i, j], found)
    if not cells and width > 1:
        none = np.zeros(0, dtype=np.int64)
        cells = {(i, j): (none, none) for i in range(width) for j in range(i + 1, width)}
    return PairCounts(
        names,
        sizes,
        classes,
        rows,
        tuple(joints),
        {pair: found[0] for pair, found in cells.items()},
        {pair: found[1] for pair, found in cells.items()},
    )


def _count(key: Counts, weights: Counts | None, size: int) -> Counts:
    """Return how often each key from 0 to `size` occurs; float sums are exact below 2**53."""
    return np.bincount(key, weights=weights, minlength=size).astype(np.int64)


def _tally(key: Counts, weights: Counts | None, space: int) -> tuple[Counts, Counts]:
    """Return the distinct keys, ascending, and how often each occurs."""
    if space <= _DENSE_FACTOR * len(key) + 1024:
        counts = _count(key, weights, 1)
        index = np.flatnonzero(counts)
        return index, counts[index]
    if weights is None:
        return np.unique(key, return_counts=True)
    index, position = np.unique(key, return_inverse=True)
    return index, _count(position, weights, len(index))


def _merge(one: tuple[Counts, Counts], two: tuple[Counts, Counts]) -> tuple[Counts, Counts]:
    """Add two tallies of the same pair."""
    index, position = np.unique(np.concatenate([one[0], two[0]]), return_inverse=True)
    counts = np.bincount(position, weights=np.concatenate([one[1], two[1]])).astype(np.int64)
    return index, counts
