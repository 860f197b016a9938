"""Encode the levels of masked attributes as indicators, thresholds or numbers, sum counts by atom
to counts by level (S' G S in theory.md, section 2), and score attributes with too many values,
which measures of whole configurations leave out.

An atom is a set of values that all candidates of an attribute treat in the same way. A level is a
masked value; rare masked values together are one level. `level` arrays have the level of each of A
atoms, shape (A,), or, for a noise mask, the probability of each of L levels for each atom, shape
(A, L).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats, Integers, Ints, cached_method
from aegis.measures import UNPOOLED, LabelKind, Measure, Scope, pooled_losses
from aegis.measures.by_fold import ShownLevels, later
from aegis.measures.cooccurrence import Counted
from aegis.summary import AttributeSummary, Candidate, PairCounts, Summary
from aegis.summary.attributes import pooled_groups, trace_alone
from aegis.summary.cooccurrence import FoldCounts, Matrix, is_sparse

if TYPE_CHECKING:
    from scipy import sparse


class CodedMasks(NamedTuple):
    """The masked attributes of a configuration, all in one encoding.

    Attributes
    ----------
    levels
        The level of each atom of each attribute.
    keys
        One key per attribute. If two keys of an attribute are equal, its levels and `numbers` are
        equal.
    numbers
        For each attribute, the number of each level, shape (L,), with NaN for missing numbers; None
        if the levels have no order. Ordered levels are encoded as thresholds.
    linear
        Whether ordered levels are encoded as numbers instead of thresholds.
    """

    levels: Sequence[Array]
    keys: Sequence[Hashable]
    numbers: Sequence[Floats | None]
    linear: bool = False


def encodings(
    candidates: Sequence[Candidate],
    levels: Sequence[Array],
    orders: Sequence[tuple[Array, Floats | None]],
) -> tuple[CodedMasks, CodedMasks]:
    """Return the masked attributes of a configuration with each level as an indicator, and with
    ordered levels as thresholds. `orders` has, for each attribute, its levels in their natural
    order, and the number of each, shape (L,); None without an order.
    """
    ranges, numbers = zip(*orders, strict=True) if orders else ((), ())
    ordered = [(c, number is not None) for c, number in zip(candidates, numbers, strict=True)]
    names = CodedMasks(levels, [(c, False) for c in candidates], [None] * len(candidates))
    return names, CodedMasks(ranges, ordered, numbers)


def mean_numbers(level: Array, count: Floats, total: Floats) -> Floats:
    """Return the mean of the original numbers in each level, shape (L,); NaN if all are missing.
    `count` and `total` have the count and sum of the numbers in each atom, shape (A,).
    """
    membership = indicators(level)
    rows, summed = count @ membership, total @ membership
    return np.divide(summed, rows, out=np.full_like(summed, np.nan), where=rows > 0)


def steps_of(numbers: Floats, rows: Floats) -> Floats:
    """Return how much the number of each of L levels exceeds the number of the level before, shape
    (L, 1). The columns of the encoding by thresholds, multiplied by these steps and added, give the
    number.

    The first step is 0, because the origin does not matter. Numbers are scaled to variance 1, so
    that a penalty means the same for each attribute. A missing number (NaN) counts as the mean of
    all others; a second column then has the steps of an indicator that it is missing. `rows` has
    the rows of each level.

    Examples
    --------
    >>> import numpy as np
    >>> steps_of(np.array([0.0, 2.0, np.nan]), np.array([5.0, 5.0, 2.0])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [-1.0, 1.0]]
    """
    missing = np.isnan(numbers)
    weights = np.where(missing, 0.0, rows) / max(float(rows[~missing].sum()), 1e-300)
    away = np.where(missing, 0.0, numbers - weights @ np.nan_to_num(numbers))
    deviation = float(np.sqrt(weights @ away**2))
    columns = [away / deviation] if deviation > 0 else []
    columns += [missing.astype(np.float64)] if missing.any() and not missing.all() else []
    stacked = np.array(columns).reshape(len(columns), len(numbers)).T
    return np.diff(stacked, axis=0, prepend=stacked[:1])


@dataclass(frozen=True, eq=False)
class CodedAttribute:
    """One attribute under one mask, in one encoding. Levels that no row has are left out.

    Attributes
    ----------
    key
        Index of the attribute in the summary, and a key of its mask and encoding.
    level
        The level of each atom.
    joint
        Rows by fold, class and column of the encoding, shape (K, C, d).
    chance
        For a noise mask, the matrix B of `CountsByFold.chance`, shape (d, k). Else None.
    occurring
        Indices of the L levels of the mask that occur in the rows, shape (L,).
    level_of_column
        Index of the mask's level for each column of the encoding, shape (d,).
    counted_by
        Number of levels by which rows are counted; for a noise mask, the number of atoms.
    ordered
        Whether the columns are thresholds instead of indicators of levels.
    by_level
        The number of rows by level, and the code of each level in the columns of the encoding.
    steps
        If the attribute is encoded as a number: the step at each of t thresholds, shape (t, d), and
        the attribute encoded as thresholds. Else None.
    """

    key: tuple[int, Hashable]
    level: Array
    joint: Floats
    chance: Floats | None
    occurring: npt.NDArray[np.intp]
    level_of_column: npt.NDArray[np.intp]
    counted_by: int
    ordered: bool
    by_level: ShownLevels
    steps: tuple[Floats, CodedAttribute] | None = None

    @classmethod
    def number(cls, of: CodedAttribute, numbers: Floats) -> CodedAttribute:
        """Encode an attribute, which is encoded as thresholds (`of`), by the number of each level,
        shape (L,), with NaN for missing numbers.
        """
        by_level = of.by_level
        steps = steps_of(numbers[of.occurring], by_level.joint.sum(axis=(0, 1)))
        steps = steps[np.searchsorted(of.occurring, of.level_of_column)]
        return replace(
            of,
            key=(of.key[0], (of.key[1], "number")),
            joint=of.joint @ steps,
            chance=None if of.chance is None else steps.T @ of.chance,
            level_of_column=np.arange(steps.shape[1]),
            by_level=ShownLevels(by_level.joint, by_level.matrix @ steps),
            steps=(steps, of),
        )

    @property
    def width(self) -> int:
        """The number d of columns of the encoding."""
        return len(self.level_of_column)

    @property
    def thresholds(self) -> CodedAttribute:
        """The attribute encoded as thresholds, if this encoding is a number; otherwise the
        attribute itself.
        """
        return self if self.steps is None else self.steps[1]

    def square(self, some: slice | None) -> Floats:
        """Return the sums, over rows, of the products of each pair of columns, by fold and class,
        shape (K, c, d, d), on and below the diagonal. `some` is a range of c classes; None counts
        all together (c = 1).
        """
        if self.steps is None:
            # No row shows two levels; of two thresholds it shows the later one where it shows both.
            levels = np.arange(self.joint.shape[2])
            columns = np.tri(len(levels)) if self.ordered else np.eye(len(levels))
            return _in_classes(self.joint, some)[..., levels[:, None]] * columns
        matrix = self.by_level.matrix
        weighted = _in_classes(self.by_level.joint, some)[:, :, None] * matrix.T  # (K, c, d, L)
        return np.tril(weighted @ matrix)

    @cached_property
    def of_atoms(self) -> Floats:
        """What each atom shows in each column of the encoding, shape (A, d)."""
        if self.steps is not None:
            steps, thresholds = self.steps
            return thresholds.of_atoms @ steps
        return self.by_column(indicators(self.level), 1)

    def by_column(self, block: Floats, axis: int) -> Floats:
        """Convert counts by level to counts by column of the encoding, along `axis`."""
        if self.ordered:
            block = later(block, axis)
        complete = self.width == block.shape[axis]
        return block if complete else block.take(self.level_of_column, axis)


def _in_classes(joint: Floats, some: slice | None) -> Floats:
    """Return the counts, shape (K, C, L), of some classes; for None, the sums over all, shape (K,
    1, L).
    """
    return joint.sum(axis=1, keepdims=True) if some is None else joint[:, some]


def indicators(level: Array) -> Floats:
    """Return which level each atom has, as 0 and 1 (or as its probability), shape (A, L)."""
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]


class GroupedCounts(NamedTuple):
    """The number of rows by level, and by pairs of levels, under one configuration. With a noise
    mask, these are expected numbers.

    Attributes
    ----------
    counted
        Counts of the pairs of all d levels, shape (d, d), or a function that counts them.
    joint
        Rows by level and class, shape (d, C).
    offsets
        Index of the first level of each of m attributes, and then d, shape (m + 1,).
    chance
        With a noise mask, a matrix B, shape (d, k): counts of rows with drawn noise have the
        covariance of the expected counts plus B B'. None without noise.
    """

    counted: Counted
    joint: Array
    offsets: Ints
    chance: Floats | None = None

    @property
    def total(self) -> Array:
        """The number of rows that have both levels of each pair, shape (d, d)."""
        return self.counted() if callable(self.counted) else self.counted


def _as_whole_numbers(summed: Floats) -> Array:
    """Return sums as integers if all are whole numbers, else (if rows have weights) as floats."""
    rounded = np.rint(summed)
    return rounded.astype(np.int64) if np.array_equal(rounded, summed) else summed


class RowGroups:
    """Sums counts by atom into counts by level, for many configurations.

    Parameters
    ----------
    total
        Function that returns the counts of pairs of D atoms, shape (D, D), dense or sparse.
    joint
        The number of rows by atom and class, shape (D, C).
    offsets
        Index of the first atom of each of m attributes, and then D, shape (m + 1,).
    """

    def __init__(self, total: Callable[[], Matrix], joint: Floats, offsets: Ints) -> None:
        self._total = total
        self._joint = joint
        self._offsets = offsets

    def counts(self, levels: Sequence[Array], which: Sequence[int] | None = None) -> GroupedCounts:
        """Return the counts by level of the attributes with the indices `which`, or of all."""
        places = tuple(range(len(levels)) if which is None else which)
        joint = self._joint[self._atoms(places)]
        if any(level.ndim == 2 for level in levels):
            return _expected_counts(self._total_of(places), joint, levels)
        stacked, offsets = stacked_levels(levels)
        by_level = summed_by_group(joint, stacked, int(offsets[-1]))
        return GroupedCounts(
            lambda: _summed(self._total_of(places), stacked, int(offsets[-1])),
            _as_whole_numbers(by_level),
            offsets,
        )

    def _atoms(self, places: tuple[int, ...]) -> slice | Ints:
        if places == tuple(range(len(self._offsets) - 1)):
            return slice(None)
        return np.concatenate([np.arange(*self._offsets[i : i + 2]) for i in places])

    @cached_method
    def _total_of(self, places: tuple[int, ...]) -> Matrix:
        atoms = self._atoms(places)
        return self._total() if isinstance(atoms, slice) else self._total()[atoms][:, atoms]


def stacked_levels(levels: Sequence[Integers]) -> tuple[Ints, Ints]:
    """Number the levels of all m attributes in one sequence. Return the number of the level of each
    of the D atoms, shape (D,), and of each attribute's first level, then of all, shape (m + 1,).
    """
    sizes = [int(level.max(initial=0)) + 1 for level in levels]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    stacked = [level + start for level, start in zip(levels, offsets, strict=False)]
    return np.concatenate(stacked).astype(np.int64), offsets


def stacked_grouping(levels: Sequence[Integers]) -> tuple[sparse.csr_array, Ints]:
    """Return `stacked_levels` with the levels as a sparse 0/1 matrix, shape (D, d)."""
    stacked, offsets = stacked_levels(levels)
    return _indicators_of(stacked, int(offsets[-1])), offsets


def _indicators_of(level: Ints, size: int) -> sparse.csr_array:
    """Return the level of each of D atoms as a sparse 0/1 matrix, shape (D, size)."""
    from scipy import sparse  # loading it takes as long as scoring 50 configurations

    entries = np.ones(len(level)), level, np.arange(len(level) + 1)
    return sparse.csr_array(entries, shape=(len(level), size))


def summed_by_group(counts: Array, groups: Integers, size: int) -> Floats:
    """Sum the rows of `counts`, shape (D, C), that belong to the same one of `size` groups."""
    order = np.argsort(groups, kind="stable")
    present, first = np.unique(groups[order], return_index=True)
    summed = np.zeros((size, counts.shape[1]))
    if len(groups):
        summed[present] = np.add.reduceat(counts[order], first, axis=0, dtype=np.float64)
    return summed


def _summed(total: Matrix, level: Ints, size: int) -> Floats:
    """Return the rows that have both levels of each pair, shape (size, size), from those of pairs
    of D atoms (`total`), dense or sparse.
    """
    if not is_sparse(total):
        return summed_by_group(summed_by_group(total, level, size).T, level, size)
    return _weighted(total, _indicators_of(level, size))


def _weighted(total: Matrix, grouping: sparse.csr_array) -> Floats:
    """Return the rows that have both levels of each pair, shape (d, d), from those of pairs of D
    atoms (`total`). `grouping` has the weight of each level for each atom, shape (D, d).
    """
    by_level = (grouping.T @ total) @ grouping
    dense: Floats = by_level.toarray() if is_sparse(by_level) else by_level
    return dense


def _expected_counts(total: Matrix, joint: Floats, levels: Sequence[Array]) -> GroupedCounts:
    """Return the expected number of rows by level and by pairs of levels, if some masks add noise.
    The diagonal has the rows of each level.

    For attributes i and j the result is K_i' G K_j. Here G (`total`) has the counts of pairs of
    atoms, and K the probability of each level for each atom. `joint` has the rows by atom and
    class.
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
    total, joint = _weighted(total, grouping), grouping.T @ joint
    chance = []
    for level, rows, start, stop in zip(levels, atoms, offsets, offsets[1:], strict=False):
        if level.ndim == 2:
            # One report per row: between reports of one attribute nothing co-occurs.
            total[start:stop, start:stop] = np.diag(joint[start:stop].sum(axis=1))
            noise = drawn_chance(level, rows)
            chance.append(np.zeros((len(joint), noise.shape[1])))
            chance[-1][start:stop] = noise
    return GroupedCounts(total, joint, offsets, np.hstack(chance))


def drawn_chance(channel: Floats, rows: Floats) -> Floats:
    """Return a matrix B, shape (L, L), for a noise mask: counts of rows with drawn values have the
    covariance of the expected counts plus B B'.

    Suppose that the label is independent of the reports (the noisy values). Let m_r be the number
    of rows with report r, n_a the number of rows with atom a (`rows`), and K the probabilities of
    reports (`channel`, shape (A, L)). If reports are drawn, the counts of a class have the
    covariance diag(m), times the variance of the class. The expected counts have the covariance K'
    diag(n) K, times the same variance. B B' is the difference, diag(m) - K' diag(n) K.
    """
    reports = np.sqrt(rows @ channel)
    scale = np.divide(1.0, reports, out=np.zeros_like(reports), where=reports > 0)
    # On the scale of correlations, so that a report that hardly ever occurs is as exact as others.
    scaled = np.sqrt(rows)[:, None] * channel * scale
    spread, axes = np.linalg.eigh(scaled.T @ scaled)
    lacking = np.sqrt(np.clip(1 - spread, 0.0, 1.0))
    factor: Floats = reports[:, None] * axes * lacking
    return factor


def group_rows(counts: Array, groups: Integers, size: int) -> Array:
    """Sum the rows of `counts` by group, as `summed_by_group`, in the type of `counts`. Sums of
    whole numbers that are stored as floats are exact below 2**53.
    """
    return summed_by_group(counts, groups, size).astype(counts.dtype)


def masked_classes(joint: Array, label: Candidate | None) -> Array:
    """Sum the columns of `joint`, shape (d, C), by class under the label's mask, if it has one."""
    return joint if label is None else group_classes(joint, label.groups)


def group_classes(joint: Array, groups: Integers) -> Array:
    """Sum the columns of `joint`, shape (d, C), that belong to the same group of classes."""
    used = groups[: joint.shape[1]]  # a group for null may follow: no joint counts such rows
    return summed_by_group(joint.T, used, int(used.max(initial=0)) + 1).T.astype(joint.dtype)


def shared_losses(
    attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
) -> Floats:
    """Return how much Pillai's trace on held-out rows changes because all rare groups of a
    candidate are one level: one figure for each ridge penalty.
    """
    if attribute.excluded:  # nothing of it is shown, so nothing is shared
        return np.zeros(len(UNPOOLED))
    counts = masked_classes(attribute.joint, label)
    groups = pooled_groups(attribute, candidate)
    shared = group_rows(counts, candidate.groups, candidate.size)[groups]
    return pooled_losses(shared, counts.sum(axis=0))


_FOLDS = 10


def summary_of_one(summary: Summary, attribute: AttributeSummary) -> Summary:
    """Return a summary of a single attribute. The fold of each row is drawn at random, because rows
    with the same value and class are interchangeable.
    """
    by_atom = np.zeros((attribute.n_atoms, attribute.joint.shape[1]), dtype=attribute.joint.dtype)
    np.add.at(by_atom, attribute.atoms, attribute.joint)
    joint = np.rint(by_atom).astype(np.int64)
    draw = np.random.default_rng(0)
    dealt = draw.multinomial(joint.ravel(), np.full(_FOLDS, 1 / _FOLDS))
    by_fold = np.moveaxis(dealt.reshape(*joint.shape, _FOLDS), 2, 0).astype(np.int64)
    folds = FoldCounts(_FOLDS, by_fold.sum(axis=(1, 2)), (by_fold,), {}, {}, {})
    sizes, label_classes = (attribute.n_atoms,), joint.shape[1]
    rows = int(joint.sum())
    pairs = PairCounts((attribute.name,), sizes, label_classes, rows, (joint,), {}, {}, folds)
    pairs = replace(pairs, in_rows=summary.weights is not None)
    return replace(summary, attributes={attribute.name: attribute}, pairs=pairs)


def known_alone(attribute: AttributeSummary, measure: Measure) -> bool:
    """Return whether the measure of a single attribute can be computed from the summary: not if the
    label is a number and scores of whole configurations leave the attribute out, because a summary
    has no sums of the label by its values.
    """
    return not (attribute.excluded and measure.label is LabelKind.NUMBER)


def has_excluded(summary: Summary) -> bool:
    """Return whether scores of whole configurations leave out attributes, which have too many
    values.
    """
    return any(attribute.excluded for attribute in summary.attributes.values())


def exclusion_note(summary: Summary, measure: Measure) -> tuple[str, ...]:
    """Return a sentence about the attributes that scores of whole configurations leave out: how
    many they are, and how much they could add to the score. Empty if none are left out.
    """
    excluded = [a for a in summary.attributes.values() if a.excluded]
    if not excluded or measure.scope is not Scope.CONFIGURATION:
        return ()
    total, out = len(summary.attributes), len(excluded)
    if not summary.label.there:
        pairs, used = math.comb(total, 2), math.comb(total - out, 2)
        return (
            f"scores of whole configurations use the {total - out:,} of {total:,} attributes that have "
            f"the fewest values, because all of them together have too many values. They measure {used:,} of "
            f"{pairs:,} pairs of attributes, and nothing about the other {pairs - used:,}.",
        )
    cause = (
        "by themselves: all of them together have too many values to be factorised at once. Of attributes "
        "that do so no better than chance, those with the fewest values come first."
    )
    if summary.label.kind is LabelKind.NUMBER:
        return (
            f"scores use the {total - out:,} of {total:,} attributes that explain the number best {cause} "
            "Aegis does not know what the others add",
        )
    traces = np.array([trace_alone(a, summary.max_levels) for a in excluded])
    label_classes = int(np.count_nonzero(summary.label.counts))
    return (
        f"scores of whole configurations use the {total - out:,} of {total:,} attributes that predict the label "
        f"best {cause} Of the other {out:,}, "
        f"{excluded[int(traces.argmax())].name!r} predicts best, with a trace of {traces.max():.3g}; the traces of all of "
        f"them add up to {traces.sum():.3g}. Their masks could change the score by at most this sum, or by at most "
        f"{label_classes - 1} if attributes predict more together than alone.",
    )
