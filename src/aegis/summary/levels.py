"""Levels: the groups of a candidate for measures of several attributes, with the rarest groups
pooled.

A near-key attribute under `identity` has almost as many groups as rows, and a system of that size
is neither solvable nor informative: its indicators fit noise. So each candidate keeps its most
frequent groups as levels of their own and pools the rest into one. Whether one candidate refines
another is then decided on levels for these measures, which keeps every bound of the search valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.masks import common_refinement

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


def pool(groups: Ints, counts: npt.NDArray[Any], max_levels: int) -> Ints:
    """Return the level of each value, shape (V,): at most `max_levels` levels.

    Parameters
    ----------
    groups
        Group of each value, shape (V,).
    counts
        Rows per value, shape (V,).
    max_levels
        Most levels; with more groups, the `max_levels - 1` largest stay (ties: the earlier
        group) and the others share the last level.
    """
    size = int(groups.max(initial=-1)) + 1
    if size <= max_levels:
        return groups.astype(np.int32)
    weight = np.bincount(groups, weights=counts, minlength=size)
    frequent = np.sort(np.argsort(-weight, kind="stable")[: max_levels - 1])
    level = np.full(size, max_levels - 1, dtype=np.int32)
    level[frequent] = np.arange(len(frequent), dtype=np.int32)
    return level[groups]


def neighbours(counts: npt.NDArray[Any], max_levels: int) -> Ints:
    """Return levels of neighbouring values with about as many rows each, shape (V,).

    A value with more rows than that has its own level and leaves the others theirs: most rows
    with 0 do not cost the rest its levels. LightGBM bins numbers in the same spirit (Ke et al.,
    LightGBM, NeurIPS 2017, histograms).

    Parameters
    ----------
    counts
        Rows per value, shape (V,), in the values' order; may be expected counts.
    max_levels
        Most levels, at least 1; with no more values, each is its own level.
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


def _shared(rows: Floats, share: int) -> Ints | None:
    """Return levels of about a `share`-th of the rows; None if frequent values are as many."""
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


def _quantiles(rows: Floats, size: int) -> Ints:
    """Return which of `size` equal parts of the rows holds the middle of each value, shape (V,)."""
    middle = np.cumsum(rows) - rows / 2
    level = np.clip(np.floor(size * middle / max(float(rows.sum()), 1e-300)), 0, size - 1)
    return np.unique(level, return_inverse=True)[1].astype(np.int32)


def atomise(pooled: Sequence[Ints], size: int) -> tuple[Ints, list[Ints]]:
    """Return the atom of each value and, per division of the values, the part of each atom.

    Atoms are the cells of the common refinement of all candidates' levels and ranges (theory.md,
    section 2, has those of the levels).
    """
    atoms = (common_refinement(list(pooled)) if pooled else np.zeros(size, dtype=np.int32)).astype(
        np.int32
    )
    _, first = np.unique(atoms, return_index=True)
    return atoms, [levels[first].astype(np.int32) for levels in pooled]
