"""Compute Pillai's trace of attributes together with fixed attributes, factorised only once.

Let F be the indicators of the fixed attributes, V those of the others, and S their covariances.
Pillai's trace of both is that of F plus that of the residual of V after regression on F, whose
covariance is S_vv.f = S_vv - S_vf S_ff^+ S_fv. If a matrix G groups the levels of V, the covariance
of the grouped residual is G' S_vv.f G. So a search over many groupings of V factorises only
matrices of the levels of V. The result is that of a Cholesky factorisation of all levels with F
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.pillai import (
    Floats,
    Numbers,
    PillaiFit,
    adjusted_trace,
    explained,
    factorised,
    kept_levels,
    whitened,
)

_SMALLEST = 1e-2
"""Smallest pivot of F that is used as a divisor; a smaller pivot would lose digits of the residual."""


_MANY_ROWS = 512
"""Rows from which on they are added up by a sparse product."""
Places = npt.NDArray[np.integer]


class GroupedLevels(NamedTuple):
    """The groups of one attribute's levels that enter a fit.

    Attributes
    ----------
    rows, starts
        Indices of the levels, group by group, and the index in `rows` at which each group starts.
    scale
        1 / (s sqrt(n)) for each group, where s is the standard deviation of the group's indicator
        and n the number of rows.
    label
        Residual covariance of the groups with all classes except the last, shape (g, C - 1).
    classes
        Rows of each class, shape (C,).
    """

    rows: Places
    starts: Places
    scale: Floats
    label: Floats
    classes: Floats


@dataclass(frozen=True)
class Given:
    """The residual covariances of the other attributes after regression on the fixed attributes.

    Attributes
    ----------
    total
        Residual covariance of the other attributes' indicators, times the number of rows, shape (D,
        D).
    label
        Residual covariance of these indicators with all classes except the last, times the number
        of rows, shape (D, C - 1).
    joint
        Rows per class and level of the other attributes, shape (D, C), without empty classes.
    rows
        Number of rows.
    noise
        Rounding error of the residual, as a multiple of that of a level's indicator.
    rank, trace
        Rank and Pillai's trace of the fixed attributes' indicators.
    """

    total: Floats
    label: Floats
    joint: Floats
    rows: float
    noise: float
    rank: int
    trace: float

    @classmethod
    def of(
        cls,
        total: Numbers,
        joint: Numbers,
        n: float,
        offsets: npt.NDArray[np.int64],
        stays: npt.NDArray[np.bool_],
    ) -> Given | None:
        """Return residuals of regression on the fixed attributes; None if they are too inexact.

        Parameters
        ----------
        total, joint, n, offsets
            As in `pillai_trace`, counts without noise.
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
            free[others] - of_others.T @ of_label,
            np.ascontiguousarray(joint[others]),
            n,
            (len(varying) + len(others)) / smallest,
            rank,
            explained(of_label, classes[:-1], float(classes[-1])),
        )

    @classmethod
    def alone(cls, total: Numbers, joint: Numbers, n: float, first: int) -> Given:
        """Return the centred counts of attributes without any fixed attribute.

        Parameters
        ----------
        total, joint, n
            As in `pillai_trace`, counts without noise.
        first
            Number of levels of the first attribute.
        """
        joint = np.asarray(joint, dtype=np.float64)
        joint = joint[:, joint.any(axis=0)]
        levels, every = joint.sum(axis=1), np.arange(len(joint))
        free = joint[:, :-1] - levels[:, None] * (joint[:first, :-1].sum(axis=0) / n)
        return cls(_centred(total, levels, n, every, every), free, joint, n, 0.0, 0, 0.0)

    def grouped(self, rows: Places, starts: Places) -> GroupedLevels:
        """Return the groups of one attribute's levels that vary, without the most frequent group.

        Parameters
        ----------
        rows
            Indices of the attribute's levels, group by group.
        starts
            Index in `rows` at which each group starts.
        """
        joint = np.add.reduceat(self.joint[rows], starts, axis=0)
        count = joint.sum(axis=1)
        varying = kept_levels(count, self.rows, np.array([0, len(count)]))
        sizes = np.diff(np.append(starts, len(rows)))
        of_group = np.zeros(len(count), dtype=bool)
        of_group[varying] = True
        ends = np.cumsum(sizes[varying])
        return GroupedLevels(
            rows[np.repeat(of_group, sizes)],
            ends - sizes[varying],
            1 / np.sqrt(count[varying] * (1 - count[varying] / self.rows)),
            np.add.reduceat(self.label[rows], starts, axis=0)[varying],
            joint.sum(axis=0),
        )

    def columns(self, groups: GroupedLevels) -> Floats:
        """Return the covariance of all levels with the groups of one attribute, shape (D, g)."""
        if not len(groups.starts):
            return np.zeros((len(self.total), 0))
        sums = added(self.total, groups.rows, groups.starts).T * groups.scale
        return np.ascontiguousarray(sums)

    def fit(
        self,
        groups: Sequence[GroupedLevels],
        columns: Sequence[Floats],
        of_class: npt.NDArray[np.integer] | None = None,
    ) -> PillaiFit:
        """Return `pillai_trace` of the fixed attributes together with a grouping of the others.

        Parameters
        ----------
        groups, columns
            The groups of each of the other attributes, and the result of `columns` for these.
        of_class
            Group of each class that has rows, if a mask groups the label; only allowed without
            fixed attributes. None: the label is not masked.
        """
        classes = groups[0].classes
        label = np.concatenate([own.label for own in groups])
        if of_class is not None:
            whole = np.hstack([label, -label.sum(axis=1, keepdims=True)])
            size = int(of_class.max()) + 1
            grouping = (of_class[:, None] == np.arange(size)).astype(np.float64)
            label, classes = (whole @ grouping)[:, :-1], classes @ grouping
        trace, rank = self.trace, self.rank
        if len(label):
            scale = np.concatenate([own.scale for own in groups])
            rows = np.concatenate([own.rows for own in groups])
            before = np.cumsum([0, *(len(own.rows) for own in groups[:-1])])
            starts = np.concatenate(
                [own.starts + start for own, start in zip(groups, before, strict=True)]
            )
            correlation = added(np.concatenate(columns, axis=1), rows, starts)
            correlation *= scale[:, None]
            more, solved = whitened(correlation, label * scale[:, None], noise=self.noise)
            trace += explained(solved, classes[:-1], float(classes[-1]))
            rank += more
        return PillaiFit(trace, adjusted_trace(trace, rank, len(classes), self.rows), rank)


def added(matrix: Floats, rows: Places, starts: Places) -> Floats:
    """Return the sum of the rows of `matrix` in each group; `rows` and `starts` list the groups."""
    if len(rows) < _MANY_ROWS:
        return np.add.reduceat(matrix[rows], starts, axis=0)
    # A sparse product takes longer to set up and reads each row once, without a copy.
    from scipy import sparse  # taking long to load, and of many rows alone

    ends = np.append(starts, len(rows))
    grouping = sparse.csr_array((np.ones(len(rows)), rows, ends), shape=(len(starts), len(matrix)))
    sums: Floats = grouping @ matrix
    return sums


def _centred(
    total: Numbers,
    levels: Floats,
    n: float,
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> Floats:
    """Return the covariances of the indicators `rows` with the indicators `columns`, times n."""
    counts = np.asarray(total[np.ix_(rows, columns)], dtype=np.float64)
    centred: Floats = counts - (levels[rows] / n)[:, None] * levels[columns]
    return centred
