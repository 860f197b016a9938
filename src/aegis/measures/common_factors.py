"""Factors of levels that many configurations share: only the remaining levels are solved for each.

Configurations of one ranking have attributes in common, such as features that no mask touches. The
covariance of a configuration is then that of the shared levels, bordered by the levels beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.counted import Centred, Together

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

FEWEST_LEVELS = 128
"""Shared levels from which on their eigenvectors cost less than they save."""
_ROOM = 1 << 25
"""Most numbers that are remembered of the levels beside shared ones."""


class _Beside(NamedTuple):
    """What levels beside the shared ones come to, for all expected configurations at once.

    Attributes
    ----------
    border
        B of `SharedBlock.moments` in the eigenvectors of A, shape (d, q).
    place
        The place of a level of `Together` among these q, shape (U,).
    products, squares
        B' K B and B' K^2 B under each penalty, shape (P, q, q).
    """

    border: Floats
    place: Places
    products: Floats
    squares: Floats


@dataclass(frozen=True, eq=False)
class SharedBlock:
    """The covariance of shared levels under one coding, A = V diag(l) V'.

    Attributes
    ----------
    values, vectors
        The eigenvalues l, shape (d,), ascending, and V, shape (d, d).
    label
        V' times the covariance with the label, shape (d, C).
    levels
        Per shared attribute how many of its levels are in A.
    """

    values: Floats
    vectors: Floats
    label: Floats
    levels: Sequence[int]
    _beside: dict[tuple[int, tuple[float, ...]], tuple[Together, _Beside | None]] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def of_many(cls, given: Centred, offsets: npt.NDArray[np.int64]) -> SharedBlock | None:
        """Return the block of some attributes alone; None if too few of their levels vary."""
        return None if len(given.varying) < FEWEST_LEVELS else cls.of(given, offsets)

    @classmethod
    def of(cls, given: Centred, offsets: npt.NDArray[np.int64]) -> SharedBlock:
        """Return the block of some attributes alone."""
        from scipy.linalg.lapack import dsyevd

        values, vectors, info = dsyevd(given.covariance().T, lower=1, overwrite_a=1)
        if info:
            raise InternalError(f"LAPACK dsyevd failed with code {info}.")
        levels = np.diff(np.searchsorted(given.varying, offsets)).tolist()
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ given.label, levels)

    def moments(
        self,
        given: Centred,
        places: Sequence[Places],
        penalties: Sequence[float],
        together: Together | None = None,
    ) -> tuple[Floats, Floats] | None:
        """Return effective degrees of freedom, shape (P,), and explained squares, shape (P, C).

        Let A be the shared covariance, D that of the q levels beside, B their covariance with the
        shared ones. The regression of the label on all of them, x on the shared and u on the others,
        solves (A + p I) x + B u = a and B' x + (D + p I) u = b. With K = (A + p I)^-1, diagonal in the
        eigenvectors of A, and S = D + p I - B' K B, u = S^-1 (b - B' K a), x = K (a - B u), and the
        trace of the inverse of the whole is tr K + tr S^-1 + tr(S^-1 B' K^2 B).

        Parameters
        ----------
        given
            What a configuration counts.
        places
            Per shared attribute the places of its levels among those of the configuration that vary.
        penalties
            As of `held_out_traces`.
        together
            The levels of other configurations, with which B' K B and B' K^2 B are solved at once.

        Returns
        -------
        None if the shared levels are others, where so many stand beside them that the whole is as
        quickly solved, or where counts are no counts of rows.
        """
        if [len(own) for own in places] != list(self.levels):
            return None
        shared = np.concatenate(places)
        beside = np.setdiff1d(np.arange(len(given.varying)), shared, assume_unique=True)
        if 2 * len(beside) > len(shared):
            return None
        corner, label = given.covariance(beside, beside), given.label[beside]
        weights = 1 / (self.values + np.asarray(penalties)[:, None])  # (P, d)
        alone = self.label * weights[:, :, None]  # (P, d, C)
        width, size = len(penalties), len(beside)
        border, products, squared = self._bordered(given, shared, beside, penalties, together)
        told = border.T @ alone  # (P, q, C)
        effective, explained = np.empty(width), np.empty((width, label.shape[1]))
        for place, penalty in enumerate(penalties):
            schur = corner - products[place]
            schur.flat[:: size + 1] += penalty
            solution = _solved(schur, label - told[place])
            if solution is None:
                return None
            fitted, inverse = solution
            known = alone[place] - weights[place][:, None] * (border @ fitted)
            # Lower triangles of symmetric matrices: what is off the diagonal counts twice.
            squares = squared[place]
            squares.flat[:: size + 1] += 1
            both = 2 * np.vdot(inverse, squares) - inverse.diagonal() @ squares.diagonal()
            effective[place] = len(given.varying) - penalty * (weights[place].sum() + both)
            explained[place] = ((self.label + penalty * known) * known).sum(axis=0)
            explained[place] += ((label + penalty * fitted) * fitted).sum(axis=0)
        return effective, explained

    def _bordered(
        self,
        given: Centred,
        shared: Places,
        beside: Places,
        penalties: Sequence[float],
        together: Together | None,
    ) -> tuple[Floats, Floats, Floats]:
        """Return B, shape (d, q), B' K B and B' K^2 B under each penalty, (P, q, q); see `moments`."""
        known = None
        if together is not None:
            key = id(together.total), tuple(penalties)
            if key not in self._beside:  # the total is remembered with it, so that its id stays
                self._beside[key] = (
                    together,
                    self._of_all(given, shared, beside, *key[1:], together),
                )
            known = self._beside[key][1]
        if known is None or together is None:
            border = self.vectors.T @ given.covariance(shared, beside)
            return border, *self._products(border, penalties)
        own = known.place[together.at[given.varying[beside]]]
        shape = len(penalties), len(own), len(own)
        square = (own[:, None] * known.border.shape[1] + own).ravel()
        products, squares = (
            every.reshape(len(penalties), -1).take(square, 1).reshape(shape)
            for every in (known.products, known.squares)
        )
        return known.border[:, own], products, squares

    def _of_all(
        self,
        given: Centred,
        shared: Places,
        beside: Places,
        penalties: Sequence[float],
        together: Together,
    ) -> _Beside | None:
        """Return what the levels beside come to in all configurations; None if that is more work."""
        count = np.diagonal(together.total)
        at = together.at[given.varying[shared]]
        others = np.setdiff1d(np.arange(len(count)), at, assume_unique=True)
        if len(others) ** 2 > min(
            together.configurations * len(beside) ** 2, _ROOM // (2 * len(penalties))
        ):
            return None
        covariance = together.total[np.ix_(at, others)]
        covariance -= np.outer(count[at] / given.n, count[others])
        border = self.vectors.T @ covariance
        place = np.zeros(len(count), dtype=np.intp)
        place[others] = np.arange(len(others))
        return _Beside(border, place, *self._products(border, penalties))

    def _products(self, border: Floats, penalties: Sequence[float]) -> tuple[Floats, Floats]:
        """Return B' K B and B' K^2 B under each penalty, shape (P, q, q), for B of shape (d, q)."""
        products = np.empty((2, len(penalties), border.shape[1], border.shape[1]))
        for place, penalty in enumerate(penalties):
            for power, weights in enumerate(
                (np.sqrt(self.values + penalty), self.values + penalty)
            ):
                scaled = border / weights[:, None]
                np.matmul(scaled.T, scaled, out=products[power, place])  # symmetric: half the work
        return products[0], products[1]


def _solved(matrix: Floats, right: Floats) -> tuple[Floats, Floats] | None:
    """Return M^-1 `right` and the lower triangle of M^-1; None unless M is positive definite."""
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

    if not len(matrix):
        return right, matrix
    factor, info = dpotrf(matrix.T, lower=1, overwrite_a=1)  # 0 above the diagonal
    if info:
        return None
    solved, _ = dpotrs(factor, right, lower=1)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    return solved, inverse


class SharedLevels:
    """Attributes under masks that many configurations have in common.

    Parameters
    ----------
    values, thresholds
        Return the block of their levels one by one, and as thresholds where they have an order; None if few vary, or noise is among them.
    """

    def __init__(
        self,
        values: Callable[[], SharedBlock | None],
        thresholds: Callable[[], SharedBlock | None],
    ) -> None:
        self._values = values
        self._thresholds = thresholds

    @cached_property
    def values(self) -> SharedBlock | None:
        """Their levels one by one; None if few vary, or if there is noise among them."""
        return self._values()

    @cached_property
    def thresholds(self) -> SharedBlock | None:
        """Their levels as thresholds; None if they have no order."""
        return self._thresholds()


@dataclass(frozen=True, eq=False)
class Shared:
    """The part that one configuration shares with others, under one encoding.

    Attributes
    ----------
    block
        What is shared.
    offsets
        Where the levels of each of its own attributes start, shape (m + 1,).
    which
        The places of the shared attributes among its own.
    together
        The levels of all configurations that are expected, counted at once, where they were.
    """

    block: SharedBlock
    offsets: npt.NDArray[np.int64]
    which: Sequence[int]
    together: Together | None = None

    def moments(self, given: Centred, penalties: Sequence[float]) -> tuple[Floats, Floats] | None:
        """Return `SharedBlock.moments` of a configuration."""
        bounds = np.searchsorted(given.varying, self.offsets).tolist()
        places = [np.arange(bounds[own], bounds[own + 1]) for own in self.which]
        return self.block.moments(given, places, penalties, self.together)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The part that a configuration shares with others, under both encodings.

    Attributes
    ----------
    levels
        What is shared.
    which
        The places of the shared attributes among those of the configuration.
    together
        The levels one by one of all configurations that are expected, where they were counted.
    """

    levels: SharedLevels
    which: Sequence[int]
    together: Together | None = None

    def values(self, offsets: npt.NDArray[np.int64]) -> Shared | None:
        """Return the shared part of levels one by one."""
        block = self.levels.values
        return None if block is None else Shared(block, offsets, self.which, self.together)

    def thresholds(self, offsets: npt.NDArray[np.int64]) -> Shared | None:
        """Return the shared part of levels as thresholds."""
        block = self.levels.thresholds
        return None if block is None else Shared(block, offsets, self.which)
