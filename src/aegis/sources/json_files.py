"""Read JSON documents that programs export: an array of records, alone or within an object.

Aegis refuses a truncated document. The engine reads records one by one, so it would return the
records before the cut without an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from aegis.errors import DataError
from aegis.sources.delimited.column_types import as_written, has_offset
from aegis.sources.embedded import embedded, literal, quoted, stored
from aegis.sources.records import opened

_CHUNK = 1 << 20
_OBJECT = 1 << 24
"""Largest JSON object in bytes that the engine accepts by default."""
_SAFE = 1 << 53
"""Whole numbers up to this size are exact as doubles."""
_LONG = r"[\[:,\s]-?[0-9]{19,}\s*[,\]}]"
"""A whole number inside nested JSON that may not fit into 64 bits."""


def read_records(files: Sequence[Path], location: str) -> ir.Table:
    """Read the records of files with JSON documents or JSON lines, and return them as a table in
    memory.

    The engine reads whole numbers beyond 64 bits as doubles, which would make different numbers
    equal. So a column with such a number is read as text, as in CSV files. The engine also converts
    times with an offset from UTC to UTC. Here, they are read as they are written, without the offset.

    Raises
    ------
    DataError
        A nested column contains such a number.
    """
    size = max(map(_object_size, files))
    larger = f", maximum_object_size = {size}" if size > _OBJECT else ""
    paths = f"[{', '.join(literal(str(file)) for file in files)}]"
    table = stored(f"SELECT * FROM read_json_auto({paths}{larger})")
    texts = {
        column: f"b.{quoted(column)}"
        for column in _doubtful(table)
        if _merges(paths, table, column, location)
    }
    for column, kind in table.schema().items():
        if kind.is_timestamp() and _any(paths, column, has_offset(quoted(column))):
            texts[column] = as_written(f"b.{quoted(column)}")
    if not texts:
        return table
    kinds = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in texts)
    replacements = ", ".join(f"{value} AS {quoted(column)}" for column, value in texts.items())
    exact = f"read_json({paths}, columns={{{kinds}}})"
    first = quoted(table.get_name())
    return stored(f"SELECT a.* REPLACE ({replacements}) FROM {first} a POSITIONAL JOIN {exact} b")


def _doubtful(table: ir.Table) -> list[str]:
    """Return the columns of doubles that may be large integers, and the nested ones with doubles."""
    doubles = [name for name, kind in table.schema().items() if kind.is_floating()]
    nested = [n for n, kind in table.schema().items() if kind.is_nested() and _holds_doubles(kind)]
    if not doubles:
        return nested
    aggregates = {str(i): (table[name].abs() >= _SAFE).any() for i, name in enumerate(doubles)}
    large = table.aggregate(**aggregates).to_pyarrow().to_pylist()[0]
    return [*(name for i, name in enumerate(doubles) if large[str(i)]), *nested]


def _holds_doubles(kind: dt.DataType) -> bool:
    if isinstance(kind, dt.Struct):
        return any(map(_holds_doubles, kind.types))
    if isinstance(kind, dt.Array | dt.Map):
        return _holds_doubles(kind.value_type)
    return bool(kind.is_floating())


def _merges(paths: str, table: ir.Table, column: str, location: str) -> bool:
    """Return whether a number read as a double differs from the one in the documents `paths`."""
    text = quoted(column)
    nested = table[column].type().is_nested()
    # What is not a whole number has no HUGEINT, and neither has what is beyond 128 bits.
    merged = (
        f"regexp_matches({text}, {literal(_LONG)})"
        if nested
        else f"regexp_full_match({text}, '-?[0-9]+') AND "
        f"TRY_CAST(TRY_CAST({text} AS DOUBLE) AS HUGEINT) IS DISTINCT FROM TRY_CAST({text} AS HUGEINT)"
        f" OR regexp_full_match({text}, '-?[0-9]{{39,}}')"
    )
    merges = _any(paths, column, merged)
    if merges and nested:
        raise DataError(
            f"{location}: the nested column {column!r} holds whole numbers beyond 64 bits.",
            hint="Write them as texts, or each field of it as a column.",
        )
    return merges


def _any(paths: str, column: str, condition: str) -> bool:
    """Return whether a text of a column in the documents `paths` meets an SQL condition."""
    with embedded().con.cursor() as cursor:
        rows = cursor.execute(
            f"SELECT 1 FROM read_json({paths}, columns={{{literal(column)}: 'VARCHAR'}}) "
            f"WHERE {condition} LIMIT 1"
        ).fetchall()
    return bool(rows)


def require_records(file: Path) -> None:
    """Check that a JSON document is a complete array or object, or consists of JSON lines.

    Raises
    ------
    DataError
        The array is never closed, or the document has neither records nor an array of records.
    """
    first, last = _ends(file)
    if first == b"[" and last != b"]":
        raise DataError(
            f"{file} is cut off: its array of records is never closed.",
            hint="Export it again, and check that the disk is not full.",
        )
    if first not in (b"[", b"{"):
        raise DataError(
            f"{file} holds no records: it begins with {first.decode(errors='replace')!r}.",
            hint=_RECORDS,
        )


def _object_size(file: Path) -> int:
    """Return the bytes of a document that is a single object; 0 for any other."""
    with opened(file) as stream:
        line = stream.readline()
        if not line.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
            return 0
        rest = stream.readline()
        if rest.strip().startswith(b"{"):
            return 0
        size = len(line) + len(rest)
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
    return size + 1


def records_within(table: ir.Table, file: str) -> ir.Table:
    """Return the rows in a JSON object that has exactly one array of records.

    Raises
    ------
    DataError
        The object has no array of records, or several.
    """
    arrays = [
        name
        for name, kind in table.schema().items()
        if isinstance(kind, dt.Array) and kind.value_type.is_struct()
    ]
    if len(arrays) != 1:
        several = f", with {len(arrays)} arrays of records: {', '.join(arrays)}" if arrays else ""
        raise DataError(f"{file} holds one object{several}, not one record per row.", hint=_RECORDS)
    return table.select(record=table[arrays[0]].unnest()).unpack("record")


_RECORDS = (
    'Write an array of records, [{"age": 41, ...}, ...], as pandas does with orient="records", or JSON lines '
    "(.jsonl)."
)


def _ends(file: Path) -> tuple[bytes, bytes]:
    """Return the first and the last byte of a file that are not white space; empty if there are none."""
    first = last = b""
    with opened(file) as stream:
        while chunk := stream.read(_CHUNK):
            text = chunk.strip(b" \t\r\n\xef\xbb\xbf" if not first else b" \t\r\n")
            if text:
                first, last = first or text[:1], text[-1:]
    return first, last
