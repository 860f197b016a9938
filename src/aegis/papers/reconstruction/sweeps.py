"""Run a sweep of IPF in one of two ways: by cells, or by the common sums of two families.

A sweep fits every constraint family of iterative proportional fitting (IPF) once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.measures.checks import group_sums
from aegis.papers.reconstruction.families import Family

TINY = 1e-290
"""Divisor in place of a sum that is 0: all cells of such a sum are 0, and stay 0."""

SMALL = 4096
"""Most entries of a table of two families that is always cheap."""


class Fit(Protocol):
    """A table that iterative proportional fitting (IPF) scales until groups of its cells have
    required totals. A family divides the cells into disjoint groups.
    """

    @property
    def settled(self) -> bool:
        """Whether there is no cell to fit."""

    def sweep(self) -> float:
        """Scale the table once to the required totals of each family in turn; return a deviation
        from the totals that occurred during the sweep, in rows. A family divides the cells of the
        table into disjoint groups with required totals.

        The deviation falls to 0 as the fit converges. But only `residual` gives the deviation at
        the end.
        """

    def residual(self) -> tuple[float, str]:
        """Return the largest deviation of a group of cells from its required total, in rows, and
        the name of the family of constraints to which the group belongs.
        """

    def cells(self) -> Floats:
        """Return the cells of the table as they are after the sweeps so far."""


class FamilySweep(NamedTuple):
    """A family of constraints: its name, the group of each cell of a table, and the required total
    of each group.
    """

    name: str
    codes: Ints
    targets: Floats

    def totals(self, cells: Floats) -> Floats:
        """Return the sum of the cells in each group."""
        return group_sums(self.codes, cells, len(self.targets))


class CellFit:
    """Iterative proportional fitting (IPF) that updates every cell, for any number of families of
    constraints.

    `values` are the cells, flattened; they are changed in place.
    """

    def __init__(self, values: Floats, steps: Sequence[FamilySweep]) -> None:
        self._values = values
        self._steps = tuple(steps)

    @property
    def settled(self) -> bool:
        """Whether no cell is left to fit."""
        return not self._steps

    def sweep(self) -> float:
        """Scale the cells to the required totals of each family of constraints in turn; return the
        largest correction that the first family needed, in rows. A family divides the cells into
        groups.

        At the end of each sweep, the last family is exact. So in the next sweep, the correction by
        the first family shows the remaining deviation.
        """
        values, correction = self._values, 0.0
        for number, step in enumerate(self._steps):
            current = step.totals(values)
            if number == 0:
                correction = _largest(current - step.targets)
            values *= (step.targets / np.maximum(current, TINY))[step.codes]
        return correction

    def residual(self) -> tuple[float, str]:
        """Return the largest deviation of a group of cells from its required total, in rows, and
        the name of the family of constraints to which the group belongs.
        """
        return max(
            (_largest(step.totals(self._values) - step.targets), step.name) for step in self._steps
        )

    def cells(self) -> Floats:
        """Return the cells of the table as they are after the sweeps so far."""
        return self._values


class PairFit:
    """IPF for two families of constraints (each divides the cells into groups with required
    totals). It fits one factor per group and needs only sums of the seed.

    The fitted table is

        seed * u[first group] * v[second group],

    where the seed is the start table, and u and v are the factors. Let K be the sums of the seed by
    both groups, shape (G1, G2). The current totals of the families are u (K v) and v (K' u). So a
    sweep needs two products and two quotients, for any shape of the table. For small tables, this
    takes half the time of `CellFit`. Seed and targets must be above 0.

    References
    ----------
    Sinkhorn (1967), Diagonal equivalence to matrices with prescribed row and column sums.
    """

    def __init__(self, seed: Floats, families: Sequence[Family]) -> None:
        first, two = families
        self._names = first.name, two.name
        self._seed = seed
        self._targets = first.targets, two.targets
        self._codes = first.codes, two.codes
        shape = len(first.targets), len(two.targets)
        place = first.codes * shape[1] + two.codes
        self._sums = group_sums(place, seed.ravel(), shape[0] * shape[1]).reshape(shape)
        self._first, self._second = np.ones(len(first.targets)), np.ones(len(two.targets))
        self._bare = self._sums.dot(self._second)

    @classmethod
    def suits(cls, seed: Floats, families: Sequence[Family]) -> bool:
        """Return whether there are two families, and the number of pairs of their groups is not
        much larger than the number of cells.
        """
        if len(families) != 2:
            return False
        return len(families[0].targets) * len(families[1].targets) <= max(2 * seed.size, SMALL)

    @property
    def settled(self) -> bool:
        """Whether no cell is left to fit: always False, because all cells are fitted."""
        return False

    def sweep(self) -> float:
        """Scale the table to the required totals of both families; return how far the groups of the
        first family are from their totals afterwards: the root mean square deviation, in rows. A
        family divides the cells of the table into groups.

        This figure is at most the largest deviation, and needs only one product.
        """
        wanted, sums = self._targets[0], self._sums
        self._first = first = wanted / self._bare
        self._second = second = self._targets[1] / first.dot(sums)
        self._bare = bare = sums.dot(second)
        off = first * bare - wanted
        return math.sqrt(off.dot(off) / len(off))

    def residual(self) -> tuple[float, str]:
        """Return the largest deviation of a group of cells from its required total, in rows, and
        the name of the family of constraints to which the group belongs.
        """
        off_first = _largest(self._first * self._bare - self._targets[0])
        two = _largest(self._second * self._first.dot(self._sums) - self._targets[1])
        return max((off_first, self._names[0]), (two, self._names[1]))

    def cells(self) -> Floats:
        """Return the cells of the table as they are after the sweeps so far."""
        first, two = self._codes
        factors = self._first[first] * self._second[two]
        return self._seed * factors.reshape(self._seed.shape)


def grouped_steps(
    families: Sequence[Family], remaining: Sequence[Floats], where: Ints
) -> list[FamilySweep]:
    """Return the constraints of each family for only the cells `where` of the flattened table.
    `remaining` has the totals that these cells must have.
    """
    steps = []
    for family, left in zip(families, remaining, strict=True):
        # Groups without open cells are done, and numbering the rest afresh keeps sums short.
        present, codes = np.unique(family.codes[where], return_inverse=True)
        steps.append(FamilySweep(family.name, codes.astype(np.int64), left[present]))
    return steps


def _largest(deviations: Floats) -> float:
    return float(np.maximum.reduce(np.abs(deviations), axis=None))
