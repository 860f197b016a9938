"""Group a column's distinct values by a mask, and compare groupings.

A grouping is computed by evaluating the mask's own expression on the distinct values. So a grouping
cannot differ from the effect of the mask on a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Int32s, Ints
from aegis.errors import InternalError
from aegis.masks.base import Kind, Mask, ValueCounts
from aegis.masks.lookup import lookup_of
from aegis.masks.mapping import text_of
from aegis.masks.plain import Identity
from aegis.sources import embedded
from aegis.sources.source import fetch

NULL_LABEL = "null"
_FEW_VALUES = 10_000
"""Largest number of distinct values for which several columns are masked in one query."""
Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The distinct values of a column, grouped by their masked value.

    Attributes
    ----------
    codes
        Group of each of the V distinct values, shape (V,), int32. Groups are numbered from 0 in
        order of first appearance. NaN is one value, null is one value, and -0.0 counts as 0.0.
    shown
        The masked value of each group, shape (size,).
    """

    codes: Int32s
    shown: pa.Array

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.shown)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The masked values as text, for display: "null" for null, "39" for 39.0, dates in ISO
        8601.
        """
        shown = self.shown
        if pa.types.is_string(shown.type) or pa.types.is_integer(shown.type):
            # The common case of many labels; Arrow's text of these types is that of `text_of`.
            texts = shown.cast(pa.string()).to_pylist()
        else:
            texts = [text_of(value) for value in shown.to_pylist()]
        return tuple(NULL_LABEL if text is None else text for text in texts)


def evaluate(
    masks: Sequence[Mask],
    values: pa.Array,
    dtype: dt.DataType | None = None,
    connection: Any = None,
) -> list[Grouping]:
    """Return the grouping of `values` by each mask, from one query.

    Parameters
    ----------
    masks
        Fitted masks that fit the column.
    values
        The V distinct values of a column, shape (V,).
    dtype
        The column's Ibis type, if the type of the array differs from it; the values are cast to it.
    connection
        The Ibis connection to evaluate on; by default the embedded engine.

    Raises
    ------
    InternalError
        A mask is not fitted.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if dtype is not None:
        values = values.cast(dtype.to_pyarrow())
    return evaluate_columns([(masks, values)], connection)[0]


def evaluate_columns(
    columns: Sequence[tuple[Sequence[Mask], pa.Array]], connection: Any = None
) -> list[list[Grouping]]:
    """Return, for each of several columns, the grouping of its distinct values by each of its
    masks. Each column is given as its masks and its distinct values. `connection` evaluates them;
    by default, the embedded engine does.

    Columns with few values share one query, because starting a query takes longer than masking few
    values.
    """
    shown: dict[tuple[int, int], pa.ChunkedArray] = {}
    rest: list[tuple[int, list[int]]] = []
    for number, (masks, values) in enumerate(columns):
        dtype = ibis.dtype(values.type)
        for place, mask in enumerate(masks):
            lookup = lookup_of(mask, dtype)
            if isinstance(mask, Identity):
                shown[number, place] = pa.chunked_array([values.cast(dtype.to_pyarrow())])
            elif lookup is not None:
                shown[number, place] = pa.chunked_array([lookup.evaluate(values)])
        asked = [place for place in range(len(masks)) if (number, place) not in shown]
        if asked:
            rest.append((number, asked))
    together = [asked for asked in rest if len(columns[asked[0]][1]) <= _FEW_VALUES]
    alone = [asked for asked in rest if len(columns[asked[0]][1]) > _FEW_VALUES]
    for query in [together, *([asked] for asked in alone)] if together else [[a] for a in alone]:
        given = [([columns[n][0][place] for place in places], columns[n][1]) for n, places in query]
        masked = iter(_masked(given, connection or embedded()))
        for number, places in query:
            shown |= {(number, place): next(masked) for place in places}
    return [
        [_group(shown[number, place]) for place in range(len(masks))]
        for number, (masks, _) in enumerate(columns)
    ]


def transform(mask: Mask, data: ValueCounts) -> ValueCounts:
    """Return the distinct masked values of `data` and the number of rows with each."""
    [grouping] = evaluate([mask], data.values)
    counts = np.bincount(grouping.codes, weights=data.counts, minlength=grouping.size)
    order = pc.sort_indices(grouping.shown)
    dtype = ibis.dtype(grouping.shown.type)
    return ValueCounts(
        Kind.of(dtype) or Kind.TEXT,
        grouping.shown.take(order),
        np.rint(counts).astype(np.int64)[order.to_numpy()],
        data.shared_rows,
    )


def _masked(
    columns: Sequence[tuple[Sequence[Mask], pa.Array]], connection: Any
) -> list[pa.ChunkedArray]:
    """Return, for each column and each of its masks, the masked values of the column's distinct
    values, in the same order.
    """
    most = max(len(values) for _, values in columns)
    rows = np.arange(most, dtype=np.int64)
    # Built from a buffer: Arrow imports pandas to convert a NumPy array.
    arrays = [pa.Array.from_buffers(pa.int64(), most, [None, pa.py_buffer(rows)])]
    names = ["row"]
    for number, (_, values) in enumerate(columns):
        short = most - len(values)
        filled = pa.concat_arrays([values, pa.nulls(short, values.type)]) if short else values
        arrays.append(filled)
        names.append(f"value_{number}")
    table = ibis.memtable(pa.Table.from_arrays(arrays, names=names))
    asked = [
        (mask.told_apart(table[f"value_{number}"]), len(values))
        for number, (masks, values) in enumerate(columns)
        for mask in masks
    ]
    query = table.select("row", **{f"mask_{i}": shown for i, (shown, _) in enumerate(asked)})
    result = fetch(connection, query)
    returned = result.column("row").to_numpy()
    if not np.array_equal(returned, rows):
        result = result.take(pc.sort_indices(result.column("row")))
    return [result.column(f"mask_{i}").slice(0, size) for i, (_, size) in enumerate(asked)]


def _group(column: pa.ChunkedArray) -> Grouping:
    if pa.types.is_floating(column.type):
        # -0.0 + 0.0 is 0.0. Arrow distinguishes NaN by their bits.
        column = pc.add(column, pa.scalar(0.0, column.type))
        column = pc.if_else(pc.is_nan(column), pa.scalar(np.nan, column.type), column)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return Grouping(
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), encoded.dictionary
    )


def refines(fine: Codes, coarse: Codes) -> bool:
    """Return whether each group of `fine` is a subset of a group of `coarse`.

    Both are groupings of the same V values: the group of each value, shape (V,), numbered from 0.
    Every grouping refines itself and the grouping with a single group.
    """
    _check_sizes(fine, coarse)
    if not len(fine):
        return True
    member = np.empty(int(fine.max()) + 1, dtype=np.int64)
    member[fine] = coarse
    return bool((member[fine] == coarse).all())


def common_refinement(groupings: Sequence[Codes]) -> Int32s:
    """Return the coarsest grouping that refines all `groupings`, numbered by first appearance.

    Each grouping is the group of each of V values, shape (V,), numbered from 0. The result has the
    same form, with type int32. Raises `InternalError` if there are no groupings, or if their shapes
    differ.
    """
    if not groupings:
        raise InternalError("There is no grouping to refine.")
    first, *others = groupings
    for other in others:
        _check_sizes(first, other)
    refinement = _renumbered(first.astype(np.int64))
    for other in others:
        if int(refinement.max(initial=-1)) + 1 == len(refinement):
            break  # each value is alone already
        refinement = _refined(refinement, other)
    return refinement


def _refined(left: Int32s, right: Codes) -> Int32s:
    width = int(right.max(initial=0)) + 1
    return _renumbered(left.astype(np.int64) * width + right)


def _renumbered(keys: Ints) -> Int32s:
    """Return a code for each entry of `keys`: equal keys get equal codes, numbered from 0 in order
    of first appearance.
    """
    if not len(keys):
        return np.zeros(0, dtype=np.int32)
    size = int(keys.max()) + 1
    if size > 4 * len(keys) + 1024:
        _, keys = np.unique(keys, return_inverse=True)
        size = int(keys.max()) + 1
    first = np.full(size, len(keys), dtype=np.int64)
    # Assigned in reverse: of several positions of a key the least is the last one written.
    first[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
    present = np.sort(first[first < len(keys)])
    number = np.empty(size, dtype=np.int32)
    number[keys[present]] = np.arange(len(present), dtype=np.int32)
    return number[keys]


def _check_sizes(left: Codes, right: Codes) -> None:
    if left.shape != right.shape:
        raise InternalError(f"Groupings of {len(left)} and {len(right)} values cannot be compared.")
