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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Flags, Floats, Ints
from aegis.errors import InternalError
from aegis.measures.pillai import (
    PillaiFit,
    adjusted_trace,
    explained,
    factorised,
    kept_levels,
    whitened,
)

_SMALLEST = 1e-2
"""Smallest pivot of F that is used as a divisor; a smaller pivot would lose digits of the residual."""


@dataclass(frozen=True)
class Given:
    """The residual covariances of all other attributes after regression on the fixed attributes.

    Attributes
    ----------
    total
        Residual covariance of the other attributes' D indicators, times the number of rows, shape
        (D, D).
    stacked_joint
        Two blocks of columns, shape (D, C + C - 1), for the D levels (masked values) of the other
        attributes and the C classes that have rows. The first block has the number of rows per
        level and class. The second has the residual covariances of the levels' indicators with all
        classes except the last, times the number of rows.
    classes
        Number of rows of each class that has rows, shape (C,).
    rows
        Number of rows.
    noise
        Rounding error of the residual, as a multiple of the rounding error of a level's indicator.
    rank, trace
        The rank of the fixed attributes' indicators, and their Pillai's trace.
    """

    total: Floats
    stacked_joint: Floats
    classes: Floats
    rows: float
    noise: float
    rank: int
    trace: float

    @classmethod
    def of(cls, total: Array, joint: Array, n: float, offsets: Ints, stays: Flags) -> Given | None:
        """Return the residual covariances after regression on the fixed attributes; None if no
        fixed attribute varies, or if rounding makes the covariances too inexact.

        Parameters
        ----------
        total, joint, n, offsets
            The rows per pair of d levels (masked values), (d, d), and per level and class, (d, C),
            the number of rows, and the start of each attribute's levels. The counts must not
            contain noise.
        stays
            Whether each attribute is fixed, shape (m,).
        """
        from scipy.linalg.lapack import dtrtrs

        joint = np.asarray(joint, dtype=np.float64)
        joint = joint[:, joint.any(axis=0)]
        levels, of_level = joint.sum(axis=1), np.repeat(stays, np.diff(offsets))
        varying = kept_levels(levels, n, offsets)
        varying, others = varying[of_level[varying]], np.flatnonzero(~of_level)
        if not varying.size:
            return None
        scale = 1 / np.sqrt(levels[varying] * (1 - levels[varying] / n))
        own = _centred(total, levels, n, varying, varying) * (scale[:, None] * scale)
        factor, order, rank = factorised(own, len(levels))
        smallest = float(np.diag(factor)[:rank].min(initial=1.0)) ** 2
        if not rank or smallest < _SMALLEST:
            return None
        free = joint[:, :-1] - levels[:, None] * (joint[: offsets[1], :-1].sum(axis=0) / n)
        right = np.hstack([_centred(total, levels, n, varying, others), free[varying]])
        right = (right * scale[:, None])[order]
        solved, info = dtrtrs(factor[:rank, :rank], right, lower=1)
        if info:
            raise InternalError(f"LAPACK dtrtrs failed with code {info} at rank {rank}.")
        of_others, of_label = solved[:, : len(others)], solved[:, len(others) :]
        classes = joint[: offsets[1]].sum(axis=0)
        return cls(
            _centred(total, levels, n, others, others) - of_others.T @ of_others,
            np.hstack([joint[others], free[others] - of_others.T @ of_label]),
            classes,
            n,
            (len(varying) + len(others)) / smallest,
            rank,
            explained(of_label, classes[:-1], float(classes[-1])),
        )

    def fit(self, total: Floats, joint: Floats, offsets: Ints) -> PillaiFit:
        """Return Pillai's trace of the fixed attributes together with the other attributes, whose
        levels (masked values) are grouped.

        Parameters
        ----------
        total, joint
            The fields `total` and `stacked_joint`, with rows and columns summed by group.
        offsets
            Index of each attribute's first group, shape (m + 1,).
        """
        trace, rank, classes = self.trace, self.rank, self.classes
        levels = joint[:, : len(classes)].sum(axis=1)
        varying = kept_levels(levels, self.rows, offsets)
        if varying.size:
            count = levels[varying]
            scale = 1 / np.sqrt(count * (1 - count / self.rows))
            correlation = total[varying][:, varying] * (scale[:, None] * scale)
            label = joint[varying, len(classes) :] * scale[:, None]
            more, solved = whitened(correlation, label, noise=self.noise)
            trace += explained(solved, classes[:-1], float(classes[-1]))
            rank += more
        return PillaiFit(trace, adjusted_trace(trace, rank, len(classes), self.rows), rank)


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
