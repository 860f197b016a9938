"""Local suppression: suppress single cells until every record is in a class that is large enough.

The cells are masked values of the quasi-identifiers. In class sizes, a suppressed cell counts as a
separate value, as in every audit of the release. In other tools (sdcMicro) a suppressed cell
matches any value, so these tools suppress fewer cells. But then only one record may match the
values that an attacker knows, and the attacker identifies it.

The search for the cells is greedy. A *pattern* is a set of attributes whose cells are suppressed in
a record. Records that are equal in all other attributes then form one class. First, the search sets
aside the records that are safe without suppression. Then it tries the patterns of one cell: each
step takes the pattern that makes most records safe, until no pattern makes any record safe. The
patterns of two cells follow, and so on. Each remaining record joins the class that costs the fewest
cells. The cells in which they differ are then suppressed in the record and in some records of a
large class, or in all records of a small class.

Finding the smallest number of cells is NP-hard (Meyerson and Williams 2004). The tests compare the
greedy solution with all solutions on small tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, groupby
from math import comb
from typing import Any

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Outcome, Style
from aegis.anonymizers.groups import InformationLoss, RecordGroups, relative_deviation
from aegis.anonymizers.method import fitting_groups
from aegis.anonymizers.records import Codes, RecordAttribute, Records, distinct_rows
from aegis.anonymizers.release import SUPPRESSED_VALUE
from aegis.arrays import Flags, Floats, Ints
from aegis.files import SILENT_STEP, Progress, Step

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
        Function that returns, for each group of records, whether it is an acceptable class. A group
        that contains an acceptable group must be acceptable, too, and so must all records together.
    spare
        Function that returns, for each class size, how many records can leave a class of this size
        to form a new class with one record from outside, so that the rest is still a class; 0 if
        none can.
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
        """Search which cells to suppress; return them as flags, shape (N, A)."""
        run = self._by_cost if len(self.columns) <= FEW_ATTRIBUTES else self._by_number
        run(step)
        unplaced = len(self.pending)
        if unplaced:
            _Leftovers(self).join()
            step.advance(unplaced)
        return self.starred

    def _by_cost(self, step: Step) -> None:
        """Try all patterns (sets of attributes to suppress), the cheapest first."""
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
        """Try the patterns of no attribute, of one, of two, ...; if too many, a part."""
        grown: list[Pattern] = [()]
        for cells in range(len(self.columns) + 1):
            grown = self._advance(self._patterns(cells, grown), step)
            if not grown:
                return

    def _advance(self, patterns: Sequence[Pattern], step: Step) -> list[Pattern]:
        """Try these patterns; return those to extend by one more attribute, none if every record is in
        an acceptable class.
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
        """Apply patterns as long as this brings a record into an acceptable class, those with the most
        records for their cost first; return those to extend, the best first.
        """
        waiting: list[tuple[float, int]] = []
        ranked: list[tuple[float, int]] = []
        for index, pattern in enumerate(patterns):
            classes, rescued = self._tried(pattern)
            ranked.append((classes + self._cost(pattern) / 1e6, index))
            if len(rescued):
                waiting.append((-len(rescued) / max(self._cost(pattern), 1e-9), index))
        heapq.heapify(waiting)
        while waiting and len(self.pending):
            _, index = heapq.heappop(waiting)
            pattern = patterns[index]
            _, rescued = self._tried(pattern)
            if not len(rescued):
                continue
            merit = (-len(rescued) / max(self._cost(pattern), 1e-9), index)
            if waiting and merit > waiting[0]:
                heapq.heappush(waiting, merit)
                continue
            self.starred[np.ix_(rescued, np.array(pattern, dtype=np.int64))] = True
            self.pending = np.setdiff1d(self.pending, rescued, assume_unique=True)
        return [patterns[index] for _, index in sorted(ranked)[:WIDTH]]

    def _tried(self, pattern: Pattern) -> tuple[int, Ints]:
        """Return how many acceptable classes a pattern makes of pending records, and these records."""
        of = self.grouped(self.pending, pattern)
        fitting = self.fits(self.pending, of)
        return len(fitting), self.pending[fitting[of]]

    def grouped(self, rows: Ints, pattern: Pattern) -> Ints:
        """Return the class of each of the records `rows` without the attributes in `pattern`."""
        attributes = [i for i in range(len(self.columns)) if i not in pattern]
        if not attributes:
            return np.zeros(len(rows), dtype=np.int64)
        return distinct_rows([self.columns[i][rows] for i in attributes])[1]


class _Leftovers:
    """Distributes the records in no acceptable class among the classes."""

    def __init__(self, search: CellSearch) -> None:
        self.search = search
        self.codes: Ints = np.column_stack(search.columns).astype(np.int64)

    def join(self) -> None:
        """Add each remaining record to the class that suppresses the cheapest cells for it."""
        search = self.search
        while len(search.pending):
            codes = np.where(search.starred, -1, self.codes)
            placed = np.setdiff1d(np.arange(search.rows), search.pending, assume_unique=True)
            if not len(placed):  # nothing fits but everything
                search.starred[:] = True
                search.pending = search.pending[:0]
                return
            _, first, of = np.unique(codes[placed], axis=0, return_index=True, return_inverse=True)
            self._join_record(int(search.pending[0]), placed, placed[first], of.reshape(-1))

    def _join_record(self, row: int, placed: Ints, heads: Ints, of: Ints) -> None:
        search = self.search
        counts = np.bincount(of)
        losing = search.starred[heads] | (self.codes[heads] != self.codes[row])
        more = losing & ~search.starred[heads]
        spare = search.spare(counts)
        moved = np.where(spare > 0, spare, counts)
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


@dataclass(frozen=True)
class SuppressionOptions(Options):
    """Options of local suppression.

    Attributes
    ----------
    masks
        Masks to apply to quasi-identifiers before suppression, by name, as in a policy: `{age:
        {bucketize: {width: 5}}}`. An attribute that you do not name stays unmasked if the policy
        lists `identity` or no candidates for it. Otherwise it gets its first candidate.
    importance
        Quasi-identifiers whose cells the method should keep, the most important first. For example,
        if you give two names, suppressing a cell of the first costs 3, a cell of the second costs
        2, and any other cell costs 1.
    empty
        Leave suppressed cells empty, so that numbers stay numbers. Otherwise they show `*`, and
        their column becomes text. All empty cells of a column count as one value.
    """

    masks: dict[str, Any] | None = None
    importance: tuple[str, ...] = ()
    empty: bool = False

    def check(self, records: Records) -> None:
        """Raise an error if the records are too few or too alike for k or l, or if `importance`
        names a column that is not a quasi-identifier.
        """
        super().check(records)
        for name in self.importance:
            records.attribute(name)


def _run(
    records: Records,
    options: SuppressionOptions,
    random: np.random.Generator,  # noqa: ARG001 - the same interface for all methods
    progress: Progress,
) -> Outcome:
    def fits(rows: Ints, of: Ints) -> Flags:
        return fitting_groups(records.take(rows), of, options)

    def spare(sizes: Ints) -> Ints:
        if options.l > 1 or records.persons is not None:
            return np.zeros_like(sizes)
        return np.where(sizes >= 2 * options.k - 1, options.k - 1, 0)

    search = CellSearch(
        [a.codes for a in records.attributes],
        _costs(records, options.importance),
        fits,
        spare,
    )
    with progress.step("Suppressing cells", len(records)) as step:
        starred = search.run(step)
    released: list[Codes] = [
        np.where(starred[:, i], np.int32(_star(a, empty=options.empty)), a.codes)
        for i, a in enumerate(records.attributes)
    ]
    _, labels = distinct_rows(released)
    columns = {
        a.name: tuple(_released_values(a, starred[:, i], empty=options.empty))
        for i, a in enumerate(records.attributes)
    }
    return Outcome(
        labels,
        _notes(records, starred, empty=options.empty),
        _details(records, starred),
        columns,
        loss=_loss(records, starred, labels, options.k),
    )


def _costs(records: Records, importance: Sequence[str]) -> Floats:
    """Return the cost of suppressing a cell of each attribute, shape (A,). `importance` names the
    attributes that should be kept, the most important first.
    """
    worth = {name: len(importance) + 1 - rank for rank, name in enumerate(importance)}
    return np.array([float(worth.get(a.name, 1)) for a in records.attributes])


def _star(attribute: RecordAttribute, *, empty: bool) -> int:
    """Return the code of a suppressed cell: of `*` (null, if `empty`) if there is one, else a new
    one.
    """
    mark = None if empty else SUPPRESSED_VALUE
    domain = attribute.domain
    return domain.index(mark) if mark in domain else attribute.size


def _released_values(attribute: RecordAttribute, starred: Flags, *, empty: bool) -> list[Any]:
    """Return the released values: text if one is `*`, else in the type of the column."""
    mark = None if empty else SUPPRESSED_VALUE
    as_text = bool(starred.any()) and not empty
    values = [str(value) if as_text and value is not None else value for value in attribute.domain]
    return [
        mark if star else values[code]
        for code, star in zip(attribute.codes.tolist(), starred.tolist(), strict=True)
    ]


def _details(records: Records, starred: Flags) -> dict[str, Any]:
    return {
        "cells": int(starred.size),
        "suppressed_cells": int(starred.sum()),
        "suppressed_cells_of": {
            a.name: int(starred[:, i].sum()) for i, a in enumerate(records.attributes)
        },
        "rows_with_suppressed_cells": int(starred.any(axis=1).sum()),
    }


def _notes(records: Records, starred: Flags, *, empty: bool) -> tuple[str, ...]:
    cells = int(starred.sum())
    if not cells:
        return ("no cells are suppressed: all classes are large enough",)
    per = sorted(
        ((int(starred[:, i].sum()), a.name) for i, a in enumerate(records.attributes)),
        key=lambda ranked: (-ranked[0], ranked[1]),
    )
    listed = ", ".join(f"{name} {count:,}" for count, name in per if count)
    rows = int(starred.any(axis=1).sum())
    appearance = "left empty" if empty else f"shown as {SUPPRESSED_VALUE}"
    return (
        f"{cells:,} of {starred.size:,} cells of quasi-identifiers ({100 * cells / starred.size:.2g} "
        f"%) in {rows:,} of {len(records):,} rows are suppressed and {appearance}: {listed}",
        "a suppressed cell counts as a separate value, which matches only other suppressed cells: an "
        "audit of the released rows counts classes in the same way",
    )


def _loss(records: Records, starred: Flags, labels: Ints, k: int) -> InformationLoss:
    """Return the information loss; a suppressed cell counts as the average value of the table."""
    cells = dict(zip((a.name for a in records.attributes), starred.T, strict=True))
    deviation = partial(relative_deviation, records, lambda a, away, _: away[cells[a.name]])
    return InformationLoss.of(RecordGroups.number(labels), k, deviation, float(starred.mean()))


LOCAL_SUPPRESSION = Anonymizer(
    "local-suppression",
    "Suppresses only cells, so that each record shares its values with k - 1 others.",
    "Cell suppression of Sweeney 2002 and Meyerson and Williams 2004; greedy by patterns",
    SuppressionOptions,
    Style.GENERALISED,
    "N log N per pattern of suppressed attributes",
    True,
    _run,
    by_cell=True,
)
