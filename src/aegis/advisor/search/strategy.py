"""Search strategies that packages add, for objectives without good bounds over boxes."""

from __future__ import annotations

from typing import Protocol

from aegis.advisor.search.branch import BranchAndBound, Found, OpenBox
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem
from aegis.progress import Step
from aegis.registry import Registry


class SearchStrategy(Protocol):
    """A way to find the best configurations that replaces branch and bound.

    Packages add strategies through the entry points `aegis.search_strategies`.
    """

    @property
    def name(self) -> str:
        """The name of the strategy."""

    def suits(self, problem: Problem, objective: Objective, feasibility: Feasibility) -> bool:
        """Return whether the strategy solves this search faster than branch and bound."""

    def search(
        self,
        problem: Problem,
        objective: Objective,
        feasibility: Feasibility,
        *,
        top: int,
        clock: Clock,
        step: Step,
        start: tuple[Box, ...],
    ) -> Found:
        """Return the best configurations, proven, or the best found when time ran out.

        Parameters
        ----------
        problem, objective, feasibility
            The search space, the objective, and the check of the rule.
        top
            Number of best configurations to return.
        clock
            Time limit.
        step
            Receives the progress.
        start
            Configurations to try first.
        """


STRATEGIES: Registry[SearchStrategy] = Registry("search strategy")
"""Strategies by name; a search uses the first that suits it."""


def find_best(
    problem: Problem,
    objective: Objective,
    feasibility: Feasibility,
    *,
    top: int,
    clock: Clock,
    step: Step,
    start: tuple[Box, ...],
    resumable: bool = False,
    resumed: tuple[OpenBox, ...] | None = None,
) -> Found:
    """Return the best configurations, by the first strategy that suits, else by branch and bound.

    If a later search should be able to continue this one, the search uses branch and bound, because
    it can save its unsearched boxes.
    """
    for strategy in () if resumable else STRATEGIES:
        if strategy.suits(problem, objective, feasibility):
            return strategy.search(
                problem, objective, feasibility, top=top, clock=clock, step=step, start=start
            )
    search = BranchAndBound(problem, objective, feasibility, top=top, clock=clock, step=step)
    return search.run(start, resumed)
