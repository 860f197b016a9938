"""Check feasibility of rules that compare classes with a population."""

from __future__ import annotations

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.corner_classes import Corners
from aegis.advisor.search.feasibility import InMemory, prunable, sound_part, undecided
from aegis.advisor.search.problem import Box, Problem, members, replaced
from aegis.privacy import PrivacyRule
from aegis.summary import FrequencyTable


class BesidePopulation(InMemory):
    """Checks whether configurations meet the rule, on the frequency table and the class sizes in
    the population.

    Criteria on the table remove candidates as in a search without a population. Criteria on the
    population are checked for the coarsest configuration of a box (a set of candidate masks for
    each attribute), if there is one. If a monotone criterion fails there, or if a criterion can be
    met by no finer table, no configuration in the box is admissible.
    """

    def __init__(
        self,
        problem: Problem,
        frequency: FrequencyTable,
        plan: PrivacyPlan,
        clock: Clock,
        shared: dict[bool, Corners] | None = None,
    ) -> None:
        super().__init__(problem, frequency, plan, clock, shared)
        self.rule = prunable(plan.rule.without_crowd)
        self._part = plan.rule.monotone_part
        hopeless = any(criterion.model.hopeless is not None for criterion in plan.rule.criteria)
        self._tells = hopeless or self._part is not None
        self._corners: dict[tuple[Box, PrivacyRule | None], bool] = {}

    def narrow(self, box: Box) -> Box | None:
        """Return a box without those candidates that fail the rule even if all other attributes
        have their coarsest masks. A box has a set of candidate masks for each attribute.

        The result is None if an attribute has no candidate left.
        """
        narrowed = super().narrow(box)
        if narrowed is None or not self._corner_possible(narrowed):
            return None
        if not self._tells:
            return narrowed
        left = list(narrowed)
        for index, variable in enumerate(self.problem.variables):
            if not variable.quasi:
                continue
            for candidate in members(left[index]) if left[index] & (left[index] - 1) else ():
                self.clock.check()
                tried = replaced(tuple(left), index, 1 << candidate)
                if not self._corner_possible(tried):
                    left[index] &= ~(1 << candidate)
            if not left[index]:
                return None
        return tuple(left)

    def _corner_possible(self, box: Box) -> bool:
        """Return whether the coarsest configuration of a box (a set of candidate masks for each
        attribute) meets those criteria that finer masks cannot repair. False excludes the box.

        The result is also True if the box has no coarsest configuration.
        """
        if not self._tells:
            return True
        corner = self.problem.corner(box)
        if corner is None:
            return True
        part = sound_part(self._part, undecided(self.problem, box))
        key = (corner, part)
        if key not in self._corners:
            self.count()
            table = self.plan.classes(self.problem.choice(corner))
            lost = any(
                criterion.model.hopeless is not None and criterion.model.hopeless(table, criterion)
                for criterion in self.plan.rule.criteria
            )
            self._corners[key] = not lost and (part is None or part.check(table).admissible)
        return self._corners[key]
