"""Sum counts by atom to counts by level. In theory.md, section 2, this is S' G S."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from aegis.array_cache import RememberedArrays
from aegis.arrays import Array, Floats, Integers, Ints
from aegis.measures import UNPOOLED, pooled_losses
from aegis.measures.counted import Counted
from aegis.summary import AttributeSummary, Candidate, Matrix, pooled_groups
from aegis.summary.cooccurrence import is_sparse

if TYPE_CHECKING:
    from scipy import sparse

_DENSE_INDICATORS = 1 << 16
"""Largest number of entries of an attribute's indicator matrix for which the matrix is dense."""


class GroupedCounts(NamedTuple):
    """The number of rows by level (masked value), and by pairs of levels, under one configuration.
    With a noise mask, these are expected numbers.

    Attributes
    ----------
    counted
        Counts of the pairs of all d levels, shape (d, d), or a function that counts them.
    joint
        Number of rows with each of d levels in each of C classes, shape (d, C).
    offsets
        Index of the first level of each of m attributes, and then d, shape (m + 1,).
    chance
        With a noise mask, a factor B of the variance that expected counts lack, shape (d, k):
        counts of drawn rows vary more, by B B'. None without noise.
    """

    counted: Counted
    joint: Array
    offsets: Ints
    chance: Floats | None = None

    @property
    def total(self) -> Array:
        """The number of rows that have both levels of each pair of levels, shape (d, d) for d
        levels.
        """
        return self.counted() if callable(self.counted) else self.counted


class StackedCounts(Protocol):
    """The number of rows by atom, with the atoms of all attributes numbered in one sequence. An
    atom is a set of values that all candidates of an attribute treat in the same way.
    """

    @property
    def total(self) -> Matrix:
        """The number of rows that have both atoms of each pair of atoms, shape (D, D) for D atoms
        (sets of original values), dense or sparse.
        """

    @property
    def stacked_joint(self) -> Floats:
        """The number of rows with each of D atoms (sets of original values) in each of C classes,
        shape (D, C).
        """


@dataclass(frozen=True, eq=False)
class AtomCounts:
    """Counts by atom and by pairs of atoms as arrays, of the shapes (D, C) and (D, D), for D atoms
    of all attributes and C classes. An atom is a set of values that all candidates treat in the
    same way.
    """

    total: Matrix
    stacked_joint: Floats


def _whole(summed: Floats) -> Array:
    """Return an array of sums as integers if all of them are whole numbers; otherwise (if rows have
    weights) as floats.
    """
    rounded = np.rint(summed)
    return rounded.astype(np.int64) if np.array_equal(rounded, summed) else summed


class RowGroups:
    """Sums counts by atom into counts by level, for many configurations (S' G S in theory.md). An
    atom is a set of values that all candidates of an attribute treat in the same way; a level is a
    masked value.

    G is the matrix of counts of pairs of atoms. For each attribute and mask, the cache has the rows
    of G summed by level, while the columns are still atoms. So the counts of a configuration need
    one cached row for each of its levels, not all rows of G.

    Parameters
    ----------
    pairs
        Counts of pairs of atoms (G); if they are sparse, nothing is cached.
    offsets
        Index of the first atom of each of m attributes, and then the number of all atoms, shape (m
        + 1,).
    """

    def __init__(self, pairs: StackedCounts, offsets: Ints) -> None:
        self._pairs = pairs
        self._offsets = offsets
        self._rows = RememberedArrays()
        self._joints: dict[Hashable, Array] = {}
        self._told: dict[Hashable, Matrix | None] = {}
        self._some: dict[tuple[int, ...], AtomCounts] = {}

    def counts(
        self, levels: Sequence[Array], keys: Sequence[Hashable], which: Sequence[int] | None = None
    ) -> GroupedCounts:
        """Return the counts by level (masked value) of all attributes, or of only those attributes
        whose indices are in `which`.

        Parameters
        ----------
        levels
            For each attribute i, the level of each of its A_i atoms (sets of original values),
            shape (A_i,). For a noise mask, the probability of each of L_i levels for each atom,
            shape (A_i, L_i).
        keys
            A key for each attribute's levels. If two keys of an attribute are equal, the levels
            must be equal.
        which
            Indices of the attributes; None for all.
        """
        places = range(len(levels)) if which is None else which
        if any(level.ndim == 2 for level in levels):
            return _expected_counts(self._of(tuple(places)), levels)
        if is_sparse(self._pairs.total) or not len(levels):
            pairs = self._of(tuple(places))
            grouping, starts = stacked_grouping(levels)
            total = _summed(pairs.total, grouping)
            return GroupedCounts(total, _whole(grouping.T @ pairs.stacked_joint), starts)
        own = list(zip(places, levels, keys, strict=True))
        joint = [self._joint(*attribute) for attribute in own]
        offsets = np.cumsum([0, *map(len, joint)]).astype(np.int64)
        return GroupedCounts(lambda: self._total(own), np.concatenate(joint), offsets)

    def _of(self, places: tuple[int, ...]) -> StackedCounts:
        """Return the counts by atom (set of original values) of only the attributes with the
        indices `places`.
        """
        if places == tuple(range(len(self._offsets) - 1)):
            return self._pairs
        if places not in self._some:
            atoms = np.concatenate([np.arange(*self._offsets[i : i + 2]) for i in places])
            total = self._pairs.total[atoms][:, atoms]
            self._some = {places: AtomCounts(total, self._pairs.stacked_joint[atoms])}
        return self._some[places]

    def _total(self, own: Sequence[tuple[int, Array, Hashable]]) -> Floats:
        """Return the counts of all pairs of levels (masked values) of some attributes, shape (d, d)
        for d levels. An attribute may occur several times.

        `own` has, for each attribute, its index, the level of each atom (set of original values),
        and a key of these levels.
        """
        by_atom = np.concatenate([self._grouped(*attribute) for attribute in own])
        columns = []
        for i, level, key in own:
            of_atoms = by_atom[:, self._offsets[i] : self._offsets[i + 1]]
            told = self._indicators(i, level, key)
            columns.append(of_atoms if told is None else of_atoms @ told)
        return np.concatenate(columns, axis=1)

    def _grouped(self, index: int, level: Array, key: Hashable) -> Floats:
        """Return how many rows have each level (masked value) of one attribute together with each
        atom of any attribute, shape (L, D), for L levels and D atoms (sets of original values) of
        all attributes.

        `level` has the level of each atom of the attribute with this index, and `key` is a key of
        these levels.
        """
        told = self._indicators(index, level, key)
        start, stop = self._offsets[index : index + 2]
        if told is None:
            own: Floats = self._pairs.total[start:stop]
            return own
        return self._rows.get((index, key), lambda: told.T @ self._pairs.total[start:stop])

    def _joint(self, index: int, level: Array, key: Hashable) -> Array:
        """Return the number of rows of an attribute by level (masked value) and label class, shape
        (L, C). `level` has the level of each atom (set of original values), and `key` is a key of
        these levels.
        """
        known = (index, key)
        if known not in self._joints:
            own = self._pairs.stacked_joint[slice(*self._offsets[index : index + 2])]
            told = self._indicators(index, level, key)
            self._joints[known] = _whole(own if told is None else told.T @ own)
        return self._joints[known]

    def _indicators(self, index: int, level: Array, key: Hashable) -> Matrix | None:
        """Return which of L levels (masked values) each of A atoms (sets of original values) has,
        as 0 and 1, shape (A, L). Return None if each atom is a separate level, so that nothing
        needs to be summed.

        `key` is a key of the levels of the attribute with this index.
        """
        known = (index, key)
        if known not in self._told:
            size = int(level.max(initial=0)) + 1
            if size == len(level) and np.array_equal(level, np.arange(size)):
                self._told[known] = None
            elif size * len(level) <= _DENSE_INDICATORS:
                self._told[known] = (level[:, None] == np.arange(size)).astype(np.float64)
            else:
                self._told[known] = stacked_grouping([level])[0]
        return self._told[known]


def stacked_grouping(levels: Sequence[Integers]) -> tuple[sparse.csr_array, Ints]:
    """Return the level of each atom as a sparse 0/1 matrix, shape (D, d), for D atoms and d levels
    of all m attributes together (S in theory.md). Also return the index of the first level of each
    attribute, followed by d, shape (m + 1,).

    `levels` has the level of each atom, for each attribute. An atom is a set of values that all
    candidates treat in the same way; a level is a masked value.
    """
    from scipy import sparse  # taking long to load, and seldom asked for

    sizes = [int(level.max(initial=0)) + 1 for level in levels]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    stacked = np.concatenate([own + start for own, start in zip(levels, offsets, strict=False)])
    grouping = sparse.csr_array(
        (np.ones(len(stacked)), stacked, np.arange(len(stacked) + 1)),
        shape=(len(stacked), int(offsets[-1])),
    )
    return grouping, offsets


def _summed(total: Matrix, grouping: sparse.csr_array) -> Floats:
    """Return the counts of pairs of levels S' G S, shape (d, d), from the counts of pairs of atoms
    G (`total`), shape (D, D), dense or sparse. The matrix S (`grouping`), shape (D, d), says as 0
    and 1 which level (masked value) each atom (set of original values) has.
    """
    total_by_level = (grouping.T @ total) @ grouping
    dense: Floats = total_by_level.toarray() if is_sparse(total_by_level) else total_by_level
    return dense


def _expected_counts(pairs: StackedCounts, levels: Sequence[Array]) -> GroupedCounts:
    """Return the expected counts by level and by pairs of levels if some masks add noise: K_i' G
    K_j for attributes i and j, where G has the counts of pairs of atoms (sets of original values)
    and K the probability of each level (masked value) for each atom. On the diagonal are the
    expected rows of each level. `levels` has K for each attribute with noise, and the level of each
    atom for all others.
    """
    from scipy import sparse  # as above

    parts = [
        sparse.csr_array(level)
        if level.ndim == 2
        else sparse.csr_array((np.ones(len(level)), level, np.arange(len(level) + 1)))
        for level in levels
    ]
    offsets = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])]).astype(np.int64)
    grouping = sparse.block_diag(parts, format="csr")
    total = _summed(pairs.total, grouping)
    joint = grouping.T @ pairs.stacked_joint
    atoms = np.split(pairs.stacked_joint.sum(axis=1), np.cumsum([len(level) for level in levels]))
    chance = []
    for level, rows, start, stop in zip(levels, atoms, offsets, offsets[1:], strict=False):
        if level.ndim == 2:
            # One report per row: between reports of one attribute nothing co-occurs.
            total[start:stop, start:stop] = np.diag(joint[start:stop].sum(axis=1))
            own = drawn_chance(level, rows)
            chance.append(np.zeros((len(joint), own.shape[1])))
            chance[-1][start:stop] = own
    return GroupedCounts(total, joint, offsets, np.hstack(chance))


def drawn_chance(channel: Floats, rows: Floats) -> Floats:
    """Return a matrix B, shape (L, k). If a noise mask draws its values, counts have the covariance
    of the expected counts plus B B'.

    Suppose that the label is independent of the reports (the noisy values). Let m_r be the number
    of rows with report r, n_a the number of rows with atom a, and K the channel. If reports are
    drawn, the counts of a class have the covariance diag(m), times the variance of the class. The
    expected counts have the covariance K' diag(n) K, times the same variance. So they lack the
    difference, which B B' equals:

        diag(m) - K' diag(n) K.

    Parameters
    ----------
    channel
        The probability of each of L reports for each of A atoms (sets of values that all candidates
        treat in the same way), shape (A, L).
    rows
        Number of rows with each atom, shape (A,).
    """
    reports = np.sqrt(rows @ channel)
    scale = np.divide(1.0, reports, out=np.zeros_like(reports), where=reports > 0)
    # On the scale of correlations, so that a report that hardly ever occurs is as exact as others.
    told = np.sqrt(rows)[:, None] * channel * scale
    spread, axes = np.linalg.eigh(told.T @ told)
    lacking = np.sqrt(np.clip(1 - spread, 0.0, 1.0))
    factor: Floats = reports[:, None] * axes * lacking
    return factor


def group_rows(counts: Array, groups: Integers, size: int) -> Array:
    """Sum the rows of a matrix by group: `counts` has shape (V, C), for V values and C classes,
    `groups` has the group of each value, and the result has shape (size, C) for `size` groups.

    Sums of floats are exact below 2**53.
    """
    return _added(counts, groups, size).astype(counts.dtype)


def _added(counts: Array, groups: Integers, size: int) -> Floats:
    columns = [np.bincount(groups, weights=column, minlength=size) for column in counts.T]
    return np.stack(columns, axis=1)


def masked_classes(joint: Array, label: Candidate | None) -> Array:
    """Sum the columns of `joint`, shape (d, C), for d levels and C classes, that belong to the same
    class under the label's mask. If the label has no mask, return `joint`.
    """
    return joint if label is None else group_classes(joint, label.groups)


def group_classes(joint: Array, groups: Integers) -> Array:
    """Sum the columns of `joint`, shape (d, C), for d levels and C classes, that belong to the same
    group. `groups` has the group of each class.
    """
    used = groups[: joint.shape[1]]  # a group for null may follow: no joint counts such rows
    return _added(joint.T, used, int(used.max(initial=0)) + 1).T.astype(joint.dtype)


def shared_losses(
    attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
) -> Floats:
    """Return how much the held-out trace changes because the rare groups of a candidate share one
    level, as computed by `pooled_losses`: one figure for each of six ridge penalties.

    `label` is the mask of the label, if it has one.
    """
    if attribute.aside:  # nothing of it is shown, so nothing is shared
        return np.zeros(len(UNPOOLED))
    counts = masked_classes(attribute.joint, label)
    groups = pooled_groups(attribute, candidate)
    shared = group_rows(counts, candidate.groups, candidate.size)[groups]
    return pooled_losses(shared, counts.sum(axis=0))
