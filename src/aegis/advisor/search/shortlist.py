"""Search by a measure without a sharp bound: score the configurations with the highest trace.

Branch and bound lists all admissible configurations whose adjusted trace is above some value, and
the search scores each of them. If a label class is rare, the trace can miss differences that an
expected model metric shows. So the search then changes the masks of the best configurations one at
a time, as long as the score improves. On request, it uses the remaining time to lower the loose
bound towards the best score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aegis.advisor.figures import ProvenList
from aegis.advisor.search.branch import BranchAndBound, Found, OpenBox, until_stopped
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.neighbours import LocalSearch, near
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Clock, SearchSpace
from aegis.files import Step

SPLITS = 2_000
"""Largest number of boxes that are split for the list in a large space, once the list has an entry.
"""
_IMPROVED = 3
"""Number of configurations whose masks are changed one at a time."""
_REACHING = 3
"""The bound of all configurations may take at most this many times as long as a score."""


class Shortlist:
    """A search for objectives whose upper bounds are too high to exclude configurations. It first
    lists the best configurations by a cheaper objective, such as Pillai's trace. Then it scores
    each configuration in this list by the real objective.

    Parameters
    ----------
    problem, objective, feasibility
        The search space, the objective to maximise, and the check of the rule.
    traces
        The cheaper objectives, by which configurations are listed. The second is used only if the
        first is not above 0 for any configuration.
    listed
        Largest number of configurations in the list.
    bounds
        Whether to compute an upper bound for all configurations, if `objective` has one.
    prove
        Whether to go on, by splitting boxes, until the best configuration is proven or time runs
        out.
    clock
        Time limit; when it is reached, the search returns the best configurations so far. Half of
        the time is for the list.
    step
        Shows the progress.
    """

    def __init__(
        self,
        problem: SearchSpace,
        objective: Objective,
        feasibility: Feasibility,
        traces: Sequence[Objective],
        *,
        listed: int,
        bounds: bool,
        prove: bool,
        clock: Clock,
        step: Step,
    ) -> None:
        self._problem = problem
        self._objective = objective
        self._feasibility = feasibility
        self._traces = traces
        self._bounds = bounds and objective.loose
        self._prove = self._bounds and prove
        self._split = False
        self._listed = listed
        self._clock = clock
        self._step = step
        self._scored: dict[Box, float] = {}

    def run(
        self,
        start: tuple[Box, ...],
        most_splits: float,
        resumed: tuple[OpenBox, ...] | None = None,
    ) -> Found:
        """Return all configurations that the search scored, best first, and what is proven about
        this list.

        In the result, `proven` has the part of the list that is proven to be complete. It is None
        if no part is complete. It is also None if the search proves more: that no combination is
        better than the best configuration. `bound` is infinite if the objective has no bound and
        some admissible configurations were not scored. `complete` is True if the search ran to its
        end.

        Parameters
        ----------
        start
            Configurations that are scored in any case.
        most_splits
            Largest number of boxes to split while the list is made.
        resumed
            The unsearched boxes of an earlier search; None to begin with all combinations.
        """
        for trace in self._traces:
            by_trace = self._list(trace, start, most_splits)
            blind = bool(by_trace.best) and by_trace.best[0][0] <= 0
            if not blind or by_trace.interrupted:
                break
        every = by_trace.complete and len(by_trace.best) < self._listed
        if by_trace.interrupted:
            self._clock.stop()
        outcome = Found(nodes=by_trace.nodes, interrupted=by_trace.interrupted)
        with until_stopped(outcome):
            self._score_all(outcome, start, [box for _, box in by_trace.best], every=every)
            if not every:
                self._improve(blind=trace is not self._traces[0])
            outcome.complete = by_trace.complete or by_trace.nodes >= most_splits
        unscored = [value for value, box in by_trace.best if box not in self._scored]
        if not every or unscored:
            root = (OpenBox(math.inf, self._problem.root, tight=False),)
            outcome.open = root if resumed is None else resumed
        if self._prove and self._scored and not every and not outcome.interrupted:
            self._split_boxes(outcome, resumed)
        scored = ((value, box) for box, value in self._scored.items())
        outcome.best = sorted(scored, key=lambda e: (-e[0], e[1]))
        highest = outcome.best[0][0] if outcome.best else -math.inf
        outcome.bound = highest if every and not unscored else max(outcome.bound, highest)
        least = max(unscored[:1] + [by_trace.beyond] * (not every), default=None)
        proven = [value for value, _ in by_trace.best if least is None or value > least]
        if proven and not (self._split and outcome.complete):
            outcome.proven = ProvenList(trace.name, len(proven), proven[0], least)
            outcome.generous = not self._split and least is not None
        return outcome

    def _score_all(
        self, outcome: Found, start: Sequence[Box], listed: Sequence[Box], *, every: bool
    ) -> None:
        """Score the listed configurations until time runs out; those in `start` and the first
        listed one in any case. If the list does not have `every` admissible configuration, set
        `outcome.bound` to an upper bound for all.
        """
        for box in (*start, *listed[:1]):
            self._clock.allows(self._objective.effort(box))  # notes when it begins
            self._score(box)  # in any case
        if listed and not every:
            outcome.bound = self._bound()
        for box in listed[1:]:
            self._score_in_time(box)

    def _split_boxes(self, outcome: Found, resumed: tuple[OpenBox, ...] | None) -> None:
        """Continue with branch and bound by the measure's loose bound, from the boxes in `resumed`,
        until the best configuration is proven or time runs out. The result is added to `outcome`.
        """
        search = self._boxes(self._objective, top=1, clock=self._clock)
        proof = search.run(tuple(self._best_scored()), resumed)
        self._split = proof.complete or proof.nodes > 0
        self._scored |= {box: value for value, box in proof.best}
        outcome.bound = min(outcome.bound, proof.bound)
        outcome.nodes += proof.nodes
        outcome.open = proof.open
        outcome.complete, outcome.interrupted = proof.complete, proof.interrupted

    def _list(self, trace: Objective, start: tuple[Box, ...], most_splits: float) -> Found:
        """Return the admissible configurations with the highest `trace`, in at most half of the
        time.
        """
        half = self._clock.part(0.5)
        return self._boxes(trace, top=self._listed, clock=half, most_nodes=most_splits).run(start)

    def _boxes(self, objective: Objective, **limits: Any) -> BranchAndBound:
        """Return a branch-and-bound search by an objective, with further keywords of
        `BranchAndBound`.
        """
        return BranchAndBound(
            self._problem, objective, self._feasibility, step=self._step, **limits
        )

    def _bound(self) -> float:
        """Return an upper bound for all admissible configurations; infinity if there is too little
        time.
        """
        took = self._objective.effort(self._problem.root)
        if not (self._bounds and self._clock.allows(took, times=_REACHING)):
            return math.inf
        box = self._feasibility.narrow(self._problem.root) or self._problem.root
        return self._objective.bound(box)

    def _score(self, box: Box) -> float:
        """Return the score of a configuration; -inf if it is not admissible."""
        if box not in self._scored:
            if not self._feasibility.admits(box):
                return -math.inf
            self._step.advance(0)
            self._scored[box] = self._objective.bound(box)
        return self._scored[box]

    def _score_in_time(self, box: Box) -> float:
        self._clock.check(self._objective.effort(box))
        return self._score(box)

    def _improve(self, *, blind: bool) -> None:
        """Change one mask of the best configurations at a time, as long as the score improves. If
        `blind`, also improve the coarsest configuration, because the list was of little use.
        """
        local = LocalSearch(self._problem, self._score_in_time, self._score)
        first = self._best_scored()
        if blind:
            summit = local.from_coarsest()
            first += [] if summit is None else [summit]
        for box in first:
            local.improved(box, near, thorough=True)

    def _best_scored(self) -> list[Box]:
        """Return a few configurations with the best scores so far, best first."""
        return sorted(self._scored, key=lambda box: (-self._scored[box], box))[:_IMPROVED]
