"""How wide the groups of a mask are: in leaves of a hierarchy, in range, or in levels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from aegis.masks import Hierarchy, Level
from aegis.summary import AttributeSummary, Candidate

Floats = npt.NDArray[np.float64]


def width_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return the width of each value's group over that of the attribute, from 0 to 1, (V,).

    Under a hierarchy the leaves of a group less one over all its leaves less one, whatever the
    values are; else for numbers the range, and for other values the distinct ones less one.
    """
    leaves = _leaves(attribute, candidate)
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
    shares: Floats = width[groups] / span if span > 0 else np.zeros(len(groups))
    return shares


def width_charge(attribute: AttributeSummary, candidate: Candidate, gone: Floats) -> float:
    """Return what suppressed rows (V,) lose beyond the width of their groups: up to 1 each."""
    return float((gone * (1 - width_per_value(attribute, candidate))).sum())


def _leaves(attribute: AttributeSummary, candidate: Candidate) -> Floats | None:
    """Return the share of a hierarchy's leaves that each value's group holds; None without one."""
    mask = candidate.mask
    if not isinstance(mask, Level) or mask.hierarchy is None:
        return None
    # Null is a leaf of its own where the hierarchy has no row for it.
    null = attribute.values.null_count > 0 and None not in mask.hierarchy.values
    span = len(mask.hierarchy.rows) - 1 + null
    if span <= 0 or not mask.level:
        return np.zeros(len(candidate.groups))
    groups = mask.hierarchy.groups(mask.level)
    shown = [None if value is None else str(value) for value in candidate.shown.to_pylist()]
    sizes = [len(groups.get(group, (None,))) for group in shown]
    of_group = np.array(sizes, dtype=np.float64)
    shares: Floats = (of_group[candidate.groups] - 1) / span
    return shares


def leaf_counts(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return how many leaves the group of each value has, shape (V,).

    Leaves are those of the attribute's hierarchy, else its distinct values.
    """
    hierarchy, mask = _hierarchy(attribute), candidate.mask
    if hierarchy is not None and isinstance(mask, Level) and mask.hierarchy == hierarchy:
        shares = _leaves(attribute, candidate)
        if shares is not None:
            return 1 + shares * (domain(attribute) - 1)
    counts: Floats = np.bincount(candidate.groups)[candidate.groups].astype(np.float64)
    return counts


def domain(attribute: AttributeSummary) -> int:
    """Return how many leaves an attribute has in all."""
    hierarchy = _hierarchy(attribute)
    if hierarchy is None:
        return len(attribute.values)
    null = attribute.values.null_count > 0 and None not in hierarchy.values
    return len(hierarchy.rows) + int(null)


def _hierarchy(attribute: AttributeSummary) -> Hierarchy | None:
    """Return the hierarchy that an attribute's candidates use, the first one of several."""
    for candidate in attribute.candidates:
        if isinstance(candidate.mask, Level) and candidate.mask.hierarchy is not None:
            return candidate.mask.hierarchy
    return None


def leaf_bits(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return log2 of the leaves of each value's group, shape (V,)."""
    bits: Floats = np.log2(leaf_counts(attribute, candidate))
    return bits


def domain_bits(attribute: AttributeSummary) -> float:
    """Return log2 of all leaves of an attribute."""
    return math.log2(max(domain(attribute), 1))


def leaf_bits_charge(attribute: AttributeSummary, candidate: Candidate, gone: Floats) -> float:
    """Return the bits from the groups of suppressed rows (V,) to all leaves."""
    return float((gone * (domain_bits(attribute) - leaf_bits(attribute, candidate))).sum())


def rank(attribute: AttributeSummary, candidate: Candidate) -> float:
    """Return the level of a mask over the height of its hierarchy, from 0 to 1.

    A mask without hierarchy goes by its rank among the attribute's, from finest to coarsest.
    """
    if isinstance(candidate.mask, Level) and candidate.mask.hierarchy is not None:
        return candidate.mask.level / max(candidate.mask.hierarchy.height, 1)
    ladder = sorted({len(attribute.values), *(c.size for c in attribute.candidates)}, reverse=True)
    return ladder.index(candidate.size) / max(len(ladder) - 1, 1)


def rank_per_value(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    """Return `rank` for each value, shape (V,)."""
    return np.full(len(candidate.groups), rank(attribute, candidate))


def rank_charge(attribute: AttributeSummary, candidate: Candidate, gone: Floats) -> float:
    """Return what suppressed rows (V,) lose beyond the level of their mask: up to 1 each."""
    return float(gone.sum() * (1 - rank(attribute, candidate)))


def height(attribute: AttributeSummary, candidate: Candidate) -> float:
    """Return the level of a mask, or its rank among the attribute's masks from 0."""
    if isinstance(candidate.mask, Level) and candidate.mask.hierarchy is not None:
        return float(candidate.mask.level)
    ladder = sorted({len(attribute.values), *(c.size for c in attribute.candidates)}, reverse=True)
    return float(ladder.index(candidate.size))
