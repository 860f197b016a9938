"""Hold the counts of pairs of levels of one configuration, within each fold and outside it.

In the names of this package, a part is a fold of cross-validation. A level is a masked value.
Shapes use these letters: K folds, C classes of the label, T classes that are compared with the rest
(all other classes), d levels, and P penalties, each of which gives one direction.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.array_cache import RememberedArrays
from aegis.arrays import Flags, Floats, Ints
from aegis.errors import InternalError
from aegis.measures.cholesky import factor, solve

OWN_COVARIANCES = 16
"""Up to this number of scored classes, each class has its own covariance; if there are more, all
share one.
"""
_ROUNDING = 1e-13
"""Relative difference of two means that counts as rounding."""


class ClassCounts:
    """Counts of pairs of levels by fold and class, of which only a few classes are in memory at a
    time.

    Parameters
    ----------
    count
        Function that returns, for K folds, c consecutive classes, and pairs of q and d levels, how
        many rows have both levels, shape (K, c, q, d). It can also return the counts of all classes
        together, with c = 1.
    classes
        The number of classes, C.
    at_once
        Number of classes to count at once, at least 1.
    """

    def __init__(self, count: Callable[[slice | None], Floats], classes: int, at_once: int) -> None:
        self._count = count
        self.classes = classes
        self._at_once = at_once
        self._known: tuple[int, Floats] | None = None

    @classmethod
    def of(cls, total: Floats) -> ClassCounts:
        """Return `ClassCounts` for counts that are already in memory."""

        def count(some: slice | None) -> Floats:
            return total.sum(axis=1, keepdims=True) if some is None else total[:, some]

        return cls(count, total.shape[1], max(total.shape[1], 1))

    def of_class(self, own: int) -> Floats:
        """Return the counts of one class, shape (K, q, d). Calls are fastest in ascending order of
        classes.
        """
        start = own - own % self._at_once
        if self._known is None or self._known[0] != start:
            self._known = None  # so that its memory is free before the next classes are counted
            self._known = start, self._count(slice(start, start + self._at_once))
        return self._known[1][:, own - start]

    @cached_property
    def every(self) -> Floats:
        """The counts of all classes added up, shape (K, q, d), as in `count`."""
        return self._count(None)[:, 0]

    @property
    def whole(self) -> Floats:
        """The counts of each of the C classes, shape (K, C, q, d), as in `count`."""
        return np.stack([self.of_class(own) for own in range(self.classes)], axis=1)


class Square(NamedTuple):
    """How many rows in each of K folds have both levels of each pair, for d levels. Many
    configurations share the first c levels.

    Attributes
    ----------
    corner
        Co-occurrence of the shared levels, shape (K, c, c); c may be 0.
    border
        Co-occurrence of the other levels with all levels, shape (K, d - c, d).
    """

    corner: Floats
    border: Floats

    def less(self, other: Square) -> Square:
        """Subtract the counts of `other`."""
        return Square(self.corner - other.corner, self.border - other.border)

    def diagonal(self) -> Floats:
        """Return how many rows of each of K folds have each of d levels, shape (K, d)."""
        first = self.corner.shape[-1]
        parts = self.corner, self.border[..., first:]
        return np.concatenate([np.diagonal(own, axis1=1, axis2=2) for own in parts], axis=1)

    def times(self, across: Floats) -> Floats:
        """Multiply n directions per fold, shape (K, n, d), by the counts; the result has the same
        shape.
        """
        first = self.corner.shape[-1]
        products: Floats = across[..., first:] @ self.border
        if first:
            products[..., :first] += across[..., :first] @ self.corner
        return products

    def of_part(self, part: int, *, below: bool) -> Floats:
        """Return the counts of one fold as one symmetric matrix, shape (d, d)."""
        first, levels = self.corner.shape[-1], self.border.shape[-1]
        total = np.zeros((levels, levels))
        total[:first, :first] = self.corner[part]
        total[first:] = self.border[part]
        return total + np.tril(total, -1).T if below else total


class Side(NamedTuple):
    """Counts by fold of one side of a comparison: of the rows of one class, or of all other rows.

    Attributes
    ----------
    rows
        Number of rows in each of K folds, shape (K,).
    joint
        How many rows in each fold have each of d levels, shape (K, d).
    square
        Co-occurrence of the levels.
    """

    rows: Floats
    joint: Floats
    square: Square

    def less(self, other: Side) -> Side:
        """Subtract the counts of `other`."""
        return Side(
            self.rows - other.rows, self.joint - other.joint, self.square.less(other.square)
        )

    def products(self, across: Floats, *, below: bool) -> Floats:
        """Multiply n directions per fold, shape (K, n, d), by the counts of pairs of levels.

        If `below` is True, the product uses only the entries below the diagonal and half of the
        diagonal. Then the scalar product of the result with the same direction is half of the
        quadratic form.
        """
        products = self.square.times(across)
        if below:
            products -= 0.5 * self.square.diagonal()[:, None] * across
        return products


class Response(NamedTuple):
    """Sums of a numeric label by fold, after a constant near the label's mean is subtracted.

    Attributes
    ----------
    sums
        The sum of the label over the rows that have each of d levels, in each of K folds, shape (K,
        d).
    total, squares
        The sum of the label, and the sum of the squared label, over all rows of each fold, shape
        (K,).
    """

    sums: Floats
    total: Floats
    squares: Floats


class ShownLevels(NamedTuple):
    """The masked values of one attribute, encoded as indicators of levels or as a few numbers per
    level.

    Attributes
    ----------
    joint
        How many rows have each of C classes and each of L levels, in each of K folds, shape (K, C,
        L).
    told
        The d numbers that encode each level, shape (L, d); None if each level has an indicator.
    """

    joint: Floats
    told: Floats | None = None

    @property
    def matrix(self) -> Floats:
        """The numbers for each level, shape (L, d)."""
        return np.eye(self.joint.shape[2]) if self.told is None else self.told


@dataclass(frozen=True, eq=False)
class PartCounts:
    """Counts of pairs of levels of one configuration, by fold and class.

    There are K folds, C classes, and d levels of all attributes together. A row either has a level
    or does not have it. Thresholds and numbers are weighted sums of levels, so their counts are the
    same weighted sums of the counts of levels.

    Attributes
    ----------
    rows
        Number of rows per fold and class, shape (K, C).
    joint
        Number of rows per fold, class and level, shape (K, C, d).
    total
        Co-occurrence of levels per fold and class, shape (K, C, d, d), symmetric, or an object that
        counts it. The matrix rows of common levels are left out.
    chance
        As in `Cooccurrence`, shape (d, k): how much more the counts of drawn rows vary than these
        expected counts. None if the counts are not expected counts.
    below
        Whether `total` has only the entries on and below the diagonal.
    outside
        The `OtherParts` of these rows, if it has already been computed. Then the levels that all
        rows or no rows have are already removed, too.
    shown
        The masked values of each attribute, with d columns in total; None if unknown.
    response
        Sums of a numeric label, whose rows all count as one class; None if the label has classes.
    common
        The first levels, if other configurations share them; `total` leaves out their matrix rows.
    blocks
        If there are common levels, the key and the number of levels of each other attribute.
    """

    rows: Floats
    joint: Floats
    total: Floats | ClassCounts
    chance: Floats | None = None
    below: bool = False
    outside: OtherParts | None = None
    shown: Sequence[ShownLevels] | None = None
    response: Response | None = None
    common: CommonLevels | None = None
    blocks: Sequence[tuple[Hashable, int]] = ()

    def __post_init__(self) -> None:
        levels = self.joint.shape[-1]
        first = 0 if self.common is None else self.common.counts.joint.shape[-1]
        shape = (*self.joint.shape[:2], levels - first, levels)
        if (
            self.joint.shape[:2] != self.rows.shape
            or (isinstance(self.total, np.ndarray) and self.total.shape != shape)
            or (self.chance is not None and len(self.chance) != levels)
        ):
            raise InternalError(
                f"Counts by fold do not fit: rows {self.rows.shape}, joint {self.joint.shape}, total {shape}."
            )

    @cached_property
    def by_class(self) -> ClassCounts:
        """`total` as an object that counts a few classes at a time."""
        return ClassCounts.of(self.total) if isinstance(self.total, np.ndarray) else self.total

    def square(self, own: int | None) -> Square:
        """Return the co-occurrence of levels for the class `own`, or for all classes if it is None."""
        border = self.by_class.every if own is None else self.by_class.of_class(own)
        if self.common is None:
            return Square(np.zeros((len(border), 0, 0)), border)
        return Square(self.common.counts.square(own).border, border)


def side(counts: PartCounts, own: int | None) -> Side:
    """Return the counts of the class `own`, or of all rows if it is None."""
    if own is None:
        return Side(counts.rows.sum(axis=1), counts.joint.sum(axis=1), counts.square(None))
    return Side(counts.rows[:, own], counts.joint[:, own], counts.square(own))


def against_the_rest(counts: PartCounts, told: Ints) -> Iterator[tuple[Side, Side]]:
    """Yield, for each class in `told`, the counts of all other classes (the rest) and of this
    class.

    The rest are the rows of all other classes. Only few classes are in memory at a time.
    """
    if not len(told):
        return
    if counts.rows.shape[1] == 2:
        yield side(counts, 0), side(counts, 1)
        return
    every = side(counts, None)
    for target in told.tolist():
        own = side(counts, target)
        yield every.less(own), own


@dataclass(frozen=True, eq=False)
class OtherParts:
    """How many rows lie outside each fold, for each class that is compared with all other classes.

    Attributes
    ----------
    told
        As in `Scores`, shape (T,).
    rows
        Number of rows of the rest and of the class outside each fold, shape (K, T, 2).
    scored
        Whether both the rest and the class have rows outside the fold, shape (K, T).
    weights
        Weights to average the counts of all folds outside each fold: 1 / `rows` for each other
        fold, 0 for the fold itself, shape (K, T, 2, K).
    """

    told: Ints
    rows: Floats
    scored: Flags
    weights: Floats

    @classmethod
    def of(cls, rows: Floats) -> OtherParts:
        """Compute these numbers from `rows`, the number of rows in each of K folds and C classes."""
        told, scored = told_apart(rows)
        outside = np.einsum("kc,tsc->kts", rows.sum(axis=0) - rows, sides_of(told, rows.shape[1]))
        share = np.divide(scored[..., None], outside, out=np.zeros_like(outside), where=outside > 0)
        return cls(
            told, outside, scored, share[..., None] * (1.0 - np.eye(len(rows)))[:, None, None]
        )

    def means(self, joint: Floats) -> Floats:
        """Return the means of the level indicators outside each fold, for the rest and for the
        class.

        The shape is (K, T, 2, d), for K folds, T classes that are compared with the rest, and d
        levels. Means that differ only by rounding are made equal.
        """
        by_side = np.tensordot(joint, sides_of(self.told, joint.shape[1]), (1, 2))  # (K, d, T, 2)
        means: Floats = np.einsum("ktsj,jdts->ktsd", self.weights, by_side, optimize=True)
        rest, own = means[:, :, 0], means[:, :, 1]
        own[...] = np.where(
            np.abs(own - rest) <= _ROUNDING * (np.abs(own) + np.abs(rest)), rest, own
        )
        return means

    @property
    def pooled(self) -> bool:
        """Whether there are so many classes that all classes share one covariance."""
        return len(self.told) > OWN_COVARIANCES

    @property
    def factors(self) -> int:
        """The number of covariance matrices that are factorised, over all folds."""
        return len(self.scored) * (1 if self.pooled else len(self.told))

    def scored_in(self, targets: slice) -> list[int]:
        """Return the folds that have a direction for at least one of the classes `targets`."""
        return np.flatnonzero(self.scored[:, targets].any(axis=1)).tolist()

    def ridges(self, part: int, penalties: Sequence[float]) -> list[float]:
        """Return the ridges to add to a covariance: each penalty divided by the number of rows
        outside a fold.
        """
        rows = self.rows[part, 0].sum()
        return [penalty / rows for penalty in penalties]

    def within(
        self, counted: Sequence[Floats], means: Floats, targets: slice, first: int = 0
    ) -> Floats:
        """Return the covariance within classes outside each fold, shape (K, d - first, d).

        For one class against the rest, it is the mean of the two covariances S_1 and S_0. For
        several classes, it is the covariance of all rows. This covariance equals p S_1 + q S_0,
        where p and q are the shares of rows, plus p q times the square of the difference of the
        means. The last term changes only the length of a direction. If the counts have only the
        entries on and below the diagonal, only these entries of the result are correct.

        Parameters
        ----------
        counted
            Co-occurrence by fold of the levels from `first` on with all levels. It has one entry, for
            all rows, or two entries, for the rest and the class. Each has shape (K, d - first, d).
        means
            Means of all levels, shape (K, T, 2, d).
        targets
            The indices of classes in `told` that share a covariance.
        first
            Index of the first level in the counts.
        """
        if len(counted) == 2:
            weights = 0.5 * self.weights[:, targets.start]  # (K, 2, K)
            middle = 0.5 * means[:, targets.start], means[:, targets.start]
        else:
            seen = np.arange(len(self.scored)), self.scored.argmax(axis=1)
            share = self.rows[seen] / np.maximum(self.rows[seen].sum(axis=1, keepdims=True), 1.0)
            weights = self.weights[seen][:, :1] * share[:, :1, None]  # 1 / n
            mean = share[:, None] @ means[seen]  # (K, 1, d)
            middle = mean, mean
        within = np.zeros(counted[0].shape)
        flat = within.reshape(len(within), -1)
        for place, own in enumerate(counted):
            flat += weights[:, place] @ own.reshape(len(own), -1)
        within -= middle[0][..., first:].swapaxes(1, 2) @ middle[1]
        return within


@dataclass(frozen=True, eq=False)
class _Base:
    """The factors of (A + r I), and their solutions for means: see `CommonLevels.directions`.

    Attributes
    ----------
    factors
        For each scored fold, one upper triangle per penalty.
    alone
        (A + r I)^-1 (m_1 - m_0) of the common levels for G classes, shape (K, P, c, G).
    """

    factors: dict[int, list[Floats]]
    alone: Floats


class CommonLevels:
    """Levels that many configurations share, and the factors of their covariance.

    The configurations of a search have some masked attributes in common, such as features without a
    mask. In the covariance matrix within classes, the block of their levels is then the same for
    all configurations, and the other levels border it. Directions are computed by block
    elimination, so the common block is factorised only once.

    Parameters
    ----------
    counts
        Counts of only the common levels, without noise. Their `total` has only the entries on and
        below the diagonal.
    """

    def __init__(self, counts: PartCounts) -> None:
        if not counts.below or counts.chance is not None:
            raise InternalError("Common levels are counted below the diagonal, without noise.")
        self.counts = counts
        self.outside = counts.outside or OtherParts.of(counts.rows)
        self._means = self.outside.means(counts.joint)
        self._eliminated = RememberedArrays()
        self._bases: dict[tuple[int, tuple[float, ...]], _Base] = {}

    @property
    def numbers(self) -> int:
        """The number of floats that the factors for one penalty need."""
        return self.outside.factors * int(self.counts.joint.shape[-1]) ** 2

    def directions(
        self,
        counts: PartCounts,
        squares: Sequence[Square],
        means: Floats,
        gaps: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> Floats:
        """Return the directions b = (W + r I)^-1 g that separate each of G classes from the rest.
        The shape is (K, G, P, d), for K folds, P penalties and d levels.

        W is the covariance within the class and the rest, r the ridge that the penalty adds, and g
        the mean of the class minus the mean of the rest. Let A be the covariance of the common
        levels (index 1), D the covariance of the other levels (index 2), and B the covariance
        between both. Then

            b_2 = (D + r I - B' Y)^-1 (g_2 - B' b_0),   b_1 = b_0 - Y b_2,

        where Y = (A + r I)^-1 B is computed for each attribute under its mask, and b_0 = (A + r
        I)^-1 g_1.

        Parameters
        ----------
        counts
            The counts of a configuration that has these common levels.
        squares
            The counts of the rest and of the class, or the counts of all rows.
        means
            Means of all levels outside each fold, shape (K, T, 2, d).
        gaps
            The differences g of the means, for G classes, shape (K, d, G).
        targets
            The indices of the G classes in `told`.
        penalties
            As in `out_of_fold`.
        """
        first = self.counts.joint.shape[-1]
        base = self._base(squares, gaps[:, :first], targets, penalties)
        within = self.outside.within([of.border for of in squares], means, targets, first)
        border, corner = within[..., :first], within[..., first:]
        eliminated, start = [], 0
        for key, levels in counts.blocks:
            own = border[:, start : start + levels]
            eliminated.append(self._of_attribute(key, own, base, targets, penalties))
            start += levels
        across = np.concatenate(eliminated, axis=3)
        right = gaps[:, None, first:] - border[:, None] @ base.alone  # (K, P, q, G)
        schur = corner[:, None] - border[:, None] @ across  # (K, P, q, q)
        slopes = np.zeros((len(gaps), gaps.shape[2], len(penalties), means.shape[-1]))
        for part in base.factors:
            for place, ridge in enumerate(self.outside.ridges(part, penalties)):
                others = solve(factor(schur[part, place], ridge), right[part, place])
                slopes[part, :, place, first:] = others.T
                slopes[part, :, place, :first] = (
                    base.alone[part, place] - across[part, place] @ others
                ).T
        return slopes

    def _base(
        self,
        squares: Sequence[Square],
        right: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> _Base:
        """Return the factors of the common levels for some classes, from the cache or newly made."""
        key = targets.start, penalties
        if key not in self._bases:
            outside = self.outside
            within = outside.within([of.corner for of in squares], self._means, targets)
            base = _Base({}, np.zeros((len(within), len(penalties), *right.shape[1:])))
            for part in outside.scored_in(targets):
                ridges = outside.ridges(part, penalties)
                base.factors[part] = [factor(within[part], ridge) for ridge in ridges]
                for place, own in enumerate(base.factors[part]):
                    base.alone[part, place] = solve(own, right[part])
            self._bases[key] = base
        return self._bases[key]

    def _of_attribute(
        self,
        key: Hashable,
        border: Floats,
        base: _Base,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> Floats:
        """Return (A + r I)^-1 B for one other attribute, shape (K, P, c, q), cached by its key.

        `border` is B', the covariance of its q levels with the common levels, shape (K, q, c).
        """

        def make() -> Floats:
            solved = np.zeros((len(border), len(penalties), border.shape[2], border.shape[1]))
            for part, factors in base.factors.items():
                for place, own in enumerate(factors):
                    solved[part, place] = solve(own, border[part].T)
            return solved

        return self._eliminated.get((key, targets.start, penalties), make)


def sides_of(told: Ints, classes: int) -> Floats:
    """Return 0/1 flags for each compared class, shape (T, 2, C): which classes form the rest, and
    which one is the class.
    """
    sides = np.zeros((len(told), 2, classes))
    sides[:, 0] = 1.0
    sides[np.arange(len(told)), :, told] = [0.0, 1.0]
    return sides


def told_apart(rows: Floats) -> tuple[Ints, Flags]:
    """Return the T classes that are compared with the rest, and whether each fold has rows to score
    them.

    The shapes are (T,) and (K, T). `rows` has the number of rows in each of K folds and C classes,
    shape (K, C).

    >>> import numpy as np
    >>> told, scored = told_apart(np.array([[3.0, 1.0], [4.0, 0.0]]))
    >>> told.tolist(), scored.tolist()
    ([1], [[False], [True]])
    """
    seen = np.flatnonzero(rows.sum(axis=0) > 0)
    told = seen[:0] if len(seen) < 2 else seen[1:] if len(seen) == 2 else seen
    others = rows.sum(axis=0) - rows
    own = others[:, told]
    return told, (own >= 0.5) & (others.sum(axis=1, keepdims=True) - own >= 0.5)


def varying_only(counts: PartCounts) -> tuple[PartCounts, npt.NDArray[np.intp]]:
    """Drop the levels that all rows or no rows have; return the other levels' counts and indices."""
    count = counts.joint.sum(axis=(0, 1))
    varying = np.flatnonzero((count > 0) & (count < counts.rows.sum()))
    if len(varying) == len(count):
        return counts, varying
    chance = None if counts.chance is None else counts.chance[varying]
    total = counts.by_class.whole[:, :, varying[:, None], varying]
    shown = None
    if counts.shown is not None:
        ends = np.cumsum([own.matrix.shape[1] for own in counts.shown])[:-1]
        varies = np.split(np.isin(np.arange(len(count)), varying), ends)
        shown = [
            ShownLevels(own.joint, own.matrix[:, there])
            for own, there in zip(counts.shown, varies, strict=True)
        ]
    part = PartCounts(
        counts.rows, counts.joint[..., varying], total, chance, counts.below, shown=shown
    )
    return part, varying


def later(values: Floats, axis: int) -> Floats:
    """Return the cumulative sums from the end: each entry plus all later entries along an axis."""
    return np.flip(np.cumsum(np.flip(values, axis), axis), axis)
