"""Compute the held-out trace if ordered attributes are coded as thresholds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aegis.arrays import Floats
from aegis.measures.by_fold import later
from aegis.measures.counted import PENALTIES
from aegis.measures.held_out import held_out_traces, mean_reached, value_traces

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence, OrderedCounts


STRONGER = 100.0
"""Penalties of thresholds are this many times as large as penalties of values, because each
threshold covers all rows on one side.
"""
VALUES, THRESHOLDS = 2 / 3, 1 / 3
"""Weights of the two codings in the mean."""


def thresholds(counts: OrderedCounts) -> OrderedCounts:
    """Return the counts of thresholds instead of the levels (masked values) of ordered attributes.

    For an ordered attribute, the indicator of level t becomes the indicator of level t or a later
    level. The coefficient of a threshold is then the *step* between neighbouring levels, and a
    ridge penalty on it makes neighbours similar. For a single attribute this is the smoothing of
    Whittaker (On a new method of graduation, 1923), who penalises squared first differences. Other
    attributes keep their indicators. Levels without rows are dropped, because their threshold is
    the same as the next one.
    """
    varying = np.flatnonzero(counts.total.diagonal() > 0)
    total: Floats = counts.total[np.ix_(varying, varying)].astype(np.float64)
    joint: Floats = counts.joint[varying].astype(np.float64)
    chance = None if counts.chance is None else counts.chance[varying]
    offsets = np.searchsorted(varying, counts.offsets)
    for (start, stop), ordered in zip(pairwise(offsets.tolist()), counts.ordered, strict=True):
        if ordered:
            own = slice(start, stop)
            total[own] = later(total[own], 0)
            total[:, own] = later(total[:, own], 1)
            joint[own] = later(joint[own], 0)
            if chance is not None:
                chance[own] = later(chance[own], 0)
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
    coded = thresholds(counts)
    penalties = [STRONGER * penalty for penalty in PENALTIES]
    return held_out_traces(
        coded.total, coded.joint, class_counts, n, penalties, chance=coded.chance
    )


def held_out_codings(counts: Cooccurrence) -> float:
    """Return Pillai's trace on held-out rows, as a mean over two codings: values (weight 2) and
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
