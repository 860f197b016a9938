"""Mask the rows of a large Parquet file by its codes: each value once, not each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.masking.masked import CheckedClasses
from aegis.masks import Mask, evaluate
from aegis.sources import Source
from aegis.summary.coded_rows import stored_rows
from aegis.summary.codes import code_values, narrow
from aegis.summary.frequency import mixed

ROWS = 122_880
"""Rows of a batch, as many as the engine writes together."""
_MOST_KEYS = 1 << 62

MaskedColumn = tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.unsignedinteger], pa.Array]
"""Of a column: the code of each row, the group of each code, the masked value of each group."""


def masked_batches(
    source: Source, table: ir.Table, masks: Mapping[str, Mask | None], checked: CheckedClasses
) -> Iterator[pa.RecordBatch] | None:
    """Return the rows of a release in batches, by masking each value once instead of each row.
    Texts are returned as Arrow dictionaries. Return None if this is not possible, so that the
    engine must mask the rows.

    Parameters
    ----------
    source
        The table, whose rows must be held as codes in memory (`holding`).
    table
        The query of the released rows: its columns and types are returned.
    masks
        A fitted mask for each column; None shows the column as it is.
    checked
        The checked classes, which say which rows are left out.
    """
    types = {field.name: field.type for field in table.schema().to_pyarrow()}
    quasi = checked.quasi if checked.left_out is not None else ()
    names = tuple(dict.fromkeys((*types, *quasi)))
    if not all(map(_plain, types.values())) or not all(
        name in masks and getattr(masks[name], "deterministic", True) for name in names
    ):
        return None
    rows = stored_rows(source, names)
    if rows is None:
        return None
    columns = {n: _masked_column(masks[n], rows.codes[n], rows.values[n]) for n in names}
    if any(columns[name][2].type != kind for name, kind in types.items()):
        return None
    if prod(len(columns[name][2]) for name in quasi) >= _MOST_KEYS:
        return None
    return _batches(columns, tuple(types), checked.rows, quasi, checked.left_out)


def _plain(kind: pa.DataType) -> bool:
    """Return whether Arrow writes values of this type to a file in the same way as the table's
    engine does.
    """
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_signed_integer,
            pa.types.is_float64,
            pa.types.is_boolean,
            pa.types.is_date32,
        )
    )


def _masked_column(
    mask: Mask | None, codes: npt.NDArray[np.unsignedinteger], values: pa.Array
) -> MaskedColumn:
    """Return for a column the code of each row (`codes`), the masked group of each code, and the
    masked value of each group. `values` has the value of each code; without a mask, each value is a
    group.
    """
    if mask is None:
        return codes, narrow(np.arange(len(values)), len(values)), values
    [grouping] = evaluate([mask], values)
    return codes, narrow(grouping.codes, grouping.size), grouping.masked_values


def _batches(
    columns: Mapping[str, MaskedColumn],
    names: tuple[str, ...],
    rows: int,
    quasi: tuple[str, ...],
    left_out: pa.Table | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a release in batches, without the rows of left-out classes.

    Parameters
    ----------
    columns
        For each column, the code of each row, the group of each code, and the masked value of each
        group.
    names
        The released columns.
    rows
        Number of rows of the table.
    quasi
        The quasi-identifiers.
    left_out
        The classes to leave out, with their values of the quasi-identifiers; None if there are
        none.
    """
    sizes = [len(columns[name][2]) for name in quasi]
    failing = None
    if left_out is not None:
        left_out_codes = (
            code_values(left_out[f"k{i}"].combine_chunks(), columns[name][2])
            for i, name in enumerate(quasi)
        )
        failing = pa.array(mixed(left_out_codes, sizes))
    for start in range(0, rows, ROWS):
        batch = slice(start, start + ROWS)
        groups = {name: of.take(codes[batch]) for name, (codes, of, _) in columns.items()}
        keep: npt.NDArray[np.bool_] | slice = slice(None)
        if failing is not None:
            key = mixed((groups[name] for name in quasi), sizes)
            keep = ~pc.is_in(pa.array(key), value_set=failing).to_numpy(zero_copy_only=False)
        arrays = [_array(groups[name][keep], columns[name][2]) for name in names]
        yield pa.record_batch(arrays, names=list(names))


def _array(groups: npt.NDArray[np.unsignedinteger], masked_values: pa.Array) -> pa.Array:
    """Return the masked values of some rows. `groups` has the group of each row, and
    `masked_values` the masked value of each group.

    Texts are returned as an Arrow dictionary that has only texts that some row shows.
    """
    if not pa.types.is_string(masked_values.type):
        return masked_values.take(pa.array(groups))
    used = np.bincount(groups, minlength=len(masked_values)) > 0
    null = masked_values.is_null().to_numpy(zero_copy_only=False)
    texts = used & ~null
    indices = (np.cumsum(texts) - 1).astype(np.int32).take(groups)
    missing = null[groups] if (used & null).any() else None
    if missing is not None:
        indices[missing] = 0
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=missing), masked_values.filter(pa.array(texts))
    )
