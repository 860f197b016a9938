"""Compute a digest of a table's rows that does not depend on row order or file format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, time
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as of

_MODULUS = 1 << 256
_LARGEST = 1 << 53
"""From this size on, not every whole number is exact as a float."""


def content_digest(names: list[str], batches: Iterator[pa.RecordBatch]) -> str:
    """Return the SHA-256 digest of a table's content: its column names, its number of rows, and the
    sum of the digests of its rows.

    Repeated rows count as often as they occur. The order of columns does not matter. Values with
    the same meaning are equal: 1 equals 1.0, and a date equals midnight of this date.

    Parameters
    ----------
    names
        The columns.
    batches
        The rows, which are read once.
    """
    ordered = sorted(names)
    total = rows = 0
    for batch in batches:
        rows += batch.num_rows
        columns = [_texts(batch.column(batch.schema.get_field_index(n))) for n in ordered]
        for row in zip(*columns, strict=True):
            written = json.dumps(row, ensure_ascii=True)
            total += int.from_bytes(sha256(written.encode()).digest(), "big")
        total %= _MODULUS
    return sha256(json.dumps([ordered, rows, f"{total:064x}"]).encode()).hexdigest()


def _texts(column: pa.Array) -> list[str | None]:
    """Return the values of a column as texts; null stays null."""
    kind = column.type
    if of.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if of.is_integer(kind):
        column, kind = pc.cast(column, pa.string()), pa.string()
    values: list[Any] = column.to_pylist()
    said = _words_of(kind)
    return [None if value is None else said(value) for value in values]


def _words_of(kind: pa.DataType) -> Callable[[Any], str]:
    """Return the function that writes a value of this type as text."""
    if of.is_floating(kind):
        return _number
    if of.is_decimal(kind):
        return _decimal
    if of.is_timestamp(kind):
        return _moment
    return str


def _number(value: float) -> str:
    return str(int(value)) if abs(value) < _LARGEST and value == int(value) else repr(value)


def _decimal(value: Decimal) -> str:
    return _number(float(value)) if Decimal(float(value)) == value else str(value.normalize())


def _moment(value: datetime) -> str:
    return str(value.date()) if value.time() == time() and value.tzinfo is None else str(value)
