"""The bound of the expected AUC over boxes of configurations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from aegis.advisor.coded import CodedMasks
from aegis.advisor.parts import PartBlocks
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.problem import Box, Ints, Problem, Variable, members
from aegis.masks import common_refinement
from aegis.measures import MEASURES, Expected, Merit, reachable_auc
from aegis.progress import Step

_LEVELS = 1024
"""Levels of all attributes together from which on a box is not looked into."""
_CUBED = 1e-9
"""Seconds per cubed level, on a machine of the slow kind."""


class Reach:
    """What no expected AUC of a box exceeds, for any learners that add up what attributes say.

    A box is judged at the common refinement of the levels and ranges of its candidates: coarser
    masks leave fewer linear scores (see `reachable_auc`). A noise mask counts as its atoms, of which
    what it shows is a random function. An AUC is at most 1.
    """

    name = "the AUC within reach"
    sign = 1
    bounded = True
    divides = True

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._attributes = problem.variables[: len(problem.summary.attributes)]
        self._blocks = PartBlocks(problem.summary.pairs)
        self._levels: dict[tuple[int, int], tuple[int, Ints]] = {}
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._known: dict[tuple[int, ...], float] = {}

    @staticmethod
    def bounds(objective: str, problem: Problem) -> bool:
        """Whether it bounds a measure: an AUC of linear scores, of a label that stays as it is."""
        summary = problem.summary
        if objective not in MEASURES or summary.pairs.folds is None:
            return False
        what = getattr(MEASURES.get(objective).compute, "__self__", None)
        if not isinstance(what, Expected) or what.merit is not Merit.AUC or what.interacting:
            return False
        return summary.label_attribute is None

    def bound(self, box: Box) -> float:
        """Return the bound of a box."""
        numbered = [self._finest(j, v, box[j]) for j, v in enumerate(self._attributes)]
        key = tuple(number for number, _ in numbered)
        if key not in self._known:
            levels = [level for _, level in numbered]
            if sum(int(level.max(initial=0)) + 1 for level in levels) > _LEVELS:
                return 1.0
            which = range(len(levels))
            coded = CodedMasks(levels, list(zip(which, key, strict=True)), [False] * len(levels))
            counts = self._blocks.counts(which, coded)
            self._known[key] = reachable_auc(counts)
        return self._known[key]

    def upper(self, box: Box) -> float:
        """Return `bound`: nothing is cheaper."""
        return self.bound(box)

    def effort(self, box: Box) -> float:
        """Return about how many seconds a bound takes."""
        levels_of = [self._finest(j, v, box[j])[1] for j, v in enumerate(self._attributes)]
        levels = sum(int(level.max(initial=0)) + 1 for level in levels_of)
        return _CUBED * min(levels, _LEVELS) ** 3

    def _finest(self, index: int, variable: Variable, domain: int) -> tuple[int, Ints]:
        """Return the common refinement of a domain's levels and ranges, and its number."""
        place = (index, domain)
        if place not in self._levels:
            level = _refined(variable, domain)
            content = (index, level.tobytes())
            number = self._numbers.setdefault(content, len(self._numbers))
            self._levels[place] = (number, level)
        return self._levels[place]


def _refined(variable: Variable, domain: int) -> Ints:
    chosen = [variable.candidates[c] for c in members(domain)]
    atoms = len(chosen[0].levels)
    if any(candidate.noise is not None for candidate in chosen):
        return np.arange(atoms, dtype=np.int32)
    groupings = [variable.level_join(domain)]
    groupings += [candidate.ranges for candidate in chosen if candidate.ranges is not None]
    distinct = {grouping.tobytes(): grouping for grouping in groupings}
    return common_refinement(list(distinct.values()))


def state_gap(
    problem: Problem, near: BranchAndBound, feasibility: Feasibility, seconds: float, step: Step
) -> Found:
    """Return the best by an expected AUC with what no admissible configuration exceeds.

    The configurations with the most within reach are listed, with proof that no other one has more
    than the last of them, and each is scored. So none exceeds the best score or that last reach.

    Parameters
    ----------
    near
        What was searched by the score itself until now: the list is added to what it holds.
    feasibility
        What is admissible.
    seconds
        Time for it: 3/5 to list, the rest to score. What is left open after that is in the bound.
    """
    listing = BranchAndBound(
        problem,
        Reach(problem),
        feasibility,
        top=near.top,
        clock=Clock(0.6 * seconds),
        step=step,
    )
    listed = listing.run(tuple(box for _, box in near.found.best[:1]))
    near.clock = Clock(0.4 * seconds)
    open_ones = near.rank_more([box for _, box in listed.best])
    reach = {box: value for value, box in listed.best}
    best = near.found.best[0][0] if near.found.best else -math.inf
    bound = max([best, listed.beyond, *(reach[box] for box in open_ones)])
    return replace(near.found, bound=bound, interrupted=listed.interrupted)
