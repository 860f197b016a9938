"""A first good configuration in no time: from the coarsest masks to finer ones, while the rule holds.

The coarsest configuration is the likeliest to be admissible, and the cheapest to score. From there
the mask that gains most is made finer, again and again. Gains are looked at lazily (Minoux,
Accelerated greedy algorithms, 1978): that of a move is computed again only when it comes first, so
that a step costs few scores where gains shrink as other masks become finer. It is a heuristic; the
branch and bound that follows proves or improves what it finds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from aegis.advisor.search.clock import Clock
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem, members

NEXT = 8
"""Next finer masks of one attribute that are tried: those of the fewest groups."""
_TOLERANCE = 1e-12

Move = tuple[float, int, int, int]
"""Minus the gain when it was last computed, the step at which, a variable, a candidate."""


def coarsest(problem: Problem) -> Iterator[Box]:
    """Yield the configurations that are likeliest to meet a rule, the most useful first.

    Each variable has the candidate of the fewest groups; first with the protected attributes and
    the label at their finest, where l-diversity is easiest to meet and a score sees anything.
    """
    frequency = problem.summary.frequency
    sensitive = set(frequency.sensitive) if frequency is not None else set()
    if problem.summary.label_attribute is not None:
        sensitive.add(problem.summary.label_attribute.name)
    few, many = [], []
    for variable in problem.variables:
        sizes = [candidate.size for candidate in variable.candidates]
        few.append(1 << sizes.index(min(sizes)))
        many.append(1 << sizes.index(max(sizes)))
    names = [variable.name for variable in problem.variables]
    quasi = [variable.quasi for variable in problem.variables]
    first = tuple(
        b if name in sensitive and not is_quasi else a
        for name, is_quasi, a, b in zip(names, quasi, few, many, strict=True)
    )
    yield first
    if first != tuple(few):
        yield tuple(few)


def next_finer(problem: Problem, index: int, current: int) -> list[int]:
    """Return the next finer candidates of a variable with the fewest groups, at most `NEXT`."""
    variable = problem.variables[index]
    finer = variable.finer[current] & ~(1 << current)
    # A next finer candidate refines the current one with no other candidate in between.
    covers = [c for c in members(finer) if not (variable.coarser[c] & finer & ~(1 << c))]
    covers.sort(key=lambda c: variable.candidates[c].size)
    return covers[:NEXT]


class Climb:
    """One climb.

    Parameters
    ----------
    problem, objective
        The space, and what to maximise over it.
    clock
        Ends the climb; a configuration that takes too long to score is passed over.
    keep
        Records a configuration if it is admissible; returns whether it is.
    """

    def __init__(
        self, problem: Problem, objective: Objective, clock: Clock, keep: Callable[[Box], bool]
    ) -> None:
        self._problem = problem
        self._objective = objective
        self._clock = clock
        self._keep = keep
        self._moves: list[Move] = []
        self._steps = 0

    def run(self) -> Box | None:
        """Climb, and return the last configuration; None if no coarsest configuration is
        admissible.
        """
        box = next(filter(self._keep, coarsest(self._problem)), None)
        if box is None:
            return None
        for index, domain in enumerate(box):
            self._open(box, index, domain)
        while self._moves:
            gain, step, index, candidate = heapq.heappop(self._moves)
            if not self._problem.variables[index].coarser[candidate] & box[index]:
                continue  # another mask of this variable was chosen meanwhile
            if step != self._steps:
                self._consider(box, index, candidate)
                continue
            if gain > -_TOLERANCE:
                break
            other = (*box[:index], 1 << candidate, *box[index + 1 :])
            if self._keep(other):
                box, self._steps = other, self._steps + 1
                self._open(box, index, box[index])
        return box

    def _open(self, box: Box, index: int, domain: int) -> None:
        """Put the moves from a variable's mask to the next finer ones on the heap."""
        for candidate in next_finer(self._problem, index, domain.bit_length() - 1):
            self._consider(box, index, candidate)

    def _consider(self, box: Box, index: int, candidate: int) -> None:
        """Put a move on the heap with what it gains now, if that can be computed in time."""
        other = (*box[:index], 1 << candidate, *box[index + 1 :])
        self._clock.check()
        if not self._clock.allows(self._objective.effort(other)):
            return
        gain = self._objective.upper(other) - self._objective.upper(box)
        heapq.heappush(self._moves, (-gain, self._steps, index, candidate))
