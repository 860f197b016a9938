"""Losses that are sums over attributes, with the cost of rows that are known to be suppressed.

Where the rows R are suppressed by a configuration, they are suppressed by everything finer under a rule
that is monotone under suppression, and cost there what suppression costs in each attribute. So with R at hand
the loss of every finer configuration is at least a sum over attributes of a figure of its mask alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.advisor.search.cells import RuleCells
from aegis.advisor.search.problem import Variable
from aegis.arx.losses.loss_options import Mean

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AttributePart:
    """The contribution of one attribute to a loss.

    Attributes
    ----------
    variable
        The attribute.
    masked
        The loss of each candidate where no row is suppressed, shape (n,).
    beyond
        What a suppressed row with each value costs beyond that, at least, shape (n, V).
    """

    variable: Variable
    masked: Floats
    beyond: Floats


class Separable:
    """A loss as a sum over attributes.

    Parameters
    ----------
    parts
        What each attribute adds, variables in their order.
    mean
        How they are put together: all but the maximum, of which no sum is a bound.
    counted
        Attributes that count; the geometric mean is that of so many.
    """

    def __init__(self, parts: Sequence[AttributePart], mean: Mean, counted: int) -> None:
        self._parts = parts
        self._mean = mean
        self._counted = max(counted, 1)
        self.least = [self.scaled(part.masked) for part in parts]

    def total(self, figure: float) -> float:
        """Return the loss of a sum over attributes."""
        return float(np.expm1(figure)) if self._mean is Mean.GEOMETRIC else figure

    def sum_of(self, loss: float) -> float:
        """Return the sum over attributes of a loss: the inverse of `total`."""
        return float(np.log1p(loss)) if self._mean is Mean.GEOMETRIC else loss

    def scaled(self, lost: Floats) -> Floats:
        """Return the contribution of losses of one attribute to the sum."""
        if self._mean is Mean.SUM:
            return lost
        return (np.log1p(lost) if self._mean is Mean.GEOMETRIC else lost) / self._counted

    def over(self, cells: RuleCells) -> LostRows:
        """Return a key that identifies the sums for a set of suppressed cells."""
        return LostRows(self, self._parts, cells)


class LostRows:
    """The least cost of each candidate if given cells are suppressed."""

    def __init__(
        self, separable: Separable, parts: Sequence[AttributePart], cells: RuleCells
    ) -> None:
        self._scaled = separable.scaled
        self._masked = [part.masked for part in parts]
        self._weights = cells.counts.astype(np.float64)
        codes, self._costs = zip(*(_spread(part, cells) for part in parts), strict=True)
        widths = [cost.shape[1] for cost in self._costs]
        self._starts = np.cumsum([0, *widths]).tolist()
        # All attributes of a cell next to one another, each with places of its own.
        self._places = np.stack(
            [
                (code + start).astype(np.int32)
                for code, start in zip(codes, self._starts, strict=False)
            ],
            axis=1,
        )

    def parts(self, lost: Places) -> list[Floats]:
        """Return the least cost of each candidate, (n,) for each attribute, if the cells `lost`
        are suppressed.
        """
        places = self._places[lost]
        weights = np.repeat(self._weights[lost], places.shape[1])
        rows = np.bincount(places.ravel(), weights=weights, minlength=self._starts[-1])
        ends = zip(self._masked, self._costs, self._starts, self._starts[1:], strict=False)
        return [self._scaled(base + cost @ rows[start:end]) for base, cost, start, end in ends]


def _spread(part: AttributePart, cells: RuleCells) -> tuple[Places, Floats]:
    """Return the group of each cell that a part can distinguish, and what a row of each costs, (n, G).

    Values that no candidate distinguishes share what is suppressed of them, and so do those of attributes
    that form no classes.
    """
    variable = part.variable
    rows = variable.attribute.counts.astype(np.float64)
    if variable.quasi:
        groups = variable.join(variable.full)
        codes = cells.code(variable.name, groups)
    else:
        groups = np.zeros(len(rows), dtype=np.int64)
        codes = np.zeros(cells.count, dtype=np.int64)
    size = int(groups.max(initial=0)) + 1
    totals = np.bincount(groups, weights=rows, minlength=size)
    cost = np.stack([np.bincount(groups, weights=rows * b, minlength=size) for b in part.beyond])
    return codes, np.divide(cost, totals, out=np.zeros_like(cost), where=totals > 0)
