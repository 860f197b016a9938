"""Improve a configuration by changing one or two masks; all strategies use this local search.

A search starts with the coarsest masks, because these are the most likely to meet the rule and the
quickest to score. It repeatedly makes the change with the largest gain. It evaluates gains lazily
(Minoux, Accelerated greedy algorithms, 1978): after a change, it computes the gain of another
change again only if the known gain of this change is the largest. So a step needs few scores if
gains shrink as other masks become finer. The result need not be the best; branch and bound proves
or improves it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from aegis.advisor.confidence import hidden_share
from aegis.advisor.search.problem import (
    Box,
    MaskVariable,
    SearchSpace,
    Variable,
    members,
    replaced,
)

NEXT = 8
"""Largest number of next finer masks of an attribute that are tried: those with the fewest groups.
"""
_NEAR = 8
"""Largest number of masks of an attribute with more groups, and with fewer, that are near."""
_EXCHANGED = 64
"""Largest number of changes with a gain, and with a loss, that are tried in pairs."""
TOLERANCE = 1e-12
"""Values that differ by less than this count as equal."""

Near = Callable[[MaskVariable, int], Sequence[int]]
"""A function that returns the candidates of a variable to try instead of its current one."""
Move = tuple[float, int, int]
"""A change of one mask: minus its largest possible gain, the variable, and the new candidate."""


def next_finer(variable: MaskVariable, current: int) -> list[int]:
    """Return the indices of the next finer candidates of an attribute after the one at index
    `current`: at most 8, those with the fewest groups.
    """
    finer = variable.finer[current] & ~(1 << current)
    # A next finer candidate refines the current one with no other candidate in between.
    covers = [c for c in members(finer) if not (variable.coarser[c] & finer & ~(1 << c))]
    covers.sort(key=lambda c: variable.candidates[c].size)
    return covers[:NEXT]


def masking(variable: Variable, candidate: int) -> float:
    """Return the share of the entropy of an attribute's values that a candidate mask hides, from 0
    to 1. `candidate` is the index of the mask.
    """
    channel = variable.channels.get(candidate)
    return hidden_share(variable.attribute, variable.candidates[candidate], channel)


def hiding_less(variable: Variable, current: int) -> list[int]:
    """Return the indices of up to 8 candidates that hide less than the candidate at index `current`
    and are not nested in it, such as ranges of 7 years instead of 10.

    The list starts with the candidate that hides most.
    """
    nested = variable.finer[current] | variable.coarser[current]
    hidden = [masking(variable, c) for c in range(len(variable.candidates))]
    less = [c for c, share in enumerate(hidden) if share < hidden[current] and not nested >> c & 1]
    return sorted(less, key=lambda c: (-hidden[c], c))[:NEXT]


def others(variable: MaskVariable, current: int) -> list[int]:
    """Return the indices of all candidates of an attribute except the one at index `current`."""
    return [c for c in range(len(variable.candidates)) if c != current]


def near(variable: MaskVariable, current: int) -> list[int]:
    """Return the indices of up to eight candidates before the one at index `current`, and up to
    eight after it, in the order of their number of groups.
    """
    sizes = [candidate.size for candidate in variable.candidates]
    order = sorted(range(len(sizes)), key=lambda c: (sizes[c], c))
    position = order.index(current)
    return order[max(0, position - _NEAR) : position] + order[position + 1 : position + _NEAR + 1]


class LocalSearch:
    """Improves a configuration by changing one or two of its masks, as long as this raises its
    value.

    Parameters
    ----------
    space
        The search space.
    upper
        Function that quickly returns an upper bound of a configuration's value; -inf if the search
        must not try the configuration.
    value
        Function that returns the value of a configuration; -inf if it does not meet the rule.
    """

    def __init__(
        self,
        space: SearchSpace,
        upper: Callable[[Box], float],
        value: Callable[[Box], float],
    ) -> None:
        self._space = space
        self._upper = upper
        self._value = value

    def from_coarsest(self) -> Box | None:
        """Start from the coarsest configuration, and make single masks finer until no next finer
        mask improves the value. Return the result; None if the coarsest configuration fails the
        rule.
        """
        for box in self._space.coarsest():
            if self._value(box) > -math.inf:
                return self.improved(box, next_finer)
        return None

    def improved(
        self, box: Box, neighbours: Near, *, pairs: bool = False, thorough: bool = False
    ) -> Box:
        """Return a configuration that no change of one mask improves, and, if `pairs` is True, no
        pair of changes, either.

        Parameters
        ----------
        box
            The configuration to begin with, which meets the rule.
        neighbours
            Function that returns the candidates to try for an attribute.
        pairs
            Whether to also try two changes together, one with a gain and one with a loss.
        thorough
            Whether to evaluate all neighbours again after each change.
        """
        while True:
            moves = self.moves(box, neighbours)
            better = self._climbed(box, moves, neighbours, once=thorough)
            if better == box and pairs:
                better = self._exchanged(box, moves)
            if better == box:
                return box
            box = better

    def moves(self, box: Box, neighbours: Near) -> list[Move]:
        """Return all changes of one mask of a configuration (an attribute and its new candidate),
        each with an upper bound of its gain, the largest first.

        `neighbours` returns the candidates to try for an attribute.
        """
        value = self._value(box)
        return sorted(
            self._move(box, value, index, candidate)
            for index, variable in enumerate(self._space.variables)
            for candidate in neighbours(variable, box[index].bit_length() - 1)
        )

    def _move(self, box: Box, value: float, index: int, candidate: int) -> Move:
        return value - self._upper(replaced(box, index, 1 << candidate)), index, candidate

    def _climbed(self, start: Box, moves: Sequence[Move], neighbours: Near, *, once: bool) -> Box:
        """Return a configuration that is better than `start`, by repeatedly making the change with
        the largest gain. Return `start` if no change has a gain.

        Parameters
        ----------
        start
            The configuration to begin with.
        moves
            All changes of one mask of `start`, the largest possible gain first.
        neighbours
            Function that returns the candidates to try for an attribute after it was changed.
        once
            Whether to stop after the first change.
        """
        box, value = start, self._value(start)
        heap = [(move, start) for move in moves]  # sorted, so it is a heap
        while heap:
            (fall, index, candidate), before = heapq.heappop(heap)
            if before[index] != box[index]:
                continue  # this variable has another mask, whose changes were added
            if before != box:
                heapq.heappush(heap, (self._move(box, value, index, candidate), box))
                continue
            if fall >= -TOLERANCE:
                break
            other = replaced(box, index, 1 << candidate)
            reached = self._value(other)
            if reached > value + TOLERANCE:
                if once:
                    return other
                box, value = other, reached
                for following in neighbours(self._space.variables[index], candidate):
                    heapq.heappush(heap, (self._move(box, value, index, following), box))
        return box

    def _exchanged(self, box: Box, moves: Sequence[Move]) -> Box:
        """Return a better configuration that differs from `box` in two masks; `box` if there is
        none. `moves` are the changes of one mask.
        """
        value = self._value(box)
        for (i, fine), (j, coarse) in exchanges(moves):
            other = replaced(replaced(box, i, 1 << fine), j, 1 << coarse)
            if self._upper(other) <= value + TOLERANCE:
                continue
            if self._value(other) > value + TOLERANCE:
                return other
        return box


def exchanges(moves: Sequence[Move]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return pairs of changes that could raise the value together, although one of the two lowers
    it. The pair with the largest possible gain comes first.

    `moves` are changes of one mask with their largest possible gain. In the result, each change is
    the index of an attribute and the index of its new candidate.
    """
    up = [move for move in moves if move[0] < -TOLERANCE][:_EXCHANGED]
    down = [move for move in moves if move[0] >= -TOLERANCE][:_EXCHANGED]
    pairs = [
        (rise + fall, (i, fine), (j, coarse))
        for rise, i, fine in up
        for fall, j, coarse in down
        if i != j and rise + fall < 0
    ]
    return [(first, second) for _, first, second in sorted(pairs)]
