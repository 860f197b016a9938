"""Define search strategies, which packages can add for objectives without good bounds over boxes."""

from __future__ import annotations

from typing import Protocol

from aegis.advisor.search.branch import Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem
from aegis.progress import Step
from aegis.registry import Registry


class SearchStrategy(Protocol):
    """A method that searches for the best configurations, as an alternative to branch and bound.

    Packages add strategies through the entry points `aegis.search_strategies`.
    """

    @property
    def name(self) -> str:
        """The name under which the strategy is registered."""

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
        """Return the best configurations, with a proof. If the time limit ends the search before,
        return the best ones so far.

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
"""Strategies by name; a search uses the first one that suits it."""


def suiting(
    problem: Problem, objective: Objective, feasibility: Feasibility
) -> SearchStrategy | None:
    """Return the first registered strategy that solves a search faster than branch and bound; None
    if there is none.
    """
    return next((each for each in STRATEGIES if each.suits(problem, objective, feasibility)), None)
