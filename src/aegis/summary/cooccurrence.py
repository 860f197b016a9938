"""Co-occurrence counts of attribute pairs by class: the matrices G_y of theory.md, section 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.summary.deal import Dealer
from aegis.summary.responses import ResponseCounter, ResponseSums

Counts = npt.NDArray[np.int64]
Matrix = Any
"""Co-occurrence of stacked atoms or levels, shape (D, D): a float64 array or a `csr_array`."""


class Chunk(NamedTuple):
    """Coded rows.

    Attributes
    ----------
    codes
        Per attribute the atom of each row, as whole numbers of any width.
    label
        The class of each row.
    weights
        How often each row counts; None: once.
    units
        What falls into a fold as a whole, as a number per row: the person whose row it is. None:
        each row by itself.
    response
        The numeric label of each row, in its unit; None where the label has classes.
    """

    codes: Sequence[npt.NDArray[np.integer]]
    label: Counts
    weights: Counts | None = None
    units: Counts | None = None
    response: Counts | None = None


_DENSE_FACTOR = 4
"""A pair is counted in a dense array up to this many cells per row, above it by sorting."""
_DENSE_CELLS = 1 << 22
"""Co-occurrence of all pairs is a dense array up to this many cells."""
_SPARSE_FACTOR = 16
"""Above that it is sparse where it has at least this many cells per entry."""


@dataclass(frozen=True, eq=False)
class FoldCounts:
    """The same counts by fold of the rows.

    Attributes
    ----------
    size
        Number of folds F.
    rows
        Labelled rows per fold, shape (F,).
    joints
        Per attribute the rows per fold, atom and class, shape (F, A_i, C).
    cell, fold, count
        Per pair the non-empty entries, shape (E,): place of the cell among the pair's cells, the
        fold, and the rows.
    """

    size: int
    rows: Counts
    joints: tuple[Counts, ...]
    cell: Mapping[tuple[int, int], npt.NDArray[np.int32]]
    fold: Mapping[tuple[int, int], npt.NDArray[np.int8]]
    count: Mapping[tuple[int, int], npt.NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Rows by class in each pair of atoms, for every pair of attributes.

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
    folds
        The same counts by fold of the rows, where they were kept.
    responses
        Sums of a numeric label, which has one class; None of a label of classes.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    classes: int
    rows: int
    joints: tuple[Counts, ...]
    index: Mapping[tuple[int, int], Counts]
    count: Mapping[tuple[int, int], Counts]
    folds: FoldCounts | None = None
    responses: ResponseSums | None = None

    @cached_property
    def offsets(self) -> Counts:
        """Where each attribute's atoms start in the list of all atoms, shape (m + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def stacked_joint(self) -> npt.NDArray[np.float64]:
        """Rows per atom and class with all attributes stacked, shape (D, C)."""
        return np.concatenate(self.joints).astype(np.float64)

    @cached_property
    def total(self) -> Matrix:
        """Co-occurrence counts over all classes, shape (D, D), symmetric.

        Sparse where atoms are so many that a dense array would hold little but zeros.
        """
        return self.total_of_pairs()

    def total_of_pairs(self) -> Matrix:
        """Return `total`, added up from the cells of all pairs."""
        size = int(self.offsets[-1])
        diagonal = self.stacked_joint.sum(axis=1)
        entries = size + 2 * sum(map(len, self.index.values()))
        if size * size > max(_DENSE_CELLS, _SPARSE_FACTOR * entries):
            none = np.zeros(0, dtype=np.int64)
            places = [self.places(pair, index) for pair, index in self.index.items()]
            counts = [self.count[pair] for pair in self.index]
            return symmetric(
                size, np.concatenate([none, *places]), np.concatenate([none, *counts]), diagonal
            )
        return self._dense_total(diagonal)

    def _dense_total(self, diagonal: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        offsets = self.offsets
        matrix = np.diag(diagonal)
        for (i, j), index in self.index.items():
            cells = index // self.classes
            block = np.bincount(
                cells, weights=self.count[i, j], minlength=self.sizes[i] * self.sizes[j]
            ).reshape(self.sizes[i], self.sizes[j])
            matrix[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = block
            matrix[offsets[j] : offsets[j + 1], offsets[i] : offsets[i + 1]] = block.T
        return matrix

    def places(self, pair: tuple[int, int], index: Counts) -> Counts:
        """Return the flat place in the stacked (D, D) matrix of a pair's cells, given as `index`."""
        i, j = pair
        a, b = np.divmod(index // self.classes, self.sizes[j])
        places: Counts = (a + self.offsets[i]) * self.offsets[-1] + b + self.offsets[j]
        return places

    def cells(self, i: int, j: int) -> tuple[Counts, Counts, Counts, Counts]:
        """Return the non-empty cells of a pair: atom of i, atom of j, class, rows."""
        if i > j:
            b, a, y, n = self.cells(j, i)
            return a, b, y, n
        index = self.index[i, j]
        cell, y = np.divmod(index, self.classes)
        a, b = np.divmod(cell, self.sizes[j])
        return a, b, y, self.count[i, j]


def is_sparse(matrix: Matrix) -> bool:
    """Return whether a matrix is sparse, without loading SciPy's sparse module."""
    return not isinstance(matrix, np.ndarray)


def symmetric(
    size: int, places: Counts, counts: npt.NDArray[Any], diagonal: npt.NDArray[np.float64]
) -> Matrix:
    """Return the sparse symmetric matrix, shape (size, size), of counts above its diagonal.

    Counts of the same place add up.
    """
    from scipy import sparse  # taking long to load, and of wide tables alone

    rows, columns = np.divmod(places, size)
    upper = sparse.coo_array((counts.astype(np.float64), (rows, columns)), shape=(size, size))
    half = upper.tocsr()
    return (half + half.T + sparse.diags_array(diagonal)).tocsr()


def count_pairs(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    classes: int,
    chunks: Iterable[Chunk],
    *,
    folds: int = 1,
    seed: int = 0,
) -> PairCounts:
    """Count co-occurrences from chunks of coded rows.

    Parameters
    ----------
    names, sizes, classes
        Attributes, their atoms and the number of classes.
    chunks
        Chunks of rows. With folds no row may count more than once.
    folds
        Also count by so many folds of the rows, at most 127; 1 for none.
    seed
        Seed of the folds: a row's fold depends on it and on what the row holds (see `Dealer`), or
        on its unit where there are any.
    """
    width, columns = len(names), classes * folds
    joints = [np.zeros((size, columns), dtype=np.int64) for size in sizes]
    cells: dict[tuple[int, int], tuple[Counts, Counts]] = {}
    per_fold = np.zeros(folds, dtype=np.int64)
    dealer = Dealer(names, folds, seed)
    counter: ResponseCounter | None = None
    for codes, label, weights, units, response in chunks:
        # Class and fold together take the place of the class: one pass counts both.
        fold = dealer.rows(codes, label, response) if units is None else dealer.units(units)
        column = label * folds + fold
        per_fold += _count(fold, weights, folds)
        if response is not None:
            counter = counter or ResponseCounter(sizes, folds)
            counter.add(codes, fold, response, weights)
        key = np.empty(len(label), dtype=np.int64)
        for j in range(width):
            own = np.multiply(codes[j], columns, dtype=np.int64)
            own += column  # what the keys of all pairs with j end in
            joints[j] += _count(own, weights, sizes[j] * columns).reshape(-1, columns)
            for i in range(j):
                np.multiply(codes[i], sizes[j] * columns, out=key, dtype=np.int64)
                key += own
                counted = tally(key, weights, sizes[i] * sizes[j] * columns)
                cells[i, j] = counted if (i, j) not in cells else _merge(cells[i, j], counted)
    none = np.zeros(0, dtype=np.int64)
    ordered = {pair: cells.get(pair, (none, none)) for pair in combinations(range(width), 2)}
    responses = None if counter is None else counter.sums()
    return with_folds(names, sizes, classes, joints, ordered, per_fold, responses)


def with_folds(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    classes: int,
    joints: Sequence[Counts],
    cells: Mapping[tuple[int, int], tuple[Counts, Counts]],
    rows: Counts,
    responses: ResponseSums | None = None,
) -> PairCounts:
    """Return counts from those by class and fold.

    Parameters
    ----------
    names, sizes, classes
        As of `PairCounts`.
    joints
        Rows per atom, class and fold, shape (A_i, C F).
    cells
        Per pair the flat index ((a * A_j + b) * C + y) * F + fold in ascending order, and the
        rows of each.
    rows
        Rows per fold, shape (F,).
    responses
        Sums of a numeric label by fold.
    """
    folds = len(rows)
    by_fold = [joint.reshape(len(joint), classes, folds) for joint in joints]
    whole = tuple(joint.sum(axis=2) for joint in by_fold)
    if folds == 1:
        index = {pair: known[0] for pair, known in cells.items()}
        count = {pair: known[1] for pair, known in cells.items()}
        return PairCounts(
            names, sizes, classes, int(rows.sum()), whole, index, count, None, responses
        )
    index, count, cell, fold, entries = {}, {}, {}, {}, {}
    for pair, (keys, rows_of) in cells.items():
        index[pair], count[pair], cell[pair], fold[pair], entries[pair] = apart(
            keys, rows_of, folds
        )
    by_fold_counts = FoldCounts(
        folds, rows, tuple(np.moveaxis(j, 2, 0).copy() for j in by_fold), cell, fold, entries
    )
    return PairCounts(
        names, sizes, classes, int(rows.sum()), whole, index, count, by_fold_counts, responses
    )


def apart(
    keys: Counts, rows: Counts, folds: int
) -> tuple[Counts, Counts, npt.NDArray[np.int32], npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Return a pair's index and count, and cell, fold and count by fold, as `FoldCounts` holds them.

    Parameters
    ----------
    keys, rows
        Flat index ((a * A_j + b) * C + y) * F + fold in ascending order, and the rows of each.
    folds
        Number of folds F.
    """
    places, of_fold = np.divmod(keys, folds)
    first = np.flatnonzero(np.diff(places, prepend=-1))
    whole = np.add.reduceat(rows, first) if len(first) else rows
    starts = np.zeros(len(keys), dtype=np.int32)
    starts[first] = 1
    cell = (np.cumsum(starts) - 1).astype(np.int32)
    return places[first], whole, cell, of_fold.astype(np.int8), rows.astype(np.int32)


def _count(key: Counts, weights: Counts | None, size: int) -> Counts:
    """Return how often each key from 0 to `size` occurs; float sums are exact below 2**53."""
    return np.bincount(key, weights=weights, minlength=size).astype(np.int64, copy=False)


def tally(key: Counts, weights: Counts | None, space: int) -> tuple[Counts, Counts]:
    """Return the distinct keys, ascending, and how often each occurs."""
    if space <= _DENSE_FACTOR * len(key) + 1024:
        counts = _count(key, weights, 1)
        index = np.flatnonzero(counts)
        return index, counts[index]
    if weights is None:
        return np.unique(key, return_counts=True)
    index, position = np.unique(key, return_inverse=True)
    return index, _count(position, weights, len(index))


def _merge(first: tuple[Counts, Counts], two: tuple[Counts, Counts]) -> tuple[Counts, Counts]:
    """Add two tallies of the same pair."""
    index, position = np.unique(np.concatenate([first[0], two[0]]), return_inverse=True)
    counts = np.bincount(position, weights=np.concatenate([first[1], two[1]])).astype(np.int64)
    return index, counts
