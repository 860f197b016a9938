"""The fold of each row of a table, one row after the other."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.summary import Summary
from aegis.summary.builder import FOLDS
from aegis.summary.codes import Dealer


def folds_of(
    summary: Summary, table: pa.Table, seed: int = 0, label: str = "y"
) -> npt.NDArray[np.int64]:
    """Return the fold of each labelled row: equal rows are numbered in the order in which they come."""
    labels = table[label].to_pylist()
    unit = summary.label.unit
    classes = [y for y in sorted(set(labels), key=str) if y is not None]
    columns = [table[name].to_pylist() for name in summary.attributes]
    places = [
        {value: int(a.atoms[i]) for i, value in enumerate(a.values.to_pylist())}
        for a in summary.attributes.values()
    ]
    dealer = Dealer(tuple(summary.attributes), FOLDS, seed)
    seen: Counter[tuple[int, ...]] = Counter()
    found = []
    for *values, y in zip(*columns, labels, strict=True):
        if y is None:
            continue
        row = [place[value] for place, value in zip(places, values, strict=True)]
        if unit is None:
            one, two = dealer.sums(row, classes.index(y))
        else:
            one, two = dealer.sums(row, 0, int(unit.in_units(np.array([y], dtype=float))[0]))
        found.append(dealer.fold(one, two, seen[one, two]))
        seen[one, two] += 1
    return np.array(found)
