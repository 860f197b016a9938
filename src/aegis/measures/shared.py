"""Levels that many configurations share, factorised once: only what differs is solved for each.

Configurations of one ranking have attributes in common, such as features that no mask touches. The
covariance of a configuration is then that of the shared levels, bordered by the levels beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.held_out import Centred

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence, OrderedCounts

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

FEWEST_LEVELS = 128
"""Shared levels from which on their eigenvectors cost less than they save."""


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
        self, given: Centred, places: Sequence[Places], penalties: Sequence[float]
    ) -> tuple[Floats, Floats] | None:
        """Return effective degrees of freedom, shape (P,), and explained squares, shape (P, C).

        Let A be the shared covariance, D that of the q levels beside, B their covariance with the
        shared ones. The regression of the label on all of them, x on the shared and u on the others,
        solves (A + p I) x + B u = a and B' x + (D + p I) u = b. With K = (A + p I)^-1 and the Schur
        complement S = D + p I - B' K B, u = S^-1 (b - B' K a), x = K (a - B u), and the trace of the
        inverse of the whole is tr K + tr S^-1 + tr(S^-1 B' K^2 B). In the eigenvectors of A, K is
        diagonal under every penalty.

        Parameters
        ----------
        given
            What a configuration counts.
        places
            Per shared attribute the places of its levels among those of the configuration that vary.
        penalties
            As of `held_out_traces`.

        Returns
        -------
        None where the levels of a shared attribute are not the same ones, where so many stand
        beside them that the whole is as quickly solved, or where counts are no counts of rows.
        """
        if [len(own) for own in places] != list(self.levels):
            return None
        shared = np.concatenate(places)
        beside = np.setdiff1d(np.arange(len(given.varying)), shared, assume_unique=True)
        if 2 * len(beside) > len(shared):
            return None
        border = self.vectors.T @ given.covariance(shared, beside)  # (d, q)
        corner, label = given.covariance(beside, beside), given.label[beside]
        weights = 1 / (self.values[:, None] + np.asarray(penalties))  # (d, P)
        solved = border[:, None] * weights[:, :, None]  # (d, P, q)
        alone = self.label[:, None] * weights[:, :, None]  # (d, P, C)
        width, size = len(penalties), len(beside)
        products = (border.T @ solved.reshape(len(shared), -1)).reshape(size, width, size)
        told = (border.T @ alone.reshape(len(shared), -1)).reshape(size, width, label.shape[1])
        effective, explained = np.empty(width), np.empty((width, label.shape[1]))
        for place, penalty in enumerate(penalties):
            schur = corner - products[:, place]
            schur.flat[:: size + 1] += penalty
            solution = _solved(schur, label - told[:, place])
            if solution is None:
                return None
            fitted, inverse = solution
            known = alone[:, place] - solved[:, place] @ fitted
            # Lower triangles of symmetric matrices: what is off the diagonal counts twice.
            squares = solved[:, place].T @ solved[:, place]
            squares.flat[:: size + 1] += 1
            both = 2 * np.vdot(inverse, squares) - inverse.diagonal() @ squares.diagonal()
            effective[place] = len(given.varying) - penalty * (weights[:, place].sum() + both)
            explained[place] = ((self.label + penalty * known) * known).sum(axis=0)
            explained[place] += ((label + penalty * fitted) * fitted).sum(axis=0)
        return effective, explained


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
    count
        Returns their second-order counts alone, of the same rows.
    """

    def __init__(self, count: Callable[[], Cooccurrence]) -> None:
        self._count = count

    @cached_property
    def _counts(self) -> Cooccurrence:
        return self._count()

    @cached_property
    def values(self) -> SharedBlock | None:
        """Their levels one by one; None where few vary, or noise is among them."""
        return self._block(self._counts)

    @cached_property
    def thresholds(self) -> SharedBlock | None:
        """Their levels as thresholds, where they have an order."""
        from aegis.measures.ordered import thresholds

        return self._block(thresholds(self._counts.in_order))

    def _block(self, coded: Cooccurrence | OrderedCounts) -> SharedBlock | None:
        counts = self._counts
        if coded.chance is not None:
            return None  # expected counts are no covariance, whose eigenvalues are all at least 0
        given = Centred.of(coded.total, coded.joint, counts.class_totals, counts.n)
        if given is None or len(given.varying) < FEWEST_LEVELS:
            return None
        return SharedBlock.of(given, coded.offsets)


@dataclass(frozen=True, eq=False)
class Shared:
    """What one configuration shares with others, under one coding.

    Attributes
    ----------
    block
        What is shared.
    offsets
        Where the levels of each of its own attributes start, shape (m + 1,).
    which
        The places of the shared attributes among its own.
    """

    block: SharedBlock
    offsets: npt.NDArray[np.int64]
    which: Sequence[int]

    def moments(self, given: Centred, penalties: Sequence[float]) -> tuple[Floats, Floats] | None:
        """Return `SharedBlock.moments` of a configuration."""
        bounds = np.searchsorted(given.varying, self.offsets).tolist()
        places = [np.arange(bounds[own], bounds[own + 1]) for own in self.which]
        return self.block.moments(given, places, penalties)


@dataclass(frozen=True, eq=False)
class Sharing:
    """What a configuration shares with others, under both codings.

    Attributes
    ----------
    levels
        What is shared.
    which
        The places of the shared attributes among those of the configuration.
    """

    levels: SharedLevels
    which: Sequence[int]

    def values(self, offsets: npt.NDArray[np.int64]) -> Shared | None:
        """Return what is shared of levels one by one."""
        block = self.levels.values
        return None if block is None else Shared(block, offsets, self.which)

    def thresholds(self, offsets: npt.NDArray[np.int64]) -> Shared | None:
        """Return what is shared of levels as thresholds."""
        block = self.levels.thresholds
        return None if block is None else Shared(block, offsets, self.which)
