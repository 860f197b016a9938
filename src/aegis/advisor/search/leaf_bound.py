"""Exclude boxes by criteria that use the leaves of hierarchies; these criteria are not monotone.

In every configuration of a box, the class of a row is at most as large as at the coarsest corner,
and the masks hide at least as many bits as the finest masks. Models that depend on leaves
(`ModelNeed.LEAVES`) are never easier to meet if a class is smaller or hides more bits. So a row
that fails with the largest class size and the fewest hidden bits fails in the whole box.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.problem import Box, Problem, Variable
from aegis.arrays import Array, Floats, Integers
from aegis.privacy import ClassTable, ModelNeed
from aegis.summary import FrequencyTable
from aegis.summary.leaves import domain, leaf_counts, whole_bits

_REMEMBERED = 256
"""Number of corners whose class sizes are cached."""


def least_bits(problem: Problem, frequency: FrequencyTable, box: Box) -> Floats:
    """Return the least number of bits that a configuration in a box hides in each cell of the
    frequency table, shape (cells,).

    A box has a set of candidate masks for each attribute. A cell is a combination of values that
    occurs. The bits are log2 of the number of combinations of original values (leaves of the
    hierarchies) that the masked values of the cell may represent.
    """
    total = np.zeros(frequency.cells)
    for variable, chosen in zip(problem.variables, box, strict=True):
        if variable.quasi:
            values = frequency.representatives[variable.name]
            total += _bits(variable, chosen)[values][frequency.codes[variable.name]]
    return total


def _bits(variable: Variable, chosen: int) -> Floats:
    """Return a lower bound of how many bits the candidates of a set hide of each of the attribute's
    V values, shape (V,): log2 of the number of original values (leaves) that the masked value may
    represent.

    `chosen` is the set of candidates as a bit mask. If one candidate is the finest, its leaves are
    counted. If none is, the bound uses the groups of the common refinement, and counts the table's
    values in each. Such a group never has more leaves than the group of a candidate that contains
    it.
    """
    finest = variable.finest(chosen)
    if finest is not None:
        return np.log2(leaf_counts(variable.attribute, variable.candidates[finest]))
    groups: Integers = variable.join(chosen)
    return np.log2(np.bincount(groups)[groups].astype(np.float64))


class LeafBound:
    """Counts the rows that fail the rule in every configuration of a box (a set of candidate masks
    for each attribute). If they are more than may be suppressed, no configuration in the box is
    admissible.

    Parameters
    ----------
    problem
        The search space.
    frequency
        The frequency table.
    plan
        The plan, which has the rule and counts classes.
    """

    def __init__(self, problem: Problem, frequency: FrequencyTable, plan: PrivacyPlan) -> None:
        self._problem = problem
        self._frequency = frequency
        self._plan = plan
        self._criteria = [c for c in plan.rule.criteria if ModelNeed.LEAVES in c.model.needs]
        quasi = [v.attribute for v in problem.variables if v.quasi]
        self._whole = whole_bits(map(domain, quasi))
        self._counted = lru_cache(_REMEMBERED)(self._count)
        self._room = plan.rule.allowed_rows(frequency.rows)
        # Persons lose rows in several classes: rows that fail say little about how many they are.
        self._blind = not self._criteria or frequency.persons is not None

    def possible(self, box: Box) -> bool:
        """Return whether some configuration in a box may meet the rule; False proves that none
        does. A box has a set of candidate masks for each attribute.
        """
        corner = None if self._blind else self._problem.corner(box)
        if corner is None:
            return True
        sizes, people = self._counted(corner)
        hidden = least_bits(self._problem, self._frequency, box) / self._whole
        table = ClassTable(sizes, population=people, hidden=hidden)
        for criterion in self._criteria:
            if self._frequency.counts[criterion.failing(table)].sum() > self._room:
                return False
        return True

    def _count(self, corner: Box) -> tuple[Array, Array | None]:
        """Return, for each cell of the frequency table, how many rows its equivalence class has in
        the table, and how many people in the population (None without a population), each of shape
        (cells,).

        `corner` is a configuration. A cell is a combination of values that occurs.
        """
        choice = self._problem.choice(corner)
        table = self._plan.classes(choice, ())
        groups = {name: choice[name].groups for name in self._frequency.quasi}
        known = np.arange(len(table)) if table.ids is None else table.ids
        places = np.searchsorted(known, self._frequency.class_ids(groups))
        people = None if table.population is None else table.population[places]
        return table.sizes[places], people
