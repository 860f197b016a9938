"""What masks show of attributes under a coding, and what many configurations show, counted at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.advisor.grouping import Levels
from aegis.measures import PartCounts
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
        Equal keys of an attribute stand for equal levels, and for equal `ordered`.
    ordered
        Per attribute whether thresholds are counted in place of its levels, as `in_thresholds` does.
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
        Its place in the summary and what stands for the mask and the coding.
    level
        The level of each atom, or what a noise mask shows of it.
    own
        Its counts alone, of what is shown.
    places
        Places of what is shown among the levels of the mask, shape (d,).
    counted_by
        Number of levels that rows are counted by: the atoms of a noise mask.
    ordered
        Whether thresholds are shown in place of levels.
    """

    key: tuple[int, Hashable]
    level: Levels
    own: PartCounts
    places: npt.NDArray[np.intp]
    counted_by: int
    ordered: bool

    def shown(self, block: Floats, axis: int) -> Floats:
        """Return a block of levels as the coding shows them along an axis."""
        if self.ordered:
            block = later(block, axis)
        whole = len(self.places) == block.shape[axis]
        return block if whole else block.take(self.places, axis)

    @cached_property
    def columns(self) -> Floats:
        """What is shown of each atom, shape (A, d)."""
        return self.shown(indicators(self.level), 1)


@dataclass(frozen=True, eq=False)
class CountedTogether:
    """What all expected configurations show under one coding, counted at once.

    Attributes
    ----------
    stacked
        As `PartBlocks.counts` stacks them, shape (K, C, D, D); of no meaning between two masks of one
        attribute.
    places
        Where what an attribute shows under a mask stands among them, shape (d,).
    """

    stacked: Floats
    places: dict[tuple[int, Hashable], npt.NDArray[np.intp]]

    def of(self, shown: Sequence[CodedAttribute]) -> Floats:
        """Return what one configuration shows."""
        at = np.concatenate([self.places[attribute.key] for attribute in shown])
        *stack, size, _ = self.stacked.shape
        flat = self.stacked.reshape(math.prod(stack), size**2)
        own: Floats = flat.take((at[:, None] * size + at).ravel(), axis=1)
        return own.reshape(*stack, len(at), len(at))


@dataclass(eq=False)
class ExpectedParts:
    """Configurations that are to be counted, and what counts them at once, when the first is asked for.

    Attributes
    ----------
    label
        What groups the classes.
    keys
        Keys of attributes under masks.
    count
        Returns what they show; None where that is no less work than one by one.
    """

    label: Candidate | None
    keys: Collection[tuple[int, Hashable]]
    count: Callable[[], CountedTogether | None]

    @cached_property
    def _together(self) -> CountedTogether | None:
        return self.count()

    def of(
        self, label: Candidate | None, shown: Sequence[CodedAttribute]
    ) -> CountedTogether | None:
        """Return what was counted at once, where a configuration is among it."""
        if label != self.label or not all(own.key in self.keys for own in shown):
            return None
        together = self._together
        known = together is not None and all(own.key in together.places for own in shown)
        return together if known else None


def indicators(level: Levels) -> Floats:
    """Return the 0/1 matrix of each atom's level, shape (A, L), or the channel itself."""
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]
