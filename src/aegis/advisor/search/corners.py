"""The classes that the coarsest corners of boxes form, as ids of cells."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from operator import ne

import numpy as np
import numpy.typing as npt

from aegis.advisor.search.cells import Cells, dense, refine
from aegis.advisor.search.problem import Box, Problem

Ids = npt.NDArray[np.int64]
_CACHED = 64 << 20
"""Bytes of class ids that are remembered."""
_LATELY = 12
"""Boxes counted last among which one around another is looked for."""


class Corners:
    """The classes of boxes with every variable at its coarsest, refined from one another.

    Parameters
    ----------
    problem
        The search space.
    cells
        The cells of the frequency table that the rule tells apart.
    """

    def __init__(self, problem: Problem, cells: Cells) -> None:
        self.cells = cells
        self._problem = problem
        self._codes: dict[tuple[int, int], tuple[Ids, int]] = {}
        self._tables: OrderedDict[tuple[int, ...], tuple[Ids, int]] = OrderedDict()
        self._bytes = 0

    def coded(self, index: int, domain: int) -> tuple[Ids, int]:
        """Return the group of each cell at the coarsest of a domain, and the number of groups."""
        key = (index, domain)
        if key not in self._codes:
            variable = self._problem.variables[index]
            groups = variable.meet(domain)
            codes = self.cells.code(variable.name, groups)
            self._codes[key] = (codes, int(groups.max(initial=0)) + 1)
        return self._codes[key]

    def of(self, box: Box) -> tuple[Ids, int]:
        """Return the class of each cell with every variable at its coarsest."""
        if box in self._tables:
            self._tables.move_to_end(box)
            return self._tables[box]
        outer = self._around(box)
        if outer is None:
            ids, space = self.cells.undivided()
        else:
            ids, space = self._tables[outer]
        for index, variable in enumerate(self._problem.variables):
            if variable.quasi and (outer is None or outer[index] != box[index]):
                codes, size = self.coded(index, box[index])
                ids, space = dense(*refine(ids, space, codes, size))
        self._remember(box, ids, space)
        return ids, space

    def _around(self, box: Box) -> Box | None:
        """Return the closest box around this one whose classes were counted lately.

        The corner of the larger box is coarser, so that refining its classes by what differs is
        enough.
        """
        best: tuple[int, Box] | None = None
        for outer in islice(reversed(self._tables), _LATELY):
            if all(inner & ~domain == 0 for inner, domain in zip(box, outer, strict=True)):
                changed = sum(map(ne, box, outer))
                if best is None or changed < best[0]:
                    best = (changed, outer)
        return None if best is None else best[1]

    def _remember(self, box: Box, ids: Ids, space: int) -> None:
        self._tables[box] = (ids, space)
        self._bytes += ids.nbytes
        while self._bytes > _CACHED and len(self._tables) > 1:
            self._bytes -= self._tables.popitem(last=False)[1][0].nbytes
