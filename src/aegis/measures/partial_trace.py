"""Compute Pillai's trace of varying attributes together with fixed attributes, which are factorised
only once.

Let F be the indicators of the fixed attributes, V the indicators of the other attributes, and S
their covariances. Pillai's trace of both together is the trace of F plus the trace of the residual
of V after regression on F. The covariance of this residual is S_vv.f = S_vv - S_vf S_ff^+ S_fv. If
a matrix G groups the levels of V, the covariance of the grouped residual is G' S_vv.f G. So a
search over many groupings of V factorises only matrices of the levels of V. The result is the same
as from a Cholesky factorisation of all levels that begins with F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Flags, Floats, Integers, Ints
from aegis.measures.pillai import (
    PillaiFit,
    adjusted_trace,
    explained,
    factorised,
    kept_levels,
    solved_by,
    whitened,
)

_SMALLEST = 1e-2
"""Smallest pivot of F that is used as a divisor; a smaller pivot would lose digits of the residual."""


@dataclass(frozen=True, eq=False)
class GroupedLevels:
    """The groups of one attribute's levels, without the most frequent group and without constant
    ones. All covariances are residual covariances times the number of rows, of indicators that are
    scaled to a standard deviation of 1.

    Attributes
    ----------
    levels
        The attribute's A levels among the D levels of all attributes.
    indicators
        The scaled indicator of each of L groups for each level, shape (A, L).
    covariances
        Covariances of the groups with all levels, shape (L, D).
    label
        Covariances of the groups with the label, as in `Given`, shape (L, C).
    """

    levels: slice
    indicators: Floats
    covariances: Floats
    label: Floats


@dataclass(frozen=True)
class Given:
    """What the fixed attributes leave unexplained: the residual covariances of all other
    attributes.

    Attributes
    ----------
    total
        Residual covariance of the other attributes' D indicators, times the number of rows, shape
        (D, D).
    counts
        Number of rows of each of the D levels, shape (D,).
    label
        Residual covariances of the levels' indicators with the indicators of the C classes that
        have rows, times the number of rows, divided by the square root of the rows of each class,
        shape (D, C).
    rows
        Number of rows.
    noise
        Rounding error of the residual, as a multiple of the rounding error of a level's indicator.
    rank, trace
        The rank of the fixed attributes' indicators, and their Pillai's trace.
    """

    total: Floats
    counts: Floats
    label: Floats
    rows: float
    noise: float
    rank: int
    trace: float

    @classmethod
    def of(cls, total: Array, joint: Array, n: float, offsets: Ints, stays: Flags) -> Given | None:
        """Return the residual covariances after regression on the fixed attributes (of which there
        may be none). The result is None if all attributes are fixed, if there are no rows, or if
        rounding makes the covariances too inexact.

        Parameters
        ----------
        total, joint, n, offsets
            The rows per pair of d levels (masked values), (d, d), and per level and class, (d, C),
            the number of rows, and the start of each attribute's levels. The counts must not
            contain noise.
        stays
            Whether each attribute is fixed, shape (m,).
        """
        joint = np.asarray(joint, dtype=np.float64)
        joint = joint[:, joint.any(axis=0)]
        levels, of_level = joint.sum(axis=1), np.repeat(stays, np.diff(offsets))
        varying = kept_levels(levels, n, offsets)
        varying, others = varying[of_level[varying]], np.flatnonzero(~of_level)
        if not others.size or n <= 0:
            return None
        scale = 1 / np.sqrt(levels[varying] * (1 - levels[varying] / n))
        own = _centred(total, levels, n, varying, varying) * (scale[:, None] * scale)
        free = joint[:, :-1] - levels[:, None] * (joint[: offsets[1], :-1].sum(axis=0) / n)
        right = np.hstack([_centred(total, levels, n, varying, others), free[varying]])
        rank, smallest, solved = 0, 1.0, right
        if varying.size:
            factor, order, rank = factorised(own, len(levels))
            smallest = float(np.diag(factor)[:rank].min(initial=1.0)) ** 2
            if not rank or smallest < _SMALLEST:
                return None
            solved = solved_by(factor, (right * scale[:, None])[order], rank)
        of_others, of_label = solved[:, : len(others)], solved[:, len(others) :]
        classes = joint[: offsets[1]].sum(axis=0)
        residual = free[others] - of_others.T @ of_label
        residual = np.hstack([residual, -residual.sum(axis=1, keepdims=True)])
        return cls(
            _centred(total, levels, n, others, others) - of_others.T @ of_others,
            levels[others],
            residual / np.sqrt(classes),
            n,
            (len(varying) + len(others)) / smallest,
            rank,
            explained(of_label, classes[:-1], float(classes[-1])),
        )

    def grouped(self, levels: slice, groups: Integers) -> GroupedLevels:
        """Return the groups of an attribute's levels.

        Parameters
        ----------
        levels
            The attribute's A levels among the D levels.
        groups
            The group of each of these levels, shape (A,).
        """
        counts: Floats = np.bincount(groups, weights=self.counts[levels]).astype(np.float64)
        shown = kept_levels(counts, self.rows, np.array([0, len(counts)]))
        scale = 1 / np.sqrt(counts[shown] * (1 - counts[shown] / self.rows))
        indicators = (groups[:, None] == shown) * scale
        return GroupedLevels(
            levels, indicators, indicators.T @ self.total[levels], indicators.T @ self.label[levels]
        )

    def fit(self, attributes: Sequence[GroupedLevels]) -> PillaiFit:
        """Return `pillai_trace` of the fixed attributes together with groupings of the other
        attributes.
        """
        trace, rank = self.trace, self.rank
        if shown := [each for each in attributes if len(each.label)]:
            covariances = np.concatenate([each.covariances for each in shown])
            correlation = np.empty((len(covariances), len(covariances)))
            stop = 0
            for each in shown:
                start, stop = stop, stop + len(each.label)
                # LAPACK reads one triangle, so the other one is left empty.
                known = correlation[:stop, start:stop]
                np.matmul(covariances[:stop, each.levels], each.indicators, out=known)
            label = np.concatenate([each.label for each in shown])
            more, solved = whitened(correlation, label, noise=self.noise)
            trace += float(np.vdot(solved, solved))
            rank += more
        return PillaiFit(trace, adjusted_trace(trace, rank, self.classes, self.rows), rank)

    @property
    def classes(self) -> int:
        """C, the number of classes that have rows."""
        return len(self.label.T)


def _centred(
    total: Array,
    levels: Floats,
    n: float,
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> Floats:
    """Return the covariances of the indicators `rows` with the indicators `columns`, times n.
    `total` has the rows per pair of levels (masked values), and `levels` the rows per level.
    """
    counts = np.asarray(total[np.ix_(rows, columns)], dtype=np.float64)
    return counts - (levels[rows] / n)[:, None] * levels[columns]
