"""Small linear programs around one cell of a pair's table: quick proof that it is not pinned down.

All tables that agree with what is published form a convex set, so that the mean of some of them agrees, too.
Around one cell a few lines of that mean may change and the rest stays: what such a table shows of the cell can
be so, and where two of them show counts as far apart as the threshold the cell is settled without the program
of the whole table. Where they do not, nothing follows: only the whole program says that a cell is pinned down.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SLACK = 1e-6
"""What a solver may be off a whole count."""


class PairProgram(Protocol):
    """The constraints on the rows n_ab of two attributes: bounds of cells, and of sums of them."""

    shape: tuple[int, int]
    size: int
    high: Floats
    sums: Any
    least: Floats
    most: Floats
    products: Floats
    codes: tuple[Floats, Floats]


class Seen:
    """The least and the largest count that each cell had in the tables that agree, and their mean."""

    def __init__(self, size: int) -> None:
        self.low = np.full(size, np.inf)
        self.high = np.full(size, -np.inf)
        self._sum = np.zeros(size)
        self._tables = 0

    def add(self, table: Floats) -> None:
        """Record a table that satisfies the constraints, shape (n,)."""
        np.minimum(self.low, table, out=self.low)
        np.maximum(self.high, table, out=self.high)
        self._sum += table
        self._tables += 1

    def add_at(self, places: Ints, counts: Floats) -> None:
        """Record a table that satisfies the constraints and differs from the mean in a few
        places.
        """
        self.low[places] = np.minimum(self.low[places], counts)
        self.high[places] = np.maximum(self.high[places], counts)

    @property
    def mean(self) -> Floats:
        """Mean of the tables, shape (n,): agrees, too."""
        return self._sum / max(self._tables, 1)

    def wide(self, places: Any, narrower: int) -> Any:
        """Return which cells have been seen at whole counts so far apart that they are settled."""
        largest = np.floor(self.high[places] + SLACK)
        return largest - np.ceil(self.low[places] - SLACK) + 1 >= narrower


class Nearby:
    """Programs that change `lines` rows and columns of the mean of the tables seen so far.

    Parameters
    ----------
    program
        What is known of the whole table.
    seen
        The tables; what is found is added.
    lines
        Lines of each side in addition to the cell's own: half those with most rows in the cell's row or column, half
        those whose codes are next to the cell's, which hardly move a moment.
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
        """Solve for the largest and, if still needed, the smallest count of a cell."""
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
        """Return a line and others of its side: those that hold most, and those coded most similarly."""
        half = self._lines // 2
        distance = np.abs(codes - codes[own]).sum(axis=1)
        largest = np.argsort(-held, kind="stable")[:half]
        alike = np.argsort(distance, kind="stable")[: half + 1]
        others = dict.fromkeys([*alike.tolist(), *largest.tolist()])
        others.pop(own, None)
        return np.array([own, *others], dtype=np.int64)

    def _solved(self, rows: Ints, columns: Ints, places: Ints, sign: float) -> Floats | None:
        """Return the counts of a block of which the first cell is as small or large as can be."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        shape = self._program.shape
        aim = np.zeros(len(places))
        aim[0] = sign
        mean = self._mean[places]
        moments = np.arange(shape[0] + shape[1], len(self._down))
        demands = np.concatenate([rows, shape[0] + columns, moments])
        matrix = sparse.vstack(
            [
                _margins(len(rows), len(columns)),
                sparse.csr_array(self._program.products[:, places]),
            ],
            format="csr",
        )
        solved: Any = milp(
            aim,
            bounds=Bounds(-mean, self._program.high[places] - mean),
            constraints=LinearConstraint(matrix, self._down[demands], self._up[demands]),
        )
        return None if solved.x is None else mean + solved.x


@cache
def _margins(rows: int, columns: int) -> Any:
    """Return which cells of a block each of its lines adds up."""
    return sparse.vstack(
        [
            sparse.kron(sparse.eye_array(rows), np.ones((1, columns))),
            sparse.kron(np.ones((1, rows)), sparse.eye_array(columns)),
        ],
        format="csr",
    )
