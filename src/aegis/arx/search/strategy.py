"""The search strategy of hitting sets, for sums of losses in a large search space."""

from __future__ import annotations

from dataclasses import dataclass

from aegis.advisor.search.branch import Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility, InMemory
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem
from aegis.errors import InternalError
from aegis.progress import Step


@dataclass(frozen=True)
class HittingSets:
    """A search strategy: it lists configurations with a small loss, and removes from the list those
    that the rule refuses and all finer ones (see `aegis.arx.search.hitting_set`).
    """

    name: str = "hitting-sets"

    def suits(self, problem: Problem, objective: Objective, feasibility: Feasibility) -> bool:
        """Return whether the strategy suits a search: the space is large, the loss is a sum over
        attributes, and the rule limits only class sizes.
        """
        if not isinstance(feasibility, InMemory) or not objective.follows_rule:
            return False
        from aegis.arx.losses.suppression_losses import ChargedLoss
        from aegis.arx.search.hitting_set import pays

        sums = isinstance(objective, ChargedLoss) and objective.separates
        return sums and pays(problem, feasibility)

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
        """Return the `top` configurations with the least losses, with a proof. If the time limit
        ends the search before, return the best ones so far.

        `start` are configurations to try first.
        """
        from aegis.arx.losses.suppression_losses import ChargedLoss
        from aegis.arx.search.hitting_set import Sieve

        if not isinstance(feasibility, InMemory) or not isinstance(objective, ChargedLoss):
            raise InternalError("This search is for sums of losses.")
        return Sieve(
            problem, objective, feasibility, objective.separable(), top=top, clock=clock, step=step
        ).run(start)


HITTING_SETS = HittingSets()
