"""The limits of each model on the shares of a class, so that some part of it can be kept: see
`histograms`.
"""

from __future__ import annotations

import math

import numpy as np

from aegis.privacy.closeness import TOLERANCE
from aegis.privacy.histograms import Bounds, ShareCaps, splits
from aegis.privacy.model import Criterion


def equal_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return 1 - sum_v min(q_v, p_v) <= t."""
    return ShareCaps(bounds.most(), 1.0 - criterion["t"] - TOLERANCE)


def ordered_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps | None:
    """Return the sum over steps between values of 1 - min(Q, P) - min(1 - Q, 1 - P) <= t (m - 1)."""
    groups, steps, most = splits(bounds.totals, bounds.room)
    demand = steps - (criterion["t"] + TOLERANCE) * most
    return ShareCaps(bounds.most(groups), demand, groups) if demand > 0 else None


def hierarchical_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps | None:
    """Return the mean over levels of 1 - sum_g min(q_g, p_g) <= t."""
    tree = bounds.tree
    if tree is None or not tree.height:
        return None
    demand = tree.height * (1.0 - criterion["t"] - TOLERANCE)
    return ShareCaps(bounds.most(tree.groups), demand, tree.groups)


def basic_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return q_v <= (1 + beta) p_v."""
    return ShareCaps((1.0 + criterion["beta"] + TOLERANCE) * bounds.most())


def enhanced_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return q_v <= (1 + min(beta, -ln p_v)) p_v, which grows with p_v."""
    most = bounds.most()
    gain = -np.log(np.where(most > 0, most, 1.0))
    return ShareCaps((1.0 + np.minimum(criterion["beta"], gain) + 2 * TOLERANCE) * most)


def log_ratio_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return p_v base^-delta < q_v < p_v base^delta; without the lower limit if values may be
    absent.
    """
    factor = criterion["base"] ** min(criterion["delta"], 60.0 / np.log(criterion["base"]))
    floors = bounds.least() / factor if criterion.model.monotone else None
    return ShareCaps(bounds.most() * factor, floors=floors)


def alpha_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return q_v <= alpha."""
    return ShareCaps(np.full(len(bounds.totals), criterion["alpha"] + TOLERANCE))


def entropy_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps | None:
    """Return q_v <= a, the largest share that leaves an entropy of ln l: the others are as even as can be.

    Of two values the demand itself.
    """
    values, asked = int(np.count_nonzero(bounds.totals)), math.log(criterion["l"]) - TOLERANCE
    if asked <= 0:
        return None
    low, high = 1.0 / max(values, 1), 1.0
    if math.log(max(values, 1)) < asked:
        return ShareCaps(np.zeros(len(bounds.totals)))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rest = 1.0 - middle
        even = rest * math.log(rest / (values - 1)) if rest > 0 else 0.0
        low, high = (middle, high) if -middle * math.log(middle) - even >= asked else (low, middle)
    return ShareCaps(np.full(len(bounds.totals), high + TOLERANCE))


def recursive_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return q_v <= a, the largest r_1 < c (r_l + ... + r_m): the others are as even as can be.

    r_2 to r_(l-1) are then (l - 2) / (m - 1) of what r_1 leaves. For l = 2 the demand itself.
    """
    values, asked = int(np.count_nonzero(bounds.totals)), int(criterion["l"])
    if asked == 1:
        share = min(criterion["c"], 1.0)
    elif values < asked:
        return ShareCaps(np.zeros(len(bounds.totals)))
    else:
        tail = criterion["c"] * (values - asked + 1) / (values - 1)
        share = tail / (1.0 + tail)
    return ShareCaps(np.full(len(bounds.totals), share + TOLERANCE))


_HALVINGS = 50
"""Steps of a bisection, each of which gives a valid bound."""
