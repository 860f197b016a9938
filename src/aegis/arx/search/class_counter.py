"""Find the rows in classes that are too small, for many configurations of a large search space."""

from __future__ import annotations

import numpy as np

from aegis.advisor.search.cells import RuleCells, dense, refine
from aegis.advisor.search.corner_classes import Corners
from aegis.advisor.search.problem import Problem
from aegis.array_cache import Remembered
from aegis.arrays import Int32s, Ints

Node = tuple[int, ...]
"""A candidate per variable."""
_REMEMBERED = 128 << 20
"""Bytes of class ids that are remembered."""
_PLAIN = 1 << 17
"""Places up to which classes keep the numbers that they have."""
_SPREAD = 1 << 21
"""Places from which on it is looked first whether a part of the attributes takes too many rows."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, and near the golden section of 2^64: multiples of it are spread evenly (Knuth, TAOCP 3, 6.4)."""
_SHIFT = np.uint64(64 - 21)


class Tally:
    """Counts the equivalence classes of many configurations that differ in few attributes.

    The attributes are divided into halves, and these into halves again. Combining the classes of
    two halves gives the classes of both together. Recent results are cached, so a configuration
    that differs from an earlier one in one attribute needs few steps.

    Parameters
    ----------
    problem
        The search space.
    cells
        The cells of the frequency table (combinations of values) that a rule on class sizes
        distinguishes.
    least
        Smallest number of rows in a class that the rule allows.
    """

    def __init__(self, problem: Problem, cells: RuleCells, least: int) -> None:
        self._least = least
        self._weights = cells.counts.astype(np.float64)
        self._corners = Corners(problem, cells)
        self._known: Remembered[tuple[Node, Node], tuple[Ints, int]] = Remembered(
            _REMEMBERED, lambda classes: classes[0].nbytes
        )
        largest = {
            i: max(candidate.size for candidate in variable.candidates)
            for i, variable in enumerate(problem.variables)
            if variable.quasi
        }
        self._quasi = tuple(sorted(largest, key=lambda i: -largest[i]))
        self._undivided = cells.undivided()
        self._numbers = np.arange(cells.count, dtype=np.int32)
        self._one_of = np.zeros(_SPREAD + 1, dtype=np.int32)

    def lost(self, node: Node, room: int) -> Ints | None:
        """Return the indices of the cells in classes that are too small under a configuration; None
        if these cells have more than `room` rows.

        `node` has the candidate of each attribute. A cell is a combination of values that occurs in
        the frequency table.
        """
        halves = self._halves(self._quasi)
        ids, space = self._undivided
        for half in halves:
            codes, size = self._classes(half, tuple(node[index] for index in half))
            if space * size > _SPREAD and self._small(ids, space, room) is None:
                return None
            ids, space = self._crossed(ids, space, codes, size)
        return self._small(ids, space, room)

    def _small(self, ids: Ints, space: int, room: int) -> Ints | None:
        sizes = np.bincount(ids, weights=self._weights, minlength=space)
        small = sizes < self._least
        rows = float(np.dot(sizes, small))
        return None if rows > room + 0.5 else np.flatnonzero(small[ids])

    def _classes(self, some: tuple[int, ...], node: Node) -> tuple[Ints, int]:
        """Return the class of each cell (combination of values) if only some attributes form
        classes, shape (cells,), and a number above all class numbers.

        `some` has the indices of these attributes, and `node` the candidate of each.
        """
        if len(some) == 1:
            return self._corners.coded(some[0], 1 << node[0])
        return self._known.get((some, node), lambda: self._halved(some, node))

    def _halved(self, some: tuple[int, ...], node: Node) -> tuple[Ints, int]:
        """Return the class of each cell (combination of values) if several attributes form classes,
        and a number above all class numbers. The classes of two halves of the attributes are
        combined.

        `some` has the indices of the attributes, and `node` the candidate of each.
        """
        first, second = self._halves(some)
        ids, space = self._classes(first, node[::2])
        codes, size = self._classes(second, node[1::2])
        return (ids, space) if size == 1 else self._crossed(ids, space, codes, size)

    def _crossed(self, ids: Ints, space: int, codes: Ints, size: int) -> tuple[Ints, int]:
        """Split classes by a second grouping. Return the new class of each cell (combination of
        values), shape (cells,), and a number above all new class numbers.

        `ids` has the class of each cell, numbered below `space`. `codes` has its group in the
        second grouping, numbered below `size`.
        """
        if space == 1:
            return codes, size
        ids, space = refine(ids, space, codes, size)
        if space <= _PLAIN:
            return dense(ids, space)
        # As `dense` does it, in memory that is there: to touch new pages would take longer than all else.
        places = ids if space <= _SPREAD else _hashed(ids)
        self._one_of[places] = self._numbers
        stands = self._one_of[places]
        if space > _SPREAD:
            self._part(ids, stands)
        number = np.cumsum(stands == self._numbers, dtype=np.int64) - 1
        return number[stands], int(number[-1]) + 1

    def _part(self, ids: Ints, stands: Int32s) -> None:
        """Correct `stands`, the cell that represents the class of each cell, in place. It is wrong
        where several classes have the same hash.

        `ids` has the class of each cell. A cell is a combination of values.
        """
        mixed = np.flatnonzero(ids != ids[stands])
        _, first, which = np.unique(ids[mixed], return_index=True, return_inverse=True)
        stands[mixed] = mixed[first][which]

    @staticmethod
    def _halves(some: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Divide attributes into two parts with similar numbers of classes: every second attribute,
        and all others. A part without attributes is left out.
        """
        return tuple(half for half in (some[::2], some[1::2]) if half)


def _hashed(ids: Ints) -> Ints:
    """Return a hash below 2^21 (`_SPREAD`) for each number of a class in `ids`. Few classes share a
    hash.
    """
    return (ids.view(np.uint64) * _FACTOR >> _SHIFT).view(np.int64)
