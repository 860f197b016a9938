"""Weight the columns in a measure that predicts every column from the others.

Columns that almost determine each other, such as an age and a year of birth, count once. Otherwise
they would dominate the mean over columns. A column that cannot be predicted is left out, and the
reason is stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from aegis.arrays import Floats, Integers
from aegis.summary import AttributeSummary, Summary

TWINS = 0.99
"""Two columns count as one if each explains at least this share of the other's variance."""
KEY = 0.5
"""A column whose values have no order counts as a key if it has more distinct values per row than
this.
"""


@dataclass(frozen=True)
class ColumnRole:
    """The weight of a column in the mean over all columns, and the reason for this weight.

    Attributes
    ----------
    weight
        Weight of the column in the mean over columns; 0 if the column is left out.
    left_out
        Why the column is left out; empty if it counts.
    twins
        Other columns that almost determine this column and are almost determined by it; they share
        the weight.
    """

    weight: float
    left_out: str = ""
    twins: tuple[str, ...] = ()


def column_roles(summary: Summary) -> Mapping[str, ColumnRole]:
    """Return the weight of each attribute in the mean over all columns, computed from its unmasked
    values.
    """
    why = {a.name: _left_out(a, summary.rows) for a in summary.attributes.values()}
    counted = [name for name, reason in why.items() if not reason]
    sets = {name: {name} for name in counted}
    for first, second in combinations(counted, 2):
        if sets[first] is not sets[second] and _twins(summary, first, second):
            joined = sets[first] | sets[second]
            sets.update(dict.fromkeys(joined, joined))
    return {
        name: ColumnRole(0.0, why[name])
        if why[name]
        else ColumnRole(
            summary.attributes[name].weight / len(sets[name]),
            twins=tuple(other for other in counted if other in sets[name] and other != name),
        )
        for name in summary.attributes
    }


def _left_out(attribute: AttributeSummary, rows: int) -> str:
    """Return why a column of a table with `rows` rows cannot be predicted from the other columns,
    such as "it is like a key"; empty if it can be.
    """
    if np.count_nonzero(attribute.counts) < 2:
        return "it has one value"
    if attribute.aside:
        return "it has too many values"
    if not attribute.kind.ordered and len(attribute.all_values) > KEY * rows:
        return "it is like a key"
    return ""


def _twins(summary: Summary, first: str, second: str) -> bool:
    """Return whether two columns almost determine each other, by their values or by the ranges of
    their values.
    """
    names = summary.pairs.names
    places = sorted((names.index(first), names.index(second)))
    a, b, _, rows = summary.pairs.cells(places[0], places[1])
    unmasked = [summary.attributes[names[place]].unmasked for place in places]
    ways = [(unmasked[0].levels, unmasked[1].levels)]
    ranges = [own.levels if own.ranges is None else own.ranges for own in unmasked]
    if any(own.ranges is not None for own in unmasked):
        ways.append((ranges[0], ranges[1]))
    return any(_tell_each_other(x[a], y[b], rows.astype(np.float64)) for x, y in ways)


def _tell_each_other(x: Integers, y: Integers, rows: Floats) -> bool:
    table = np.zeros((int(x.max(initial=0)) + 1, int(y.max(initial=0)) + 1))
    np.add.at(table, (x, y), rows)
    return min(_explained(table), _explained(table.T)) > TWINS


def _explained(table: Floats) -> float:
    """Return Goodman and Kruskal's tau of a contingency table, in [0, 1].

    Tau is the share of the variance of the column variable that the row variable explains.
    """
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    whole = n - float((columns**2).sum()) / max(n, 1.0)
    if whole <= 0:
        return 0.0
    told = float((table[rows > 0] ** 2 / rows[rows > 0, None]).sum())
    return float((told - float((columns**2).sum()) / n) / whole)
