"""The target-coded trace: Pillai's trace of one numeric code per attribute and class.

Each value of an attribute is replaced by what it says of each class: the share of the class among
its rows less the share in the whole table (target encoding: Micci-Barreca, A preprocessing scheme
for high-cardinality categorical attributes, SIGKDD Explorations 3, 2001). What remains of m
attributes and C classes is one covariance matrix of m (C - 1) codes, which the label tables give
but for its blocks between two attributes. That is little enough to protect before it is passed on
(`aegis.safe.protect`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aegis.measures.counted import UNPOOLED

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_RANK = 1e-9
"""Eigenvalues of a correlation matrix of codes up to this times its size count as 0."""
_LEAST_SPREAD = 0.1
"""Least variance of a code within a class, as a share of that within both: noise can leave less."""


def class_codes(joint: Numbers, classes: Numbers) -> Floats:
    """Return the class codes of each level, for all classes but the last, shape (d, C - 1).

    The share of the class among the rows of the level less its share in the table; 0 for a level
    without rows.

    Parameters
    ----------
    joint
        Rows per level and class, shape (d, C); may be expected or noisy counts.
    classes
        Rows per class, shape (C,).
    """
    table = np.asarray(joint, dtype=np.float64)
    count = table.sum(axis=1, keepdims=True)
    share = np.divide(table, count, out=np.zeros_like(table), where=count > 0)
    overall = np.asarray(classes, dtype=np.float64)
    overall = overall / max(float(overall.sum()), 1e-300)
    codes = np.where(count > 0, share - overall, 0.0)
    return np.ascontiguousarray(codes[:, :-1])


def trace_of_codes(covariance: Floats, explained: Floats, classes: Floats) -> float:
    """Return trace(S_xx^+ S_xu S_uu^+ S_ux), the trace of codes x against the label u.

    Parameters
    ----------
    covariance
        S_xx of the codes, shape (p, p), symmetric.
    explained
        S_xu, the covariance of the codes with the indicators of all classes but the last,
        shape (p, C - 1).
    classes
        Share of each class, all above 0, shape (C,).

    Codes without variance add nothing, and directions that other codes determine are left out.
    """
    variance = np.diagonal(covariance)
    varies = np.flatnonzero(variance > 0)
    if not varies.size or len(classes) < 2:
        return 0.0
    scale = 1 / np.sqrt(variance[varies])
    correlation = covariance[np.ix_(varies, varies)] * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation)
    ranked = values > _RANK * len(values)
    solved = vectors[:, ranked].T @ (explained[varies] * scale[:, None])
    solved /= np.sqrt(values[ranked])[:, None]
    # S_uu^-1 of C - 1 indicators is diag(1 / p) + 1 / p_C.
    total = (solved**2 / classes[:-1]).sum() + (solved.sum(axis=1) ** 2).sum() / classes[-1]
    return float(total)


def trace_by_separation(
    correlation: Floats, strengths: Floats, skewness: Floats, share: float
) -> float:
    """Return the trace of codes of two classes, from the largest AUC that a linear score of them has.

    Of all linear scores (S_1 + S_0)^-1 (m_1 - m_0) has the largest AUC under normal scores: Phi(d), with
    d^2 = (m_1 - m_0)' (S_1 + S_0)^-1 (m_1 - m_0) (Su and Liu, Linear combinations of multiple
    diagnostic markers, JASA 88, 1993). Codes of the same AUC whose covariances S_1 and S_0 are equal
    have the trace 2 p q d^2 / (1 + 2 p q d^2), which is returned: from 0 to 1, and the usual trace
    where the covariances are equal. A code of strength s and skewness g has the gap of means
    m_1 - m_0 = sqrt(s / (p q)), and variances with p v_1 + q v_0 = 1 - s and
    v_1 - v_0 = g (m_1 - m_0) - (q - p) (m_1 - m_0)^2. Correlations within the classes count as equal.

    Parameters
    ----------
    correlation
        Of the codes, each larger where the class is more frequent, shape (m, m).
    strengths
        Mean square contingency of each code with the class, shape (m,).
    skewness
        Third moment of each code, in units of its standard deviation, shape (m,).
    share
        p, the share of the class; q is that of the rest.

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
    apart = skewness * gap - (rest - share) * gap**2
    least = _LEAST_SPREAD * pooled
    root = np.sqrt(
        [np.maximum(pooled + rest * apart, least), np.maximum(pooled - share * apart, least)]
    )
    within = correlation - share * rest * np.outer(gap, gap)
    scale = np.sqrt(np.where(pooled > _RANK, np.maximum(within.diagonal(), _RANK), np.inf))
    values, vectors = np.linalg.eigh(within / np.outer(scale, scale))
    # Noise can leave a matrix that is no covariance.
    alike = (vectors * np.maximum(values, 0.0)) @ vectors.T
    weight = 2.0 * share * rest
    matrix = alike * (root.T @ root) + weight * np.outer(gap, gap)
    return weight * _solved_square(matrix, gap)


def _solved_square(matrix: Floats, right: Floats) -> float:
    """Return right' matrix^+ right of a covariance; what does not vary is left out."""
    variance = matrix.diagonal()
    varies = np.flatnonzero(variance > 0)
    scale = 1 / np.sqrt(variance[varies])
    values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)] * np.outer(scale, scale))
    ranked = values > _RANK * len(values)
    projected = (right[varies] * scale) @ vectors[:, ranked]
    return float((projected**2 / values[ranked]).sum())


def adjusted_for(trace: float, freedom: float, classes: int, n: float) -> float:
    """Return a trace minus the part that `freedom` fitted codes explain by chance among n rows.

    V - (1 - V/(C - 1)) f (C - 1)/(N - f - 1), as Ezekiel adjusts R^2; 0 where no degree of freedom
    is left or there is one class only.
    """
    rest = n - freedom - 1
    if classes < 2 or rest <= 1e-9 * n:
        return 0.0
    limit = classes - 1
    return trace - (1 - trace / limit) * freedom * limit / rest


def believed(levels: Floats, strength: Floats, penalty: float) -> float:
    """Return how much of the levels' information a learner with a ridge penalty uses.

    Alone in a ridge regression, a level of n rows keeps the share n / (n + p) of its deviation d, and
    explains n d^2 (1 - (p / (n + p))^2).

    Parameters
    ----------
    levels
        Rows per level, shape (d,), above 0.
    strength
        What each says, n d^2 / N, shape (d,).
    penalty
        The penalty p, in rows.
    """
    return float(strength @ (1 - (penalty / (levels + penalty)) ** 2))


def fitted_freedom(levels: Floats, penalty: float) -> float:
    """Return the degrees of freedom that such a learner spends on an attribute's levels, (d,)."""
    total = float(levels.sum())
    if total <= 0:
        return 0.0
    return float((levels / (levels + penalty) * (1 - levels / total)).sum())


def held_out_reached(explained: Floats, freedoms: Floats, classes: int, n: float) -> float:
    """Return the mean held-out trace over learners that may penalise up to each penalty in turn.

    With V_p what learners with penalty p explain, and f_p the degrees of freedom that they spend,
    T_p = C - 1 - (C - 1 - V_p) ((N - 1)/(N - 1 - f_p))^2 remains on other rows, as in
    `held_out_traces`; the mean is that of `held_out`. Where no learner explains anything the best T_p
    is returned, at most 0: it still tells how far from anything that is. Never falls where V_p rises
    or f_p falls.

    Parameters
    ----------
    explained, freedoms
        V_p and f_p, shape (P,) each.
    classes, n
        Number of classes, and rows.
    """
    limit = classes - 1.0
    rest = np.maximum(n - 1 - freedoms, 1e-9 * n)
    charge = ((n - 1) / rest) ** 2 - 1
    traces: Floats = explained - np.maximum(limit - explained, 0.0) * charge
    best = float(traces.max())
    return float(np.maximum(np.maximum.accumulate(traces), 0.0).mean()) if best > 0 else best


def held_out_target_coded(counts: Cooccurrence) -> float:
    """Return the target-coded trace on rows held out, the mean over learners of different strength.

    The trace V of the codes of all attributes, without the adjustment of `target_coded`; of two classes
    that of `trace_by_separation`; s_p and f_p of `held_out_reached` add up over attributes, f_p times V over the sum of what each attribute
    says alone: attributes that say the same overfit once. So `held-out-pillai-values` is estimated
    from label tables and one small matrix. From 0 to C - 1; 0 for one class, for constant
    attributes and without rows.
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
    for place, penalty in enumerate(UNPOOLED):
        strengths[place] = believed(np.maximum(levels, 1e-300), strength, penalty) / alone
        freedoms[place] = sum(
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

    With x the codes of all masked attributes (`class_codes` of their levels) and u the label,
    V = trace(S_xx^+ S_xu S_uu^+ S_ux), and f the levels with rows less one per attribute: each
    level's code is fitted. Codes are functions of the levels, so that V is at most the plug-in
    Pillai's trace of the same configuration; for one attribute the two are equal, and their
    adjusted forms, too. At most C - 1; 0 for one class, for constant attributes, without rows and
    where f leaves no degree of freedom. `counts.chance` lowers f as in `adjusted-pillai`.
    """
    n, offsets = float(counts.n), np.asarray(counts.offsets)
    tables = _label_tables(counts)
    if tables is None:
        return 0.0
    joint, totals = tables
    trace = _trace(counts, joint, totals, offsets)
    freedom = degrees_of_freedom(joint.sum(axis=1), offsets, counts.chance)
    return adjusted_for(trace, freedom, len(totals), n)


def _label_tables(counts: Cooccurrence) -> tuple[Floats, Floats] | None:
    """Return rows per level and class (d, C), and per class (C,), of classes that occur.

    None if there is nothing to tell: no attribute, no row, or fewer than two classes.
    """
    offsets = np.asarray(counts.offsets)
    if len(offsets) < 2 or counts.n <= 0:
        return None
    joint = np.asarray(counts.joint, dtype=np.float64)
    totals = joint[: offsets[1]].sum(axis=0)
    seen = np.flatnonzero(totals > 0)
    return None if seen.size < 2 else (joint[:, seen], totals[seen])


def _trace(
    counts: Cooccurrence, joint: Floats, totals: Floats, offsets: npt.NDArray[np.int64]
) -> float:
    """Return the trace of the codes of classes that occur, with `joint` (d, C) and `totals` (C,)."""
    n = float(counts.n)
    spread = _spread(class_codes(joint, totals), offsets)
    covariance = _covariance(counts, spread)
    # Codes have mean 0: rows of a level weigh its code, and their sum is that of the class.
    explained = spread.T @ joint[:, :-1] / n
    return trace_of_codes(covariance, explained, totals / n)


def _covariance(counts: Cooccurrence, spread: Floats) -> Floats:
    """Return the covariance of codes, which have mean 0, laid out by `_spread`."""
    return spread.T @ (np.asarray(counts.total, dtype=np.float64) @ spread) / float(counts.n)


def _separated(
    counts: Cooccurrence, joint: Floats, totals: Floats, offsets: npt.NDArray[np.int64]
) -> float:
    """Return `trace_by_separation` of the codes of two classes."""
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


def degrees_of_freedom(
    levels: Floats, offsets: npt.NDArray[np.int64], chance: Floats | None = None
) -> float:
    """Return the number of fitted codes: levels with rows minus one per attribute, minus the
    expected part.

    Parameters
    ----------
    levels
        Rows per level, shape (d,).
    offsets
        Where each attribute's levels start, shape (m + 1,).
    chance
        As of `Cooccurrence`, shape (d, k): expected counts hold less chance than drawn rows.
    """
    full = levels > 0
    freedom = float(sum(max(int(full[a:b].sum()) - 1, 0) for a, b in pairwise(offsets.tolist())))
    if chance is not None:
        drawn = float((chance[full] ** 2 / levels[full, None]).sum())
        freedom = max(freedom - drawn, 0.0)
    return freedom


def _spread(codes: Floats, offsets: npt.NDArray[np.int64]) -> Floats:
    """Return the codes with columns of their own for each attribute, shape (d, m (C - 1))."""
    width = codes.shape[1]
    spread = np.zeros((len(codes), (len(offsets) - 1) * width))
    for i, (start, stop) in enumerate(pairwise(offsets.tolist())):
        spread[start:stop, i * width : (i + 1) * width] = codes[start:stop]
    return spread
