"""Losses that are sums over attributes, with lower bounds if some rows are known to be suppressed.

Let R be the rows that a configuration suppresses. If a rule is monotone under suppression, every
finer configuration suppresses R, too. In each attribute, these rows have the cost of suppression.
So if R is known, the loss of every finer configuration is at least a certain sum over attributes.
Each term of this sum depends only on the mask of the attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.advisor.search.cells import RuleCells
from aegis.advisor.search.problem import Variable
from aegis.arrays import Floats
from aegis.arx.losses.loss_options import Mean

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AttributePart:
    """The contribution of an attribute to a loss, for each of its n candidate masks.

    Attributes
    ----------
    variable
        The attribute.
    masked
        The loss of each of the n candidate masks if no row is suppressed, shape (n,).
    beyond
        The least loss that suppressing a row adds, for each of the n candidate masks and each of
        the attribute's V values, shape (n, V).
    """

    variable: Variable
    masked: Floats
    beyond: Floats


class Separable:
    """A loss that is a sum over attributes; each term depends only on the attribute's mask.

    Parameters
    ----------
    parts
        The contribution of each attribute, in the order of the variables.
    mean
        How contributions are combined: by their sum, or by an arithmetic or geometric mean. The
        maximum is not possible, because it does not follow from a sum.
    counted
        Number of attributes in the mean.
    """

    def __init__(self, parts: Sequence[AttributePart], mean: Mean, counted: int) -> None:
        self._parts = parts
        self._mean = mean
        self._counted = max(counted, 1)
        self.least = [self.scaled(part.masked) for part in parts]

    def total(self, figure: float) -> float:
        """Return the loss for a sum over attributes. `figure` is the sum of the terms of all
        attributes; for a geometric mean, these are logarithms.
        """
        return float(np.expm1(figure)) if self._mean is Mean.GEOMETRIC else figure

    def sum_of(self, loss: float) -> float:
        """Return the sum over attributes from which `total` computes this loss."""
        return float(np.log1p(loss)) if self._mean is Mean.GEOMETRIC else loss

    def scaled(self, lost: Floats) -> Floats:
        """Return the term that each of an attribute's n candidate masks adds to the sum over
        attributes, shape (n,): its loss (for a geometric mean, log(1 + loss)), divided by the
        number of attributes if the loss is a mean. `lost` has the losses, shape (n,).
        """
        if self._mean is Mean.SUM:
            return lost
        return (np.log1p(lost) if self._mean is Mean.GEOMETRIC else lost) / self._counted

    def over(self, cells: RuleCells) -> LostRows:
        """Return an object that computes lower bounds of the terms if some `cells` are suppressed.
        A cell is a combination of values that occurs in the frequency table.
        """
        return LostRows(self, self._parts, cells)


class LostRows:
    """Computes lower bounds of the loss of each candidate mask under the assumption that some cells
    are suppressed. A cell is a combination of values that occurs in the frequency table.
    """

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
        """Return, for each attribute, the least loss of each of its n candidates if the cells
        (combinations of values) with the indices `lost` are suppressed, shape (n,).
        """
        places = self._places[lost]
        weights = np.repeat(self._weights[lost], places.shape[1])
        rows = np.bincount(places.ravel(), weights=weights, minlength=self._starts[-1])
        ends = zip(self._masked, self._costs, self._starts, self._starts[1:], strict=False)
        return [self._scaled(base + cost @ rows[start:end]) for base, cost, start, end in ends]


def _spread(part: AttributePart, cells: RuleCells) -> tuple[Places, Floats]:
    """Return two arrays for an attribute. The first has the group of each cell (combination of
    values) of the frequency table, shape (cells,). The second has how much loss a suppressed row of
    each of the G groups adds under each of n candidates, shape (n, G).

    A group has values that no candidate distinguishes. Its suppressed rows are assumed to have
    these values as often as all rows of the group. An attribute that forms no equivalence classes
    has one group.
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
