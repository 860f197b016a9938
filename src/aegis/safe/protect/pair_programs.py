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
    """A linear program for two attributes, with bounds on the number of rows in each combination of
    a cell (set of values) of one attribute and a cell of the other, and on sums of these numbers.

    `shape` has the numbers of cells, and `size` is their product. `high` are the upper bounds;
    `sums` times the numbers of rows lies between `least` and `most`. `codes` are numbers that
    describe how the cells of each attribute are associated with the label, and `products` has the
    products of the codes for each combination.
    """

    shape: tuple[int, int]
    size: int
    high: Floats
    sums: Any
    least: Floats
    most: Floats
    products: Floats
    codes: tuple[Floats, Floats]


class Seen:
    """The smallest, largest and mean count of each of n cells over the possible tables found so
    far. A possible table agrees with all published figures.
    """

    def __init__(self, size: int) -> None:
        self.low = np.full(size, np.inf)
        self.high = np.full(size, -np.inf)
        self._sum = np.zeros(size)
        self._tables = 0

    def add(self, table: Floats) -> None:
        """Add a possible table, given as the counts of its n cells, shape (n,)."""
        np.minimum(self.low, table, out=self.low)
        np.maximum(self.high, table, out=self.high)
        self._sum += table
        self._tables += 1

    def add_at(self, places: Ints, counts: Floats) -> None:
        """Add a possible table that differs from the mean only at the indices `places`, where it
        has the counts `counts`.
        """
        self.low[places] = np.minimum(self.low[places], counts)
        self.high[places] = np.maximum(self.high[places], counts)

    @property
    def mean(self) -> Floats:
        """The mean of the tables found so far, shape (n,) for n cells; the mean is also a possible
        table.
        """
        return self._sum / max(self._tables, 1)

    def wide(self, places: Any, narrower: int) -> Any:
        """Return whether each of the cells with the indices `places` is safe: whether at least
        `narrower` whole numbers lie between its smallest and its largest count in the possible
        tables so far.
        """
        largest = np.floor(self.high[places] + SLACK)
        return largest - np.ceil(self.low[places] - SLACK) + 1 >= narrower


class Nearby:
    """Small linear programs that find more possible tables (tables that agree with all published
    figures). They change a few rows and columns of the mean of the possible tables found so far.

    Parameters
    ----------
    program
        The bounds of the whole table.
    seen
        The tables found so far; new ones are added.
    lines
        Number of rows and of columns of the table that may change, in addition to the row and the
        column of the cell. Half of them have the largest counts in the cell's column or row. The
        other half have codes similar to the cell's codes, so that a change hardly affects a moment
        (mean product of codes).
    """

    def __init__(self, program: PairProgram, seen: Seen, lines: int) -> None:
        self._program = program
        self._seen = seen
        self._lines = lines
        self._mean = np.clip(seen.mean, 0.0, program.high)
        self._table = self._mean.reshape(program.shape)
        sums = program.sums @ self._mean
        self._down = np.minimum(program.least - sums, 0.0)
        self._up = np.maximum(program.most - sums, 0.0)

    def look(self, place: int, narrower: int) -> None:
        """Find the largest possible count of the cell with index `place`. If fewer than `narrower`
        whole numbers then lie between its smallest and its largest count found so far, also find
        the smallest.
        """
        row, column = divmod(place, self._program.shape[1])
        rows = self._near(row, self._table[:, column], self._program.codes[0])
        columns = self._near(column, self._table[row], self._program.codes[1])
        places = (rows[:, None] * self._program.shape[1] + columns[None, :]).ravel()
        for sign in (-1.0, 1.0):
            counts = self._solved(rows, columns, places, sign)
            if counts is not None:
                self._seen.add_at(places, counts)
            if self._seen.wide(place, narrower):
                return

    def _near(self, own: int, held: Floats, codes: Floats) -> Ints:
        """Return the index of a line of the table, followed by the lines with the largest counts
        and the lines with similar codes.

        A line is a row or a column; `own` is the index of the first. `held` are the counts where
        the lines cross the line of the cell.
        """
        half = self._lines // 2
        distance = np.abs(codes - codes[own]).sum(axis=1)
        largest = np.argsort(-held, kind="stable")[:half]
        alike = np.argsort(distance, kind="stable")[: half + 1]
        others = dict.fromkeys([*alike.tolist(), *largest.tolist()])
        others.pop(own, None)
        return np.array([own, *others], dtype=np.int64)

    def _solved(self, rows: Ints, columns: Ints, places: Ints, sign: float) -> Floats | None:
        """Return the possible counts of a block of rows and columns in which the first cell is as
        small as possible (`sign` 1) or as large as possible (`sign` -1); None if the program has no
        solution. `places` are the block's cells.
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
    aim: Floats, low: Any, high: Any, sums: Any, least: Any, most: Any, *, whole: bool = False
) -> Floats | None:
    """Return the cell counts that minimise their dot product with `aim`; None if no counts meet the
    bounds.

    Each count lies between `low` and `high`. `sums` is a matrix of coefficients: its product with
    the counts lies between `least` and `most`. It is None if no sums are known. With `whole`,
    the counts are whole numbers.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    answer: Any = milp(
        aim,
        integrality=np.full(len(aim), int(whole)),
        bounds=Bounds(low, high),
        constraints=() if sums is None else LinearConstraint(sums, least, most),
    )
    return None if answer.x is None else np.asarray(answer.x)


def contradiction(of: str = "") -> DataError:
    """Return the error for published figures that no table agrees with; `of` names the figures."""
    return DataError(
        f"No table agrees with all of the published figures{of}.",
        hint="They contradict one another: publish them from one table.",
    )


@cache
def margins(rows: int, columns: int) -> Any:
    """Return the matrix of zeros and ones that adds up the cells of a table by row and by column."""
    return sparse.vstack(
        [
            sparse.kron(sparse.eye_array(rows), np.ones((1, columns))),
            sparse.kron(np.ones((1, rows)), sparse.eye_array(columns)),
        ],
        format="csr",
    )
