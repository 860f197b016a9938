"""Count the equivalence classes that masks form: of the cells of a frequency table, and under the
coarsest and finest configurations of boxes.

A cell is a combination of values in the frequency table. Classes are given as the class of each
cell, shape (cells,), and a number above all class numbers (`space`). A box has a domain of
candidates for each variable, as a bit mask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aegis.advisor.search.problem import Box, Problem
from aegis.arrays import BoundedCache, Floats, Integers, Ints, cached_method, distinct_keys, number
from aegis.privacy import ClassTable
from aegis.summary import FrequencyTable

_DENSE = 1 << 21
"""Class ids are counted in an array with at most this many entries."""


class RuleCells:
    """The cells of the frequency table, after merging those between which the rule need not
    distinguish.

    If `all_cells` is True, no cells are merged. If it is False, the rule depends only on class
    sizes, so cells are merged that differ only in the label or in sensitive values.
    """

    def __init__(self, frequency: FrequencyTable, *, all_cells: bool) -> None:
        self._frequency = frequency
        if all_cells or frequency.persons is not None:
            self._first = self.of_cell = np.arange(frequency.cells)
            self.counts = frequency.counts
            self._codes = frequency.codes
        else:
            # A rule on class sizes alone sees neither label nor sensitive values.
            first, cell, _ = distinct_keys(frequency.class_keys())
            self._first, self.of_cell = first, cell
            self.counts = np.bincount(cell, weights=frequency.counts).astype(np.int64)
            alike = len(first) < frequency.cells
            self._codes = {n: c[first] if alike else c for n, c in frequency.codes.items()}
        self._weights = self.counts.astype(np.float64)

    @property
    def count(self) -> int:
        """The number of cells (combinations of values that the rule distinguishes)."""
        return len(self.counts)

    def undivided(self) -> tuple[Ints, int]:
        """Return the classes if every attribute is suppressed: one, or several if earlier releases
        of the table already distinguish rows.
        """
        earlier = self._frequency.earlier
        if earlier is None:
            return np.zeros(self.count, dtype=np.int64), 1
        return dense(earlier[self._first], int(earlier.max(initial=0)) + 1)

    def code(self, name: str, groups: Integers) -> Ints:
        """Return the group of each cell, from the group of each value of an attribute, shape (V,)."""
        frequency = self._frequency
        on_codes = groups[frequency.representatives[name]].astype(np.int64)
        return on_codes.take(self._codes[name])  # quicker than an index in brackets

    def rows_below(self, ids: Ints, space: int, k: int) -> int:
        """Return how many rows are in classes with fewer than `k` rows."""
        sizes = np.bincount(dense(ids, space)[0], weights=self._weights, minlength=1)
        return round(float(np.dot(sizes, sizes < k)))

    def classes(
        self, ids: Ints, protected: tuple[str, ...], sensitive: Mapping[str, Integers]
    ) -> ClassTable:
        """Return the equivalence classes with their counts of protected values. `sensitive` has the
        group of each value of these attributes; without an entry, the values themselves are
        counted.
        """
        frequency = self._frequency
        cells = {}
        for name in protected:
            groups = sensitive.get(name)
            if groups is None:
                groups = np.arange(int(frequency.representatives[name].max()) + 1)
            size = int(groups.max(initial=0)) + 1
            cells[name] = (self.code(name, groups), tuple(map(str, range(size))))
        return frequency.count(ids, cells)


def refine(ids: Ints, space: int, codes: Ints, size: int) -> tuple[Ints, int]:
    """Split each class by a second grouping: `codes` has the group of each cell, below `size`.
    Return the new classes, of which some numbers may be unused.
    """
    if size == 1:
        return ids, space
    if space == 1:
        return codes, size
    finer = ids * size
    finer += codes
    return finer, space * size


def dense(ids: Ints, space: int) -> tuple[Ints, int]:
    """Renumber classes from 0 without gaps if their numbers are too far apart to count rows in a
    plain array.
    """
    if space <= max(4 * len(ids), 1 << 12):
        return ids, space
    if space <= _DENSE:
        # One cell represents each class, whichever was written last: places that no class has are never read.
        cells = np.arange(len(ids))
        one_of = np.empty(space, dtype=np.int64)
        one_of[ids] = cells
        stands = one_of[ids]
        rank = np.cumsum(stands == cells) - 1
        return rank[stands], int(rank[-1]) + 1
    unique, dense = number(ids)
    return dense, len(unique)


Grouping = tuple[int, int]
"""The index of a variable (attribute), and a set of its candidates as a bit mask: their common
coarser grouping. If the bit mask is inverted, it is their common finer grouping.
"""

_CACHED = 64 << 20
"""Size of the cache of class ids, in bytes."""
_FINEST = 64
"""Number of boxes whose finest classes are cached."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The classes under the finest masks of a box. For every configuration in the box, each class
    is a union of these classes.

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


class CornerClasses:
    """Computes the equivalence classes under the coarsest (or finest) masks of boxes. If possible,
    the classes of a larger box are split further.
    """

    def __init__(self, problem: Problem, cells: RuleCells) -> None:
        self.cells = cells
        self._problem = problem
        self._quasi = [i for i, variable in enumerate(problem.variables) if variable.quasi]
        self._tables: BoundedCache[tuple[Grouping, ...], tuple[Ints, int]] = BoundedCache(
            _CACHED, lambda table: table[0].nbytes
        )
        self._finest_tables: BoundedCache[tuple[Grouping, ...], Parts] = BoundedCache(_FINEST)
        self._last: tuple[Box, tuple[Ints, int]] = (), cells.undivided()

    @cached_method
    def grouping(self, index: int, domain: int, *, finest: bool = False) -> Grouping:
        """Return the common grouping of a domain, as a key for `cell_groups`: the finest one that
        is coarser than every candidate or, if `finest`, the coarsest one that is finer. Often it is
        the grouping of a candidate.
        """
        variable = self._problem.variables[index]
        end = variable.finest(domain) if finest else variable.coarsest(domain)
        if end is None:
            return index, ~domain if finest else domain
        return index, 1 << end

    @cached_method
    def cell_groups(self, grouping: Grouping) -> tuple[Ints, int]:
        """Return the group of each cell, shape (cells,), and the number of groups."""
        index, domain = grouping
        variable = self._problem.variables[index]
        groups = variable.join(~domain) if domain < 0 else variable.meet(domain)
        return self.cells.code(variable.name, groups), int(groups.max(initial=0)) + 1

    def of(self, box: Box) -> tuple[Ints, int]:
        """Return the classes under the coarsest masks of a box."""
        last = self._last
        if last[0] != box:  # a search asks several times about the same box
            groupings = tuple(self.grouping(i, box[i]) for i in self._quasi)
            self._last = last = box, self._formed(groupings)
        return last[1]

    def _formed(self, groupings: tuple[Grouping, ...]) -> tuple[Ints, int]:
        """Return the classes that several groupings form together.

        The classes of the first half of the groupings are cached: configurations that a search
        compares often differ only in one mask.
        """
        half = len(groupings) // 2
        begun = self._tables.get(
            groupings[:half], lambda: self._split(self.cells.undivided(), groupings[:half])
        )
        return self._split(begun, groupings[half:])

    def _split(
        self, classes: tuple[Ints, int], groupings: tuple[Grouping, ...]
    ) -> tuple[Ints, int]:
        ids, space = classes
        for grouping in groupings:
            ids, space = dense(*refine(ids, space, *self.cell_groups(grouping)))
        return ids, space

    def parts(self, box: Box) -> Parts:
        """Return the classes under the finest masks of a box."""

        def make() -> Parts:
            first, cell, _ = distinct_keys(self.finest_of(box)[0])
            return Parts(cell, first)

        return self._finest_tables.get(self.finest(box), make)

    def finest_of(self, box: Box) -> tuple[Ints, int]:
        """Return the classes under the finest masks of a box."""
        return self._formed(self.finest(box))

    def combinations(self, box: Box) -> int:
        """Return the largest number of classes that the finest masks of a box could form."""
        return math.prod(self.cell_groups(grouping)[1] for grouping in self.finest(box))

    def finest(self, box: Box) -> tuple[Grouping, ...]:
        """Return a key for the classes under the finest masks of a box."""
        return tuple(self.grouping(i, box[i], finest=True) for i in self._quasi)
