"""Counts by part of configurations that have levels in common: what these decide is solved once.

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

from aegis.errors import InternalError
from aegis.measures.by_part import ClassCounts, OtherParts, PartCounts, ShownLevels, Square
from aegis.remembered import RememberedArrays

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
        (A + r I)^-1 (m_1 - m_0) of the common levels, shape (K, P, c).
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
        """How many numbers the factors take under each penalty."""
        return int(self.outside.scored.size * self.counts.joint.shape[-1] ** 2)

    def base(
        self, sides: tuple[Square, Square], target: int, penalties: tuple[float, ...]
    ) -> _Base:
        """Return the factors for one class told from the rest, by its place among these.

        `sides` are the counts of all other classes, and of the class, as of `SplitCounts.directions`.
        """
        if (target, penalties) not in self._bases:
            self._bases[target, penalties] = self._factorised(sides, target, penalties)
        return self._bases[target, penalties]

    def _factorised(
        self, sides: tuple[Square, Square], target: int, penalties: tuple[float, ...]
    ) -> _Base:
        outside, means = self.outside, self._means
        within = outside.within(sides[0].corner, sides[1].corner, means, target)
        gaps = means[:, target, 1] - means[:, target, 0]
        base = _Base({}, np.zeros((len(within), len(penalties), within.shape[1])))
        for part in np.flatnonzero(outside.scored[:, target]).tolist():
            base.factors[part] = [
                _factor(within[part], ridge) for ridge in outside.ridges(part, target, penalties)
            ]
            for place, factor in enumerate(base.factors[part]):
                base.alone[part, place] = _solve(factor, gaps[part])
        return base

    def eliminated(
        self, key: Hashable, border: Floats, target: int, penalties: tuple[float, ...]
    ) -> Floats:
        """Return (A + r I)^-1 B of one attribute beside, shape (K, P, c, q), remembered by its key.

        `border` is B', shape (K, q, c).
        """

        def make() -> Floats:
            base = self._bases[target, penalties]
            solved = np.zeros((len(border), len(penalties), border.shape[2], border.shape[1]))
            for part, factors in base.factors.items():
                for place, factor in enumerate(factors):
                    solved[part, place] = _solve(factor, border[part].T)
            return solved

        return self.beside.get((key, target, penalties), make)


@dataclass(frozen=True, eq=False)
class SplitCounts:
    """What `PartCounts` holds of a configuration, of which some levels are common to many.

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
        sides: tuple[Square, Square],
        means: Floats,
        target: int,
        penalties: tuple[float, ...],
    ) -> Floats:
        """Return the directions b of `out_of_fold` for one class told, shape (K, P, d).

        With A the covariance of the common levels, D that of the levels beside and B between them,
        r the ridge and g the gap between means,

            b_2 = (D + r I - B' Y)^-1 (g_2 - B' b_0),   b_1 = b_0 - Y b_2,

        where Y = (A + r I)^-1 B is that of each attribute under its mask, and b_0 = (A + r I)^-1 g_1.

        Parameters
        ----------
        sides
            The counts of all other classes, and of the class.
        means
            Of all levels, outside of each part, shape (K, T, 2, d).
        target
            The place of the class among those told from the rest.
        penalties
            As of `out_of_fold`.
        """
        first = self.common.counts.joint.shape[-1]
        outside, base = self.outside, self.common.base(sides, target, penalties)
        within = outside.within(sides[0].border, sides[1].border, means, target, first)
        border, corner = within[..., :first], within[..., first:]
        starts = [0, *self.ends[:-1]]
        eliminated = np.concatenate(
            [
                self.common.eliminated(key, border[:, start:end], target, penalties)
                for key, start, end in zip(self.keys, starts, self.ends, strict=True)
            ],
            axis=3,
        )
        gaps = means[:, target, 1] - means[:, target, 0]
        right = gaps[:, None, first:] - (border @ base.alone.swapaxes(1, 2)).swapaxes(1, 2)
        schur = corner[:, None] - border[:, None] @ eliminated  # (K, P, q, q)
        slopes = np.zeros((*right.shape[:2], means.shape[-1]))
        for part in base.factors:
            for place, ridge in enumerate(outside.ridges(part, target, penalties)):
                beside = _solve(_factor(schur[part, place], ridge), right[part, place])
                slopes[part, place, first:] = beside
                slopes[part, place, :first] = (
                    base.alone[part, place] - eliminated[part, place] @ beside
                )
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
