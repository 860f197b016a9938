"""Compute Pillai's trace between all masked attributes of a configuration and the label, also if
some attributes stay fixed. The fixed attributes are factorised only once.

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
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Flags, Floats, Integers, Ints, cached_method
from aegis.errors import InternalError

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

_NOISE = 128 * float(np.finfo(np.float64).eps)
"""Upper bound of the rounding noise of a pivot per level; real pivots are of order 1/N or more."""


@dataclass(frozen=True)
class PillaiFit:
    """Pillai's trace for one configuration: the plug-in value and the adjusted value.

    Attributes
    ----------
    trace
        The plug-in trace V, from 0 to min(rank, C - 1).
    adjusted
        The trace minus the part that is due to chance,

            V - (1 - V/(C - 1)) d (C - 1)/(N - d - 1),

        where d is the rank, C the number of classes and N the number of rows. It is at most V, and
        about 0 if attributes and label are independent, so it may be slightly negative. It is 0 if
        there is only one class, if all attributes are constant, or if N - d - 1 <= 0, because no
        degree of freedom remains. For counts that are means over the noise of masks, d is reduced,
        because they fit less by chance.
    rank
        d, the number of linearly independent indicators of masked values.
    """

    trace: float
    adjusted: float
    rank: int


def _correlation(total: Array, count: Floats, scale: Floats, n: float) -> Floats:
    """Return the correlations of level indicators, from the rows per pair of levels (masked values,
    `total`), the rows per level (`count`), and the number n of rows. `scale` has 1 / the standard
    deviation of each indicator.
    """
    correlation: Floats = total - (count / n)[:, None] * count
    correlation *= scale[:, None] * scale
    return correlation


def pillai_trace(
    total: Array, joint: Array, n: float, offsets: Ints, chance: Floats | None = None
) -> PillaiFit:
    """Return Pillai's trace, its adjusted form and the rank of the indicators.

    Let Z be the one-hot indicators of the masked values, U the one-hot label, and S_zz, S_zu and
    S_uu their covariance matrices. Pillai's trace V = trace(S_zz^+ S_zu S_uu^+ S_uz) is the sum of
    squared canonical correlations (Pillai, Some new test criteria in multivariate analysis, Annals
    of Mathematical Statistics 26, 1955). For one attribute V = chi-square / N. For two classes V is
    the R^2 of least squares, and the adjusted form is the adjusted R^2. V is monotone under masks;
    the adjusted form is not.

    The most frequent level of each attribute is dropped. The remaining indicators have a mean of at
    most 1/2, so centring them costs no digits. Their correlation matrix is factorised by Cholesky
    with complete pivoting (LAPACK dpstrf; Higham, Analysis of the Cholesky decomposition of a
    semi-definite matrix, 1990). The factorisation stops at the numerical rank, so levels that are
    determined by other levels add exactly nothing. A pivot is the share of an indicator's variance
    that the previous indicators leave unexplained; a pivot below 128 d eps, with eps the machine
    precision, counts as zero. S_uu needs no factorisation: for any W in its range, trace(S_uu^+ W)
    is the sum over classes c of W_cc divided by the rows of c.

    Parameters
    ----------
    total, joint, n, offsets, chance
        For d levels (masked values), C classes and m attributes: the rows per pair of levels, (d,
        d), and per level and class, (d, C); the number of rows; and the start of each attribute's
        levels, (m + 1,). If the counts are means over the noise of masks, `chance` is a matrix B,
        (d, k) for any k, such that drawing the noise adds B B' to their covariance. Levels and
        classes without rows are skipped. `total` and `joint` must count the same n rows.

    Raises
    ------
    InternalError
        LAPACK reports an illegal argument, for example because the counts contain NaN.
    """
    if len(offsets) < 2 or n <= 0:
        return PillaiFit(0.0, 0.0, 0)
    joint = np.asarray(joint, dtype=np.float64)
    class_counts = joint[: offsets[1]].sum(axis=0)
    classes = int(np.count_nonzero(class_counts))
    levels = joint.sum(axis=1)
    varying = kept_levels(levels, n, offsets)
    if not varying.size:
        return PillaiFit(0.0, 0.0, 0)
    count = levels[varying]
    scale = 1 / np.sqrt(count * (1 - count / n))
    correlation = _correlation(total[varying][:, varying], count, scale, n)
    # The last class follows from the others, its covariance being minus their sum.
    class_indices = np.flatnonzero(class_counts)
    free, last = class_indices[:-1], class_indices[-1:]
    label = joint[varying][:, free] - count[:, None] * (class_counts[free] / n)
    label *= scale[:, None]
    if chance is not None:
        label = np.hstack([label, chance[varying] * scale[:, None]])
    rank, white = whitened(correlation, label)
    solved, noise = white[:, : len(free)], white[:, len(free) :]
    trace = explained(solved, class_counts[free], float(class_counts[last].sum()))
    effective_rank = max(rank - float((noise**2).sum()), 0.0)
    return PillaiFit(trace, adjusted_trace(trace, effective_rank, classes, n), rank)


def explained(solved: Floats, free: Floats, last: float) -> float:
    """Return Pillai's trace from the covariance of whitened indicators with all classes except one.

    Parameters
    ----------
    solved
        Covariance of the r whitened indicators with C - 1 of the C classes, times the number of
        rows, shape (r, C - 1).
    free, last
        Number of rows of these classes, and of the last class, which is not in `solved`.
    """
    trace = float(((solved**2).sum(axis=0) / free).sum())
    return trace + float((solved.sum(axis=1) ** 2).sum() / last)


def kept_levels(levels: Floats, n: float, offsets: Ints) -> npt.NDArray[np.intp]:
    """Return the indices of the levels (masked values) that some but not all rows have, without the
    most frequent level of each attribute. `levels` has the rows per level, `n` is the number of
    rows, and `offsets` has the start of each attribute's levels.
    """
    keep = (levels > 0) & (levels < n)
    # One argmax per attribute: the loop is over attributes, of which there are few.
    for start, stop in pairwise(offsets.tolist()):
        keep[start + int(levels[start:stop].argmax())] = False
    return np.flatnonzero(keep)


def factorised(correlation: Floats, noise: float) -> tuple[Floats, npt.NDArray[np.intp], int]:
    """Return the Cholesky factor of a correlation matrix, the order of its rows, and its rank.

    The matrix is overwritten. A pivot counts as 0 if it is at most `noise` times 128 eps, where eps
    is the machine precision.
    """
    # SciPy's LAPACK takes longer to import than most of what a command does without it.
    from scipy.linalg.lapack import dpstrf

    # A symmetric matrix is its own transpose, which LAPACK reads without a copy.
    factor, pivots, rank, info = dpstrf(correlation.T, tol=_NOISE * noise, lower=1, overwrite_a=1)
    if info < 0:
        raise InternalError(f"LAPACK dpstrf refused argument {-info}.")
    if rank and factor[0, 0] ** 2 <= _NOISE * noise:  # LAPACK holds no first pivot against `tol`
        rank = 0
    return factor, pivots[:rank] - 1, int(rank)


def whitened(correlation: Floats, label: Floats, *, noise: float = 0.0) -> tuple[int, Floats]:
    """Return the rank r of `correlation`, and the columns of `label` after whitening, shape (r,
    columns): L^-1 P `label`, if `correlation` = P' L L' P with a permutation P and a lower triangle
    L. A pivot counts as 0 if it is at most 128 eps times `noise` or, if this is larger, times the
    number of rows of `correlation`; eps is the machine precision.
    """
    factor, order, rank = factorised(correlation, max(noise, len(correlation)))
    right = label[order]
    if not right.shape[1] or not rank:
        return rank, right
    return rank, solved_by(factor, right, rank)


def solved_by(factor: Floats, right: Floats, rank: int) -> Floats:
    """Return L^-1 B for a Cholesky factor L (`factor`) of this rank and a matrix B (`right`), which
    may be overwritten.
    """
    from scipy.linalg.lapack import dtrtrs

    solved, info = dtrtrs(factor[:rank, :rank], right, lower=1, overwrite_b=1)
    if info:
        raise InternalError(f"LAPACK dtrtrs failed with code {info} at rank {rank}.")
    return np.asarray(solved)


def adjusted_trace(trace: float, rank: float, classes: int, n: float) -> float:
    """Return Pillai's trace minus the amount that predictors of this rank explain by chance.

    `classes` is the number C of classes, `n` the number of rows N, and `rank` is d. The result is V
    - (1 - V/(C - 1)) d (C - 1)/(N - d - 1) for the trace V, like Ezekiel's adjustment of R^2.
    """
    freedom = n - rank - 1
    if classes < 2 or freedom <= 1e-9 * n:  # the rank of drawn rows is not a whole number
        return 0.0
    limit = classes - 1
    return trace - (1 - trace / limit) * rank * limit / freedom


@cached_method
def fit_pillai(counts: Cooccurrence) -> PillaiFit:
    """Return Pillai's trace of a configuration, plug-in and adjusted; the result is cached in
    `counts`.
    """
    return pillai_trace(counts.total, counts.joint, counts.n, counts.offsets, counts.chance)


def pillai(counts: Cooccurrence) -> float:
    """Return the adjusted Pillai's trace of a configuration; 0 if there is only one class, if all
    attributes are constant, or if there are too few rows.
    """
    return fit_pillai(counts).adjusted


def pillai_plain(counts: Cooccurrence) -> float:
    """Return the plug-in Pillai's trace V of a configuration."""
    return fit_pillai(counts).trace


_SMALLEST = 1e-2
"""Smallest pivot of F that is used as a divisor; a smaller pivot would lose digits of the residual."""


@dataclass(frozen=True, eq=False)
class GroupedLevels:
    """The groups of one attribute's levels (masked values), without the most frequent group and
    without constant groups. Covariances are those of the residuals after regression on the
    attributes whose masks stay the same, times the number of rows. Indicators are scaled to a
    standard deviation of 1.

    Attributes
    ----------
    levels
        The attribute's A levels among the D levels of all attributes.
    indicators
        The scaled indicator of each of L groups for each level, shape (A, L).
    covariances
        Covariances of the groups with all levels, shape (L, D).
    label
        Covariances of the groups with the C classes of the label, divided by the square root of the
        rows of each class, shape (L, C).
    """

    levels: slice
    indicators: Floats
    covariances: Floats
    label: Floats


@dataclass(frozen=True)
class PartialCovariances:
    """The covariances of attributes that remain after regression on the fixed attributes, whose
    masks stay the same. D is the number of levels (masked values) of the other attributes.

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
    def of(cls, total: Array, joint: Array, n: float, offsets: Ints, stays: Flags) -> Self | None:
        """Return the residual covariances of attributes after regression on the fixed attributes,
        whose masks stay the same (there may be none). The result is None if all attributes are
        fixed, if there are no rows, or if rounding makes the covariances too inexact.

        Parameters
        ----------
        total, joint, n, offsets
            The rows per pair of d levels (masked values), (d, d), and per level and class, (d, C),
            for C classes, the number of rows, and the start of the levels of each of m attributes.
            The counts must not contain noise.
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
        correlation = _centred(total, levels, n, varying, varying) * (scale[:, None] * scale)
        free = joint[:, :-1] - levels[:, None] * (joint[: offsets[1], :-1].sum(axis=0) / n)
        right = np.hstack([_centred(total, levels, n, varying, others), free[varying]])
        rank, smallest, solved = 0, 1.0, right
        if varying.size:
            factor, order, rank = factorised(correlation, len(levels))
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
        """Return the groups of an attribute's levels (masked values), with their covariances.

        Parameters
        ----------
        levels
            The attribute's A levels among the D levels.
        groups
            The group of each of these levels, shape (A,).
        """
        counts: Floats = np.bincount(groups, weights=self.counts[levels]).astype(np.float64)
        varying = kept_levels(counts, self.rows, np.array([0, len(counts)]))
        scale = 1 / np.sqrt(counts[varying] * (1 - counts[varying] / self.rows))
        indicators = (groups[:, None] == varying) * scale
        return GroupedLevels(
            levels, indicators, indicators.T @ self.total[levels], indicators.T @ self.label[levels]
        )

    def fit(self, attributes: Sequence[GroupedLevels]) -> PillaiFit:
        """Return Pillai's trace of the fixed attributes together with groupings of the other
        attributes (`attributes`).
        """
        trace, rank = self.trace, self.rank
        if varying := [each for each in attributes if len(each.label)]:
            covariances = np.concatenate([each.covariances for each in varying])
            correlation = np.empty((len(covariances), len(covariances)))
            stop = 0
            for each in varying:
                start, stop = stop, stop + len(each.label)
                # LAPACK reads one triangle, so the other one is left empty.
                block = correlation[:stop, start:stop]
                np.matmul(covariances[:stop, each.levels], each.indicators, out=block)
            label = np.concatenate([each.label for each in varying])
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
