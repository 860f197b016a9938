"""Counts by fold of configurations that share levels: the shared part is solved once.

Configurations of a search have attributes in common, such as features that no mask touches. The
covariance within classes is then that of the common levels, bordered by the levels beside them, and
directions are solved by elimination: the common block is factorised once for all configurations.
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
"""Common levels from which on to eliminate them costs less than to solve them again."""
MOST_NUMBERS = 1 << 25
"""Most numbers that the factors of all sets of common levels that are remembered may take."""


@dataclass(frozen=True, eq=False)
class _Base:
    """Factors of (A + r I), and what they make of means: see `SplitCounts.directions`.

    Attributes
    ----------
    factors
        By part that is scored, one upper triangle per penalty.
    alone
        (A + r I)^-1 (m_1 - m_0) of the common levels for G classes, shape (K, P, c, G).
    """

    factors: dict[int, list[Floats]]
    alone: Floats


class CommonLevels:
    """Levels that many configurations have in common.

    Parameters
    ----------
    counts
        Theirs alone, on the diagonal of `total` and below it, and without noise.
    """

    def __init__(self, counts: PartCounts) -> None:
        if not counts.below or counts.chance is not None:
            raise InternalError("Common levels are counted below the diagonal, without noise.")
        self.counts = counts
        self.beside = RememberedArrays()
        self._bases: dict[tuple[int, tuple[float, ...]], _Base] = {}

    @cached_property
    def outside(self) -> OtherParts:
        """The rows outside of each part."""
        return self.counts.outside or OtherParts.of(self.counts.rows)

    @cached_property
    def _means(self) -> Floats:
        return self.outside.means(self.counts.joint)

    @property
    def numbers(self) -> int:
        """How many numbers the factors need under each penalty."""
        return self.outside.factors * int(self.counts.joint.shape[-1]) ** 2

    def base(
        self,
        squares: Sequence[Square],
        right: Floats,
        targets: slice,
        penalties: tuple[float, ...],
    ) -> _Base:
        """Return the factors for target classes, by their places among these.

        All is as of `SplitCounts.directions`, and looked at where the factors are not known yet.
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
        """Return (A + r I)^-1 B of one additional attribute, shape (K, P, c, q), cached by its key.

        `border` is B', shape (K, q, c).
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
    """The content of `PartCounts` for a configuration that shares some levels with many others.

    Attributes
    ----------
    common
        The common levels, which come first.
    joint
        Rows per part, class and level, shape (K, C, d).
    bordering
        Co-occurrence of the levels beside with the common ones and, on the diagonal and below it,
        with themselves, shape (K, C, q, d), or what counts it.
    keys, ends
        What each attribute beside is remembered by, and where its levels end among the q.
    shown
        As of `PartCounts`.
    """

    common: CommonLevels
    joint: Floats
    bordering: Floats | ClassCounts
    keys: Sequence[Hashable]
    ends: Sequence[int]
    shown: Sequence[ShownLevels] | None = None

    chance = None
    """Counts with noise are not split."""
    below = True
    """As of `PartCounts`."""

    @cached_property
    def by_class(self) -> ClassCounts:
        """`bordering`, one class at a time."""
        given = self.bordering
        return ClassCounts.of(given) if isinstance(given, np.ndarray) else given

    @property
    def rows(self) -> Floats:
        """Rows per part and class, shape (K, C)."""
        return self.common.counts.rows

    @property
    def outside(self) -> OtherParts:
        """The rows outside of each part."""
        return self.common.outside

    def square(self, own: int | None) -> Square:
        """Return the co-occurrence of levels of one class, or of all."""
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
        """Return b = (W + r I)^-1 g of target classes, W their covariance, shape (K, G, P, d).

        With A the covariance of the common levels, D that of the levels beside and B between them,
        r the ridge and g the gap between means,

            b_2 = (D + r I - B' Y)^-1 (g_2 - B' b_0),   b_1 = b_0 - Y b_2,

        where Y = (A + r I)^-1 B is that of each attribute under its mask, and b_0 = (A + r I)^-1 g_1.

        Parameters
        ----------
        squares
            The counts of all other classes, and of the class; or of all rows.
        means
            Of all levels, outside of each part, shape (K, T, 2, d).
        gaps
            g of these classes, shape (K, d, G).
        targets
            The places of the G classes among those told from the rest, as of `OtherParts.targets_of`.
        penalties
            As of `out_of_fold`.
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
    """Return the upper Cholesky factor of a matrix and a ridge, from what is below the diagonal."""
    from scipy.linalg.lapack import dpotrf

    if not len(matrix):
        return matrix
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += ridge
    # LAPACK reads the transpose, whose upper triangle it factorises faster than a lower one.
    factor, info = dpotrf(shifted.T, lower=0, overwrite_a=1)
    if info:
        raise InternalError(f"LAPACK dpotrf failed with code {info}: the counts are no counts.")
    upper: Floats = factor
    return upper


def _solve(factor: Floats, right: Floats) -> Floats:
    """Return what solves the factorised matrix for one or several right sides, or none."""
    from scipy.linalg.lapack import dpotrs

    solved: Floats = dpotrs(factor, right, lower=0)[0] if right.size else right
    return solved
