"""Search strategies that packages add, for objectives that boxes bound badly."""

from __future__ import annotations

from typing import Protocol

from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem
from aegis.progress import Step
from aegis.registry import Registry


class SearchStrategy(Protocol):
    """Another way to find the best configurations than to split boxes.

    Packages add one through the entry points `aegis.search_strategies`.
    """

    @property
    def name(self) -> str:
        """The name of the strategy."""

    def suits(self, problem: Problem, objective: Objective, feasibility: Feasibility) -> bool:
        """Return whether it finds the best of this objective sooner than splitting boxes does."""

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
        """Return the best configurations, exactly, or those found when the time was over.

        Parameters
        ----------
        problem, objective, feasibility
            The space, what is maximised in it, and what is admissible.
        top
            How many of the best are asked for.
        clock
            Ends the search.
        step
            Receives the progress.
        start
            Configurations that are worth trying first.
        """


STRATEGIES: Registry[SearchStrategy] = Registry("search strategy")
"""Strategies by name; the first that suits a search is taken."""


def find_best(
    problem: Problem,
    objective: Objective,
    feasibility: Feasibility,
    *,
    top: int,
    clock: Clock,
    step: Step,
    start: tuple[Box, ...],
) -> Found:
    """Return the best configurations by a suitable strategy, otherwise by branch and bound."""
    for strategy in STRATEGIES:
        if strategy.suits(problem, objective, feasibility):
            return strategy.search(
                problem, objective, feasibility, top=top, clock=clock, step=step, start=start
            )
    return BranchAndBound(problem, objective, feasibility, top=top, clock=clock, step=step).run(
        start
    )
