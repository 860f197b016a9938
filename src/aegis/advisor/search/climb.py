"""Find a good configuration quickly: start from the coarsest masks, and refine within the rule.

The coarsest configuration is the most likely to be admissible, and the cheapest to score. From
there, the search repeatedly refines the mask with the largest gain. It evaluates gains lazily
(Minoux, Accelerated greedy algorithms, 1978): the gain of a move is computed again only when the
move has the largest known gain. So a step needs few scores if gains shrink as other masks become
finer. This is a heuristic; the branch and bound that follows proves or improves the result.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from aegis.advisor.search.clock import Clock
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem, members

NEXT = 8
"""Number of next finer masks of one attribute to try: those with the fewest groups."""
_TOLERANCE = 1e-12

Move = tuple[float, int, int, int]
"""Minus the last computed gain, the step at which it was computed, a variable, a candidate."""


def coarsest(problem: Problem) -> Iterator[Box]:
    """Yield the configurations that are most likely to meet a rule, the most useful first.

    Each variable has its candidate with the fewest groups. In the first configuration, the
    protected attributes and the label have their finest candidate instead: l-diversity is then
    easiest to meet, and the scores are not 0.
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
    """Return up to `NEXT` of a variable's next finer candidates, those with the fewest groups."""
    variable = problem.variables[index]
    finer = variable.finer[current] & ~(1 << current)
    # A next finer candidate refines the current one with no other candidate in between.
    covers = [c for c in members(finer) if not (variable.coarser[c] & finer & ~(1 << c))]
    covers.sort(key=lambda c: variable.candidates[c].size)
    return covers[:NEXT]


class Climb:
    """A hill climb from the coarsest configuration.

    Parameters
    ----------
    problem, objective
        The search space and the objective to maximise.
    clock
        Time limit; the climb skips a configuration that takes too long to score.
    keep
        Function that records a configuration if it is admissible, and returns whether it is
        admissible.
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
        """Return the final configuration; None if no coarsest configuration is admissible."""
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
        """Add the moves from a variable's mask to its next finer masks to the heap."""
        for candidate in next_finer(self._problem, index, domain.bit_length() - 1):
            self._consider(box, index, candidate)

    def _consider(self, box: Box, index: int, candidate: int) -> None:
        """Add a move with its present gain to the heap, if computing the gain does not take too long."""
        other = (*box[:index], 1 << candidate, *box[index + 1 :])
        self._clock.check()
        if not self._clock.allows(self._objective.effort(other)):
            return
        gain = self._objective.upper(other) - self._objective.upper(box)
        heapq.heappush(self._moves, (-gain, self._steps, index, candidate))
