"""Pillai's trace as penalised regressions would reach it on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Rows that a masked value needs before half of what they say of it is believed."""
UNPOOLED = (1.0, *PENALTIES)
"""And one for a learner that believes a value after one row."""


def held_out_traces(
    total: Numbers,
    joint: Numbers,
    class_counts: Numbers,
    n: float,
    penalties: Sequence[float] = PENALTIES,
    *,
    chance: Floats | None = None,
) -> Floats:
    """Return an estimate of the held-out trace under each penalty, shape (len(penalties),).

    With Z the one-hot indicators of the masked values and U the one-hot label, both centred, the
    ridge regression of U on Z with penalty p leaves the residual sum of squares RSS_c(p) of class
    c; TSS_c = n_c (1 - n_c / N) is what the class's share alone leaves. Generalised
    cross-validation (Golub, Heath and Wahba, Generalized cross-validation as a method for choosing
    a good ridge parameter, Technometrics 21, 1979, equation 1.4) puts the error on rows that took
    no part at RSS_c / (1 - (1 + df) / N)^2, df = trace(Z (Z'Z + p I)^-1 Z'). Hence the trace

        sum_c (TSS_c - RSS_c ((N - 1) / (N - 1 - df))^2) / n_c,

    which without a penalty differs from the adjusted trace only by the square. Where all rows have
    the same leverage it is leave-one-out itself. It is never above the plug-in trace, and negative
    where the regression predicts worse than the shares of the classes do.

    One reduction to tridiagonal form serves all penalties (Elden, Algorithms for the
    regularization of ill-conditioned least squares problems, BIT 17, 1977).

    Parameters
    ----------
    total
        Co-occurrence counts between levels, shape (d, d), symmetric; may be expected counts.
    joint
        Level by class counts, shape (d, C).
    class_counts
        Rows per class, shape (C,).
    n
        Rows behind the counts.
    penalties
        Ridge penalties, each above 0, in rows.
    chance
        As of `Cooccurrence`, shape (d, k): what drawn rows explain more by chance than expected
        counts do, which takes its share off the residual sum of squares.

    Raises
    ------
    InternalError
        There is NaN in the counts, or LAPACK reports a failure.
    """
    count = np.diagonal(total).astype(np.float64)
    kept = np.flatnonzero((count > 0) & (count < n))
    seen = np.flatnonzero(class_counts)
    if not kept.size or seen.size < 2:
        return np.zeros(len(penalties))
    count, rows = count[kept], class_counts[seen].astype(np.float64)
    covariance: Floats = total[np.ix_(kept, kept)].astype(np.float64, copy=False)
    covariance -= np.outer(count / n, count)
    label: Floats = joint[np.ix_(kept, seen)] - np.outer(count, rows / n)
    if chance is not None:
        label = np.hstack([label, chance[kept]])
    diagonal, beside, turned = _tridiagonal(covariance, label)
    strength = np.asarray(penalties, dtype=np.float64)
    freedom = (
        n
        - 1
        - np.array([_effective(diagonal, beside, p, expected=chance is not None) for p in strength])
    )
    left = rows * (1 - rows / n)
    traces = np.zeros(len(strength))
    for place in np.flatnonzero(~(freedom <= 0)):  # else nothing is known of other rows
        penalty = strength[place]
        fitted = _solve(diagonal + penalty, beside, turned)
        explained = ((turned + penalty * fitted) * fitted).sum(axis=0)
        charge = ((n - 1) / freedom[place]) ** 2
        drawn = 1 - explained[seen.size :].sum() / (n - 1)
        # No learner does better on rows it did not see than the counts themselves say.
        rest = (left - explained[: seen.size]) * max(drawn * charge, 1.0)
        traces[place] = ((left - rest) / rows).sum()
    if not np.isfinite(traces).all():
        raise InternalError(f"Held-out traces {traces.tolist()}: the counts are no numbers.")
    return traces


def held_out(counts: Cooccurrence) -> float:
    """Return Pillai's trace on rows held out, the mean over learners of different strength.

    `held_out_traces` under the penalties p_1 < ... < p_5; a learner that can penalise by up to p_k
    reaches the largest of the first k, and at least 0. The mean over k is returned: which model
    will be trained on a release is not known, and a mask that only serves models with a strong
    penalty is worth less than one that serves all. From 0 to C - 1, never above the plug-in
    trace; 0 for one class, for constant attributes and without rows.
    """
    return mean_reached(counts.traces[1:])


def mean_reached(traces: Floats) -> float:
    """Return the mean over learners that may penalise up to each penalty in turn, at least 0."""
    return float(np.maximum(np.maximum.accumulate(traces), 0.0).mean())


def _tridiagonal(matrix: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """Return diagonal and subdiagonal of Q' `matrix` Q, and Q' `right`."""
    from scipy.linalg.lapack import dormqr, dsytrd, dsytrd_lwork

    size = len(matrix)
    room, _ = dsytrd_lwork(size, lower=1)
    # A symmetric matrix is its own transpose, which LAPACK reads without a copy.
    factor, diagonal, beside, scales, info = dsytrd(
        matrix.T, lower=1, lwork=int(room), overwrite_a=1
    )
    _check(info, "dsytrd")
    turned = np.array(right)
    if size > 1:  # the first row and column stay as they are
        turned[1:], _, info = dormqr(
            "L", "T", factor[1:, :-1], scales, turned[1:], 64 * max(right.shape)
        )
        _check(info, "dormqr")
    return diagonal, beside, turned


def _effective(diagonal: Floats, beside: Floats, penalty: float, *, expected: bool) -> float:
    """Return trace(T (T + p I)^-1) of a tridiagonal T, p > 0; negative eigenvalues count as 0.

    That is its size less p times the trace of the inverse, whose diagonal follows from the pivots of
    the factorisations from above and from below: 1 / (down_i + up_i - (T + p I)_ii) (Meurant, A review
    on the inverse of symmetric tridiagonal and block tridiagonal matrices, SIAM J. Matrix Anal. Appl.
    13, 1992).
    """
    from scipy.linalg.lapack import dpttrf, dsterf

    shifted = diagonal + penalty
    if len(shifted) == 1:
        return float(diagonal[0] / shifted[0])
    down, _, failed = dpttrf(shifted, beside)
    up, _, beneath = dpttrf(shifted[::-1], beside[::-1])
    if expected or failed or beneath:  # no covariance, perhaps: what is negative says nothing
        spread, info = dsterf(diagonal, beside)
        _check(info, "dsterf")
        spread = np.maximum(spread, 0.0)
        return float((spread / (spread + penalty)).sum())
    inverse = 1.0 / (down + up[::-1] - shifted)
    return float(len(shifted) - penalty * inverse.sum())


def _solve(diagonal: Floats, beside: Floats, right: Floats) -> Floats:
    """Solve a positive definite tridiagonal system."""
    from scipy.linalg.lapack import dptsv

    if len(diagonal) == 1:
        return right / diagonal
    *_, solved, info = dptsv(diagonal, beside, right)
    _check(info, "dptsv")
    found: Floats = solved
    return found


def _check(info: int, routine: str) -> None:
    if info:
        raise InternalError(f"LAPACK {routine} failed with code {info}.")
