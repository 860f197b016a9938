"""Store arrays of different lengths and types in one Arrow IPC stream; equal arrays give equal
bytes.

A member of a bundle is a table of one row whose columns are lists. The position of a null is stored
separately. Otherwise, equal arrays could become different bytes, because Arrow does not define the
bytes at a null, nor the unused bits of a validity bitmap.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.errors import InternalError

_NULL = ":null"
_COMPRESSION = 3
"""Place of `compression` among the fields of a RecordBatch (Arrow format, Message.fbs)."""
_HEADER = 2
"""Place of `header` among the fields of a Message."""


def pack(columns: Mapping[str, Any]) -> bytes:
    """Return named arrays as the bytes of one Arrow IPC stream.

    Parameters
    ----------
    columns
        NumPy arrays of one dimension, or Arrow arrays in which at most one entry is null.
    """
    stored: dict[str, pa.Array] = {}
    for name, column in columns.items():
        array = column if isinstance(column, pa.Array) else pa.array(column)
        if not _plain(array.type):
            raise InternalError(f"{name!r} has type {array.type}, which a bundle cannot hold.")
        if array.null_count > 1:
            raise InternalError(f"{name!r} is not an array of distinct values: null occurs twice.")
        if array.null_count:
            position = pc.index(pc.is_null(array), True).as_py()
            stored[name + _NULL] = _one_row(pa.array([position], pa.int64()))
            array = array.drop_null()
        if pa.types.is_boolean(array.type):
            array = pa.array(array.to_pylist(), pa.bool_())
        stored[name] = _one_row(array)
    batch = pa.record_batch(list(stored.values()), names=list(stored))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(data: bytes | pa.Buffer) -> dict[str, pa.Array]:
    """Return the arrays in the bytes that `pack` wrote. The arrays share the memory of `data`.

    Raises
    ------
    ValueError
        The bytes are not such a stream, or have compressed buffers, which could expand to any size.
    """
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
    kinds = messages.read_next_message(), messages.read_next_message()
    if [message.type for message in kinds] != ["schema", "record batch"]:
        raise ValueError("it holds no plain record batch")
    if _compressed(kinds[1].metadata):
        raise ValueError("it holds a compressed record batch")
    # Only the stream reader checks a schema that may be damaged; reading messages one by one
    # could follow a pointer into nowhere.
    reader = pa.ipc.open_stream(pa.py_buffer(data))
    for field in reader.schema:
        if not pa.types.is_large_list(field.type) or not _plain(field.type.value_type):
            raise ValueError(f"it holds a column of type {field.type}")
    batch = reader.read_next_batch()
    if batch.num_rows != 1:
        raise ValueError("it does not have exactly one row")
    batch.validate(full=True)
    arrays = {name: batch.column(name).flatten() for name in batch.schema.names}
    return {
        name: _with_null(array, arrays.get(name + _NULL))
        for name, array in arrays.items()
        if not name.endswith(_NULL)
    }


def _plain(dtype: pa.DataType) -> bool:
    """Return whether each value of a type takes memory, so that the file's size limits an array's
    length.
    """
    return any(
        holds(dtype)
        for holds in (
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_decimal,
            pa.types.is_boolean,
            pa.types.is_date,
            pa.types.is_timestamp,
            pa.types.is_string,
            pa.types.is_large_string,
        )
    )


def _one_row(array: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)


def _with_null(array: pa.Array, position: pa.Array | None) -> pa.Array:
    if position is None:
        return array
    place = position[0].as_py()
    return pa.concat_arrays([array[:place], pa.nulls(1, array.type), array[place:]])


def numbers(array: pa.Array, dtype: type[np.integer[Any]]) -> Any:
    """Convert an Arrow array of integers of the type `dtype` to a NumPy array; raise `ValueError`
    if the array has another type.
    """
    whole = array.to_numpy(zero_copy_only=False)
    if whole.dtype != np.dtype(dtype):
        raise ValueError(f"an array holds {whole.dtype} in place of {np.dtype(dtype)}")
    return whole


def _compressed(metadata: pa.Buffer) -> bool:
    """Return whether the metadata of a record batch (a flatbuffer) declares compressed buffers."""
    data = metadata.to_pybytes()
    header = _field(data, struct.unpack_from("<I", data, 0)[0], _HEADER)
    if header is None:
        raise ValueError("a message has no header")
    batch = header + struct.unpack_from("<I", data, header)[0]
    return _field(data, batch, _COMPRESSION) is not None


def _field(data: bytes, table: int, index: int) -> int | None:
    """Return the offset of field `index` of the flatbuffer table at `table`; None if unset."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    slot = 4 + 2 * index
    offset = struct.unpack_from("<H", data, vtable + slot)[0] if slot < size else 0
    return table + offset if offset else None
