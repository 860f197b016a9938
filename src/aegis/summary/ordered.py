"""Compute ranges: neighbouring groups of a mask, for models that split numbers and dates at
thresholds.

Each of the most frequent groups is a level, and all other groups are pooled in one level, which has
no position in an order. So candidates of ordered attributes also have ranges. A range consists of
neighbouring groups, and all ranges have about equally many rows. Ranges depend only on the masked
values, so the score of a candidate does not depend on the other candidates.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Array, Int32s
from aegis.errors import InternalError
from aegis.masks import Grouping
from aegis.summary.codes import numbers_of, settle
from aegis.summary.levels import neighbours
from aegis.summary.model import AttributeSummary, Candidate

RANGES = 32
"""Largest number of ranges of a candidate. Only linear models would gain from more ranges, and they
already have the levels.
"""


def ranges_of(groups: Int32s, counts: Array, max_levels: int, values: pa.Array) -> Int32s:
    """Return the range of each of the V values, shape (V,). A range joins neighbouring groups, and
    all ranges have about equally many rows. Ranges are numbered in the order of the values.

    A group is ordered by the mean rank of its values, which does not depend on their rows. Groups
    with only missing values form the last range.

    Parameters
    ----------
    groups
        The group of each value, shape (V,).
    counts
        Number of rows per value, shape (V,).
    max_levels
        Largest number of levels of an attribute. There are at most `RANGES` ranges in any case.
    values
        The distinct values, shape (V,), in order.
    """
    if not len(groups):
        return groups
    place = np.bincount(groups, weights=np.arange(len(groups))) / np.bincount(groups)
    order = np.argsort(place, kind="stable")
    rows = np.bincount(groups, weights=counts)[order]
    known = np.bincount(groups, weights=~np.isnan(numbers_of(values)))[order] > 0
    most = min(RANGES, max_levels) - (not known.all())
    own = np.full(len(order), -1, dtype=np.int32)
    own[known] = neighbours(rows[known], max(most, 1))
    own[~known] = own.max(initial=-1) + 1
    ranges = np.empty(len(order), dtype=np.int32)
    ranges[order] = own
    return ranges[groups]


def ranges_like(
    grouping: Grouping, values: pa.Array, model: AttributeSummary, candidate: Candidate
) -> Int32s:
    """Return the range of each of the V values, shape (V,), with the same bounds as the ranges of
    another summary.

    A group that also occurs in the other summary has the same range as there. Any other group joins
    the range of a value in the other summary: the largest value below the group's first value.

    Parameters
    ----------
    grouping
        The groups of the values under the candidate's mask.
    values
        Distinct values, shape (V,), in order.
    model, candidate
        The same attribute in the other summary, and its candidate with the same mask.
    """
    if candidate.ranges is None:
        raise InternalError(f"{str(candidate.mask)!r} of {model.name!r} has no ranges to follow.")
    of_value = candidate.ranges[model.atoms]
    known = np.empty(candidate.size, dtype=np.int32)
    known[candidate.groups] = of_value
    place = pc.index_in(settle(grouping.shown), value_set=settle(candidate.shown))
    first = np.unique(grouping.codes, return_index=True)[1]
    before = np.searchsorted(numbers_of(model.values), numbers_of(values.take(pa.array(first))))
    ranges = of_value[np.maximum(before - 1, 0)]
    present = pc.is_valid(place).to_numpy(zero_copy_only=False)
    ranges[present] = known[place.drop_null().to_numpy()]
    return ranges.astype(np.int32)[grouping.codes]
