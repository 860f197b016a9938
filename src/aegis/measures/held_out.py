"""Predict Pillai's trace of penalised regressions on held-out rows, with ordered attributes coded
as levels or as thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats, cached_method
from aegis.errors import InternalError
from aegis.measures.by_fold import later
from aegis.measures.cooccurrence import PENALTIES, UNPOOLED, Centred, Cooccurrence
from aegis.measures.numerics import Tridiagonal

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import OrderedCounts


def held_out_traces(
    total: Array,
    joint: Array,
    class_counts: Array,
    n: float,
    penalties: Sequence[float] = PENALTIES,
    *,
    chance: Floats | None = None,
) -> Floats:
    """Estimate Pillai's trace on held-out rows under each ridge penalty, shape (len(penalties),).

    Let Z be the one-hot indicators of the masked values and U the one-hot label, both centred. For
    class c with n_c of N rows, RSS_c is the residual sum of squares of the ridge regression of U on
    Z with penalty p. TSS_c = n_c (1 - n_c / N) is the residual sum of squares if the prediction is
    the share of the class. Generalised cross-validation (Golub, Heath and Wahba, Generalized
    cross-validation as a method for choosing a good ridge parameter, Technometrics 21, 1979,
    equation 1.4) estimates the error on held-out rows as RSS_c / (1 - (1 + df) / N)^2, df = trace(Z
    (Z'Z + p I)^-1 Z'). Hence the trace is

        sum_c (TSS_c - RSS_c ((N - 1) / (N - 1 - df))^2) / n_c.

    Without a penalty, it differs from the adjusted trace only in that the factor is squared. If all
    rows have the same leverage, it is exactly the leave-one-out estimate. It is never above the
    plug-in trace, and it is negative if the regression predicts worse than the shares of the
    classes.

    One reduction to tridiagonal form serves all penalties (Elden, Algorithms for the regularization
    of ill-conditioned least squares problems, BIT 17, 1977).

    Parameters
    ----------
    total
        How many rows have both levels (masked values) of each pair of d levels, shape (d, d),
        symmetric; expected counts are allowed.
    joint
        Number of rows by level and class, shape (d, C), for C classes.
    class_counts
        Number of rows per class, shape (C,).
    n
        Number of rows that are counted.
    penalties
        The ridge penalties, in rows, each above 0.
    chance
        If the counts are means over the noise of masks: a matrix B, shape (d, k), for any k. For
        each class, drawing the noise adds B B' times the variance of the 0/1 indicator of the class
        to the covariance of the counts. With B, the result is the trace for drawn values. None
        without noise.

    Raises
    ------
    InternalError
        The counts contain NaN, or LAPACK reports a failure.
    """
    centred = Centred.of(total, joint, class_counts, n)
    if centred is None:
        return np.zeros(len(penalties))
    moments = _moments(centred, penalties, None if chance is None else chance[centred.varying])
    return _traces(centred, n, *moments)


def _traces(centred: Centred, n: float, effective: Floats, explained: Floats) -> Floats:
    """Return Pillai's trace on held-out rows under each of P penalties, for C classes. `centred`
    has the centred counts of n rows.

    `effective` has the effective degrees of freedom of each ridge regression, shape (P,), and
    `explained` the sum of squares that it explains of each class, and of each of k columns that
    describe noise, shape (P, C + k).
    """
    classes = len(centred.rows)
    total_squares = centred.rows * (1 - centred.rows / n)
    freedom = n - 1 - effective
    traces = np.zeros(len(effective))
    for index in np.flatnonzero(~(freedom <= 0)):  # else nothing is known of other rows
        charge = ((n - 1) / freedom[index]) ** 2
        noise_factor = 1 - explained[index, classes:].sum() / (n - 1)
        # No learner does better on rows it did not see than the counts themselves say.
        rest = (total_squares - explained[index, :classes]) * max(noise_factor * charge, 1.0)
        traces[index] = ((total_squares - rest) / centred.rows).sum()
    if not np.isfinite(traces).all():
        raise InternalError(
            f"Held-out traces {traces.tolist()} are not finite, because the counts are not."
        )
    return traces


def _moments(
    centred: Centred, penalties: Sequence[float], chance: Floats | None
) -> tuple[Floats, Floats]:
    """Return two figures of the ridge regression with each of P penalties: the effective degrees of
    freedom, shape (P,), and the sum of squares that it explains of each of C classes and of each of
    the k columns of `chance`, which describe noise, shape (P, C + k). `centred` has the centred
    counts.
    """
    label = centred.label if chance is None else np.hstack([centred.label, chance])
    covariance, expected = centred.covariance(), chance is not None
    form = Tridiagonal.of(covariance, label)
    effective = np.array([form.effective(p, expected=expected) for p in penalties])
    explained = np.zeros((len(penalties), label.shape[1]))
    for index in np.flatnonzero(~(centred.n - 1 - effective <= 0)).tolist():
        fitted = form.solve(penalties[index])
        explained[index] = ((form.right + penalties[index] * fitted) * fitted).sum(axis=0)
    return effective, explained


@cached_method
def value_traces(counts: Cooccurrence) -> Floats:
    """Return Pillai's trace on held-out rows for each penalty of `UNPOOLED`, if models have one
    coefficient for each level (masked value).
    """

    of_rows = counts.total, counts.joint, counts.class_totals, counts.n
    return held_out_traces(*of_rows, UNPOOLED, chance=counts.chance)


def held_out(counts: Cooccurrence) -> float:
    """Return Pillai's trace on held-out rows, averaged over learners that use different penalties.

    `held_out_traces` returns a trace for each of the penalties p_1 < ... < p_5. A learner that can
    use penalties up to p_k reaches the largest of the first k traces, and at least 0. The result is
    the mean over k, because it is unknown which model will be trained on a release: a mask that
    serves only strongly penalised models is worth less than a mask that serves all models. For C
    classes, the value is from 0 to C - 1, and never above the plug-in trace. It is 0 if there is
    only one class, if all attributes are constant, or if there are no rows.
    """
    return mean_reached(value_traces(counts)[1:])


def mean_reached(traces: Floats) -> float:
    """Return the mean, over several models, of the largest trace that each model can reach, at
    least 0. `traces` has Pillai's trace for each ridge penalty.

    The k-th model can choose only among the first k penalties.
    """
    return float(np.maximum(np.maximum.accumulate(traces), 0.0).mean())


def pooled_losses(pooled: Array, class_counts: Array) -> Floats:
    """Return the change of Pillai's trace on held-out rows if a model has a coefficient for each
    rare value, instead of one for the level that pools them: a number of at most 0 for each penalty
    of `UNPOOLED`.

    Measures of several attributes pool the rare values of an attribute into one level, but a model
    with a coefficient for each value fits noise. Here each row is predicted from the other rows
    with its value, and a ridge penalty p shrinks the prediction towards that of the level. For a
    row of class k, the prediction for class c moves from s_c by

        (a_c - [c = k] - (n - 1) s_c) / (n - 1 + p),

    where n is the number of rows with the value, a_c of them in class c, and s_c is the share of
    class c within the level. The change of the squared error of class c is divided by the number of
    rows of class c, as in `held_out_traces`. Positive changes count as 0: the level already
    contains the common effect of the rare values, and `thresholds` their separate effects.

    Parameters
    ----------
    pooled
        Number of rows for each of R pooled values and C classes, shape (R, C).
    class_counts
        Number of rows per class in the whole table, shape (C,).

    Returns
    -------
    One change per penalty of `UNPOOLED`.
    """
    counts = np.asarray(pooled, dtype=np.float64)
    rows = counts.sum(axis=1, keepdims=True)
    classes = np.flatnonzero(class_counts)
    counts, rows = counts[rows[:, 0] > 0][:, classes], rows[rows[:, 0] > 0]
    if len(counts) < 2:
        return np.zeros(len(UNPOOLED))
    share = counts.sum(axis=0) / counts.sum()
    others = counts - (rows - 1) * share  # of a row of another class
    losses = []
    for penalty in UNPOOLED:
        scale = rows - 1 + penalty
        class_shift, other = (others - 1) / scale, others / scale
        gain = counts * class_shift * (2 * (1 - share) - class_shift) - (rows - counts) * other * (
            2 * share + other
        )
        losses.append((gain.sum(axis=0) / class_counts[classes]).sum())
    return np.minimum(losses, 0.0)


STRONGER = 100.0
"""Penalties of thresholds are this many times as large as penalties of values, because each
threshold covers all rows on one side.
"""
VALUES, THRESHOLDS = 2 / 3, 1 / 3
"""Weights of the two codings in the mean."""


def thresholds(counts: OrderedCounts) -> OrderedCounts:
    """Return the counts of thresholds instead of the levels (masked values) of ordered attributes.

    For an ordered attribute, the indicator of each level is replaced by a threshold: it is 1 for
    this level and all later ones. The coefficient of a threshold is the step between neighbouring
    levels, and a ridge penalty makes neighbours similar. For a single attribute this is the
    smoothing of Whittaker (On a new method of graduation, 1923), who penalises squared first
    differences. Other attributes keep their indicators. Levels without rows are dropped, because
    their threshold is the same as the next one.
    """
    varying = np.flatnonzero(counts.total.diagonal() > 0)
    total: Floats = counts.total[np.ix_(varying, varying)].astype(np.float64)
    joint: Floats = counts.joint[varying].astype(np.float64)
    chance = None if counts.chance is None else counts.chance[varying]
    offsets = np.searchsorted(varying, counts.offsets)
    for (start, stop), ordered in zip(pairwise(offsets.tolist()), counts.ordered, strict=True):
        if ordered:
            levels = slice(start, stop)
            total[levels] = later(total[levels], 0)
            total[:, levels] = later(total[:, levels], 1)
            joint[levels] = later(joint[levels], 0)
            if chance is not None:
                chance[levels] = later(chance[levels], 0)
    return replace(counts, total=total, joint=joint, offsets=offsets, chance=chance)


def ordered_traces(
    counts: OrderedCounts,
    class_counts: npt.NDArray[np.generic],
    n: float,
) -> Floats:
    """Return the held-out Pillai's trace of ridge regressions on thresholds, for each of 5
    penalties, shape (5,).

    This is `held_out_traces` of the `thresholds`, with penalties that are a hundred times as large.
    It is a prediction for learners that split ordered values at thresholds, such as trees. They can
    use even rare values, because of their position in the order. Each level (masked value) of an
    unordered attribute has a coefficient.

    Parameters
    ----------
    counts
        Levels in the order of their values.
    class_counts
        Number of rows in each of C classes, shape (C,).
    n
        Number of rows that are counted.
    """
    encoded = thresholds(counts)
    penalties = [STRONGER * penalty for penalty in PENALTIES]
    return held_out_traces(
        encoded.total, encoded.joint, class_counts, n, penalties, chance=encoded.chance
    )


def held_out_encodings(counts: Cooccurrence) -> float:
    """Return Pillai's trace on held-out rows, as a mean over two encodings: values (weight 2) and
    thresholds (weight 1).

    It is unknown which model will use a release. Linear models and networks on one-hot columns use
    separate values; trees on numbers use the order. The trace of values is a mean over learners
    that use different ridge penalties (see `held_out`), minus the loss because values are pooled in
    a level (`pooled_losses`). The trace of thresholds comes from `ordered_traces`. For C classes,
    the result is from 0 to C - 1. It is 0 if there is only one class, if all attributes are
    constant, or if there are no rows.
    """
    ordered = ordered_traces(counts.in_order, counts.class_totals, counts.n)
    return VALUES * mean_reached(value_traces(counts) + counts.losses) + THRESHOLDS * mean_reached(
        ordered
    )
