"""Compute by how much the held-out trace falls because rare distinct values are pooled in a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.measures.counted import UNPOOLED

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


def pooled_losses(pooled: Numbers, class_counts: Numbers) -> Floats:
    """Return the change of the trace if each value of a level gets its own coefficient, shape (6,),
    at most 0.

    If an attribute is almost a key, measures of several attributes pool its rare values into one
    level. But a model with a coefficient for each value would fit noise. Here each row is predicted
    from the other rows with its value, and a ridge penalty p shrinks the prediction towards the
    level. Let a value have n rows, a_c of them in class c, and let s_c be the share of class c
    within the level. For a row of class k, the prediction for class c moves from s_c by (a_c - [c =
    k] - (n - 1) s_c) / (n - 1 + p). The change of the squared error of class c is divided by the
    number of rows of class c, as in `held_out_traces`. Positive changes count as 0: the level
    already contains the common effect of the rare values, and `thresholds` their separate effects.

    Parameters
    ----------
    pooled
        Number of rows per value and class, shape (R, C).
    class_counts
        Number of rows per class in the whole table, shape (C,).

    Returns
    -------
    One change per penalty of `UNPOOLED`.
    """
    counts = np.asarray(pooled, dtype=np.float64)
    rows = counts.sum(axis=1, keepdims=True)
    seen = np.flatnonzero(class_counts)
    counts, rows = counts[rows[:, 0] > 0][:, seen], rows[rows[:, 0] > 0]
    if len(counts) < 2:
        return np.zeros(len(UNPOOLED))
    share = counts.sum(axis=0) / counts.sum()
    others = counts - (rows - 1) * share  # of a row of another class
    losses = []
    for penalty in UNPOOLED:
        scale = rows - 1 + penalty
        own, other = (others - 1) / scale, others / scale
        gain = counts * own * (2 * (1 - share) - own) - (rows - counts) * other * (
            2 * share + other
        )
        losses.append((gain.sum(axis=0) / class_counts[seen]).sum())
    return np.minimum(losses, 0.0)
