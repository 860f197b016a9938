"""Levels in the order of their values: what learners see that cut numbers and dates in two."""

from __future__ import annotations

import numpy as np

from aegis.masks import common_refinement, refines
from aegis.summary.levels import Ints, neighbours
from aegis.summary.model import AttributeSummary, Candidate


def ordered_levels(attribute: AttributeSummary, candidate: Candidate, max_levels: int) -> Ints:
    """Return the level of each atom, shape (A,), numbered in the order of the values.

    A level stands at the mean rank of its values. Rare groups that share one level
    are told apart again as far as the coarser candidates of the attribute do: a learner that
    finds a threshold between two of them needs no level for each. So what this tells is what the
    mask shows, never more. Beyond `max_levels`, neighbours with about as many rows each share one.

    Parameters
    ----------
    attribute
        One whose values have an order.
    candidate
        One of its masks, not a noise mask.
    max_levels
        Most levels.
    """
    level = candidate.levels[attribute.atoms]
    if candidate.size > candidate.n_levels:
        coarser = [
            other.levels[attribute.atoms]
            for other in attribute.candidates
            if other.noise is None and refines(candidate.groups, other.groups)
        ]
        level = common_refinement([level, *coarser])
    # Each value once, however many rows have it: what a summary without raw joints knows, too.
    domain = attribute.domain
    of_value = level if domain is None else level[domain.cells]
    place = np.bincount(of_value, weights=np.arange(len(of_value))) / np.bincount(of_value)
    in_order = np.empty(len(place), dtype=np.int64)
    in_order[np.argsort(place, kind="stable")] = np.arange(len(place))
    rows = np.bincount(in_order[level], weights=attribute.counts).astype(np.float64)
    merged = neighbours(rows, max_levels)[in_order[level]]
    found = np.empty(attribute.n_atoms, dtype=np.int32)
    found[attribute.atoms] = merged  # the values of one atom share every level
    return found
