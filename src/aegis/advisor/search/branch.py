"""Best-first branch and bound over boxes: anytime, with a proof of optimality at the end.

A node is a box whose coarsest corner meets the monotone part of the rule. The node with the
largest bound is split in two along one variable: the candidates that refine some candidate c, and
the rest. In the first half the coarsest corner is finer, so the rule strikes candidates from the
other domains; in the second the finest grouping is coarser, so the bound falls. When the largest
bound left is no better than the best configuration found, that configuration is optimal.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.objectives import Objective
from aegis.advisor.search.problem import Box, Problem, is_leaf, members
from aegis.errors import InternalError
from aegis.progress import Step

_DIVE_EVERY = 64
"""Nodes between two dives for a better incumbent."""
_RELIABLE = 2
"""Exact evaluations of a split before its mean loss is trusted."""
_TOLERANCE = 1e-12
"""Values closer than this are the same."""


@dataclass
class Found:
    """The state of a search, readable at any time.

    Attributes
    ----------
    best
        Values (signed, larger is better) and boxes of the best configurations, best first.
    bound
        No configuration that was not returned has a larger signed value than this.
    nodes
        Boxes that were split.
    complete
        Whether the search ended by itself.
    interrupted
        Whether the user ended it.
    """

    best: list[tuple[float, Box]] = field(default_factory=list)
    bound: float = math.inf
    nodes: int = 0
    complete: bool = False
    interrupted: bool = False


class BranchAndBound:
    """One search.

    Parameters
    ----------
    problem, objective, feasibility
        The space, what to maximise over it, and what is admissible.
    top
        How many best configurations to find.
    time_limit
        Seconds after which the search returns what it has; None for no limit.
    step
        Receives notes on incumbent, bound and gap.
    """

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        feasibility: Feasibility,
        *,
        top: int,
        time_limit: float | None,
        step: Step,
    ) -> None:
        self.problem = problem
        self.objective = objective
        self.feasibility = feasibility
        self.top = top
        self.deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self.step = step
        self.found = Found()
        self._heap: list[tuple[float, int, int, Box]] = []
        self._pushed = 0
        self._known: set[Box] = set()
        self._at_work = math.inf
        self._losses: dict[tuple[int, int], tuple[int, float]] = {}

    def run(self, start: tuple[Box, ...] = ()) -> Found:
        """Search until proven, out of time, or interrupted.

        Parameters
        ----------
        start
            Configurations to try first: a good one prunes from the beginning.
        """
        try:
            root = self.feasibility.narrow(self.problem.root)
            if root is not None:
                self._push(root)
                self._at_work = -math.inf
                for box in start:
                    self._keep(box)
                self._dive(root)
                self._loop()
            self._at_work = -math.inf
            self.found.complete = not self._open()
        except KeyboardInterrupt:
            self.found.interrupted = True
        # A box that was being split when the user interrupted is no longer on the heap.
        self.found.bound = max(self._at_work, *self._bounds(), -math.inf)
        return self.found

    def _bounds(self) -> list[float]:
        """Return the largest bound that is left and the best value, where there are any."""
        left = [-entry[0] for entry in self._heap[:1]]
        return left + [value for value, _ in self.found.best[:1]]

    def _open(self) -> bool:
        """Whether a box is left that could hold something better than what was found."""
        return bool(self._heap) and -self._heap[0][0] > self._threshold()

    def _threshold(self) -> float:
        """Return the value that a configuration must exceed to be among the best."""
        best = self.found.best
        return best[self.top - 1][0] + _TOLERANCE if len(best) >= self.top else -math.inf

    def _loop(self) -> None:
        while self._open() and time.monotonic() < self.deadline:
            self._at_work = -self._heap[0][0]
            _, _, _, box = heapq.heappop(self._heap)
            if is_leaf(box):
                self._keep(box)
            else:
                self.found.nodes += 1
                for half in self._halves(box):
                    self._push(half)
            self._at_work = -math.inf
            if self.found.nodes % _DIVE_EVERY == 0 and self._heap:
                self._dive(self._heap[0][3])
                self._report()

    def _push(self, box: Box) -> None:
        bound = self.objective.bound(box)
        if bound > self._threshold():
            self._pushed += 1
            size = sum(domain.bit_count() for domain in box)
            # Ties go to the smaller box, so that a chain of equal bounds ends in a configuration.
            heapq.heappush(self._heap, (-bound, size, self._pushed, box))

    def _halves(self, box: Box) -> Iterator[Box]:
        """Yield the finer half, narrowed, and the coarser half of the best split of a box."""
        index, fine = self._split(box)
        coarse = self.problem.variables[index].full & box[index] & ~fine
        yield _replace(box, index, coarse)
        narrowed = self.feasibility.narrow(_replace(box, index, fine))
        if narrowed is not None:
            yield narrowed

    def _split(self, box: Box) -> tuple[int, int]:
        """Return the variable whose coarser half loses most of the bound, and its finer half.

        What a split of one domain loses hardly depends on the other domains, so after a few
        exact evaluations its mean loss stands for it (reliability branching; Achterberg, Koch and
        Martin, Branching rules revisited, Operations Research Letters 33, 2005).
        """
        best: tuple[float, int, int] | None = None
        whole = self.objective.bound(box)
        for index, domain in enumerate(box):
            if domain & (domain - 1) == 0:
                continue
            fine = self._finer_half(index, domain)
            seen, total = self._losses.get((index, domain), (0, 0.0))
            if seen < _RELIABLE:
                loss = whole - self.objective.bound(_replace(box, index, domain & ~fine))
                self._losses[index, domain] = (seen + 1, total + loss)
            else:
                loss = total / seen
            if best is None or loss > best[0]:
                best = (loss, index, fine)
        if best is None:
            raise InternalError("A single configuration cannot be split.")
        return best[1], best[2]

    def _finer_half(self, index: int, domain: int) -> int:
        """Return those of a domain that refine its middle candidate, by number of groups."""
        variable = self.problem.variables[index]
        ordered = sorted(members(domain), key=lambda c: -variable.candidates[c].size)
        for candidate in (ordered[(len(ordered) - 1) // 2], ordered[0]):
            fine = domain & variable.finer[candidate]
            if fine != domain:
                return fine
        return 1 << ordered[0]

    def _dive(self, box: Box) -> None:
        """Walk from a box to a single configuration and improve it one mask at a time."""
        while not is_leaf(box):
            index, fine = self._split(box)
            narrowed = self.feasibility.narrow(_replace(box, index, fine))
            box = narrowed or _replace(box, index, box[index] & ~fine)
        if not self._keep(box):
            return
        improved: Box | None = box
        while improved is not None and time.monotonic() < self.deadline:
            improved = self._improve(improved)

    def _improve(self, box: Box) -> Box | None:
        """Return the best admissible configuration that differs in one mask and is better."""
        start = self.objective.bound(box)
        options = []
        for index, variable in enumerate(self.problem.variables):
            if time.monotonic() >= self.deadline:
                break
            for candidate in range(len(variable.candidates)):
                other = _replace(box, index, 1 << candidate)
                value = self.objective.bound(other)
                if value > start + _TOLERANCE:
                    options.append((-value, other))
        for _, other in sorted(options):
            if self._keep(other):
                return other
        return None

    def _keep(self, box: Box) -> bool:
        """Record a configuration if it is admissible; return whether it is."""
        if not self.feasibility.admits(box):
            return False
        if box not in self._known:
            self._known.add(box)
            entry = (self.objective.bound(box), box)
            self.found.best.append(entry)
            self.found.best.sort(key=lambda e: (-e[0], e[1]))
            dropped = self.found.best[self.top :]
            del self.found.best[self.top :]
            if entry not in dropped:
                self._report()
        return True

    def _report(self) -> None:
        best = self.found.best[0][0] if self.found.best else -math.inf
        bound = max(best, -self._heap[0][0]) if self._heap else best
        sign = self.objective.sign
        self.step.note(
            f"best {sign * best:.6g}, bound {sign * bound:.6g}, gap {gap(best, bound):.2%}, "
            f"{self.found.nodes:,} nodes"
        )


def gap(best: float, bound: float) -> float:
    """Return how far the bound lies above the best value, relative to its size."""
    if not math.isfinite(best):
        return math.inf
    if bound <= best + _TOLERANCE:
        return 0.0
    if not math.isfinite(bound):
        return math.inf
    return (bound - best) / max(abs(best), _TOLERANCE)


def _replace(box: Box, index: int, domain: int) -> Box:
    return (*box[:index], domain, *box[index + 1 :])
