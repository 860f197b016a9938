"""Pool the rarest groups of a candidate into one level, for measures of several attributes.

Under `identity`, an attribute that is almost a key has almost as many groups as rows. A linear
system of that size takes too long, and its indicators fit noise. So each of the most frequent
groups of a candidate is a level, and all other groups share one level. For these measures, one
candidate refines another if its levels refine the levels of the other. So every bound of the search
stays valid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aegis.arrays import Array, Floats, Int32s
from aegis.masks import common_refinement


def pool(groups: Int32s, counts: Array, max_levels: int) -> Int32s:
    """Assign each of the V values to a level, shape (V,), so that there are at most `max_levels`
    levels.

    Parameters
    ----------
    groups
        Group of each value under a candidate mask, shape (V,).
    counts
        Number of rows per value, shape (V,).
    max_levels
        Largest number of levels. If there are more groups, each of the `max_levels - 1` largest
        groups (of equal ones, the earlier) has a level, and all other groups share the last level.
    """
    size = int(groups.max(initial=-1)) + 1
    if size <= max_levels:
        return groups.astype(np.int32)
    weight = np.bincount(groups, weights=counts, minlength=size)
    frequent = np.sort(np.argsort(-weight, kind="stable")[: max_levels - 1])
    level = np.full(size, max_levels - 1, dtype=np.int32)
    level[frequent] = np.arange(len(frequent), dtype=np.int32)
    return level[groups]


def neighbours(counts: Array, max_levels: int) -> Int32s:
    """Divide ordered values into levels of neighbours that have about equally many rows, and return
    the level of each of the V values, shape (V,).

    A value that alone has more rows than other levels is a separate level. So a frequent value
    (such as 0 in most rows) does not take away levels from other values. LightGBM bins numbers in a
    similar way (Ke et al., LightGBM, NeurIPS 2017, histograms).

    Parameters
    ----------
    counts
        Number of rows per value, in the order of the values, shape (V,); expected counts are
        allowed.
    max_levels
        Largest number of levels, at least 1. If there are no more values than this, each value is a
        level.
    """
    rows = np.asarray(counts, dtype=np.float64)
    if len(rows) <= max_levels:
        return np.arange(len(rows), dtype=np.int32)
    share = max_levels
    while share > 0:
        level = _shared(rows, share)
        if level is None:
            share -= 1
        elif (excess := int(level[-1]) + 1 - max_levels) <= 0:
            return level
        else:  # the rows between two frequent values begin their own level
            share -= excess
    return _quantiles(rows, max_levels)


def _shared(rows: Floats, share: int) -> Int32s | None:
    """Return the level of each of V ordered values, shape (V,). Neighbours share a level, so that
    each level has about 1/`share` of the rows. `rows` has the number of rows per value.

    Return None if values that are frequent enough for a separate level use up all levels.
    """
    frequent = np.zeros(len(rows), dtype=bool)
    left = share
    while left > 0:
        large = ~frequent & (rows * left > rows[~frequent].sum())
        if not large.any():
            break
        frequent |= large
        left = share - int(frequent.sum())
    if left <= 0:
        return None
    # A frequent value ends the level before it and is one; 2 k + 1 stretches of k such values.
    stretch = 2 * np.cumsum(frequent) - frequent
    own = _quantiles(np.where(frequent, 0.0, rows), left)
    starts = (np.diff(stretch) != 0) | ((np.diff(own) != 0) & ~frequent[1:])
    return np.concatenate([[0], np.cumsum(starts)]).astype(np.int32)


def _quantiles(rows: Floats, size: int) -> Int32s:
    """Return, for each of V ordered values, which of `size` quantiles contains the middle one of
    its rows, shape (V,).
    """
    middle = np.cumsum(rows) - rows / 2
    level = np.clip(np.floor(size * middle / max(float(rows.sum()), 1e-300)), 0, size - 1)
    return np.unique(level, return_inverse=True)[1].astype(np.int32)


def atomise(pooled: Sequence[Int32s], size: int) -> tuple[Int32s, list[Int32s]]:
    """Return the atom (set of values) of each of the V values, shape (V,), and the level that each
    atom has under each grouping.

    `pooled` has the level (or range) of each of V = `size` values under each grouping. Two values
    are in the same atom if no grouping separates them (theory.md, section 2).
    """
    atoms = (common_refinement(list(pooled)) if pooled else np.zeros(size, dtype=np.int32)).astype(
        np.int32
    )
    _, first = np.unique(atoms, return_index=True)
    return atoms, [levels[first].astype(np.int32) for levels in pooled]
