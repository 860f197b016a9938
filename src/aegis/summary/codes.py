"""Encode values as integers, with a fixed order; null and NaN are one value each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Floats, Integers, Ints
from aegis.errors import InternalError

_NUMBER = re.compile(r"[\[\]]?(-?(?:inf|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))")
"""The number that a shown value starts with: 39, 39.5, "[30, 40[", "]-inf, 28["."""


def settle(values: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, and all NaN by the same NaN, because engines group them so. Values of
    other types do not change.

    Arrow distinguishes 0.0 from -0.0, and NaNs with different signs or payloads.
    """
    if not pa.types.is_floating(values.type):
        return values
    values = pc.add(values, pa.scalar(0.0, values.type))
    nan = pc.is_nan(values)
    if not pc.any(nan).as_py():
        return values
    return pc.if_else(nan, pa.scalar(float("nan"), values.type), values)


def sorted_values(values: pa.Array) -> tuple[pa.Array, Ints]:
    """Sort distinct values in ascending order, with NaN before null and null last. Return the
    sorted values and the indices that sort them.
    """
    values = settle(values)
    order = pc.array_sort_indices(values, null_placement="at_end")
    return values.take(order), order.to_numpy().astype(np.int64)


def encode(values: pa.Array) -> tuple[Ints, pa.Array]:
    """Return the code of each entry of `values`, and the distinct values in ascending order, with
    NaN before null and null last. A code is the index of the entry in the distinct values.
    """
    encoded = settle(values).dictionary_encode(null_encoding="encode")
    distinct, order = sorted_values(encoded.dictionary)
    return _ranks(order)[encoded.indices.to_numpy(zero_copy_only=False)], distinct


def stored_codes(column: pa.Array) -> tuple[npt.NDArray[np.unsignedinteger], pa.Array]:
    """Return the code of each row in a small integer type, and the value of each code; the values
    are not sorted.

    If the column is dictionary-encoded, there may be duplicate values, and values that no row has.
    """
    if not pa.types.is_dictionary(column.type):
        column = settle(column).dictionary_encode(null_encoding="encode")
    values, indices = column.dictionary, column.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return narrow(indices.to_numpy(zero_copy_only=False), len(values)), values


def narrow(codes: Integers, size: int) -> npt.NDArray[np.unsignedinteger]:
    """Convert codes below `size` to the smallest unsigned integer type in which they fit."""
    return codes.astype(np.min_scalar_type(max(size - 1, 0)))


def _ranks(order: Ints) -> Ints:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def code_values(column: pa.Array, values: pa.Array) -> Ints:
    """Return, for each entry of `column`, the position of its value in `values`.

    Raises
    ------
    InternalError
        An entry is not among the values, because the table changed while it was read.
    """
    places = pc.index_in(settle(column), value_set=values)
    if places.null_count:
        raise InternalError(
            "The table has a value that it did not have when Aegis counted its values."
        )
    codes: Ints = places.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def numbers_of(values: pa.Array) -> Floats:
    """Convert numbers, dates or times to floats that have the same order; null becomes NaN."""
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.int64())
    floats: Floats
    floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats


def show(value: Any) -> str:
    """Return a value as text for people. Null becomes "null"; any other value is written as `str`
    writes it.
    """
    return "null" if value is None else str(value)


def natural_order(labels: Sequence[str]) -> Ints:
    """Return the indices that sort masked values by the first number in their text, then by the
    whole text, with null last.

    An auditor sees only the masked values, so their order must follow from the text: 9 is before
    10, and "[5, 10[" before "[10, 20[".
    """
    return np.array(sorted(range(len(labels)), key=lambda i: _natural(labels[i])), dtype=np.int64)


def in_natural_order(labels: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Return the rank of each masked value in their natural order, and the values in this order."""
    order = natural_order(labels)
    return _ranks(order), tuple(labels[i] for i in order)


def _natural(label: str) -> tuple[int, float, str]:
    if label == "null":
        return 2, 0.0, label
    start = _NUMBER.match(label)
    return (0, float(start[1]), label) if start else (1, 0.0, label)
