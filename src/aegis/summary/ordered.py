"""Levels in the order of their values: what learners see that cut numbers and dates in two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.masks import common_refinement, refines
from aegis.summary.levels import Ints, neighbours
from aegis.summary.model import AttributeSummary, Candidate


def ordered_levels(attribute: AttributeSummary, candidate: Candidate, max_levels: int) -> Ints:
    """Return the level of each atom, shape (A,), numbered in the order of the values.

    A level stands where the mean rank of its rows' values is. Rare groups that share one level
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
    rows = attribute.counts.astype(np.float64)
    weight = rows + (np.bincount(level, weights=rows)[level] == 0)
    rank = np.arange(len(level), dtype=np.float64)
    place = np.bincount(level, weights=weight * rank) / np.bincount(level, weights=weight)
    in_order = np.empty(len(place), dtype=np.int64)
    in_order[np.argsort(place, kind="stable")] = np.arange(len(place))
    held: npt.NDArray[np.int64] = np.bincount(in_order[level], weights=rows).astype(np.int64)
    merged = neighbours(held, max_levels)[in_order[level]]
    found = np.empty(attribute.n_atoms, dtype=np.int32)
    found[attribute.atoms] = merged  # the values of one atom share every level
    return found
