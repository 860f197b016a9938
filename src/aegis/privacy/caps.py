"""What each model asks of the shares of a class, for any part of it to be kept: see `histograms`."""

from __future__ import annotations

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
    """Return p_v base^-delta < q_v < p_v base^delta; without the first where values may be absent."""
    factor = criterion["base"] ** min(criterion["delta"], 60.0 / np.log(criterion["base"]))
    floors = bounds.least() / factor if criterion.model.monotone else None
    return ShareCaps(bounds.most() * factor, floors=floors)


def alpha_caps(bounds: Bounds, criterion: Criterion) -> ShareCaps:
    """Return q_v <= alpha."""
    return ShareCaps(np.full(len(bounds.totals), criterion["alpha"] + TOLERANCE))
