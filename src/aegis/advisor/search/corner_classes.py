"""Compute the equivalence classes of the coarsest and finest configurations of boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aegis.advisor.search.cells import RuleCells, dense, refine
from aegis.advisor.search.problem import Box, Problem
from aegis.array_cache import Remembered, remembered
from aegis.arrays import Floats, Ints

_CACHED = 64 << 20
"""Size of the cache of class ids, in bytes."""
_FINEST = 64
"""Number of boxes whose finest classes are cached."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The equivalence classes that rows form under the finest masks of a box (a set of candidate
    masks for each attribute).

    For every configuration in the box, each class is a union of these classes. A cell is a
    combination of values that occurs in the frequency table.

    Attributes
    ----------
    ids
        The class of each cell under the finest masks, shape (cells,), from 0 to m - 1.
    first
        One cell of each of the m classes, shape (m,).
    counts
        Cached counts of the classes, by a key that says what is counted.
    """

    ids: Ints
    first: Ints
    counts: dict[Any, Floats] = field(default_factory=dict)


class Corners:
    """Computes the equivalence classes under the coarsest (or finest) masks of boxes. A box has a
    set of candidate masks for each attribute. If possible, the classes of a larger box are split
    further.

    Parameters
    ----------
    problem
        The search space.
    cells
        The cells of the frequency table (combinations of values) that the rule distinguishes.
    """

    def __init__(self, problem: Problem, cells: RuleCells) -> None:
        self.cells = cells
        self._problem = problem
        self._quasi = [i for i, variable in enumerate(problem.variables) if variable.quasi]
        self._tables: Remembered[Box, tuple[Ints, int]] = Remembered(
            _CACHED, lambda table: table[0].nbytes
        )
        self._finest_tables: Remembered[tuple[int, ...], Parts] = Remembered(_FINEST)

    @remembered
    def coded(self, index: int, domain: int, *, finest: bool = False) -> tuple[Ints, int]:
        """Return the group of each cell (combination of values) of the frequency table under a
        common grouping of a set of candidate masks, shape (cells,), and the number of groups.

        `index` is the variable (attribute), and `domain` is the set as a bit mask. If `finest` is
        False, the grouping is the finest one that is coarser than every candidate; if True, the
        coarsest one that is finer than every candidate.
        """
        variable = self._problem.variables[index]
        groups = variable.join(domain) if finest else variable.meet(domain)
        return self.cells.code(variable.name, groups), int(groups.max(initial=0)) + 1

    def of(self, box: Box) -> tuple[Ints, int]:
        """Return the equivalence class of each cell (combination of values) of the frequency table
        under the coarsest masks of a box, shape (cells,), and a number above all class numbers.

        A box has a set of candidate masks for each attribute.
        """
        return self._tables.get(box, lambda: self._refined(box, finest=False))

    def _refined(self, box: Box, *, finest: bool) -> tuple[Ints, int]:
        ids, space = self.cells.undivided()
        for index in self._quasi:
            ids, space = dense(*refine(ids, space, *self.coded(index, box[index], finest=finest)))
        return ids, space

    def parts(self, box: Box) -> Parts:
        """Return the equivalence classes that rows form under the finest masks of a box (a set of
        candidate masks for each attribute).
        """

        def make() -> Parts:
            ids, space = self.finest_of(box)
            place = np.full(space, -1, dtype=np.int64)
            place[ids] = np.arange(len(ids))
            there = place >= 0
            return Parts((np.cumsum(there) - 1)[ids], place[there])

        return self._finest_tables.get(self.finest(box), make)

    def finest_of(self, box: Box) -> tuple[Ints, int]:
        """Return the equivalence class of each cell (combination of values) of the frequency table
        under the finest masks of a box, shape (cells,), and a number above all class numbers.

        A box has a set of candidate masks for each attribute.
        """
        return self._refined(box, finest=True)

    def combinations(self, box: Box) -> int:
        """Return the largest number of equivalence classes that the finest masks of a box (a set of
        candidate masks for each attribute) could form: the product of their numbers of groups.
        """
        return math.prod(self.coded(index, box[index], finest=True)[1] for index in self._quasi)

    def finest(self, box: Box) -> tuple[int, ...]:
        """Return a key for the equivalence classes under the finest masks of a box (a set of
        candidate masks for each attribute). Boxes with equal keys have equal classes.
        """
        return tuple(self._finest(i, domain) for i, domain in enumerate(box))

    def _finest(self, index: int, domain: int) -> int:
        """Return a key of the finest grouping in a set of candidates: the index of the finest
        candidate, or the inverted bit mask of the set if there is none. `domain` is the bit mask of
        the set; `index` is the variable.
        """
        variable = self._problem.variables[index]
        if not variable.quasi:
            return 0
        finest = variable.finest(domain)
        return ~domain if finest is None else finest
