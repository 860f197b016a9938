"""Find the configuration that needs the fewest rows removed, if none is admissible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.branch import BranchAndBound
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem, is_leaf
from aegis.array_cache import remembered
from aegis.progress import SILENT


class RowsRemoved(Objective):
    """An objective: how many rows must be removed so that the remaining rows meet the rule.

    A box has a set of candidate masks for each attribute. Merging classes never increases the
    number of rows that the criteria monotone under suppression remove. The whole rule removes at
    least as many rows as these criteria alone. So the rows that these criteria remove under the
    coarsest masks of a box are a lower bound for every configuration in the box.
    """

    name = "rows removed"
    sign = -1

    def __init__(self, problem: Problem, plan: PrivacyPlan) -> None:
        self._problem = problem
        self._plan = plan
        counted = plan.rule.without_crowd.criteria  # boxes are counted without a population
        criteria = tuple(c for c in counted if c.model.monotone_with_suppression)
        self._part = replace(plan.rule, criteria=criteria)

    @remembered
    def bound(self, box: Box) -> float:
        """Return minus the number of rows that must be removed under a configuration. For a box (a
        set of candidate masks for each attribute), return an upper bound of this figure.
        """
        return -float(self._exact(box) if is_leaf(box) else self._at_least(box))

    def _exact(self, box: Box) -> int:
        return self._plan.check(self._problem.choice(box)).suppressed_rows

    def _at_least(self, box: Box) -> int:
        frequency = self._problem.summary.frequency
        if frequency is None or not self._part.criteria:
            return 0
        pairs = list(zip(self._problem.variables, box, strict=True))
        protected = {}
        for name in self._part.sensitive:
            codes = np.arange(int(frequency.representatives[name].max()) + 1)
            groups = next((v.join(domain) for v, domain in pairs if v.name == name), codes)
            protected[name] = groups, tuple(map(str, range(int(groups.max()) + 1)))
        classes = frequency.roll_up({v.name: v.meet(d) for v, d in pairs if v.quasi}, protected)
        return self._part.check(classes).suppressed_rows


class _Anything:
    """A feasibility check that admits every configuration."""

    def narrow(self, box: Box) -> Box | None:
        """Return the box (a set of candidate masks for each attribute) unchanged."""
        return box

    def admits(self, box: Box) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True: every configuration is admissible."""
        return True


def find_closest(problem: Problem, plan: PrivacyPlan, clock: Clock) -> Box | None:
    """Return the configuration for which the fewest rows must be removed so that it meets the rule,
    as a box of single candidates.

    The search tries the coarsest configuration first. If time runs out, the result is the best
    configuration so far; None if the search was interrupted before it tried one.
    """
    with SILENT.step("") as step:
        outcome = BranchAndBound(
            problem,
            RowsRemoved(problem, plan),
            _Anything(),
            top=1,
            clock=clock,
            step=step,
        ).run()
    return outcome.best[0][1] if outcome.best else None
