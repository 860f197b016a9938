"""Give the label classes of several parts of a table one common order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.arrays import Ints
from aegis.errors import DataError
from aegis.summary.codes import show, sorted_values
from aegis.summary.model import LabelSummary


def add_classes(classes: pa.Array, counts: Ints, model: LabelSummary) -> tuple[pa.Array, Ints]:
    """Add those classes of `model` that do not occur in a part of the data, with 0 rows each.

    Raises
    ------
    DataError
        A class of the model cannot be converted to the label's type in this part.
    """
    here = [show(value) for value in classes.to_pylist()]
    absent = [text for text in model.classes if text not in set(here)]
    if not absent:
        return classes, counts
    try:
        added = pa.array(absent, pa.string()).cast(classes.type)
    except pa.ArrowException as error:
        raise DataError(
            f"The label {model.column!r} has type {classes.type} here, which does not hold the "
            f"class {absent[0]!r} of the other summary.",
            hint="Parts must have the same types.",
        ) from error
    values, order = sorted_values(pa.concat_arrays([classes, added]))
    return values, np.append(counts, np.zeros(len(absent), dtype=np.int64))[order]


def merge_classes(parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return all classes that occur in any of several parts of a table, in an order that agrees
    with the order in each part.

    Each part lists its classes as texts, sorted by their values, which may be texts or numbers.

    Raises
    ------
    DataError
        Several orders agree with all parts, or none does.
    """
    everything = list(dict.fromkeys(name for part in parts for name in part))
    for part in parts:
        if len(part) == len(everything):
            if all(_agrees(part, other) for other in parts):
                return tuple(part)
            raise _unclear(everything)
    orders = {
        tuple(order)
        for key in (_as_text, float)
        if (order := _sorted(everything, key)) and all(_agrees(order, part) for part in parts)
    }
    if len(orders) != 1:
        raise _unclear(everything)
    return orders.pop()


def _as_text(name: str) -> bytes:
    return name.encode()


def _sorted(names: list[str], key: Callable[[str], Any]) -> list[str]:
    try:
        return sorted(names, key=key)
    except ValueError:
        return []


def _agrees(order: Sequence[str], part: Sequence[str]) -> bool:
    present = set(part)
    return [name for name in order if name in present] == list(part)


def _unclear(names: list[str]) -> DataError:
    return DataError(
        f"The parts have different classes, and their order is not clear: {', '.join(names[:10])}.",
        hint="Summarise the other parts like the one that has most classes (`--like`).",
    )
