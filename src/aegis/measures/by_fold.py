"""Hold the counts of pairs of levels of one configuration, within each fold and outside it.

A level is a masked value of any attribute. Each compared class is scored against the rest (all
other rows). Shapes use these letters: K folds, C classes of the label, T compared classes, d
levels, q levels that are counted with all d, and P penalties, each of which gives one direction.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aegis.arrays import BoundedArrayCache, Flags, Floats, Ints
from aegis.errors import InternalError
from aegis.measures.numerics import factor, solve

OWN_COVARIANCES = 16
"""Up to this number of scored classes, each class has its own covariance; if there are more, all
share one.
"""
_ROUNDING = 1e-13
"""Relative difference of two means that counts as rounding."""


class ClassCounts:
    """How many rows have both levels of each pair, by fold and class, counted a few classes at a
    time to save memory.

    Parameters
    ----------
    count
        Function that counts c consecutive classes (a slice), shape (K, c, q, d). For None, it adds
        up all classes, so that c = 1.
    classes
        The number of classes, C.
    at_once
        Number of classes to count at once, at least 1.
    """

    def __init__(self, count: Callable[[slice | None], Floats], classes: int, at_once: int) -> None:
        self._count = count
        self.classes = classes
        self._at_once = at_once
        self._last: tuple[int, Floats] | None = None

    def of_class(self, target: int) -> Floats:
        """Return the counts of one class by fold, shape (K, q, d). Calls are fastest in ascending
        order of classes.
        """
        start = target - target % self._at_once
        if self._last is None or self._last[0] != start:
            self._last = None  # so that its memory is free before the next classes are counted
            self._last = start, self._count(slice(start, start + self._at_once))
        return self._last[1][:, target - start]

    @cached_property
    def every(self) -> Floats:
        """The counts of all classes together by fold, shape (K, q, d)."""
        return self._count(None)[:, 0]


class Square(NamedTuple):
    """The number of rows that have both levels of each pair, by fold. The first c levels, which
    many configurations share, are stored separately.

    Attributes
    ----------
    corner
        Pairs of two shared levels, shape (K, c, c); c may be 0.
    border
        Pairs of another level with any level, shape (K, d - c, d).
    """

    corner: Floats
    border: Floats

    def less(self, other: Square) -> Square:
        """Return these counts minus the counts of `other`."""
        return Square(self.corner - other.corner, self.border - other.border)

    def diagonal(self) -> Floats:
        """Return how many rows have each level, by fold, shape (K, d)."""
        first = self.corner.shape[-1]
        blocks = self.corner, self.border[..., first:]
        return np.concatenate([np.diagonal(block, axis1=1, axis2=2) for block in blocks], axis=1)

    def times(self, across: Floats) -> Floats:
        """Multiply n vectors in each fold, shape (K, n, d), by the counts of pairs in the fold."""
        first = self.corner.shape[-1]
        products: Floats = across[..., first:] @ self.border
        if first:
            products[..., :first] += across[..., :first] @ self.corner
        return products

    def of_fold(self, fold: int) -> Floats:
        """Return the counts of one fold, shape (d, d): only the entries on and below the diagonal."""
        first, levels = self.corner.shape[-1], self.border.shape[-1]
        below = np.zeros((levels, levels))
        below[:first, :first] = self.corner[fold]
        below[first:] = self.border[fold]
        return below


class Side(NamedTuple):
    """Counts by fold of one side of a comparison: of the rows of one class, or of all other rows.

    Attributes
    ----------
    rows, joint
        Number of rows by fold, (K,), and by fold and level, (K, d).
    square
        How many rows have both levels of each pair.
    """

    rows: Floats
    joint: Floats
    square: Square

    def less(self, other: Side) -> Side:
        """Return these counts minus the counts of `other`."""
        return Side(
            self.rows - other.rows, self.joint - other.joint, self.square.less(other.square)
        )

    def products(self, across: Floats) -> Floats:
        """Return, for n vectors v in each of K folds (`across`), shape (K, n, d), vectors u such that
        u'v = v'Gv / 2 for the matrix G of the counts of pairs.
        """
        return self.square.times(across) - 0.5 * self.square.diagonal()[:, None] * across


class Response(NamedTuple):
    """Sums of a numeric label by fold, after a constant near the label's mean is subtracted.

    Attributes
    ----------
    sums
        The sum of the label by fold and level, shape (K, d).
    total, squares
        The sum of the label, and of its square, by fold, shape (K,).
    """

    sums: Floats
    total: Floats
    squares: Floats


class ShownLevels(NamedTuple):
    """The L levels of one attribute, each encoded as an indicator or as a few numbers.

    Attributes
    ----------
    joint
        Number of rows by fold, class and level, shape (K, C, L).
    codes
        The d numbers that encode each level, shape (L, d); None if each level has an indicator.
    """

    joint: Floats
    codes: Floats | None = None

    @property
    def matrix(self) -> Floats:
        """The numbers that encode each level, shape (L, d); the identity if levels have indicators."""
        return np.eye(self.joint.shape[2]) if self.codes is None else self.codes


@dataclass(frozen=True, eq=False)
class CountsByFold:
    """Number of rows with each level, and with both levels of each pair, by fold and class.

    One configuration (a mask for each attribute) has d levels in all attributes together. Levels
    that all rows or no rows have are left out. If an ordered attribute is encoded by thresholds or
    as a number, the columns of its encoding take the place of levels, and the counts are sums over
    levels weighted by the encoding.

    Attributes
    ----------
    rows
        Number of rows per fold and class, shape (K, C).
    joint
        Number of rows per fold, class and level, shape (K, C, d).
    total
        Counts how many rows have both levels of each pair; only the entries on and below the
        diagonal. If `common` has c levels, it counts the others with all levels: q = d - c.
    outside
        Counts of the rows outside each fold.
    by_attribute
        The masked values of each attribute, encoded with d columns in total; None if unknown.
    chance
        If the counts are means over the noise of masks: a matrix B, shape (d, k) for any k, such
        that drawing the noise adds B B' to their covariance. None without noise.
    response
        Sums of a numeric label, whose rows all count as one class; None if the label has classes.
    common
        The first c levels, if other configurations share them; None if there are no such levels.
    blocks
        If `common` is set: for each other attribute, a key of its mask (for a cache) and its number
        of levels.
    """

    rows: Floats
    joint: Floats
    total: ClassCounts
    outside: OtherFolds
    by_attribute: Sequence[ShownLevels] | None = None
    chance: Floats | None = None
    response: Response | None = None
    common: CommonLevels | None = None
    blocks: Sequence[tuple[Hashable, int]] = ()

    def __post_init__(self) -> None:
        if self.joint.shape[:2] != self.rows.shape or (
            self.chance is not None and len(self.chance) != self.joint.shape[-1]
        ):
            raise InternalError(
                f"Counts by fold do not fit: rows {self.rows.shape}, joint {self.joint.shape}."
            )

    def square(self, target: int | None) -> Square:
        """Return the counts of pairs of levels in the class with index `target`; of all classes if
        None.
        """
        border = self.total.every if target is None else self.total.of_class(target)
        if self.common is None:
            return Square(np.zeros((len(border), 0, 0)), border)
        return Square(self.common.counts.square(target).border, border)


def side(counts: CountsByFold, target: int | None) -> Side:
    """Return the counts of the class with index `target`; of all rows if None."""
    if target is None:
        return Side(counts.rows.sum(axis=1), counts.joint.sum(axis=1), counts.square(None))
    return Side(counts.rows[:, target], counts.joint[:, target], counts.square(target))


def against_the_rest(counts: CountsByFold, compared: Ints) -> Iterator[tuple[Side, Side]]:
    """Yield the counts of the rest and of the class, for each class in `compared`.

    If the label has two classes, only one pair is yielded: class 0 as the rest, and class 1. Only a
    few classes are in memory at a time.
    """
    if not len(compared):
        return
    if counts.rows.shape[1] == 2:
        yield side(counts, 0), side(counts, 1)
        return
    every = side(counts, None)
    for target in compared.tolist():
        class_side = side(counts, target)
        yield every.less(class_side), class_side


@dataclass(frozen=True, eq=False)
class OtherFolds:
    """How many rows lie outside each fold, of each compared class and of its rest.

    Attributes
    ----------
    compared
        The indices of the compared classes, shape (T,).
    rows
        Number of rows of the rest and of the class outside each fold, shape (K, T, 2).
    scored
        Whether both the rest and the class have rows outside the fold, shape (K, T).
    weights
        Weights that turn counts by fold into means over the rows outside a fold: 1 / `rows` for
        each other fold, 0 for the fold itself, shape (K, T, 2, K).
    """

    compared: Ints
    rows: Floats
    scored: Flags
    weights: Floats

    @classmethod
    def of(cls, rows: Floats) -> OtherFolds:
        """Return the counts outside each fold, from the number of rows by fold and class, shape (K,
        C).
        """
        compared, scored = compared_classes(rows)
        sides = sides_of(compared, rows.shape[1])
        outside = np.einsum("kc,tsc->kts", rows.sum(axis=0) - rows, sides)
        share = np.divide(scored[..., None], outside, out=np.zeros_like(outside), where=outside > 0)
        return cls(
            compared, outside, scored, share[..., None] * (1.0 - np.eye(len(rows)))[:, None, None]
        )

    def means(self, joint: Floats) -> Floats:
        """Return the share of rows outside each fold that have each level, of the rest (first) and
        of the class, shape (K, T, 2, d). `joint` has the rows by fold, class and level, shape (K,
        C, d).

        Two frequencies that differ only by rounding are made equal.
        """
        sides = sides_of(self.compared, joint.shape[1])
        by_side = np.tensordot(joint, sides, (1, 2))  # (K, d, T, 2)
        means: Floats = np.einsum("ktsj,jdts->ktsd", self.weights, by_side, optimize=True)
        rest, mean = means[:, :, 0], means[:, :, 1]
        mean[...] = np.where(
            np.abs(mean - rest) <= _ROUNDING * (np.abs(mean) + np.abs(rest)), rest, mean
        )
        return means

    @property
    def pooled(self) -> bool:
        """Whether there are more than `OWN_COVARIANCES` classes, so that all share one covariance."""
        return len(self.compared) > OWN_COVARIANCES

    @property
    def factors(self) -> int:
        """The number of covariance matrices that are factorised, over all folds."""
        return len(self.scored) * (1 if self.pooled else len(self.compared))

    def scored_in(self, targets: slice) -> list[int]:
        """Return the folds that can be scored for at least one of the classes at `targets` in
        `compared`.
        """
        return np.flatnonzero(self.scored[:, targets].any(axis=1)).tolist()

    def ridges(self, fold: int, penalties: Sequence[float]) -> list[float]:
        """Return the penalties, which are in rows, as numbers to add to the diagonal of a
        covariance of the rows outside a fold.
        """
        rows = self.rows[fold, 0].sum()
        return [penalty / rows for penalty in penalties]

    def within(
        self, counted: Sequence[Floats], means: Floats, targets: slice, first: int = 0
    ) -> Floats:
        """Return the covariance of levels within classes outside each fold, shape (K, d - first,
        d), on and below the diagonal.

        For one class against the rest, it is the mean of both covariances. For several classes, it
        is the covariance of all rows; a direction that is computed from it differs only in its
        length.

        Parameters
        ----------
        counted
            Counts of pairs, shape (K, d - first, d): one entry for all rows, or two for the rest
            and the class.
        means
            As `means` returns them, shape (K, T, 2, d).
        targets
            Positions in `compared` of the classes that share a covariance.
        first
            Index of the first level of the matrix rows of `counted`.
        """
        if len(counted) == 2:
            weights = 0.5 * self.weights[:, targets.start]  # (K, 2, K)
            middle = 0.5 * means[:, targets.start], means[:, targets.start]
        else:
            classes = np.arange(len(self.scored)), self.scored.argmax(axis=1)
            rows = self.rows[classes]
            share = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
            weights = self.weights[classes][:, :1] * share[:, :1, None]  # 1 / n
            mean = share[:, None] @ means[classes]  # (K, 1, d)
            middle = mean, mean
        within = np.zeros(counted[0].shape)
        flat = within.reshape(len(within), -1)
        for side_index, pair_counts in enumerate(counted):
            flat += weights[:, side_index] @ pair_counts.reshape(len(pair_counts), -1)
        within -= middle[0][..., first:].swapaxes(1, 2) @ middle[1]
        return within


@dataclass(frozen=True, eq=False)
class _Base:
    """Factors of A + r I, and solutions with it. A is the covariance of c common levels outside
    each fold, and r is one of P ridges.

    Attributes
    ----------
    factors
        For each fold with rows to score: one upper Cholesky triangle per penalty.
    alone
        (A + r I)^-1 (m_1 - m_0), where m_1 and m_0 are the means of the common levels in each of G
        classes and in the rest, shape (K, P, c, G).
    """

    factors: dict[int, list[Floats]]
    alone: Floats


class CommonLevels:
    """Levels that many configurations share, and the factors of their covariance.

    Attributes without a choice of masks have the same block in the covariance within classes of all
    configurations, and the other levels border this block. Directions are computed by block
    elimination, so the common block is factorised only once.

    Parameters
    ----------
    counts
        Counts of only the common levels, without noise.
    """

    def __init__(self, counts: CountsByFold) -> None:
        if counts.chance is not None:
            raise InternalError("Common levels are counted without noise.")
        self.counts = counts
        self.outside = counts.outside
        self._means = self.outside.means(counts.joint)
        self._eliminated = BoundedArrayCache()
        self._bases: dict[tuple[int, tuple[float, ...]], _Base] = {}

    @property
    def numbers(self) -> int:
        """The number of floats that the Cholesky factors need for one penalty."""
        return self.outside.factors * int(self.counts.joint.shape[-1]) ** 2

    def directions(
        self,
        counts: CountsByFold,
        squares: Sequence[Square],
        means: Floats,
        gaps: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> Floats:
        """Return the directions b = (W + r I)^-1 g that separate each of G classes from the rest,
        shape (K, G, P, d).

        W is the covariance within class and rest, r the ridge of the penalty, and g the mean of the
        class minus the mean of the rest.

        Parameters
        ----------
        counts
            The counts of a configuration that has these common levels.
        squares
            The counts of the rest and of the class, or the counts of all rows.
        means
            As `OtherFolds.means` returns them, shape (K, T, 2, d).
        gaps
            The differences g, shape (K, d, G).
        targets
            Positions in `compared` of the G classes.
        penalties
            The P ridge penalties, in rows.
        """
        # With the covariances A of the common levels (1), D of the others (2) and B between both, and
        # with Y = (A + r I)^-1 B and b_0 = (A + r I)^-1 g_1:
        # b_2 = (D + r I - B' Y)^-1 (g_2 - B' b_0),   b_1 = b_0 - Y b_2
        first = self.counts.joint.shape[-1]
        base = self._base(squares, gaps[:, :first], targets, penalties)
        within = self.outside.within([of.border for of in squares], means, targets, first)
        border, corner = within[..., :first], within[..., first:]
        eliminated, start = [], 0
        for key, levels in counts.blocks:
            block = border[:, start : start + levels]
            eliminated.append(self._of_attribute(key, block, base, targets, penalties))
            start += levels
        across = np.concatenate(eliminated, axis=3)
        right = gaps[:, None, first:] - border[:, None] @ base.alone  # (K, P, q, G)
        schur = corner[:, None] - border[:, None] @ across  # (K, P, q, q)
        slopes = np.zeros((len(gaps), gaps.shape[2], len(penalties), means.shape[-1]))
        for fold in base.factors:
            for index, ridge in enumerate(self.outside.ridges(fold, penalties)):
                others = solve(factor(schur[fold, index], ridge), right[fold, index])
                slopes[fold, :, index, first:] = others.T
                slopes[fold, :, index, :first] = (
                    base.alone[fold, index] - across[fold, index] @ others
                ).T
        return slopes

    def _base(
        self,
        squares: Sequence[Square],
        right: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> _Base:
        """Return the factors of the common levels, and the solutions for `right`, shape (K, c, G):
        the mean of each level in the classes `targets` minus its mean in their rest. The result is
        cached. `squares` are as in `directions`.
        """
        key = targets.start, penalties
        if key not in self._bases:
            outside = self.outside
            within = outside.within([of.corner for of in squares], self._means, targets)
            base = _Base({}, np.zeros((len(within), len(penalties), *right.shape[1:])))
            for fold in outside.scored_in(targets):
                ridges = outside.ridges(fold, penalties)
                base.factors[fold] = [factor(within[fold], ridge) for ridge in ridges]
                for index, cholesky in enumerate(base.factors[fold]):
                    base.alone[fold, index] = solve(cholesky, right[fold])
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
        """Return (A + r I)^-1 B for the q levels of one attribute, shape (K, P, c, q); A and r are
        as in `_Base`. `border` is B', the covariance with the common levels, shape (K, q, c). The
        result is cached by `key`, `targets` and `penalties`.
        """

        def make() -> Floats:
            solved = np.zeros((len(border), len(penalties), border.shape[2], border.shape[1]))
            for fold, factors in base.factors.items():
                for index, cholesky in enumerate(factors):
                    solved[fold, index] = solve(cholesky, border[fold].T)
            return solved

        return self._eliminated.get((key, targets.start, penalties), make)


def sides_of(compared: Ints, classes: int) -> Floats:
    """Return 0/1 flags of the classes that form the rest, and of the class itself, for each of the
    T classes in `compared`, shape (T, 2, C).
    """
    sides = np.zeros((len(compared), 2, classes))
    sides[:, 0] = 1.0
    sides[np.arange(len(compared)), :, compared] = [0.0, 1.0]
    return sides


def compared_classes(rows: Floats) -> tuple[Ints, Flags]:
    """Return the indices of the classes to compare with the rest, shape (T,), and whether the rows
    outside each fold can score them, shape (K, T). `rows` has the rows by fold and class, (K, C).

    Of two classes with rows, only the second is compared. A fold can be scored if both the class
    and the rest have rows outside the fold.

    >>> import numpy as np
    >>> compared, scored = compared_classes(np.array([[3.0, 1.0], [4.0, 0.0]]))
    >>> compared.tolist(), scored.tolist()
    ([1], [[False], [True]])
    """
    classes = np.flatnonzero(rows.sum(axis=0) > 0)
    compared = classes[:0] if len(classes) < 2 else classes[1:] if len(classes) == 2 else classes
    others = rows.sum(axis=0) - rows
    class_rows = others[:, compared]
    return compared, (class_rows >= 0.5) & (others.sum(axis=1, keepdims=True) - class_rows >= 0.5)


def with_and_without(folds: int) -> Floats:
    """Return a 0/1 matrix, shape (1 + K, K): times values of the folds, it gives their sum (entry
    0) and the sums without each single fold.
    """
    return np.vstack([np.ones((1, folds)), 1.0 - np.eye(folds)])


def later(values: Floats, axis: int) -> Floats:
    """Return each entry of `values` plus all later entries along an axis."""
    return np.flip(np.cumsum(np.flip(values, axis), axis), axis)
