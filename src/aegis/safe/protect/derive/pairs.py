"""Derive combinations of two attributes from moments and label tables, by linear programming.

Let a be a cell of one attribute, b a cell of another attribute, and n_ab their number of common
rows. A moment of level `counts` is a sum over all pairs of cells; each term is n_ab times the
product of the codes of a and b. It is published in steps, so it is known up to half a step. The
unknowns of the linear program are the numbers n_ab. The known ranges of the rows of each cell, and
of the moments of the two attributes, bound them. In addition, n_ab has at most as many rows of a
class as a or b can have. The true table meets these bounds, so any conclusion of the program is
true for it.

Most cells need no separate program. Every solution is a possible table. If two solutions differ in
a cell by the threshold, the cell is safe, because all tables between them are possible, too.
Programs for many cells at once are solved first, then small programs around a cell, then the program
of the whole table.

Possible tables form a convex set, so the mean of several possible tables is possible, too. A small
program changes only a few rows and columns of this mean, around one cell. Its solution is a possible
table. If two possible tables differ in the cell by the threshold, the cell is safe, and the program
of the whole table is not needed. If they do not, nothing follows, because only the program of the
whole table can show that a cell can be derived.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from aegis.arrays import Floats, Ints
from aegis.files import SILENT_STEP, Step
from aegis.safe.protect.derive.cells import (
    SLACK,
    Range,
    contradiction,
    known_bounds,
    margins,
    solved,
)
from aegis.safe.protect.model import GRID, ProtectedAttribute, ProtectedSummary, ProtectionLevel

MOST_CELLS = 2_000
"""Largest number of cells of a pair of which all are examined; of larger pairs, only `HEAVIEST`
are.
"""
HEAVIEST = 20
"""Number of cells of a larger pair that are examined: those with the largest effect on moments."""
SHARED = 60
"""Largest number of programs for many cells at once."""
LEAST_SHARED = 1
"""Number of programs for many cells at once that run even if they settle few cells."""
LOOKS = 150
"""The program of a table with n cells takes as long as n / `LOOKS` small programs.

A program for many cells at once should settle more cells than small programs in the same time.
"""
CHANGED_LINES = (8, 32)
"""Number of rows and columns of a pair's table that a program around one cell may change."""


@dataclass(frozen=True)
class DerivablePair:
    """A combination of two cells (sets of values of two attributes) whose number of rows a reader
    can derive to a range that is too narrow.

    Attributes
    ----------
    attributes, cells
        The two attributes, and the index of the cell in each.
    range
        The possible numbers of rows.
    """

    attributes: tuple[str, str]
    cells: tuple[int, int]
    range: Range


@dataclass(frozen=True)
class PairAudit:
    """The combinations of two cells (sets of values of two attributes) whose number of rows can be
    derived from published figures.

    Attributes
    ----------
    derivable
        The combinations whose number of rows can be derived.
    looked_at, cells
        Number of combinations that were examined, and number of all combinations.
    """

    derivable: tuple[DerivablePair, ...]
    looked_at: int
    cells: int


def audit_pairs(protected: ProtectedSummary, narrower: int | None = None) -> PairAudit:
    """Find the combinations of two cells whose number of rows a reader can derive.

    It is derivable if fewer than `narrower` numbers are possible, by default the threshold that the
    summary states. At level `noise`, or without moments, nothing can be derived.

    Raises
    ------
    DataError
        No table agrees with all published figures.
    """
    if protected.level is not ProtectionLevel.COUNTS or protected.moments is None:
        return PairAudit((), 0, 0)
    threshold = protected.protection.threshold or 2
    derivable: list[DerivablePair] = []
    looked_at = cells = 0
    for program in _programs(protected, threshold):
        candidates = program.candidates()
        derivable += program.narrower_than(narrower or threshold, candidates)
        looked_at += len(candidates)
        cells += program.size
    return PairAudit(tuple(derivable), looked_at, cells)


def first_pinned(
    protected: ProtectedSummary, start: int = 0, step: Step = SILENT_STEP
) -> int | None:
    """Return the number of the first pair of attributes, from `start` on, with a derivable count.

    Return None if there is none. `step` receives one unit per pair that passes.
    """
    threshold = protected.protection.threshold or 2
    for number, program in enumerate(_programs(protected, threshold)):
        if number < start:
            continue
        if any(True for _ in program.narrower_than(threshold, program.candidates())):
            return number
        step.advance()
    return None


def count_pairs(protected: ProtectedSummary) -> int:
    """Return the number of pairs of attributes on which moments say something."""
    return math.comb(
        sum(bool(a.codes is not None and a.codes.size) for a in protected.attributes.values()), 2
    )


def _programs(protected: ProtectedSummary, threshold: int) -> Iterator[_Program]:
    """Yield a linear program for each pair of attributes; cells have `threshold` rows or more."""
    attributes = list(protected.attributes.values())
    bounds = [known_bounds(protected, a) for a in attributes]
    for i, j in combinations(range(len(attributes)), 2):
        sizes = [0 if a.codes is None else a.codes.size for a in (attributes[i], attributes[j])]
        if all(sizes):
            yield _Program(protected, (i, j), (attributes[i], attributes[j]), bounds, threshold)


class _Program:
    """A linear program for two attributes. Its unknowns are the numbers of rows that have a cell
    (set of values) of one attribute and a cell of the other; its constraints are the bounds that a
    reader knows.
    """

    def __init__(
        self,
        protected: ProtectedSummary,
        places: tuple[int, int],
        attributes: tuple[ProtectedAttribute, ProtectedAttribute],
        bounds: Sequence[Ints],
        threshold: int,
    ) -> None:
        self.attributes = attributes
        first, second = (bounds[p] for p in places)
        self.shape = len(first), len(second)
        self.size = self.shape[0] * self.shape[1]
        high = np.minimum(first[:, None, :, 1], second[None, :, :, 1]).sum(axis=2)
        self.high = high.ravel().astype(np.float64)
        self.codes = _decoded(attributes[0]), _decoded(attributes[1])
        self.products = np.einsum("ap,bq->pqab", *self.codes).reshape(-1, self.size)
        moments = protected.moments
        if moments is None:
            raise ValueError("A summary without moments has no figures on pairs.")
        offsets = protected.offsets
        rows, columns = (slice(offsets[p], offsets[p + 1]) for p in places)
        centre = moments.matrix[rows, columns].ravel() * protected.rows
        # The error of a rounded figure is its step over sqrt(12), so that half a step is sqrt(3) of it.
        slack = moments.error * math.sqrt(3.0) * protected.rows
        half = slack + 1e-6 * (1.0 + np.abs(centre))
        # The least and the most rows of each cell of either attribute, over all classes.
        least, most = np.concatenate([first, second]).sum(axis=1).astype(np.float64).T
        self.sums = sparse.vstack(
            [margins(*self.shape), sparse.csr_array(self.products)], format="csr"
        )
        self.least = np.concatenate([np.maximum(least, threshold), centre - half])
        self.most = np.concatenate([most, centre + half])

    def candidates(self) -> Ints:
        """Return the (at most `HEAVIEST`) combinations whose rows move published figures most."""
        possible = np.flatnonzero(self.high > 0)
        if self.size <= MOST_CELLS:
            return possible
        weight = np.abs(self.products[:, possible]).max(axis=0)
        return possible[np.argsort(-weight, kind="stable")[:HEAVIEST]]

    def narrower_than(self, narrower: int, candidates: Ints) -> Iterator[DerivablePair]:
        """Yield the candidates with fewer than `narrower` possible numbers of rows, one of them from
        1 to `narrower` - 1.
        """
        counts = PossibleCounts(self.size)
        open_pairs = self._aimed_at_together(counts, narrower, candidates, -(-self.size // LOOKS))
        for lines in CHANGED_LINES if len(open_pairs) else ():
            small_programs = SmallPrograms(self, counts, lines)
            for pair in open_pairs.tolist():
                if not counts.wide(pair, narrower):
                    small_programs.look(pair, narrower)
            open_pairs = open_pairs[~counts.wide(open_pairs, narrower)]
        open_pairs = self._aimed_at_together(counts, narrower, open_pairs, 1)
        for pair in open_pairs.tolist():
            interval = self._range(pair)
            if interval.values < narrower and interval.low < narrower and interval.high > 0:
                names = (self.attributes[0].name, self.attributes[1].name)
                cells = divmod(pair, self.shape[1])
                yield DerivablePair(names, (int(cells[0]), int(cells[1])), interval)

    def _aimed_at_together(
        self, counts: PossibleCounts, narrower: int, candidates: Ints, worth: int
    ) -> Ints:
        """Return the candidates that are not proven safe by programs for many combinations at once.

        A combination is safe if `narrower` numbers of rows are possible for it. The search ends when
        a program proves fewer than `worth` of them safe. The tables found are added to `counts`.
        """
        random = np.random.default_rng(len(candidates))
        open_pairs = candidates
        for number in range(SHARED if len(candidates) else 0):
            aim = np.zeros(self.size)
            aim[open_pairs] = -random.uniform(0.2, 1.0, len(open_pairs))
            for sign in (1.0, -1.0) if open_pairs is candidates else (1.0,):
                counts.add(self._solved(sign * aim))
            still = open_pairs[~counts.wide(open_pairs, narrower)]
            settled, open_pairs = len(open_pairs) - len(still), still
            if not len(open_pairs) or (number >= LEAST_SHARED and settled < worth):
                break
        return open_pairs

    def _range(self, pair: int) -> Range:
        aim = np.zeros(self.size)
        aim[pair] = 1.0
        low, high = float(self._solved(aim)[pair]), float(self._solved(-aim)[pair])
        return Range(math.ceil(low - SLACK), math.floor(high + SLACK))

    def _solved(self, aim: Floats) -> Floats:
        table = solved(aim, 0.0, self.high, self.sums, self.least, self.most)
        if table is None:
            raise contradiction(f" of {self.attributes[0].name!r} and {self.attributes[1].name!r}")
        return table


def _decoded(attribute: ProtectedAttribute) -> Floats:
    codes = attribute.codes
    if codes is None:
        return np.zeros((len(attribute.table), 0))
    return codes.astype(np.float64) / GRID


class PossibleCounts:
    """The smallest, largest and mean count of each of n cells over the tables found so far that
    agree with all published figures (possible tables).
    """

    def __init__(self, size: int) -> None:
        self.low = np.full(size, np.inf)
        self.high = np.full(size, -np.inf)
        self._sum = np.zeros(size)
        self._tables = 0

    def add(self, table: Floats) -> None:
        """Add a possible table: counts that agree with all published figures, shape (n,)."""
        np.minimum(self.low, table, out=self.low)
        np.maximum(self.high, table, out=self.high)
        self._sum += table
        self._tables += 1

    def add_at(self, places: Ints, counts: Floats) -> None:
        """Add a possible table that has `counts` at `places`, and the mean elsewhere."""
        self.low[places] = np.minimum(self.low[places], counts)
        self.high[places] = np.maximum(self.high[places], counts)

    @property
    def mean(self) -> Floats:
        """The mean of the possible tables, shape (n,), which is possible, too."""
        return self._sum / max(self._tables, 1)

    def wide(self, places: Any, narrower: int) -> Any:
        """Return whether at least `narrower` whole counts are possible for each of the cells."""
        largest = np.floor(self.high[places] + SLACK)
        return largest - np.ceil(self.low[places] - SLACK) + 1 >= narrower


class SmallPrograms:
    """Looks for tables that agree with all published figures (possible tables) and in which one
    cell is larger or smaller than in the tables found so far. Each small linear program changes
    only a few rows and columns of the mean of these tables.

    Parameters
    ----------
    program
        The bounds of the whole table.
    counts
        The possible tables found so far; new ones are added.
    lines
        Number of rows and of columns that a program may change, besides those of the cell: half of
        them have the largest counts in its row or column, and half are similar in their association
        with the label.
    """

    def __init__(self, program: _Program, counts: PossibleCounts, lines: int) -> None:
        self._program = program
        self._counts = counts
        self._lines = lines
        self._mean = np.clip(counts.mean, 0.0, program.high)
        self._table = self._mean.reshape(program.shape)
        sums = program.sums @ self._mean
        self._down = np.minimum(program.least - sums, 0.0)
        self._up = np.maximum(program.most - sums, 0.0)

    def look(self, cell: int, narrower: int) -> None:
        """Look for possible tables with a larger count in `cell`; if fewer than `narrower` counts are
        then known to be possible, also with a smaller one.
        """
        row, column = divmod(cell, self._program.shape[1])
        rows = self._near(row, self._table[:, column], self._program.codes[0])
        columns = self._near(column, self._table[row], self._program.codes[1])
        places = (rows[:, None] * self._program.shape[1] + columns[None, :]).ravel()
        for sign in (-1.0, 1.0):
            counts = self._solved(rows, columns, places, sign)
            if counts is not None:
                self._counts.add_at(places, counts)
            if self._counts.wide(cell, narrower):
                return

    def _near(self, line: int, counts: Floats, codes: Floats) -> Ints:
        """Return `line`, and the lines with the most similar `codes` and the largest `counts`."""
        half = self._lines // 2
        distance = np.abs(codes - codes[line]).sum(axis=1)
        largest = np.argsort(-counts, kind="stable")[:half]
        alike = np.argsort(distance, kind="stable")[: half + 1]
        others = dict.fromkeys([*alike.tolist(), *largest.tolist()])
        others.pop(line, None)
        return np.array([line, *others], dtype=np.int64)

    def _solved(self, rows: Ints, columns: Ints, places: Ints, sign: float) -> Floats | None:
        """Return possible counts of a block in which the first cell is least (`sign` 1) or largest
        (-1); None if there are none. `places` are the block's cells.
        """
        shape = self._program.shape
        aim = np.zeros(len(places))
        aim[0] = sign
        mean = self._mean[places]
        moments = np.arange(shape[0] + shape[1], len(self._down))
        demands = np.concatenate([rows, shape[0] + columns, moments])
        matrix = sparse.vstack(
            [
                margins(len(rows), len(columns)),
                sparse.csr_array(self._program.products[:, places]),
            ],
            format="csr",
        )
        high = self._program.high[places] - mean
        moved = solved(aim, -mean, high, matrix, self._down[demands], self._up[demands])
        return None if moved is None else mean + moved
