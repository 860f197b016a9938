"""What masks show of attributes under a coding."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.advisor.grouping import Levels
from aegis.measures.by_part import later
from aegis.summary import Candidate

Floats = npt.NDArray[np.float64]


class CodedMasks(NamedTuple):
    """A configuration under one coding.

    Attributes
    ----------
    levels
        Per attribute the level of each atom, shape (A_i,), or P(level | atom), shape (A_i, L_i).
    keys
        Equal keys of an attribute represent equal levels, and for equal `ordered`.
    ordered
        Per attribute whether thresholds are counted in place of its levels, as `thresholds` does.
    """

    levels: Sequence[Levels]
    keys: Sequence[Hashable]
    ordered: Sequence[bool]


def codings(
    candidates: Sequence[Candidate],
    levels: Sequence[Levels],
    orders: Sequence[tuple[Levels, bool]],
) -> tuple[CodedMasks, CodedMasks]:
    """Return a configuration as levels one by one, and as levels in order.

    Levels without an order are the same under both codings, and so is what is counted of them.

    Parameters
    ----------
    candidates
        What masks each attribute.
    levels
        As of `CodedMasks`.
    orders
        Per attribute its levels in order and True, or its levels and False.
    """
    ranges, ordered = [level for level, _ in orders], [known for _, known in orders]
    unordered = [False] * len(candidates)
    keys = [list(zip(candidates, known, strict=True)) for known in (unordered, ordered)]
    return CodedMasks(levels, keys[0], unordered), CodedMasks(ranges, keys[1], ordered)


@dataclass(frozen=True, eq=False)
class CodedAttribute:
    """One attribute under one mask, as a coding shows it; levels that say nothing are left out.

    Attributes
    ----------
    key
        Its place in the summary and what represents the mask and the coding.
    level
        The level of each atom, or what a noise mask shows of it.
    joint
        Rows per part, class and what is shown, shape (K, C, d).
    chance
        As of `PartCounts`, shape (d, k).
    places
        Places of what is shown among the levels of the mask, shape (d,).
    counted_by
        Number of levels that rows are counted by: the atoms of a noise mask.
    ordered
        Whether thresholds are shown in place of levels.
    """

    key: tuple[int, Hashable]
    level: Levels
    joint: Floats
    chance: Floats | None
    places: npt.NDArray[np.intp]
    counted_by: int
    ordered: bool

    def shown(self, block: Floats, axis: int) -> Floats:
        """Return a block of levels as the coding shows them along an axis."""
        if self.ordered:
            block = later(block, axis)
        whole = len(self.places) == block.shape[axis]
        return block if whole else block.take(self.places, axis)


def indicators(level: Levels) -> Floats:
    """Return the 0/1 matrix of each atom's level, shape (A, L), or the channel itself."""
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]
