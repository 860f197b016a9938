"""Factorise shared levels of configurations once, and solve only the other levels of each.

Configurations of one ranking have attributes in common, such as features without a mask. The
covariance of a configuration is then the covariance of the shared levels, bordered by its other
levels.
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
"""Number of shared levels from which computing their eigenvectors saves more time than it costs."""
_ROOM = 1 << 25
"""Largest number of stored numbers for the levels that are not shared."""


class _Beside(NamedTuple):
    """Cached products for the levels that are not shared, for all expected configurations at once.

    Attributes
    ----------
    border
        B of `SharedBlock.moments` in the basis of the eigenvectors of A, shape (d, q).
    place
        For each level of `Together`, its index among these q levels, shape (U,).
    products, squares
        B' K B and B' K^2 B for each penalty, shape (P, q, q).
    """

    border: Floats
    place: Places
    products: Floats
    squares: Floats


@dataclass(frozen=True, eq=False)
class SharedBlock:
    """The eigen-decomposition A = V diag(l) V' of the covariance of shared levels under a coding.

    Attributes
    ----------
    values, vectors
        The eigenvalues l, shape (d,), ascending, and V, shape (d, d).
    label
        V' times the covariance with the label, shape (d, C).
    levels
        For each shared attribute the number of its levels in A.
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
        """Decompose the covariance of some attributes; None if too few of their levels vary."""
        return None if len(given.varying) < FEWEST_LEVELS else cls.of(given, offsets)

    @classmethod
    def of(cls, given: Centred, offsets: npt.NDArray[np.int64]) -> SharedBlock:
        """Decompose the covariance of some attributes, so that configurations can share it."""
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

        Let A be the covariance of the shared levels, D that of the q other levels, B that of shared
        with other levels, and a and b those of the label with shared and other levels. The ridge
        regression of the label, with penalty p and coefficients x and u, solves (A + p I) x + B u =
        a and B' x + (D + p I) u = b. Let K = (A + p I)^-1, which is diagonal in the eigenvectors of
        A, and S = D + p I - B' K B. Then u = S^-1 (b - B' K a), x = K (a - B u), and the trace of
        the inverse of the whole matrix is tr K + tr S^-1 + tr(S^-1 B' K^2 B).

        Parameters
        ----------
        given
            The centred counts of a configuration.
        places
            For each shared attribute, the indices of its levels in `given.varying`.
        penalties
            As in `held_out_traces`.
        together
            The levels of all expected configurations, to compute B' K B and B' K^2 B only once.

        Returns
        -------
        None if the shared levels differ, too many levels are not shared, or counts are not of rows.
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
        """Return B, shape (d, q), and B' K B and B' K^2 B under each penalty, shape (P, q, q); see
        `moments`.
        """
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
        """Return the products for the other levels of all configurations; None if that is more work."""
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
        """Return B' K B and B' K^2 B under each penalty, shape (P, q, q), given B, shape (d, q)."""
        products = np.empty((2, len(penalties), border.shape[1], border.shape[1]))
        for place, penalty in enumerate(penalties):
            for power, weights in enumerate(
                (np.sqrt(self.values + penalty), self.values + penalty)
            ):
                scaled = border / weights[:, None]
                np.matmul(scaled.T, scaled, out=products[power, place])  # symmetric: half the work
        return products[0], products[1]


def _solved(matrix: Floats, right: Floats) -> tuple[Floats, Floats] | None:
    """Solve M x = `right`; return x and the lower triangle of M^-1, or None if M is not positive
    definite.
    """
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
    """The levels of attributes whose masks many configurations share.

    Parameters
    ----------
    values, thresholds
        Functions: return the block of the levels as separate values, and as thresholds if the
        levels are ordered; None if few levels vary or the masks include noise.
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
        """The block of the levels as separate values; None if few vary, or masks include noise."""
        return self._values()

    @cached_property
    def thresholds(self) -> SharedBlock | None:
        """The block with ordered levels encoded as thresholds; None as for `values`."""
        return self._thresholds()


@dataclass(frozen=True, eq=False)
class Shared:
    """The levels that a configuration shares with others, under one coding.

    Attributes
    ----------
    block
        The shared decomposition.
    offsets
        Start of the levels of each attribute of the configuration, shape (m + 1,).
    which
        The indices of the shared attributes in the configuration.
    together
        The levels of all expected configurations, counted together; None if they were not.
    """

    block: SharedBlock
    offsets: npt.NDArray[np.int64]
    which: Sequence[int]
    together: Together | None = None

    def moments(self, given: Centred, penalties: Sequence[float]) -> tuple[Floats, Floats] | None:
        """Return `SharedBlock.moments` for a configuration; None if it cannot use the shared levels."""
        bounds = np.searchsorted(given.varying, self.offsets).tolist()
        places = [np.arange(bounds[own], bounds[own + 1]) for own in self.which]
        return self.block.moments(given, places, penalties, self.together)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The levels that a configuration shares with others, under both codings.

    Attributes
    ----------
    levels
        The shared levels.
    which
        The indices of the shared attributes in the configuration.
    together
        The levels of all expected configurations as separate values, counted together; None if they
        were not.
    """

    levels: SharedLevels
    which: Sequence[int]
    together: Together | None = None

    def values(self, offsets: npt.NDArray[np.int64]) -> Shared | None:
        """Return the shared levels as separate values; None if there are none."""
        block = self.levels.values
        return None if block is None else Shared(block, offsets, self.which, self.together)

    def thresholds(self, offsets: npt.NDArray[np.int64]) -> Shared | None:
        """Return the shared levels as thresholds; None if there are none."""
        block = self.levels.thresholds
        return None if block is None else Shared(block, offsets, self.which)
