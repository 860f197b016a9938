"""Search strategies that packages add, for objectives that boxes bound badly."""

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
    """Another way to find the best configurations than to split boxes.

    Packages add one through the entry points `aegis.search_strategies`.
    """

    @property
    def name(self) -> str:
        """What it is called."""

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
        """Return the best configurations, exactly, or what was found when the time was out.

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
    resumable: bool = False,
    resumed: tuple[OpenBox, ...] | None = None,
) -> Found:
    """Return the best configurations, by the strategy that suits, else by splitting boxes.

    A search that is to be resumed later splits boxes: these are what a later one goes on with.
    """
    for strategy in () if resumable else STRATEGIES:
        if strategy.suits(problem, objective, feasibility):
            return strategy.search(
                problem, objective, feasibility, top=top, clock=clock, step=step, start=start
            )
    search = BranchAndBound(problem, objective, feasibility, top=top, clock=clock, step=step)
    return search.run(start, resumed)
