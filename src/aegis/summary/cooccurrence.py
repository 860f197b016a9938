"""Count how often values of two attributes occur together, by class (G_y in theory.md, section 2),
and add up the counts of the parts of a table.

An atom is a set of values that no candidate mask distinguishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.arrays import (
    Array,
    Floats,
    Int32s,
    Integers,
    Ints,
    KeyCounts,
    OnDemand,
    count_keys,
    counts_by_key,
)
from aegis.errors import InternalError
from aegis.summary.codes import Dealer
from aegis.summary.responses import ResponseCounter, ResponseSums
from aegis.summary.weights import WeightSums

Matrix = Any
"""The co-occurrence of the atoms or levels of all attributes, shape (D, D): a float64 array or a
`csr_array`.
"""


class Chunk(NamedTuple):
    """Some rows of a table, with an integer code in place of each value.

    Attributes
    ----------
    codes
        For each attribute, the atom of each row (a set of values that no candidate mask
        distinguishes), as integers of any type.
    label
        The class of each row.
    weights
        How often each row counts, or the row's weight in units of weight. None: each row counts
        once.
    units
        The number of each row's unit, such as its person. All rows of a unit get the same fold.
        None: each row is a separate unit.
    response
        The numeric label of each row, as a whole number of the label's units; None if the label has
        classes.
    """

    codes: Sequence[Integers]
    label: Ints
    weights: Ints | None = None
    units: Ints | None = None
    response: Ints | None = None


_DENSE_CELLS = 1 << 22
"""Co-occurrence of all pairs is a dense array up to this many cells."""
_SPARSE_FACTOR = 16
"""Above that it is sparse where it has at least this many cells per entry."""


@dataclass(frozen=True, eq=False)
class FoldCounts:
    """The number of rows in each fold, by the atoms of each attribute and of each pair of
    attributes. An atom is a set of values that no candidate mask distinguishes.

    Attributes
    ----------
    size
        Number of folds F.
    rows
        Number of labelled rows per fold, shape (F,).
    atom_counts
        For each attribute i, the number of rows per fold, for its A_i atoms and C classes, shape
        (F, A_i, C).
    cell, fold, count
        For each pair, three arrays of shape (E,) for its E non-empty entries: the index of the cell
        among the pair's cells, the fold, and the number of rows.
    """

    size: int
    rows: Array
    atom_counts: tuple[Array, ...]
    cell: Mapping[tuple[int, int], Int32s]
    fold: Mapping[tuple[int, int], npt.NDArray[np.int8]]
    count: Mapping[tuple[int, int], Array]

    def in_rows(self, weights: WeightSums) -> FoldCounts:
        """Convert sums of row weights w to effective rows: all rows together count as (sum of w)^2
        / (sum of w^2).
        """
        return replace(
            self,
            rows=weights.in_rows(self.rows),
            atom_counts=tuple(map(weights.in_rows, self.atom_counts)),
            count=_scaled(self.count, weights),
        )


@dataclass(frozen=True, eq=False)
class PairCounts:
    """The number of rows by class and by the atoms of two attributes, for every pair of attributes.
    An atom is a set of values that no candidate mask distinguishes.

    Attributes
    ----------
    names
        Attribute names, in order.
    sizes
        Number of atoms of each attribute.
    classes
        Number of classes C.
    rows
        Number of labelled rows that were counted: all rows of the table, or a sample.
    atom_counts
        For each attribute i, the number of rows for its A_i atoms and the classes, shape (A_i, C).
    index, count
        For each pair (i, j) with i < j, two arrays for its non-empty cells: the flat indices in
        ascending order, and the numbers of rows. The cell of the atoms a and b and the class y has
        the flat index (a * A_j + b) * C + y.
    folds
        The same counts by fold; None if they were not kept.
    responses
        Sums of a numeric label, for which all rows are in one class; None for a label with classes.
    weights
        Sums of the weights of the rows, if all counts are sums of weights; None if each row counts
        once.
    in_rows
        Whether sums of weights were converted to numbers of effective rows, which scores need: all
        rows together count as (sum of w)^2 / (sum of w^2) for the weights w.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    classes: int
    rows: int
    atom_counts: tuple[Array, ...]
    index: Mapping[tuple[int, int], Ints]
    count: Mapping[tuple[int, int], Array]
    folds: FoldCounts | None = None
    responses: ResponseSums | None = None
    weights: WeightSums | None = None
    in_rows: bool = False

    @property
    def counted(self) -> int:
        """The sum of the counts of all cells of a pair: the number of rows, or the sum of weights
        in units.
        """
        return self.rows if self.weights is None else self.weights.total

    @property
    def n(self) -> float:
        """The number of (effective) rows on which scores are based."""
        return float(self.rows) if self.weights is None else self.weights.rows

    def in_effective_rows(self) -> PairCounts:
        """Return the counts with sums of weights converted to effective rows
        (`FoldCounts.in_rows`).
        """
        if self.weights is None or self.in_rows:
            return self
        return replace(self, **self._weighted(self.weights))

    def _weighted(self, weights: WeightSums) -> dict[str, Any]:
        """Return the fields that change if these counts, which are sums of weights, become
        effective rows.
        """
        folds, responses = self.folds, self.responses
        if responses is not None:
            rows = np.array([self.counted]) if folds is None else folds.rows
            atom_weights = [joint.T for joint in self.atom_counts]
            if folds is not None:
                atom_weights = [joint[:, :, 0] for joint in folds.atom_counts]
            responses = responses.in_rows(atom_weights, rows, weights.step / weights.divisor)
        return {
            "atom_counts": tuple(map(weights.in_rows, self.atom_counts)),
            "count": _scaled(self.count, weights),
            "folds": None if folds is None else folds.in_rows(weights),
            "responses": responses,
            "in_rows": True,
        }

    @cached_property
    def offsets(self) -> Ints:
        """The index of each attribute's first atom among those of all m attributes, shape (m + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def stacked_joint(self) -> Floats:
        """The number of rows with each of the D atoms of all attributes and each class, shape (D,
        C).
        """
        return np.concatenate(self.atom_counts).astype(np.float64)

    @cached_property
    def total(self) -> Matrix:
        """The number of rows that have both atoms of each pair of the D atoms of all attributes, in
        all classes together, shape (D, D), symmetric; sparse if there are so many atoms that most
        are zero.
        """
        return self.total_of_pairs()

    def total_of_pairs(self) -> Matrix:
        """Compute `total` from the counts of the separate pairs of attributes."""
        size, offsets = int(self.offsets[-1]), self.offsets
        diagonal = self.stacked_joint.sum(axis=1)
        entries = size + 2 * sum(map(len, self.index.values()))
        if size * size > max(_DENSE_CELLS, _SPARSE_FACTOR * entries):
            none = np.zeros(0, dtype=np.int64)
            positions = [self.positions(pair, index) for pair, index in self.index.items()]
            counts = [self.count[pair] for pair in self.index]
            return symmetric(
                size, np.concatenate([none, *positions]), np.concatenate([none, *counts]), diagonal
            )
        matrix = np.diag(diagonal)
        for (i, j), index in self.index.items():
            cells = index // self.classes
            block = np.bincount(
                cells, weights=self.count[i, j], minlength=self.sizes[i] * self.sizes[j]
            ).reshape(self.sizes[i], self.sizes[j])
            matrix[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = block
            matrix[offsets[j] : offsets[j + 1], offsets[i] : offsets[i + 1]] = block.T
        return matrix

    def is_dense(self, i: int, j: int, folds: int) -> bool:  # noqa: ARG002 - others have rows
        """Return whether `table` counts two attributes faster than `cells` lists what occurs
        together.
        """
        return False

    def table(self, i: int, j: int, folds: int) -> Array:  # noqa: ARG002 - others have rows
        """Count the rows by the atoms of two attributes, and by C classes and K folds, shape (A_i,
        A_j, C, K), if `is_dense`.
        """
        raise InternalError(f"The pair {i}, {j} has no dense counts.")

    def positions(self, pair: tuple[int, int], index: Ints) -> Ints:
        """Return the positions of the cells of a pair in the matrix `total`, row * D + column.
        `index` has the flat indices of the cells within the pair.
        """
        i, j = pair
        a, b = np.divmod(index // self.classes, self.sizes[j])
        positions: Ints = (a + self.offsets[i]) * self.offsets[-1] + b + self.offsets[j]
        return positions

    def cells(self, i: int, j: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the non-empty cells of a pair: the atoms of attributes i and j, the class, and the
        rows.
        """
        if i > j:
            b, a, y, n = self.cells(j, i)
            return a, b, y, n
        index = self.index[i, j]
        cell, y = np.divmod(index, self.classes)
        a, b = np.divmod(cell, self.sizes[j])
        return a, b, y, self.count[i, j]


def _scaled(
    counts: Mapping[tuple[int, int], Array], weights: WeightSums
) -> Mapping[tuple[int, int], Floats]:
    """Return a mapping with the counts of each pair, converted to effective rows when it is looked
    up.
    """
    return OnDemand(counts, lambda pair: weights.in_rows(counts[pair]))


def is_sparse(matrix: Matrix) -> bool:
    """Return whether a matrix is one of SciPy's sparse matrices, without importing them."""
    return not isinstance(matrix, np.ndarray)


def symmetric(size: int, positions: Ints, counts: Array, diagonal: Floats) -> Matrix:
    """Build a sparse symmetric matrix, shape (size, size), from its diagonal and the entries at
    flat indices above it. Counts with the same index are added.
    """
    from scipy import sparse  # taking long to load, and of wide tables alone

    rows, columns = np.divmod(positions, size)
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
    divisor: int | None = None,
) -> PairCounts:
    """Count rows by class and by the atoms of each pair of attributes.

    Parameters
    ----------
    names, sizes, classes, chunks
        The attributes, the number of atoms of each, the number of classes, and chunks of rows. If
        there are folds, no row may count more than once, unless rows have weights.
    folds
        Number of folds by which rows are counted, at most 127; 1 for no folds.
    seed
        Seed of the folds. The fold of a row depends on the seed and on the row's values or, if rows
        have units (such as persons), on the seed and the unit.
    divisor
        Greatest common divisor of the weights of rows. None if rows have no weights; `weights` in
        the chunks are then numbers of equal rows.
    """
    width, columns = len(names), classes * folds
    atom_counts = [np.zeros((size, columns), dtype=np.int64) for size in sizes]
    cells: dict[tuple[int, int], tuple[Ints, Ints]] = {}
    per_fold = np.zeros(folds, dtype=np.int64)
    weighted = divisor is not None
    dealer = Dealer(names, folds, seed, divisor or 1)
    counter: ResponseCounter | None = None
    rows, sums = 0, WeightSums(0, 0, divisor or 1)
    for codes, label, weights, units, response in chunks:
        # Class and fold together take the place of the class: one pass counts both.
        fold = dealer.chunk(codes, label, response, weights if weighted else None, units)
        column = label * folds + fold
        per_fold += count_keys(fold, weights, folds)
        rows += len(label)
        if weighted and weights is not None:
            sums = sums.plus(WeightSums.of(weights, sums.divisor))
        if response is not None:
            counter = counter or ResponseCounter(sizes, folds, weighted=weighted)
            counter.add(codes, fold, response, weights)
        key = np.empty(len(label), dtype=np.int64)
        for j in range(width):
            tail = np.multiply(codes[j], columns, dtype=np.int64)
            tail += column  # what the keys of all pairs with j end in
            atom_counts[j] += count_keys(tail, weights, sizes[j] * columns).reshape(-1, columns)
            for i in range(j):
                np.multiply(codes[i], sizes[j] * columns, out=key, dtype=np.int64)
                key += tail
                space = sizes[i] * sizes[j] * columns
                cells[i, j] = _with(cells.get((i, j)), counts_by_key(key, weights, space), space)
    none = np.zeros(0, dtype=np.int64)
    ordered = {pair: cells.get(pair, (none, none)) for pair in combinations(range(width), 2)}
    responses = None if counter is None else counter.sums()
    counts = with_folds(names, sizes, classes, atom_counts, ordered, per_fold, responses)
    return replace(counts, rows=rows, weights=sums) if weighted else counts


def with_folds(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    classes: int,
    atom_counts: Sequence[Ints],
    cells: Mapping[tuple[int, int], tuple[Ints, Ints]],
    rows: Ints,
    responses: ResponseSums | None = None,
) -> PairCounts:
    """Build the counts of pairs, for all folds together and for each fold, from counts by class and
    fold.

    Parameters
    ----------
    names, sizes, classes
        The attributes, the number of atoms of each, and the number of classes.
    atom_counts
        For each attribute i, the number of rows for its A_i atoms, and for C classes and F folds
        together, shape (A_i, C F).
    cells
        For each pair, the flat indices of the non-empty cells in ascending order, and their rows,
        as `split_folds` takes them.
    rows
        Number of rows per fold, shape (F,).
    responses
        Sums of a numeric label by fold.
    """
    folds = len(rows)
    by_fold = [joint.reshape(len(joint), classes, folds) for joint in atom_counts]
    totals = tuple(joint.sum(axis=2) for joint in by_fold)
    if folds == 1:
        index = {pair: keys for pair, (keys, _) in cells.items()}
        count = {pair: counts for pair, (_, counts) in cells.items()}
        return PairCounts(
            names, sizes, classes, int(rows.sum()), totals, index, count, None, responses
        )
    index, count, cell, fold, entries = {}, {}, {}, {}, {}
    for pair, counts in cells.items():
        arrays = split_folds(*counts, folds)
        index[pair], count[pair], cell[pair], fold[pair], entries[pair] = arrays
    by_fold_counts = FoldCounts(
        folds, rows, tuple(np.moveaxis(j, 2, 0).copy() for j in by_fold), cell, fold, entries
    )
    return PairCounts(
        names, sizes, classes, int(rows.sum()), totals, index, count, by_fold_counts, responses
    )


def split_folds(
    keys: Ints, rows: Ints, folds: int
) -> tuple[Ints, Ints, Int32s, npt.NDArray[np.int8], Array]:
    """Split the counts of a pair into those of all folds (`index` and `count` of `PairCounts`) and
    those by fold (`cell`, `fold` and `count` of `FoldCounts`).

    `keys` has the flat indices ((a * A_j + b) * C + y) * F + fold of the atoms a and b and the
    class y, in ascending order, and `rows` the number of rows of each.
    """
    cell_keys, of_fold = np.divmod(keys, folds)
    first = np.flatnonzero(np.diff(cell_keys, prepend=-1))
    totals = np.add.reduceat(rows, first) if len(first) else rows
    starts = np.zeros(len(keys), dtype=np.int32)
    starts[first] = 1
    cell = (np.cumsum(starts) - 1).astype(np.int32)
    return cell_keys[first], totals, cell, of_fold.astype(np.int8), as_entries(rows)


def as_entries(counts: Ints) -> Array:
    """Return counts as 32-bit integers if they fit, else as 64-bit ones (sums of weights)."""
    return counts.astype(np.int32) if int(counts.max(initial=0)) < 2**31 else counts


def _with(earlier: KeyCounts | None, more: KeyCounts, space: int) -> KeyCounts:
    """Add up two tallies (distinct keys, and how often each occurs) of the same pair of attributes."""
    if earlier is None:
        return more
    keys, counts = map(np.concatenate, zip(earlier, more, strict=True))
    return counts_by_key(keys, counts, space)


class PartOfPairs(NamedTuple):
    """The counts of pairs in one part of a table, and the new numbers of its atoms, by attribute,
    and of its classes.
    """

    pairs: PairCounts
    atoms: Sequence[Integers]
    classes: Integers


def added_pairs(
    parts: Sequence[PartOfPairs], sizes: tuple[int, ...], classes: int, factor: int = 1
) -> PairCounts:
    """Add up the counts of pairs in all parts of a table, after converting them to the new atoms
    (`sizes` of each attribute) and classes, times `factor`. The result has folds if all parts have
    the same number of folds.
    """
    numbers = {1 if p.pairs.folds is None else p.pairs.folds.size for p in parts}
    folds = numbers.pop() if len(numbers) == 1 else 1
    rows = np.zeros(folds, dtype=np.int64)
    atom_counts = [np.zeros((size, classes, folds), dtype=np.int64) for size in sizes]
    for pairs, atoms, to_class in parts:
        per_fold, by_fold = _by_fold(pairs, folds)
        rows += factor * per_fold
        for joint, part_counts, new_atoms in zip(atom_counts, by_fold, atoms, strict=True):
            np.add.at(joint, np.ix_(new_atoms, to_class, np.arange(folds)), factor * part_counts)
    cells = {}
    for i, j in combinations(range(len(sizes)), 2):
        keys, counts = [], []
        for pairs, atoms, to_class in parts:
            a, b, y, fold, n = _entries(pairs, i, j, folds)
            cell = atoms[i].astype(np.int64)[a] * sizes[j] + atoms[j][b]
            keys.append((cell * classes + to_class[y]) * folds + fold)
            counts.append(factor * n)
        space = sizes[i] * sizes[j] * classes * folds
        cells[i, j] = counts_by_key(np.concatenate(keys), np.concatenate(counts), space)
    flat = [joint.reshape(len(joint), -1) for joint in atom_counts]
    responses = _responses(parts, sizes, folds, factor)
    merged = with_folds(parts[0].pairs.names, sizes, classes, flat, cells, rows, responses)
    sums = [part.pairs.weights for part in parts if part.pairs.weights is not None]
    return replace(
        merged,
        rows=sum(part.pairs.rows for part in parts),
        weights=reduce(WeightSums.plus, sums).scaled(factor) if sums else None,
    )


def _by_fold(pairs: PairCounts, folds: int) -> tuple[Ints, list[Ints]]:
    """Return the rows by fold and, for each attribute, by atom, class and fold. Without folds, all
    rows are in one fold.
    """
    if folds == 1 or pairs.folds is None:
        return np.array([pairs.counted]), [joint[:, :, None] for joint in pairs.atom_counts]
    return pairs.folds.rows, [np.moveaxis(joint, 0, 2) for joint in pairs.folds.atom_counts]


def _entries(pairs: PairCounts, i: int, j: int, folds: int) -> tuple[Ints, ...]:
    """Return the non-empty cells of a pair as five arrays: atom of i, atom of j, class, fold, rows."""
    a, b, y, n = pairs.cells(i, j)
    if folds == 1 or pairs.folds is None:
        return a, b, y, np.zeros(len(n), dtype=np.int64), n
    cell = pairs.folds.cell[i, j]
    count = pairs.folds.count[i, j].astype(np.int64)
    return a[cell], b[cell], y[cell], pairs.folds.fold[i, j].astype(np.int64), count


def _responses(
    parts: Sequence[PartOfPairs], sizes: Sequence[int], folds: int, factor: int
) -> ResponseSums | None:
    """Return the sums of a numeric label over all parts, times `factor`; None if a part has none."""
    moved = []
    for pairs, atoms, _ in parts:
        sums = pairs.responses
        if sums is None:
            return None
        sums = sums if sums.folds == folds else sums.together()
        moved.append(sums.regrouped(atoms, sizes).times(factor))
    return reduce(ResponseSums.plus, moved)
