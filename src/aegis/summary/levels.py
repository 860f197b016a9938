"""Levels: what multi-attribute measures see of a candidate, with the rarest groups pooled.

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
    kept = np.sort(np.argsort(-weight, kind="stable")[: max_levels - 1])
    level = np.full(size, max_levels - 1, dtype=np.int32)
    level[kept] = np.arange(len(kept), dtype=np.int32)
    return level[groups]


def neighbours(counts: npt.NDArray[Any], max_levels: int) -> Ints:
    """Return levels of neighbouring values with about as many rows each, shape (V,).

    Parameters
    ----------
    counts
        Rows per value, shape (V,), in the values' order; may be expected counts.
    max_levels
        Most levels; with no more values, each is a level of its own.
    """
    if len(counts) <= max_levels:
        return np.arange(len(counts), dtype=np.int32)
    rows = np.cumsum(counts, dtype=np.float64) - np.asarray(counts, dtype=np.float64) / 2
    level = np.floor(max_levels * rows / max(float(np.sum(counts)), 1e-300))
    level = np.clip(level, 0, max_levels - 1)
    return np.unique(level, return_inverse=True)[1].astype(np.int32)


def atomise(pooled: Sequence[Ints], size: int) -> tuple[Ints, list[Ints]]:
    """Return the atom of each value and, per candidate, the level of each atom.

    Atoms are the cells of the common refinement of all candidates' levels (theory.md, section 2).
    """
    atoms = (common_refinement(list(pooled)) if pooled else np.zeros(size, dtype=np.int32)).astype(
        np.int32
    )
    _, first = np.unique(atoms, return_index=True)
    return atoms, [levels[first].astype(np.int32) for levels in pooled]
