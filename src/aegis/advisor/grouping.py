"""Sum counts by atom to counts by level. In theory.md, section 2, this is S' G S."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aegis.array_cache import remembered
from aegis.arrays import Array, Floats, Integers, Ints
from aegis.measures import UNPOOLED, pooled_losses
from aegis.measures.counted import Counted
from aegis.summary import AttributeSummary, Candidate
from aegis.summary.attributes import pooled_groups
from aegis.summary.cooccurrence import Matrix, is_sparse

if TYPE_CHECKING:
    from scipy import sparse


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

    Parameters
    ----------
    total
        Function that returns the counts of pairs of D atoms (G), shape (D, D), dense or sparse.
    joint
        The number of rows with each of D atoms in each of C classes, shape (D, C).
    offsets
        Index of the first atom of each of m attributes, and then the number of all atoms, shape (m
        + 1,).
    """

    def __init__(self, total: Callable[[], Matrix], joint: Floats, offsets: Ints) -> None:
        self._total = total
        self._joint = joint
        self._offsets = offsets

    def counts(self, levels: Sequence[Array], which: Sequence[int] | None = None) -> GroupedCounts:
        """Return the counts by level (masked value) of all attributes, or of only those attributes
        whose indices are in `which`.

        Parameters
        ----------
        levels
            For each attribute i, the level of each of its A_i atoms (sets of original values),
            shape (A_i,). For a noise mask, the probability of each of L_i levels for each atom,
            shape (A_i, L_i).
        which
            Indices of the attributes; None for all.
        """
        places = tuple(range(len(levels)) if which is None else which)
        joint = self._joint[self._atoms(places)]
        if any(level.ndim == 2 for level in levels):
            return _expected_counts(self._total_of(places), joint, levels)
        grouping, offsets = stacked_grouping(levels)
        return GroupedCounts(
            lambda: _summed(self._total_of(places), grouping), _whole(grouping.T @ joint), offsets
        )

    def _atoms(self, places: tuple[int, ...]) -> slice | Ints:
        if places == tuple(range(len(self._offsets) - 1)):
            return slice(None)
        return np.concatenate([np.arange(*self._offsets[i : i + 2]) for i in places])

    @remembered
    def _total_of(self, places: tuple[int, ...]) -> Matrix:
        atoms = self._atoms(places)
        return self._total() if isinstance(atoms, slice) else self._total()[atoms][:, atoms]


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


def _expected_counts(total: Matrix, joint: Floats, levels: Sequence[Array]) -> GroupedCounts:
    """Return the expected counts by level and by pairs of levels if some masks add noise: K_i' G
    K_j for attributes i and j, where G (`total`) has the counts of pairs of atoms (sets of original values)
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
    atoms = np.split(joint.sum(axis=1), np.cumsum([len(level) for level in levels]))
    total, joint = _summed(total, grouping), grouping.T @ joint
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
