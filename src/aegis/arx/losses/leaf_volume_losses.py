"""The losses that depend on the number of leaf combinations that a released row may represent.

This number, the area, is a product over the attributes: each factor is the number of leaves of the
masked value.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.leaf_bound import least_bits
from aegis.advisor.search.problem import Box, Problem
from aegis.arrays import Flags, Floats, Integers
from aegis.arx.losses.classes import ClassLoss
from aegis.summary.leaves import domain

Groups = Mapping[str, Integers]
"""The group of each value, by quasi-identifier."""


class AreaLoss(ClassLoss):
    """A loss that depends on the area of each released row: how many combinations of original
    values (leaves of the hierarchies) the row may represent.

    Areas are computed as logarithms, because products over many attributes overflow.

    Raises
    ------
    PolicyError
        The summary has no frequency table.
    """

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: Any = None, shown: str = ""
    ) -> None:
        super().__init__(problem, plan, options, shown)
        self._frequency = self._require_frequency()
        self._variables = [v for v in problem.variables if v.quasi]
        self._whole = math.fsum(math.log2(max(domain(v.attribute), 1)) for v in self._variables)

    def _exact(self, box: Box) -> float:
        choice = self._problem.choice(box)
        groups = {n: choice[n].groups for n in self._frequency.quasi}
        return self._loss(groups, self._areas(box), self._plan.kept_cells(choice))

    def _least(self, box: Box) -> float:
        areas = self._areas(box)
        return self._loss(self._joined(box), areas, np.ones(len(areas), dtype=np.bool_))

    def _areas(self, box: Box) -> Floats:
        """Return log2 of how many combinations of original values each cell of the frequency table
        may represent after masking, shape (cells,). For a box with several candidate masks per
        attribute, return the least of these figures.

        A cell is a combination of values that occurs in the table.
        """
        return least_bits(self._problem, self._frequency, box)

    @abstractmethod
    def _loss(self, groups: Groups, areas: Floats, kept_cells: Flags) -> float:
        """Return the loss of a configuration, from figures for each cell of the frequency table (a
        combination of values that occurs).

        Parameters
        ----------
        groups
            For each quasi-identifier, the group of each value under its mask.
        areas
            log2 of how many combinations of original values each cell may represent, shape
            (cells,).
        kept_cells
            Whether the release keeps each cell, shape (cells,).
        """


class Ambiguity(AreaLoss):
    """The number of combinations of original values that a row may represent, summed over rows.

    Nergiz and Clifton, Thoughts on k-anonymization, DKE 63, 2007.
    """

    name = "ambiguity"

    def _loss(
        self,
        groups: Groups,  # noqa: ARG002 - the class does not matter, its area does
        areas: Floats,
        kept_cells: Flags,
    ) -> float:
        counts = self._frequency.counts
        return float((counts * np.exp2(np.where(kept_cells, areas, self._whole))).sum())


class Divergence(AreaLoss):
    """The Kullback-Leibler divergence of the table from its reconstruction by the release, in bits.

    The reconstruction spreads the rows of each class evenly over the combinations of original
    values that the class may represent, and suppressed rows evenly over all combinations (Kifer and
    Gehrke, Injecting utility into anonymized datasets, SIGMOD 2006).
    """

    name = "kl-divergence"

    def _loss(self, groups: Groups, areas: Floats, kept_cells: Flags) -> float:
        counts = self._frequency.counts.astype(np.float64)
        rows = max(counts.sum(), 1.0)
        # log2 of how many rows have the combination of quasi-identifier values of each cell
        alike = np.unique(self._frequency.class_keys(), return_inverse=True)[1]
        own = np.log2(np.bincount(alike, weights=counts)[alike])
        place = np.unique(self._frequency.class_ids(groups), return_inverse=True)[1]
        sizes = np.bincount(place, weights=counts)[place]
        gone = counts[~kept_cells].sum()
        released = np.log2(np.where(kept_cells, sizes, max(gone, 1.0)))
        spread = np.where(kept_cells, areas, self._whole)
        return float((counts / rows * (own - released + spread)).sum())
