"""Compute the held-out trace with ordered attributes coded as thresholds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aegis.measures.common_factors import SharedBlock, SharedLevels
from aegis.measures.counted import PENALTIES, Centred, block_of
from aegis.measures.held_out import held_out_traces, mean_reached, value_traces

if TYPE_CHECKING:
    from aegis.measures.common_factors import Sharing
    from aegis.measures.cooccurrence import Cooccurrence, OrderedCounts

Floats = npt.NDArray[np.float64]

STRONGER = 100.0
"""Factor between the penalties of thresholds and of values: each threshold covers all rows on one side."""
VALUES, THRESHOLDS = 2 / 3, 1 / 3
"""Weights of the two codings."""


def thresholds(counts: OrderedCounts) -> OrderedCounts:
    """Return the counts of thresholds instead of the levels of ordered attributes.

    For an ordered attribute, the indicator of level t becomes the indicator of level t or a later
    level. The coefficient of a threshold is then the *step* between neighbouring levels, and a
    ridge penalty on it makes neighbours similar. For a single attribute this is the smoothing of
    Whittaker (On a new method of graduation, 1923), who penalises squared first differences. Other
    attributes keep their indicators. Levels without rows are dropped, because their threshold is
    the same as the next.
    """
    varying = np.flatnonzero(counts.counted.diagonal() > 0)
    total: Floats = block_of(counts.counted, varying, varying).astype(np.float64, copy=False)
    joint: Floats = counts.joint[varying].astype(np.float64)
    chance = None if counts.chance is None else counts.chance[varying]
    offsets = np.searchsorted(varying, counts.offsets)
    for (start, stop), ordered in zip(pairwise(offsets.tolist()), counts.ordered, strict=True):
        if ordered:
            own = slice(start, stop)
            total[own] = total[own][::-1].cumsum(axis=0)[::-1]
            total[:, own] = total[:, own][:, ::-1].cumsum(axis=1)[:, ::-1]
            joint[own] = joint[own][::-1].cumsum(axis=0)[::-1]
            if chance is not None:
                chance[own] = chance[own][::-1].cumsum(axis=0)[::-1]
    return replace(counts, counted=total, joint=joint, offsets=offsets, chance=chance)


def levels_in_common(count: Callable[[], Cooccurrence]) -> SharedLevels:
    """Factorise the levels of attributes whose masks many configurations share.

    Parameters
    ----------
    count
        Function: returns the counts of pairs of levels of only these attributes, for the same rows.
        It is called once, at first use.
    """
    counts = cache(count)

    def block(coded: Cooccurrence | OrderedCounts) -> SharedBlock | None:
        if coded.chance is not None:
            return None  # expected counts are no covariance, whose eigenvalues are all at least 0
        totals, n = counts().class_totals, counts().n
        centred = Centred.of(coded.counted, coded.joint, totals, n)
        return None if centred is None else SharedBlock.of_many(centred, coded.offsets)

    return SharedLevels(lambda: block(counts()), lambda: block(thresholds(counts().in_order)))


def ordered_traces(
    counts: OrderedCounts,
    class_counts: npt.NDArray[np.generic],
    n: float,
    sharing: Sharing | None = None,
) -> Floats:
    """Return the held-out trace of regressions on thresholds, one per penalty, shape (5,).

    This is `held_out_traces` of the `thresholds`, with penalties a hundred times as large. It is a
    prediction for learners that split ordered values at thresholds, such as trees. They can use
    even rare values, by their position in the order. Levels of unordered attributes have a
    coefficient each.

    Parameters
    ----------
    counts
        Levels in the order of their values.
    class_counts
        Rows per class, shape (C,).
    n
        Number of rows that are counted.
    sharing
        As in `Cooccurrence`.
    """
    coded = thresholds(counts)
    penalties = [STRONGER * penalty for penalty in PENALTIES]
    shared = None if sharing is None else sharing.thresholds(coded.offsets)
    return held_out_traces(
        coded.counted, coded.joint, class_counts, n, penalties, chance=coded.chance, shared=shared
    )


def held_out_codings(counts: Cooccurrence) -> float:
    """Return the mean held-out trace over two codings, values (weight 2) and thresholds (weight 1).

    The model that will use a release is unknown. Linear models and networks on one-hot columns use
    separate values; trees on numbers use the order. The trace of values is that of `held_out` with
    one more penalty, minus the loss from values pooled in a level (`pooled_losses`). The trace of
    thresholds is that of `ordered_traces`. The result is from 0 to C - 1, with C classes. It is 0
    for one class, for constant attributes and without rows.
    """
    ordered = ordered_traces(counts.in_order, counts.class_totals, counts.n, counts.sharing)
    return VALUES * mean_reached(value_traces(counts) + counts.losses) + THRESHOLDS * mean_reached(
        ordered
    )
