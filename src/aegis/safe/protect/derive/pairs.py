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
Programs for many cells at once are solved first, then small programs around a cell
(`pair_programs`), then the program of the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from aegis.arrays import Floats, Ints
from aegis.files import SILENT_STEP, Step
from aegis.safe.protect.derive.cells import Range, known_bounds
from aegis.safe.protect.model import GRID, ProtectedAttribute, ProtectedSummary, ProtectionLevel
from aegis.safe.protect.pair_programs import (
    SLACK,
    PossibleCounts,
    SmallPrograms,
    contradiction,
    margins,
    solved,
)

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
