"""Boxes that a rule on leaves excludes, although the rule is not monotone.

A row of any configuration in a box is in a class no larger than at the coarsest corner, and hides at
least what it hides at the finest masks. What it fails under both, it fails in the whole box: models
that depend on leaves (`ModelNeed.LEAVES`) never fail less where a class is smaller or hides more.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.problem import Box, Problem, Variable
from aegis.privacy import ClassTable, ModelNeed
from aegis.summary import FrequencyTable
from aegis.summary.leaves import domain, leaf_counts, whole_bits

_REMEMBERED = 256
"""Corners whose class sizes are remembered."""


Floats = npt.NDArray[np.float64]


def least_bits(problem: Problem, frequency: FrequencyTable, box: Box) -> Floats:
    """Return log2 of the combinations of leaves of each cell, shape (cells,), at their least in a box."""
    total = np.zeros(frequency.cells)
    for variable, chosen in zip(problem.variables, box, strict=True):
        if variable.quasi:
            values = frequency.representatives[variable.name]
            total += _bits(variable, chosen)[values][frequency.codes[variable.name]]
    return total


def _bits(variable: Variable, chosen: int) -> Floats:
    """Return log2 of the leaves of each value's group, (V,), at most those under any candidate.

    Of candidates that do not compare the common refinement counts, by the values it holds:
    groups of it that make up a group of one of them have no more leaves together than that.
    """
    finest = variable.finest(chosen)
    if finest is not None:
        return np.log2(leaf_counts(variable.attribute, variable.candidates[finest]))
    groups = variable.join(chosen)
    return np.log2(np.bincount(groups)[groups].astype(np.float64))


class LeafBound:
    """Counts the rows that fail in a whole box.

    Parameters
    ----------
    problem
        The search space.
    frequency
        The cells.
    plan
        The rule, and how classes are counted.
    """

    def __init__(self, problem: Problem, frequency: FrequencyTable, plan: PrivacyPlan) -> None:
        self._problem = problem
        self._frequency = frequency
        self._plan = plan
        self._criteria = [c for c in plan.rule.criteria if ModelNeed.LEAVES in c.model.needs]
        quasi = [v.attribute for v in problem.variables if v.quasi]
        self._whole = whole_bits(map(domain, quasi))
        self._corners: OrderedDict[Box, tuple[npt.NDArray[np.int64], ...]] = OrderedDict()
        self._room = plan.rule.allowed_rows(frequency.rows)
        # Persons lose rows in several classes: rows that fail say little about how many they are.
        self._blind = not self._criteria or frequency.persons is not None

    def possible(self, box: Box) -> bool:
        """Return whether a box may contain an admissible configuration; False is a proof that it
        does not.
        """
        corner = None if self._blind else self._corner(box)
        if corner is None:
            return True
        sizes, people = self._counted(corner)
        hidden = least_bits(self._problem, self._frequency, box) / self._whole
        table = ClassTable(sizes, population=people, hidden=hidden)
        for criterion in self._criteria:
            if self._frequency.counts[criterion.failing(table)].sum() > self._room:
                return False
        return True

    def _corner(self, box: Box) -> Box | None:
        """Return the coarsest configuration of a box; None if there is none."""
        corner = []
        for variable, left in zip(self._problem.variables, box, strict=True):
            chosen = variable.coarsest(left) if variable.quasi else variable.finest(left)
            if chosen is None:
                return None
            corner.append(1 << chosen)
        return tuple(corner)

    def _counted(self, corner: Box) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
        """Return the rows and the people of the class of each cell, shape (cells,)."""
        if corner not in self._corners:
            choice = self._problem.choice(corner)
            table = self._plan.classes(choice, ())
            groups = {name: choice[name].groups for name in self._frequency.quasi}
            known = np.arange(len(table)) if table.ids is None else table.ids
            places = np.searchsorted(known, self._frequency.class_ids(groups))
            people = () if table.population is None else (table.population[places],)
            self._corners[corner] = (table.sizes[places], *people)
            if len(self._corners) > _REMEMBERED:
                self._corners.popitem(last=False)
        self._corners.move_to_end(corner)
        sizes, *beside = self._corners[corner]
        return sizes, beside[0] if beside else None
