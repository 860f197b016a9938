"""Store counts by fold of configurations that share levels; factorise the shared levels only once.

Configurations of a search have attributes in common, such as features without a mask. The
covariance matrix within classes then has a block of the common levels, which is the same for all
configurations, bordered by the other levels. Directions are computed by block elimination: the
common block is factorised once. `by_fold` explains the letters of the shapes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.array_cache import RememberedArrays
from aegis.errors import InternalError
from aegis.measures.by_fold import ClassCounts, OtherParts, PartCounts, ShownLevels, Square

Floats = npt.NDArray[np.float64]

FEWEST_LEVELS = 64
"""Number of common levels from which eliminating them costs less than solving them again."""
MOST_NUMBERS = 1 << 25
"""Largest number of stored numbers in the factors of all remembered sets of common levels."""


@dataclass(frozen=True, eq=False)
class _Base:
    """The factors of (A + r I), and their solutions for means: see `SplitCounts.directions`.

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
    """Levels that many configurations share, with the factors of their covariance.

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
        self.beside = RememberedArrays()
        self._bases: dict[tuple[int, tuple[float, ...]], _Base] = {}

    @cached_property
    def outside(self) -> OtherParts:
        """The rows outside each fold."""
        return self.counts.outside or OtherParts.of(self.counts.rows)

    @cached_property
    def _means(self) -> Floats:
        return self.outside.means(self.counts.joint)

    @property
    def numbers(self) -> int:
        """Number of floats in the factors for one penalty."""
        return self.outside.factors * int(self.counts.joint.shape[-1]) ** 2

    def base(
        self,
        squares: Sequence[Square],
        right: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> _Base:
        """Factorise the covariances of the common levels for some classes, selected by `targets`.

        Arguments are as in `SplitCounts.directions`. If the factors are in the cache, they are
        returned, and `squares` and `right` are not used.
        """
        key = targets.start, penalties
        if key not in self._bases:
            self._bases[key] = self._factorised(squares, right, targets, penalties)
        return self._bases[key]

    def _factorised(
        self,
        squares: Sequence[Square],
        right: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> _Base:
        outside = self.outside
        within = outside.within([of.corner for of in squares], self._means, targets)
        base = _Base({}, np.zeros((len(within), len(penalties), *right.shape[1:])))
        for part in outside.scored_in(targets):
            base.factors[part] = [
                _factor(within[part], ridge) for ridge in outside.ridges(part, penalties)
            ]
            for place, factor in enumerate(base.factors[part]):
                base.alone[part, place] = _solve(factor, right[part])
        return base

    def eliminated(
        self, key: Hashable, border: Floats, targets: slice, penalties: tuple[float, ...]
    ) -> Floats:
        """Return (A + r I)^-1 B for one other attribute, shape (K, P, c, q), cached by its key.

        A is the covariance of the c common levels, r the ridge, and B the covariance of the common
        levels with the q levels of the attribute. `border` is B', shape (K, q, c).
        """

        def make() -> Floats:
            base = self._bases[targets.start, penalties]
            solved = np.zeros((len(border), len(penalties), border.shape[2], border.shape[1]))
            for part, factors in base.factors.items():
                for place, factor in enumerate(factors):
                    solved[part, place] = _solve(factor, border[part].T)
            return solved

        return self.beside.get((key, targets.start, penalties), make)


@dataclass(frozen=True, eq=False)
class SplitCounts:
    """The counts of `PartCounts` for a configuration, some of whose levels are shared by many.

    Attributes
    ----------
    common
        The common levels, which come first.
    joint
        Rows per fold, class and level, shape (K, C, d).
    bordering
        Co-occurrence of the q other levels with all d levels (with each other only on and below the
        diagonal), shape (K, C, q, d), or an object that counts it.
    keys, ends
        For each of the other attributes its cache key, and the end of its levels among the q
        levels.
    shown
        As in `PartCounts`.
    """

    common: CommonLevels
    joint: Floats
    bordering: Floats | ClassCounts
    keys: Sequence[Hashable]
    ends: Sequence[int]
    shown: Sequence[ShownLevels] | None = None

    chance = None
    """Always None, because counts with noise are not split."""
    below = True
    """Always True: entries above the diagonal are left out, as in `PartCounts`."""

    @cached_property
    def by_class(self) -> ClassCounts:
        """`bordering` as an object that counts a few classes at a time."""
        given = self.bordering
        return ClassCounts.of(given) if isinstance(given, np.ndarray) else given

    @property
    def rows(self) -> Floats:
        """Rows per fold and class, shape (K, C)."""
        return self.common.counts.rows

    @property
    def outside(self) -> OtherParts:
        """The rows outside each fold."""
        return self.common.outside

    def square(self, own: int | None) -> Square:
        """Return the co-occurrence of levels for the class `own`, or for all classes if it is None."""
        border = self.by_class.every if own is None else self.by_class.of_class(own)
        return Square(self.common.counts.square(own).border, border)

    def directions(
        self,
        squares: Sequence[Square],
        means: Floats,
        gaps: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> Floats:
        """Return the directions b = (W + r I)^-1 g of some classes, shape (K, G, P, d).

        W is the covariance within a class and the rest, r the ridge and g the difference of the
        means. Let A be the covariance of the common levels (1), D that of the other levels (2) and
        B the covariance between them. Then

            b_2 = (D + r I - B' Y)^-1 (g_2 - B' b_0),   b_1 = b_0 - Y b_2,

        where Y = (A + r I)^-1 B is computed for each attribute under its mask, and b_0 = (A + r
        I)^-1 g_1.

        Parameters
        ----------
        squares
            The counts of all other classes and of the class, or the counts of all rows.
        means
            Means of all levels outside each fold, shape (K, T, 2, d).
        gaps
            The differences g of the means of the G classes, shape (K, d, G).
        targets
            The indices of the G classes in `told`.
        penalties
            As in `out_of_fold`.
        """
        first = self.common.counts.joint.shape[-1]
        outside, base = self.outside, self.common.base(squares, gaps[:, :first], targets, penalties)
        within = outside.within([of.border for of in squares], means, targets, first)
        border, corner = within[..., :first], within[..., first:]
        starts = [0, *self.ends[:-1]]
        eliminated = np.concatenate(
            [
                self.common.eliminated(key, border[:, start:end], targets, penalties)
                for key, start, end in zip(self.keys, starts, self.ends, strict=True)
            ],
            axis=3,
        )
        right = gaps[:, None, first:] - border[:, None] @ base.alone  # (K, P, q, G)
        schur = corner[:, None] - border[:, None] @ eliminated  # (K, P, q, q)
        slopes = np.zeros((len(gaps), gaps.shape[2], len(penalties), means.shape[-1]))
        for part in base.factors:
            for place, ridge in enumerate(outside.ridges(part, penalties)):
                beside = _solve(_factor(schur[part, place], ridge), right[part, place])
                slopes[part, :, place, first:] = beside.T
                slopes[part, :, place, :first] = (
                    base.alone[part, place] - eliminated[part, place] @ beside
                ).T
        return slopes


def _factor(matrix: Floats, ridge: float) -> Floats:
    """Return the upper Cholesky factor of a matrix plus a ridge; only the lower triangle is read."""
    from scipy.linalg.lapack import dpotrf

    if not len(matrix):
        return matrix
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += ridge
    # LAPACK reads the transpose, whose upper triangle it factorises faster than a lower one.
    factor, info = dpotrf(shifted.T, lower=0, overwrite_a=1)
    if info:
        raise InternalError(f"LAPACK dpotrf failed with code {info}: the counts are not counts.")
    upper: Floats = factor
    return upper


def _solve(factor: Floats, right: Floats) -> Floats:
    """Solve a factorised matrix for right-hand sides, which may be empty."""
    from scipy.linalg.lapack import dpotrs

    solved: Floats = dpotrs(factor, right, lower=0)[0] if right.size else right
    return solved
