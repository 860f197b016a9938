"""Pillai's trace as penalised regressions would reach it on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aegis.errors import InternalError
from aegis.measures.banded import FROM, Banded
from aegis.measures.common_factors import Shared
from aegis.measures.cooccurrence import Cooccurrence
from aegis.measures.counted import PENALTIES, UNPOOLED, Centred, Counted, Floats, Numbers
from aegis.measures.tridiagonal import Tridiagonal


def held_out_traces(
    counted: Counted,
    joint: Numbers,
    class_counts: Numbers,
    n: float,
    penalties: Sequence[float] = PENALTIES,
    *,
    chance: Floats | None = None,
    shared: Shared | None = None,
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
    counted
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
    shared
        Levels that other configurations have too, from which these are solved with less work.

    Raises
    ------
    InternalError
        There is NaN in the counts, or LAPACK reports a failure.
    """
    given = Centred.of(counted, joint, class_counts, n)
    if given is None:
        return np.zeros(len(penalties))
    moments = None
    if shared is not None and chance is None:
        moments = shared.moments(given, penalties)
    if moments is None:
        moments = _moments(given, penalties, None if chance is None else chance[given.varying])
    return _traces(given, n, *moments)


def _traces(given: Centred, n: float, effective: Floats, explained: Floats) -> Floats:
    """Return the trace under each penalty from degrees of freedom and explained squares."""
    seen = len(given.rows)
    left = given.rows * (1 - given.rows / n)
    freedom = n - 1 - effective
    traces = np.zeros(len(effective))
    for place in np.flatnonzero(~(freedom <= 0)):  # else nothing is known of other rows
        charge = ((n - 1) / freedom[place]) ** 2
        drawn = 1 - explained[place, seen:].sum() / (n - 1)
        # No learner does better on rows it did not see than the counts themselves say.
        rest = (left - explained[place, :seen]) * max(drawn * charge, 1.0)
        traces[place] = ((left - rest) / given.rows).sum()
    if not np.isfinite(traces).all():
        raise InternalError(f"Held-out traces {traces.tolist()}: the counts are no numbers.")
    return traces


def _moments(
    given: Centred, penalties: Sequence[float], chance: Floats | None
) -> tuple[Floats, Floats]:
    """Return effective degrees of freedom, shape (P,), and explained squares, shape (P, C + k)."""
    label = given.label if chance is None else np.hstack([given.label, chance])
    covariance, expected = given.covariance(), chance is not None
    form = (Banded if len(covariance) >= FROM else Tridiagonal).of(covariance, label)
    effective = np.array([form.effective(p, expected=expected) for p in penalties])
    explained = np.zeros((len(penalties), label.shape[1]))
    for place in np.flatnonzero(~(given.n - 1 - effective <= 0)).tolist():
        fitted = form.solve(penalties[place])
        explained[place] = ((form.right + penalties[place] * fitted) * fitted).sum(axis=0)
    return effective, explained


def value_traces(counts: Cooccurrence) -> Floats:
    """Return held-out traces of the values at each penalty of `UNPOOLED`, for all that use them."""

    def traces() -> Floats:
        shared = None if counts.sharing is None else counts.sharing.values(counts.offsets)
        return held_out_traces(
            counts.counted,
            counts.joint,
            counts.class_totals,
            counts.n,
            UNPOOLED,
            chance=counts.chance,
            shared=shared,
        )

    known: Floats = counts.remember("traces", traces)
    return known


def held_out(counts: Cooccurrence) -> float:
    """Return Pillai's trace on rows held out, the mean over learners of different strength.

    `held_out_traces` under the penalties p_1 < ... < p_5; a learner that can penalise by up to p_k
    reaches the largest of the first k, and at least 0. The mean over k is returned: which model
    will be trained on a release is not known, and a mask that only serves models with a strong
    penalty is worth less than one that serves all. From 0 to C - 1, never above the plug-in
    trace; 0 for one class, for constant attributes and without rows.
    """
    return mean_reached(value_traces(counts)[1:])


def mean_reached(traces: Floats) -> float:
    """Return the mean over learners that may penalise up to each penalty in turn, at least 0."""
    return float(np.maximum(np.maximum.accumulate(traces), 0.0).mean())
