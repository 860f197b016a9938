"""Compute the target-coded trace: Pillai's trace of one numeric code per attribute and class.

Each value of an attribute is replaced by one code per class: the share of the class among its rows
minus the share in the whole table (target encoding: Micci-Barreca, A preprocessing scheme for
high-cardinality categorical attributes, SIGKDD Explorations 3, 2001). For m attributes and C
classes, the trace needs only the covariance matrix of m (C - 1) codes. All of this matrix, except
the blocks between two attributes, follows from the rows by level and class. The matrix is small
enough to be protected before it is shared (`aegis.safe.protect`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from aegis.arrays import Array, Floats, Ints
from aegis.measures.cooccurrence import UNPOOLED
from aegis.measures.pillai import adjusted_trace
from aegis.measures.pillai import explained as trace_of

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence


_RANK = 1e-9
"""Eigenvalues of a correlation matrix of codes count as 0 up to this number times its size."""
_LEAST_SPREAD = 0.1
"""Smallest variance of a code within a class, relative to the variance within both classes.

Noise may make the estimate smaller.
"""


def class_codes(joint: Array, classes: Array) -> Floats:
    """Return the code of each of d levels (masked values) for each of C classes except the last,
    shape (d, C - 1).

    A code is the share of the class among the rows of the level minus its share in the table. It is
    0 for a level without rows.

    Parameters
    ----------
    joint
        Number of rows per level and class, shape (d, C); expected or noisy counts are allowed.
    classes
        Number of rows per class, shape (C,).
    """
    table = np.asarray(joint, dtype=np.float64)
    count = table.sum(axis=1, keepdims=True)
    share = np.divide(table, count, out=np.zeros_like(table), where=count > 0)
    overall = np.asarray(classes, dtype=np.float64)
    overall = overall / max(float(overall.sum()), 1e-300)
    codes = np.where(count > 0, share - overall, 0.0)
    return np.ascontiguousarray(codes[:, :-1])


def trace_of_codes(covariance: Floats, explained: Floats, classes: Floats) -> float:
    """Return Pillai's trace(S_xx^+ S_xu S_uu^+ S_ux) of codes x and label u, for covariance
    matrices S.

    Parameters
    ----------
    covariance
        S_xx, the covariance of the p numeric codes of masked values, shape (p, p), symmetric.
    explained
        S_xu, the covariance of the codes with the indicators of all C classes except the last,
        shape (p, C - 1).
    classes
        Share of each class, all above 0, shape (C,).

    Codes without variance and codes that other codes determine add nothing.
    """
    if not (covariance.diagonal() > 0).any() or len(classes) < 2:
        return 0.0
    # S_uu^-1 of C - 1 indicators is diag(1 / p) + 1 / p_C.
    return trace_of(_whitened(covariance, explained), classes[:-1], float(classes[-1]))


def _whitened(covariance: Floats, right: Floats) -> Floats:
    """Return S^+^(1/2) B, up to a rotation, for a covariance matrix S and a matrix B (`right`);
    directions without variance are left out.
    """
    variance = covariance.diagonal()
    varies = np.flatnonzero(variance > 0)
    scale = 1 / np.sqrt(variance[varies])
    values, vectors = np.linalg.eigh(covariance[np.ix_(varies, varies)] * np.outer(scale, scale))
    ranked = values > _RANK * len(values)
    turned: Floats = vectors[:, ranked].T @ (right[varies] * scale[:, None])
    turned /= np.sqrt(values[ranked])[:, None]
    return turned


def trace_by_separation(
    correlation: Floats, strengths: Floats, skewness: Floats, share: float
) -> float:
    """Return Pillai's trace of codes for two classes, from the largest AUC of their linear scores.

    Let m_1 and m_0 be the means, and S_1 and S_0 the covariances, of the codes in the class and in
    the rest. If scores are normal, the linear combination of the codes with the coefficients (S_1 +
    S_0)^-1 (m_1 - m_0) has the largest AUC. This AUC is Phi(d), where d^2 = (m_1 - m_0)' (S_1 +
    S_0)^-1 (m_1 - m_0) and Phi is the normal distribution function (Su and Liu, Linear combinations
    of multiple diagnostic markers, JASA 88, 1993). The result is the trace of codes that have this
    AUC and for which S_1 = S_0, from 0 to 1:

        2 p q d^2 / (1 + 2 p q d^2).

    The moments are computed from the strength s and the skewness g of each code. For a code of
    variance 1, with the variances v_1 in the class and v_0 in the rest,

        m_1 - m_0 = sqrt(s / (p q)),  p v_1 + q v_0 = 1 - s,
        v_1 - v_0 = g (m_1 - m_0) - (q - p) (m_1 - m_0)^2.

    Correlations within the class and within the rest are assumed to be equal.

    Parameters
    ----------
    correlation
        Correlations of the m codes, shape (m, m). A larger code means a larger share of the class.
    strengths
        Mean square contingency of each code with the class, shape (m,).
    skewness
        Third central moment of each code, in units of its standard deviation, shape (m,).
    share
        The share p of the class; q = 1 - p is the share of the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from aegis.measures.target_coded import trace_by_separation
    >>> round(trace_by_separation(np.eye(1), np.array([0.2]), np.array([0.0]), 0.5), 9)
    0.2
    """
    rest = 1.0 - share
    strengths = np.clip(strengths, 0.0, 1.0)
    gap = np.sqrt(strengths / (share * rest))
    pooled = 1.0 - strengths
    excess = skewness * gap - (rest - share) * gap**2
    least = _LEAST_SPREAD * pooled
    root = np.sqrt(
        [np.maximum(pooled + rest * excess, least), np.maximum(pooled - share * excess, least)]
    )
    within = correlation - share * rest * np.outer(gap, gap)
    scale = np.sqrt(np.where(pooled > _RANK, np.maximum(within.diagonal(), _RANK), np.inf))
    values, vectors = np.linalg.eigh(within / np.outer(scale, scale))
    # Noise can leave a matrix that is no covariance.
    alike = (vectors * np.maximum(values, 0.0)) @ vectors.T
    weight = 2.0 * share * rest
    matrix = alike * (root.T @ root) + weight * np.outer(gap, gap)
    return weight * float((_whitened(matrix, gap[:, None]) ** 2).sum())


def believed(levels: Floats, strength: Floats, penalty: float) -> float:
    """Return how much of the strength of an attribute's levels (masked values) a model with a ridge
    penalty explains.

    Let d be the deviation of a level with n rows from the mean. In a ridge regression on a single
    attribute with penalty p, d shrinks to d n / (n + p). The level then explains

        n d^2 (1 - (p / (n + p))^2).

    Parameters
    ----------
    levels
        Number of rows per level, above 0, shape (d,).
    strength
        Strength of each level, n d^2 / N, where N is the number of all rows; one entry per level.
    penalty
        The penalty p, in rows.
    """
    return float(strength @ (1 - (penalty / (levels + penalty)) ** 2))


def fitted_freedom(levels: Floats, penalty: float) -> float:
    """Return the degrees of freedom of a ridge regression on an attribute. `levels` has the rows of
    each level (masked value), and `penalty` is the ridge penalty, in rows.
    """
    total = float(levels.sum())
    if total <= 0:
        return 0.0
    return float((levels / (levels + penalty) * (1 - levels / total)).sum())


def held_out_reached(explained: Floats, freedoms: Floats, classes: int, n: float) -> float:
    """Return Pillai's trace on held-out rows, averaged over learners that differ in their largest
    ridge penalty.

    Let V_p be the trace that a learner with penalty p reaches on the rows that it is fitted to, and
    f_p its degrees of freedom. On held-out rows the trace is estimated, for C classes and N rows,
    as

        T_p = C - 1 - (C - 1 - V_p) ((N - 1) / (N - 1 - f_p))^2.

    The k-th learner reaches the largest of the first k traces; the result is the mean over
    learners. If no T_p is positive, the result is the largest T_p, because it still shows how far
    from useful the codes are. The result never falls if V_p rises or f_p falls.

    Parameters
    ----------
    explained, freedoms
        V_p and f_p for each of P penalties, each of shape (P,).
    classes, n
        The number of classes C, and the number of rows N.
    """
    limit = classes - 1.0
    rest = np.maximum(n - 1 - freedoms, 1e-9 * n)
    charge = ((n - 1) / rest) ** 2 - 1
    traces: Floats = explained - np.maximum(limit - explained, 0.0) * charge
    best = float(traces.max())
    return float(np.maximum(np.maximum.accumulate(traces), 0.0).mean()) if best > 0 else best


def held_out_target_coded(counts: Cooccurrence) -> float:
    """Return the target-coded trace on held-out rows, averaged over learners with different
    penalties.

    It estimates the measure `held-out-pillai-values` from the rows by level (masked value) and
    class and one small matrix. Let V be the trace of the codes of all attributes, without the
    adjustment of `target_coded`; for two classes, V comes from `trace_by_separation`. For a learner
    with penalty p, V_p is V times the share of the levels' strength that it explains (`believed`).
    Its degrees of freedom f_p are the sum of `fitted_freedom` over attributes, times V, divided by
    the sum of the attributes' separate traces, because attributes with the same information overfit
    only once. The result is `held_out_reached` of V_p and f_p. For C classes, the value is from 0
    to C - 1. It is 0 if there is only one class, if all attributes are constant, or if there are no
    rows.
    """
    n, offsets = float(counts.n), np.asarray(counts.offsets)
    tables = _label_tables(counts)
    if tables is None:
        return 0.0
    joint, totals = tables
    levels = joint.sum(axis=1)
    deviation = joint - np.outer(levels, totals / n)
    strength = (deviation**2 / totals).sum(axis=1) / np.maximum(levels, 1e-300) * (levels > 0)
    alone = float(strength.sum())
    if alone <= 0:
        return 0.0
    of_codes = _separated if len(totals) == 2 else _trace
    trace = of_codes(counts, joint, totals, offsets)
    strengths, freedoms = np.zeros(len(UNPOOLED)), np.zeros(len(UNPOOLED))
    for index, penalty in enumerate(UNPOOLED):
        strengths[index] = believed(np.maximum(levels, 1e-300), strength, penalty) / alone
        freedoms[index] = sum(
            fitted_freedom(levels[start:stop], penalty)
            for start, stop in pairwise(offsets.tolist())
        )
    full = degrees_of_freedom(levels, offsets)
    if full > 0:
        freedoms *= degrees_of_freedom(levels, offsets, counts.chance) / full
    reached = held_out_reached(trace * strengths, freedoms * trace / alone, len(totals), n)
    return max(reached, 0.0)


def target_coded(counts: Cooccurrence) -> float:
    """Return the target-coded trace of a configuration, adjusted for chance.

    Let x be the codes of all masked attributes (`class_codes` of their levels, the masked values)
    and u the label. The trace is V = trace(S_xx^+ S_xu S_uu^+ S_ux), with covariance matrices S. It
    is adjusted by `adjusted_trace`, where `degrees_of_freedom` gives the number f of fitted
    parameters. Codes are functions of the levels, so V is at most the plug-in Pillai's trace of the
    same configuration. For a single attribute both are equal, and their adjusted forms are equal,
    too. For C classes, the value is at most C - 1. It is 0 if there is only one class, if all
    attributes are constant, if there are no rows, or if f is too large for the number of rows. With
    noise masks, f is lower, because counts that are means over the noise fit less by chance.
    """
    n, offsets = float(counts.n), np.asarray(counts.offsets)
    tables = _label_tables(counts)
    if tables is None:
        return 0.0
    joint, totals = tables
    trace = _trace(counts, joint, totals, offsets)
    freedom = degrees_of_freedom(joint.sum(axis=1), offsets, counts.chance)
    return adjusted_trace(trace, freedom, len(totals), n)


def _label_tables(counts: Cooccurrence) -> tuple[Floats, Floats] | None:
    """Return the rows for d levels (masked values) and the C classes that have rows, shape (d, C),
    and the rows per class, shape (C,).

    The result is None if nothing can be predicted: no attribute, no row, or fewer than two classes.
    """
    offsets = np.asarray(counts.offsets)
    if len(offsets) < 2 or counts.n <= 0:
        return None
    joint = np.asarray(counts.joint, dtype=np.float64)
    totals = joint[: offsets[1]].sum(axis=0)
    classes = np.flatnonzero(totals > 0)
    return None if classes.size < 2 else (joint[:, classes], totals[classes])


def _trace(counts: Cooccurrence, joint: Floats, totals: Floats, offsets: Ints) -> float:
    """Return Pillai's trace of the codes of all attributes, given the rows for d levels (masked
    values) and C classes (`joint`), shape (d, C), and the rows per class (`totals`). `offsets` has
    the first level of each attribute.
    """
    n = float(counts.n)
    spread = _spread(class_codes(joint, totals), offsets)
    covariance = _covariance(counts, spread)
    # Codes have mean 0: rows of a level weigh its code, and their sum is that of the class.
    explained = spread.T @ joint[:, :-1] / n
    return trace_of_codes(covariance, explained, totals / n)


def _covariance(counts: Cooccurrence, spread: Floats) -> Floats:
    """Return the covariance of p columns of codes, shape (p, p). `spread` has the code of each of d
    levels (masked values) in each column, shape (d, p), so that every column has mean 0 over the
    rows. `counts` has the number of rows for each pair of levels.
    """
    return spread.T @ (np.asarray(counts.total, dtype=np.float64) @ spread) / float(counts.n)


def _separated(counts: Cooccurrence, joint: Floats, totals: Floats, offsets: Ints) -> float:
    """Return Pillai's trace of the codes of two classes, by `trace_by_separation`. `joint` has the
    rows for d levels (masked values) and both classes, shape (d, 2), `totals` the rows per class,
    shape (2,), and `offsets` the first level of each attribute.
    """
    n = float(counts.n)
    spread = _spread(class_codes(joint, totals), offsets)
    covariance = _covariance(counts, spread)
    varies = np.flatnonzero(covariance.diagonal() > 0)
    deviation = np.sqrt(covariance.diagonal()[varies])
    third = (joint.sum(axis=1) @ spread**3)[varies] / n
    share = float(totals[0] / n)
    return trace_by_separation(
        covariance[np.ix_(varies, varies)] / np.outer(deviation, deviation),
        deviation**2 / (share * (1 - share)),
        third / deviation**3,
        share,
    )


def degrees_of_freedom(levels: Floats, offsets: Ints, chance: Floats | None = None) -> float:
    """Return the number of codes that are fitted to the rows: the number of levels with rows, minus
    1 per attribute, minus a correction if the counts are means over the noise of masks.

    Parameters
    ----------
    levels
        Number of rows of each of d levels (masked values), shape (d,).
    offsets
        Start of the levels of each of m attributes, shape (m + 1,).
    chance
        If the counts are means over the noise of masks: a matrix B, shape (d, k) for any k, such
        that drawing the noise adds B B' to their covariance. None: there is no correction.
    """
    full = levels > 0
    freedom = float(sum(max(int(full[a:b].sum()) - 1, 0) for a, b in pairwise(offsets.tolist())))
    if chance is not None:
        noise = float((chance[full] ** 2 / levels[full, None]).sum())
        freedom = max(freedom - noise, 0.0)
    return freedom


def _spread(codes: Floats, offsets: Ints) -> Floats:
    """Return the codes of d levels (masked values) with separate columns for each of m attributes,
    shape (d, m (C - 1)), for C classes. A level has 0 in the columns of other attributes.

    `codes` has one column for each class except the last, shape (d, C - 1), and `offsets` the index
    of each attribute's first level.
    """
    width = codes.shape[1]
    spread = np.zeros((len(codes), (len(offsets) - 1) * width))
    for i, (start, stop) in enumerate(pairwise(offsets.tolist())):
        spread[start:stop, i * width : (i + 1) * width] = codes[start:stop]
    return spread
