"""Compute the largest shares of values (caps) that privacy models allow within a class.

`histograms` explains how caps limit the number of rows of a class that can be kept. In all
formulas, q_v and p_v are the shares of the value v in the class and among all kept rows, and q_g
and p_g are the same shares of a group g of values.
"""

from __future__ import annotations

import math

import numpy as np

from aegis.privacy.diversity import TOLERANCE
from aegis.privacy.histograms import Bounds, ShareCaps, splits
from aegis.privacy.model import Criterion


def equal_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return the caps (largest shares) of values in a class that follow from t-closeness with the
    equal distance. For the t of `criterion`, it requires

        1 - sum_v min(q_v, p_v) <= t,

    where q_v and p_v are the shares of the value v in the class and in the table (`bounds`).
    """
    return ShareCaps(bounds.most(), 1.0 - criterion["t"] - TOLERANCE)


def ordered_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps | None:
    """Return the caps (largest shares) of values in a class that follow from t-closeness with the
    ordered distance; None if no cap follows, because t is large or suppression can remove most
    values.

    Over the m - 1 steps between the m ordered values, the condition is

        sum (1 - min(Q, P) - min(1 - Q, 1 - P)) <= t (m - 1),

    where Q and P are the cumulative shares, in the class and in the table (`bounds`), of the values
    up to the step.
    """
    groups, steps, most = splits(bounds.totals, bounds.room)
    demand = steps - (criterion["t"] + TOLERANCE) * most
    return ShareCaps(bounds.most(groups), demand, groups) if demand > 0 else None


def hierarchical_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps | None:
    """Return the caps (largest shares) of groups of values in a class that follow from t-closeness
    with the hierarchical distance; None if there is no hierarchy.

    The condition is that the mean over the levels of the hierarchy of

        1 - sum_g min(q_g, p_g)

    is at most t, where q_g and p_g are the shares of the group g in the class and in the table
    (`bounds`).
    """
    tree = bounds.tree
    if tree is None or not tree.height:
        return None
    demand = tree.height * (1.0 - criterion["t"] - TOLERANCE)
    return ShareCaps(bounds.most(tree.groups), demand, tree.groups)


def basic_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return the caps (largest shares) of basic beta-likeness: q_v <= (1 + beta) p_v, where q_v and
    p_v are the shares of the value v in a class and in the table (`bounds`).
    """
    return ShareCaps((1.0 + criterion["beta"] + TOLERANCE) * bounds.most())


def enhanced_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return the caps (largest shares) of enhanced beta-likeness: q_v <= (1 + min(beta, -ln p_v))
    p_v, where q_v and p_v are the shares of the value v in a class and in the table (`bounds`).
    """
    most = bounds.most()
    gain = -np.log(np.where(most > 0, most, 1.0))
    return ShareCaps((1.0 + np.minimum(criterion["beta"], gain) + 2 * TOLERANCE) * most)


def log_ratio_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return the largest and the smallest shares that values of a class may have under
    delta-disclosure privacy.

    The condition is p_v base^-delta < q_v < p_v base^delta, where q_v and p_v are the shares of the
    value v in the class and in the table (`bounds`), and `base` is the base of the logarithm. If
    the model ignores values that a class lacks, there are no smallest shares.
    """
    factor = criterion["base"] ** min(criterion["delta"], 60.0 / np.log(criterion["base"]))
    floors = bounds.least() / factor if criterion.model.monotone else None
    return ShareCaps(bounds.most() * factor, floors=floors)


def alpha_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return the caps (largest shares) of values in a class under (alpha, k)-anonymity: no value
    may have a share above alpha.
    """
    return ShareCaps(np.full(len(bounds.totals), criterion["alpha"] + TOLERANCE))


def entropy_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps | None:
    """Return the largest share a that a value may have in a class under entropy l-diversity, as
    caps q_v <= a. The result is None if l = 1, because every class meets this.

    The number a is the largest share of one value for which an entropy of ln l is possible. The
    entropy is then largest if all other values are equally frequent. For two values, this is the
    exact condition.
    """
    values = int(np.count_nonzero(bounds.totals))
    least_entropy = math.log(criterion["l"]) - TOLERANCE
    if least_entropy <= 0:
        return None
    low, high = 1.0 / max(values, 1), 1.0
    if math.log(max(values, 1)) < least_entropy:
        return ShareCaps(np.zeros(len(bounds.totals)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rest = 1.0 - middle
        even = rest * math.log(rest / (values - 1)) if rest > 0 else 0.0
        if -middle * math.log(middle) - even >= least_entropy:
            low = middle
        else:
            high = middle
    return ShareCaps(np.full(len(bounds.totals), high + TOLERANCE))


def recursive_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return the largest share a that a value may have in a class under recursive (c, l)-diversity,
    r_1 < c (r_l + ... + r_m), as caps q_v <= a.

    r_1 >= ... >= r_m are the shares of the m values in the class. The number a is the largest
    possible r_1. The sum in the condition is largest if all other values are equally frequent; then
    r_2 to r_(l-1) together are (l - 2) / (m - 1) of 1 - r_1. For l = 2 this is the exact condition.
    """
    values, least_values = int(np.count_nonzero(bounds.totals)), int(criterion["l"])
    if least_values == 1:
        share = min(criterion["c"], 1.0)
    elif values < least_values:
        return ShareCaps(np.zeros(len(bounds.totals)))
    else:
        tail = criterion["c"] * (values - least_values + 1) / (values - 1)
        share = tail / (1.0 + tail)
    return ShareCaps(np.full(len(bounds.totals), share + TOLERANCE))


_HALVINGS = 50
"""Steps of a bisection, each of which gives a valid bound."""
