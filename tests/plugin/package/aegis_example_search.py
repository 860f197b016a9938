"""What the package adds to searches and rankings: an objective, a search strategy, an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from aegis.advisor.ranked import AttributeEstimate, Estimate
from aegis.advisor.search.branch import Found
from aegis.advisor.search.objective import ObjectiveType
from aegis.advisor.search.objectives import Additive
from aegis.summary import Information

if TYPE_CHECKING:
    from aegis.advisor import Choice, PrivacyPlan
    from aegis.advisor.search.feasibility import Feasibility
    from aegis.advisor.search.objective import Objective
    from aegis.advisor.search.problem import Box, Clock, Problem
    from aegis.files import Progress, Step
    from aegis.summary import Summary


def values_lost(text: str, problem: Problem, plan: PrivacyPlan) -> Additive:
    """Return how many values masks hide, summed over attributes."""
    lost = [
        [
            float(candidate.size - len(variable.attribute.values))
            for candidate in variable.candidates
        ]
        for variable in problem.variables
    ]
    return Additive(text, -1, [lost])


VALUES_LOST = ObjectiveType(
    name="values-lost",
    title="Values lost",
    formula="sum over attributes of values less groups",
    reference="An example of a plug-in",
    make=values_lost,
    check=len,
)


@dataclass(frozen=True)
class OneByOne:
    """Tries every configuration of a small space."""

    name: str = "one-by-one"

    def suits(self, problem: Problem, objective: Objective, feasibility: Feasibility) -> bool:
        """Return whether the objective is that of this package."""
        return objective.name == VALUES_LOST.name

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
        """Return the best of all configurations."""
        boxes = product(*([1 << c for c in range(len(v.candidates))] for v in problem.variables))
        best = sorted(
            ((objective.bound(b), b) for b in boxes if feasibility.admits(b)), reverse=True
        )
        bound = best[0][0] if best else float("-inf")
        return Found(best[:top], bound=bound, nodes=-1, complete=True)


ONE_BY_ONE = OneByOne()


@dataclass(frozen=True)
class ByGroups:
    """Takes a mask to deviate by the share of values that it hides."""

    name: str = "by-groups"
    summary: str = "The share of values that masks hide."
    caution: str | None = "the estimates of towns are a jest"

    def estimates(
        self,
        summary: Summary,
        choices: Mapping[str, Choice],
        *,
        measure: str | None,
        progress: Progress,
    ) -> dict[str, Estimate]:
        """Return the estimate of each configuration."""
        made = {}
        for name, choice in choices.items():
            shares = {
                a.name: AttributeEstimate(
                    1.0, None, None, choice[a.name].size / max(len(a.values), 1)
                )
                for a in summary.attributes.values()
            }
            pud = sum(share.deviation for share in shares.values()) / len(shares)
            made[name] = Estimate(
                name, "mi", Information.NOTHING, "by-groups", pud, None, shares, self.name
            )
        return made


BY_GROUPS = ByGroups()
