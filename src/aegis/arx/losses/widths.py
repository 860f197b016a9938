"""The widths of the groups that a mask forms: in leaves of a hierarchy, as a range, or in levels."""

from __future__ import annotations

import math

import numpy as np

from aegis.arrays import Floats
from aegis.masks import Level
from aegis.summary import AttributeSummary, Candidate
from aegis.summary.leaves import domain, leaf_counts, leaf_shares


def width_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return the width of the group of each of the V values under a mask, divided by the width of
    the attribute, from 0 to 1, shape (V,).

    With a hierarchy, the width is the number of original values (leaves) minus 1. Without a
    hierarchy, it is the range for numbers, and the number of distinct values minus 1 for other
    values.
    """
    leaves = leaf_shares(attribute, candidate)
    if leaves is not None:
        return leaves
    groups = candidate.groups
    numbers = attribute.numbers
    if numbers is None:
        width = np.bincount(groups).astype(np.float64) - 1
        span = float(len(groups) - 1)
    else:
        valid = np.isfinite(numbers)
        low = np.full(candidate.size, np.inf)
        high = np.full(candidate.size, -np.inf)
        np.minimum.at(low, groups[valid], numbers[valid])
        np.maximum.at(high, groups[valid], numbers[valid])
        width = np.where(high >= low, high - low, 0.0)
        span = float(np.ptp(numbers[valid])) if valid.any() else 0.0
    return width[groups] / span if span > 0 else np.zeros(len(groups))


def leaf_bits(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return, for each of the V values, log2 of how many original values (leaves) its group under a
    mask may represent, shape (V,).
    """
    return np.log2(leaf_counts(attribute, candidate))


def domain_bits(attribute: AttributeSummary) -> float:
    """Return log2 of how many original values (leaves of the hierarchy) the attribute may have."""
    return math.log2(max(domain(attribute), 1))


def rank_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return the level of the mask divided by the height of its hierarchy, from 0 to 1, repeated
    for each of the V values, shape (V,).

    If the mask has no hierarchy, the level is the rank of the mask among the attribute's masks,
    from finest to coarsest.
    """
    level, highest = _level(attribute, candidate)
    return np.full(len(candidate.groups), level / max(highest, 1))


def height(attribute: AttributeSummary, candidate: Candidate) -> float:
    """Return the level of a mask in its hierarchy. Without a hierarchy, return its rank among the
    attribute's masks, from finest to coarsest.
    """
    return float(_level(attribute, candidate)[0])


def _level(attribute: AttributeSummary, candidate: Candidate) -> tuple[int, int]:
    """Return the level of a mask and the highest level of its hierarchy. Without a hierarchy,
    return the rank of the mask among the attribute's masks, and the highest rank.
    """
    if isinstance(candidate.mask, Level) and candidate.mask.hierarchy is not None:
        return candidate.mask.level, candidate.mask.hierarchy.height
    ladder = sorted({len(attribute.values), *(c.size for c in attribute.candidates)}, reverse=True)
    return ladder.index(candidate.size), len(ladder) - 1
