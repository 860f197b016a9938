"""Count co-occurrences of wide tables from rows in memory; each pair is counted when it is first
used.

There are m (m - 1) / 2 pairs of m attributes, so 200 attributes have 19,900 pairs. Most measures do
not use the counts of pairs by class, but the matrix of all atoms, summed over classes. So the rows
stay in memory, with one or two bytes per attribute. The matrix is counted as a whole, and the
counts of a pair by class only when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.arrays import (
    Array,
    BoundedCache,
    Floats,
    Int32s,
    Integers,
    Ints,
    OnDemand,
    cached_method,
    count_keys,
    counts_by_key,
    group_sums,
)
from aegis.errors import InternalError
from aegis.summary.codes import Dealer, narrow
from aegis.summary.cooccurrence import (
    FoldCounts,
    Matrix,
    PairCounts,
    split_folds,
)
from aegis.summary.responses import ResponseCounter
from aegis.summary.weights import WeightSums

WIDE = 24
"""If there are more attributes than this, pairs are counted only when they are used, because there
are many pairs and few are used.
"""
_TOGETHER = 256
"""Attributes with so many combinations of atoms are counted as one: far fewer pairs are then left."""
_CELLS_PER_ROW = 2.0
"""Two sets of attributes are counted as one only if they have at most so many cells per row."""
_MOST_CELLS = 1 << 26
"""Up to so many cells the matrix of all atoms is dense, and is counted from the rows."""
_CACHE_BYTES = 1 << 27
"""Bytes of counts by pair that are remembered."""

Pair = tuple[int, int]
PairArrays = tuple[Ints, Ints, Int32s, npt.NDArray[np.int8], Array]
"""The index, count, cell, fold and count by fold of a pair, as `split_folds` returns them."""


@dataclass(frozen=True, eq=False)
class AtomRows:
    """The rows of a table, with atoms in place of values. An atom is a set of values that no
    candidate mask distinguishes.

    Attributes
    ----------
    codes
        For each attribute, the atom of each of N rows, shape (N,), in the smallest integer type.
    sizes
        Number of atoms of each attribute.
    label, fold
        The class and the fold of each row, shape (N,).
    classes, folds
        The number of classes, and the number of folds.
    weights
        The weight of each row in units, shape (N,); None if each row counts once.
    in_rows
        The sums of weights with which `gram` converts sums of weights to effective rows, (sum of
        w)^2 / (sum of w^2) in total. None: the sums stay in units of weight.
    response
        The numeric label of each row in units, shape (N,); None if the label has classes.
    """

    codes: Sequence[npt.NDArray[np.unsignedinteger]]
    sizes: Sequence[int]
    label: Ints
    fold: Ints
    classes: int
    folds: int
    weights: Ints | None = None
    in_rows: WeightSums | None = None
    response: Ints | None = None

    def deviation_sums(self, key: Ints, size: int, power: int = 1) -> Floats:
        """Sum the deviations of the numeric label from its mean, to this power, by the key of each
        row, shape (size,). If rows have weights, each deviation counts as often as its row.
        """
        if self.response is None:
            raise InternalError("These rows have no number to predict.")
        mean = np.average(self.response, weights=self.weights) if len(self.response) else 0.0
        of_rows = np.asarray(self.response - mean, dtype=np.float64) ** power
        if self.weights is not None:
            of_rows *= self.weights
        summed = group_sums(key, of_rows, size)
        return summed if self.in_rows is None else self.in_rows.in_rows(summed)

    def pair(self, i: int, j: int) -> PairArrays:
        """Count the rows by the atoms of two attributes, by class and by fold, as `split_folds`
        returns them.
        """
        space = self.sizes[i] * self.sizes[j] * self._columns
        if self.is_dense(i, j):
            counts = self.of_parts(i, j).reshape(-1)
            cells = np.flatnonzero(counts > 0)
            return split_folds(cells, counts[cells].astype(np.int64), self.folds)
        # Numbers of 32 bits are computed in half the time of those of 64.
        key: Any = self.codes[i].astype(np.int32 if space < 2**31 else np.int64)
        key *= self.sizes[j]
        key += self.codes[j]
        key *= self._columns
        key += self._column
        return split_folds(*counts_by_key(key, self.weights, space), self.folds)

    def is_dense(self, i: int, j: int) -> bool:
        """Return whether the parts of two attributes have at most as many combinations, with
        classes and folds, as there are rows.
        """
        p, q = self._part_of[i], self._part_of[j]
        cells = self._parts[p].size * self._parts[q].size * self._columns
        return p == q or cells <= _CELLS_PER_ROW * len(self.label)

    def of_parts(self, i: int, j: int) -> Array:
        """Count the rows by the atoms of two attributes, and by class and fold together, shape
        (A_i, A_j, C F), from the counts of their parts, if `is_dense`.
        """
        p, q = self._part_of[i], self._part_of[j]
        if p > q:
            return self.of_parts(j, i).swapaxes(0, 1)
        first, second = self._parts[p], self._parts[q]
        if p == q:
            counted = self._part_counts.get((p, q), lambda: self._joint(first))
            return first.of_members(i, j, counted.reshape(first.size, -1))
        counted = self._part_counts.get((p, q), lambda: self._by_atoms(first, second))
        return counted[first.rows(i), second.rows(j)]

    def _by_atoms(self, first: _Part, second: _Part) -> Array:
        """Count the rows by the atoms of the attributes of two parts, and by class and fold
        together, shape (A, B, C F).
        """
        counted = self._joint(first, second).reshape(first.size, -1)
        atoms = second.by_atom(first.by_atom(counted).reshape(-1, second.size, self._columns))
        return narrow(atoms, int(atoms.max(initial=0)) + 1)  # many, and they stay

    def _joint(self, first: _Part, second: _Part | None = None) -> Array:
        """Count the rows by the combinations of atoms of a part (or of two), and by class and fold
        together, shape (combinations * C * F,).
        """
        key, size = self._with_column(first), first.size
        joined = first.incidence is not None
        if second is not None:
            key = first.code.astype(np.int32)
            key *= second.size * self._columns
            key += self._with_column(second)
            size, joined = size * second.size, joined or second.incidence is not None
        counted = count_keys(key, self.weights, size * self._columns)
        # Numbers of rows are multiplied faster as floats.
        return counted.astype(np.float64) if joined and self.weights is None else counted

    @cached_method
    def _with_column(self, part: _Part) -> Int32s:
        """The combination of atoms of a part, the class and the fold of each row, as one number."""
        key = part.code.astype(np.int32)
        key *= self._columns
        key += self._column
        return key

    @cached_property
    def _part_counts(self) -> BoundedCache[Pair, Array]:
        """The counts of pairs of parts that were used last."""
        return BoundedCache(_CACHE_BYTES // 2, lambda counted: counted.nbytes)

    @cached_property
    def _parts(self) -> list[_Part]:
        """The attributes, of which those with few atoms are joined, so that the counts of two such
        parts have at most a quarter of the cells that are allowed.
        """
        cells = _CELLS_PER_ROW * len(self.label) / self._columns
        most = isqrt(int(cells / 4))
        sets = _joined(self.sizes, min(most, _TOGETHER))
        return [_Part.of(self, members, None) for members in sets]

    @cached_property
    def _part_of(self) -> dict[int, int]:
        """For each attribute, the index of its part in `_parts`."""
        return {i: index for index, part in enumerate(self._parts) for i in part.members}

    @property
    def _columns(self) -> int:
        return self.classes * self.folds

    @cached_property
    def _column(self) -> Int32s:
        """The class and fold of each row as one number; there are at most 1,024 classes."""
        return (self.label * self.folds + self.fold).astype(np.int32)

    def joint(self, i: int) -> Ints:
        """Count the rows by the atoms of an attribute, and by class and fold together, shape (A_i,
        C F).
        """
        key = self.codes[i].astype(np.int64) * self._columns + self._column
        counted = np.bincount(key, weights=self.weights, minlength=self.sizes[i] * self._columns)
        return counted.astype(np.int64).reshape(-1, self._columns)

    def gram(self, rows: npt.NDArray[np.intp] | None = None) -> Floats:
        """Count the rows that have both atoms of each pair of the D atoms of all attributes, shape
        (D, D): those with the indices `rows`, or all.
        """
        # Attributes with few atoms are joined, so that one table counts several pairs at once.
        parts = [_Part.of(self, members, rows) for members in _joined(self.sizes, _TOGETHER)]
        weights = self.weights if rows is None or self.weights is None else self.weights[rows]
        order = [i for part in parts for i in part.members]
        bounds = np.cumsum([0, *(sum(self.sizes[i] for i in part.members) for part in parts)])
        total = np.empty((int(bounds[-1]), int(bounds[-1])))
        for index, part in enumerate(parts):
            across = slice(bounds[index], bounds[index + 1])
            for other, second in enumerate(parts[index:], index):
                key = part.code.astype(np.int64)
                key *= second.size
                key += second.code
                counted = np.bincount(key, weights=weights, minlength=part.size * second.size)
                counted = counted.astype(np.float64, copy=False)
                block = part.by_atom(second.by_atom(counted.reshape(part.size, second.size).T).T)
                along = slice(bounds[other], bounds[other + 1])
                total[across, along] = block
                total[along, across] = block.T
        offsets = np.cumsum([0, *self.sizes])
        stacked = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in order])
        position = np.argsort(stacked)
        in_order: Floats = total[position[:, None], position]
        return in_order if self.in_rows is None else self.in_rows.in_rows(in_order)


@dataclass(frozen=True, eq=False)
class _Part:
    """Several attributes that are counted as one variable, whose values are combinations of atoms.

    Attributes
    ----------
    members, sizes
        Indices of the attributes, and the number of atoms of each.
    code
        The combination of atoms in each of N rows, shape (N,), in the smallest integer type.
    size
        Number of combinations.
    incidence
        1 if a combination contains an atom, else 0, shape (atoms, size); None for a single
        attribute.
    """

    members: Sequence[int]
    sizes: Sequence[int]
    code: Integers
    size: int
    incidence: Floats | None

    @classmethod
    def of(
        cls, rows: AtomRows, members: Sequence[int], which: npt.NDArray[np.intp] | None
    ) -> _Part:
        sizes = [rows.sizes[i] for i in members]
        codes = [rows.codes[i] if which is None else rows.codes[i][which] for i in members]
        combined = int(np.prod(sizes))
        code = codes[0].astype(np.min_scalar_type(combined))
        for column, size in zip(codes[1:], sizes[1:], strict=True):
            if size > 1:
                code *= size
                code += column
        if len(members) == 1:
            return cls(members, sizes, code, combined, None)
        rest, incidence = np.arange(combined), []
        for size in reversed(sizes):
            rest, atom = np.divmod(rest, size)
            incidence.append(np.arange(size)[:, None] == atom)
        incidence.reverse()
        return cls(members, sizes, code, combined, np.concatenate(incidence).astype(np.float64))

    def by_atom(self, counted: Array) -> Array:
        """Return the rows with each atom of the attributes, from those with each combination."""
        return counted if self.incidence is None else self.incidence.astype(counted.dtype) @ counted

    def rows(self, attribute: int) -> slice:
        """Return which rows of `incidence` are the atoms of an attribute."""
        position = self.members.index(attribute)
        start = sum(self.sizes[:position])
        return slice(start, start + self.sizes[position])

    def of_members(self, i: int, j: int, counted: Array) -> Array:
        """Return the rows with each pair of atoms of two of the attributes, from those with each
        combination, shape (combinations, C).
        """
        assert self.incidence is not None
        first, second = self.incidence[self.rows(i)], self.incidence[self.rows(j)]
        pairs = (first[:, None] * second).astype(counted.dtype)
        return np.asarray(pairs @ counted)


def _joined(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Divide attributes, given their numbers of atoms, into sets with at most `most` combinations.
    An attribute with more atoms is a set by itself.
    """
    parts: list[list[int]] = []
    combined = 1
    for attribute in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if parts and combined * sizes[attribute] <= most:
            parts[-1].append(attribute)
            combined *= sizes[attribute]
        else:
            parts.append([attribute])
            combined = sizes[attribute]
    return parts


@dataclass(frozen=True, eq=False)
class RowPairCounts(PairCounts):
    """The joint counts of pairs of attributes, computed from `atom_rows` at their first use."""

    atom_rows: AtomRows = field(kw_only=True)

    def _weighted(self, weights: WeightSums) -> dict[str, Any]:
        return super()._weighted(weights) | {"atom_rows": replace(self.atom_rows, in_rows=weights)}

    def is_dense(self, i: int, j: int, folds: int) -> bool:
        """Return whether the atoms of two attributes have so few combinations that a dense array
        counts them faster. Sums of weights are always listed.
        """
        return self.weights is None and self._dealt(folds).is_dense(i, j)

    def table(self, i: int, j: int, folds: int) -> Array:
        """See `PairCounts.table`."""
        block = self._dealt(folds).of_parts(i, j)
        return block.reshape(*block.shape[:2], self.classes, folds)

    @cached_method
    def _dealt(self, folds: int) -> AtomRows:
        """The rows in K folds (`folds`) instead of all: fold f of the rows belongs to fold f % K."""
        return replace(self.atom_rows, fold=self.atom_rows.fold % folds, folds=folds)

    @property
    def dense(self) -> bool:
        """Whether the matrix of all atoms is small enough to be counted from the rows."""
        return int(self.offsets[-1]) ** 2 <= _MOST_CELLS

    @cached_property
    def total(self) -> Matrix:
        """See `PairCounts.total`."""
        if not self.dense:
            return self.total_of_pairs()
        return self.atom_rows.gram()

    def total_in(self, fold: int) -> Floats:
        """Count the rows of one fold as `total`, shape (D, D)."""
        return self.atom_rows.gram(np.flatnonzero(self.atom_rows.fold == fold))


def _counts_by_pair(rows: AtomRows, attributes: int) -> list[Mapping[Pair, Any]]:
    """Return five mappings by pair of attributes, one for each array that `split_folds` returns.
    The pairs used last are cached.
    """
    cache: BoundedCache[Pair, PairArrays] = BoundedCache(
        _CACHE_BYTES, lambda arrays: sum(array.nbytes for array in arrays)
    )

    def get(part: int, pair: Pair) -> Any:
        return cache.get(pair, lambda: rows.pair(*pair))[part]

    pairs = list(combinations(range(attributes), 2))
    return [OnDemand(pairs, partial(get, part)) for part in range(5)]


def count_row_pairs(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    classes: int,
    codes: Sequence[Integers],
    label: Ints,
    dealer: Dealer,
    *,
    response: Ints | None = None,
    weights: Ints | None = None,
    content: tuple[Ints, Ints] | None = None,
) -> RowPairCounts:
    """Return the counts of pairs of attributes; each pair is counted when it is first used.

    Parameters
    ----------
    names, sizes, classes
        The attributes, their numbers of atoms, and the number of classes.
    codes, label
        For each attribute, the atom of each row; and the class of each row.
    dealer
        Assigns the rows to folds.
    response, weights
        The numeric label and the weight of each row in units; None without.
    content
        What the dealer computes from the codes, if it is known (`Dealer.content`).
    """
    small = list(map(narrow, codes, sizes))
    folds = dealer.folds
    fold = dealer.rows(small, label, response, weights, content)
    rows = AtomRows(small, sizes, label, fold, classes, folds, weights, response=response)
    per_fold = np.bincount(fold, weights=weights, minlength=folds).astype(np.int64)
    by_fold = [rows.joint(i).reshape(sizes[i], classes, folds) for i in range(len(names))]
    index, count, cell, of_fold, entries = _counts_by_pair(rows, len(names))
    counts = None
    if folds > 1:
        atom_counts = tuple(np.moveaxis(joint, 2, 0).copy() for joint in by_fold)
        counts = FoldCounts(folds, per_fold, atom_counts, cell, of_fold, entries)
    return RowPairCounts(
        names,
        sizes,
        classes,
        len(label),
        tuple(joint.sum(axis=2) for joint in by_fold),
        index,
        count,
        counts,
        ResponseCounter.of(sizes, folds, small, fold, response, weights),
        None if weights is None else WeightSums.of(weights, dealer.divisor),
        atom_rows=rows,
    )
