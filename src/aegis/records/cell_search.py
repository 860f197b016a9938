"""Find the cells to suppress so that every equivalence class is large enough, by a greedy search.

A *pattern* is a set of attributes whose cells are suppressed in a record. Records that are equal in
all other attributes then form one class. First, the search sets aside the records that are safe
without suppression. Then it tries the patterns of one cell: each step takes the pattern that makes
most records safe, until no pattern makes any record safe. The patterns of two cells follow, and so
on. Each remaining record joins the class that costs the fewest cells. The cells in which they
differ are then suppressed in the record and in some records of a large class, or in all records of
a small class.

A suppressed cell counts as a separate value, which equals only other suppressed cells. Finding the
smallest number of cells is NP-hard (Meyerson and Williams 2004). The tests compare the greedy
solution with all solutions on small tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import combinations, groupby
from math import comb

import numpy as np

from aegis.anonymizers.records import Codes, distinct_rows
from aegis.arrays import Flags, Floats, Ints
from aegis.progress import SILENT_STEP, Step

Pattern = tuple[int, ...]
Fits = Callable[[Ints, Ints], Flags]
"""Takes rows and the group 0..G-1 of each row; returns whether each group may be a class, shape
(G,).
"""

FEW_ATTRIBUTES = 10
"""Largest number of attributes for which all patterns are tried, in the order of their cost."""
ALL_PATTERNS = 400
"""Largest number of patterns with equally many cells that are all tried; otherwise only the best
are.
"""
WIDTH = 12
"""Number of patterns to extend by one attribute if there are too many to try all."""


class CellSearch:
    """A greedy search that suppresses cells of N records until every equivalence class is
    acceptable.

    Parameters
    ----------
    columns
        For each of the A attributes, the codes of its values in all records, shape (N,).
    costs
        For each attribute, the cost of suppressing one cell, shape (A,), above 0.
    fits
        Function that returns, for each group of records, whether it is an acceptable class. If a
        group is acceptable, every larger group that contains it must be acceptable, too. The group
        of all records must be acceptable.
    spare
        Function that returns, for each class size, how many records can leave a class of this size
        to form a new class with one record from outside. The remaining records must still form a
        class. If no records can leave, the function returns 0, and the outside record can only join
        the whole class.
    """

    def __init__(
        self, columns: Sequence[Codes], costs: Floats, fits: Fits, spare: Callable[[Ints], Ints]
    ) -> None:
        self.columns = list(columns)
        self.costs = costs
        self.fits = fits
        self.spare = spare
        self.rows = len(columns[0])
        self.starred: Flags = np.zeros((self.rows, len(columns)), dtype=np.bool_)
        self.pending: Ints = np.arange(self.rows, dtype=np.int64)

    def run(self, step: Step = SILENT_STEP) -> Flags:
        """Search which cells to suppress; return True for each such cell of the N records and A
        attributes, shape (N, A).
        """
        run = self._by_cost if len(self.columns) <= FEW_ATTRIBUTES else self._by_number
        run(step)
        left = len(self.pending)
        if left:
            _Leftovers(self).join()
            step.advance(left)
        return self.starred

    def _by_cost(self, step: Step) -> None:
        """Apply all patterns, the cheapest first. A pattern is a set of attributes whose cells are
        suppressed in a record.
        """
        attributes = range(len(self.columns))
        every = [
            pattern
            for cells in range(len(self.columns) + 1)
            for pattern in combinations(attributes, cells)
        ]
        for _, patterns in groupby(sorted(every, key=self._cost), key=self._cost):
            if not self._advance(list(patterns), step):
                return

    def _by_number(self, step: Step) -> None:
        """Apply the patterns of no attribute, then of one, of two, and so on; if there are too
        many, try only a part. A pattern is a set of attributes whose cells are suppressed in a
        record.
        """
        grown: list[Pattern] = [()]
        for cells in range(len(self.columns) + 1):
            grown = self._advance(self._patterns(cells, grown), step)
            if not grown:
                return

    def _advance(self, patterns: Sequence[Pattern], step: Step) -> list[Pattern]:
        """Apply the patterns (sets of attributes to suppress), report the progress, and return the
        patterns to extend by one more attribute; none if every record is in an acceptable class.
        """
        before = len(self.pending)
        grown = self._level(patterns)
        step.advance(before - len(self.pending))
        return grown if len(self.pending) else []

    def _cost(self, pattern: Pattern) -> float:
        return float(self.costs[list(pattern)].sum()) if pattern else 0.0

    def _patterns(self, cells: int, grown: Sequence[Pattern]) -> list[Pattern]:
        attributes = len(self.columns)
        if comb(attributes, cells) <= ALL_PATTERNS:
            return list(combinations(range(attributes), cells))
        wider = {
            tuple(sorted((*pattern, more)))
            for pattern in grown
            for more in range(attributes)
            if more not in pattern
        }
        return sorted(wider)

    def _level(self, patterns: Sequence[Pattern]) -> list[Pattern]:
        """Apply patterns (sets of attributes to suppress) as long as one of them brings a record
        into an acceptable class. Return the patterns to extend by one more attribute, the best
        first.

        The number of records that a pattern rescues can only fall when other patterns rescue
        records. So if this number is still the largest when it is computed again, it is the largest
        of all.
        """
        waiting: list[tuple[float, int]] = []
        ranked: list[tuple[float, int]] = []
        for place, pattern in enumerate(patterns):
            classes, rescued = self._tried(pattern)
            ranked.append((classes + self._cost(pattern) / 1e6, place))
            if len(rescued):
                waiting.append((-len(rescued) / max(self._cost(pattern), 1e-9), place))
        heapq.heapify(waiting)
        while waiting and len(self.pending):
            _, place = heapq.heappop(waiting)
            pattern = patterns[place]
            _, rescued = self._tried(pattern)
            if not len(rescued):
                continue
            merit = (-len(rescued) / max(self._cost(pattern), 1e-9), place)
            if waiting and merit > waiting[0]:
                heapq.heappush(waiting, merit)
                continue
            self.starred[np.ix_(rescued, np.array(pattern, dtype=np.int64))] = True
            self.pending = np.setdiff1d(self.pending, rescued, assume_unique=True)
        return [patterns[place] for _, place in sorted(ranked)[:WIDTH]]

    def _tried(self, pattern: Pattern) -> tuple[int, Ints]:
        """Return the number of acceptable classes if the attributes of `pattern` are suppressed in
        all pending records, and the indices of the records in these classes.
        """
        of = self.grouped(self.pending, pattern)
        fitting = self.fits(self.pending, of)
        return len(fitting), self.pending[fitting[of]]

    def grouped(self, rows: Ints, pattern: Pattern) -> Ints:
        """Return the class of each of the records `rows` if the attributes of `pattern` are
        ignored.
        """
        shown = [i for i in range(len(self.columns)) if i not in pattern]
        if not shown:
            return np.zeros(len(rows), dtype=np.int64)
        return distinct_rows([self.columns[i][rows] for i in shown])[1]


class _Leftovers:
    """The records that the search brought into no acceptable class, and the classes that they may
    join.
    """

    def __init__(self, search: CellSearch) -> None:
        self.search = search
        self.codes: Ints = np.column_stack(search.columns).astype(np.int64)

    def join(self) -> None:
        """Add each remaining record to the class for which the fewest cells must be suppressed."""
        search = self.search
        while len(search.pending):
            shown = np.where(search.starred, -1, self.codes)
            placed = np.setdiff1d(np.arange(search.rows), search.pending, assume_unique=True)
            if not len(placed):  # nothing fits but everything
                search.starred[:] = True
                search.pending = search.pending[:0]
                return
            _, first, of = np.unique(shown[placed], axis=0, return_index=True, return_inverse=True)
            self._place(int(search.pending[0]), placed, placed[first], of.reshape(-1))

    def _place(self, row: int, placed: Ints, heads: Ints, of: Ints) -> None:
        search = self.search
        counts = np.bincount(of)
        losing = search.starred[heads] | (self.codes[heads] != self.codes[row])
        more = losing & ~search.starred[heads]
        wanted = search.spare(counts)
        moved = np.where(wanted > 0, wanted, counts)
        moved[~more.any(axis=1)] = 0
        cost = more @ search.costs * moved + losing @ search.costs
        best = int(np.argmin(cost))
        members = placed[of == best][: moved[best]]
        pattern = np.flatnonzero(losing[best])
        search.starred[np.ix_(members, pattern)] = True
        others = np.flatnonzero(~losing[best])
        alike = np.all(
            self.codes[np.ix_(search.pending, others)] == self.codes[row, others], axis=1
        )
        joined = search.pending[alike]
        search.starred[np.ix_(joined, pattern)] = True
        search.pending = search.pending[~alike]
