"""Prove quickly that a cell of a pair's table is safe, with small linear programs around it.

A possible table is a table that agrees with all published figures. Possible tables form a convex
set, so the mean of several possible tables is possible, too. A small program changes only a few
rows and columns of this mean, around one cell. Its solution is a possible table. If two possible
tables differ in the cell by the threshold, the cell is safe, and the program of the whole table is
not needed. If they do not, nothing follows, because only the program of the whole table can show
that a cell can be derived.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from aegis.arrays import Floats, Ints
from aegis.errors import DataError

SLACK = 1e-6
"""Largest distance from a whole number at which a solver's result counts as this number."""


class PairProgram(Protocol):
    """A linear program for two attributes. Its n unknowns are the numbers of rows that have a cell
    (set of values) of one attribute and a cell of the other.

    Attributes
    ----------
    shape, size
        Numbers of cells of the two attributes, and their product n.
    high
        Upper bound of each unknown, shape (n,).
    sums, least, most
        Matrix of coefficients, and the bounds of its product with the unknowns.
    codes, products
        Numbers that describe how the cells of each attribute are associated with the label, and the
        products of these numbers for each unknown.
    """

    shape: tuple[int, int]
    size: int
    high: Floats
    sums: Any
    least: Floats
    most: Floats
    products: Floats
    codes: tuple[Floats, Floats]


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

    def __init__(self, program: PairProgram, counts: PossibleCounts, lines: int) -> None:
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


def solved(
    aim: Floats, low: Any, high: Any, sums: Any, least: Any, most: Any, *, integers: bool = False
) -> Floats | None:
    """Return the counts within all bounds that minimise their dot product with `aim`; None if there
    are none. Each count is within `low` and `high`, and `sums` (a matrix; None: no such bounds)
    times the counts within `least` and `most`. With `integers`, counts are whole numbers.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    answer: Any = milp(
        aim,
        integrality=np.full(len(aim), int(integers)),
        bounds=Bounds(low, high),
        constraints=() if sums is None else LinearConstraint(sums, least, most),
    )
    return None if answer.x is None else np.asarray(answer.x)


def contradiction(of: str = "") -> DataError:
    """Return the error that published figures contradict each other. `of` says which figures."""
    return DataError(
        f"No table agrees with all of the published figures{of}.",
        hint="They contradict one another: publish them from one table.",
    )


@cache
def margins(rows: int, columns: int) -> Any:
    """Return the 0/1 matrix whose product with a flattened table gives its row and column sums."""
    return sparse.vstack(
        [
            sparse.kron(sparse.eye_array(rows), np.ones((1, columns))),
            sparse.kron(np.ones((1, rows)), sparse.eye_array(columns)),
        ],
        format="csr",
    )
