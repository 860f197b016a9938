"""Read a table from an SQLite file, with types that can represent every value.

DuckDB's reader of SQLite is an extension that must be downloaded, so this module uses Python's
`sqlite3`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from aegis.errors import DataError, PolicyError
from aegis.sources.embedded import quoted

SQLITE = frozenset({".sqlite", ".sqlite3", ".db"})
_ROWS = 50_000
"""Number of rows that are in memory as Python objects at once."""
_LONGEST = 64 << 20
"""Largest number of bytes of a text."""
_STEPS = 100_000
"""Number of steps of SQLite after which Python runs."""
_NOT_UTF8 = "Could not decode to UTF-8"
_EXACT = 1 << 53
"""Whole numbers below this are exact as doubles."""
_TIMES = {"DATE": pa.date32(), "DATETIME": pa.timestamp("us"), "TIMESTAMP": pa.timestamp("us")}
"""Declared types whose texts are read as dates or times if all of them are in ISO 8601."""


def read_sqlite(file: Path, name: str | None) -> tuple[pa.Table, list[str]]:
    """Read the rows of a table or view of an SQLite file. Also return messages to the user about
    how they were read.

    Parameters
    ----------
    file
        The database, which is opened read-only.
    name
        The table; None if the database has only one.

    Raises
    ------
    DataError
        The file is not an SQLite file, has no such table, or the table has binary values.
    PolicyError
        The file has several tables, and none is named.
    """
    with _reading(file) as database:
        table = _chosen(database, file, name)
        declared = database.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
        columns = {row[1]: str(row[2]).upper() for row in declared if row[6] != 1}
        types, notes = _types(database, table, list(columns), f"{table} of {file}")
        arrow = pa.Table.from_batches(_batches(database, table, types), pa.schema(types))
    return _with_declared(arrow, columns), notes


def sqlite_tables(file: Path) -> list[str]:
    """Return the tables and views of an SQLite file; raise `DataError` if it is none."""
    with _reading(file) as database:
        return _listed(database)


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only; raise `DataError` if SQLite cannot read it.

    Somebody else may have made the database. Its views cannot load code, and the user can interrupt
    one that never ends.
    """
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            # Python notices an interrupt only while it runs.
            database.set_progress_handler(lambda: 0, _STEPS)
            database.execute("PRAGMA schema_version").fetchone()  # fails if it is no database
            size = database.execute("PRAGMA page_size").fetchone()[0]
            if file.stat().st_size % size:  # SQLite takes the rest of a page for zeros
                raise DataError(
                    f"Cannot read {file}: it was cut.", hint="Copy it again, or ask for it again."
                )
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from error
        # What SQLite says of such a text ends in the text.
        undecoded = isinstance(error, UnicodeDecodeError) or _NOT_UTF8 in str(error)
        reason = "a text in it is not UTF-8" if undecoded else str(error).rstrip(".")
        raise DataError(
            f"Cannot read {file}: {reason}.",
            hint="Check that it is a SQLite database, complete and not locked by a program.",
        ) from error


def _listed(database: sqlite3.Connection) -> list[str]:
    listed = database.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    )
    return [str(row[0]) for row in listed]


def _chosen(database: sqlite3.Connection, file: Path, name: str | None) -> str:
    """Return the table to read: the named one, or the only one."""
    tables = _listed(database)
    if not tables:
        raise DataError(f"{file} has no tables.", hint="Give a database with a table.")
    if name is None and len(tables) > 1:
        raise PolicyError(
            f"{file} has {len(tables)} tables: {', '.join(tables)}.", hint="Name one with --table."
        )
    if name is not None and name not in tables:
        raise DataError(f"{file} has no table {name!r}.", hint=f"It has {', '.join(tables)}.")
    return name or tables[0]


def _types(
    database: sqlite3.Connection, table: str, columns: Sequence[str], origin: str
) -> tuple[list[tuple[str, pa.DataType]], list[str]]:
    """Choose the type of each column from its stored values; also return notes on mixed types.

    Integers mixed with other numbers are read as numbers if doubles can represent them; any other mix
    is read as text.
    """
    aggregates = ", ".join(
        f"count(*) FILTER (WHERE typeof({column}) = '{kind}')"
        for column in map(quoted, columns)
        for kind in ("integer", "real", "text", "blob")
    )
    far = ", ".join(
        f"count(*) FILTER (WHERE typeof({c}) = 'integer' AND {c} NOT BETWEEN -{_EXACT} AND {_EXACT})"
        for c in map(quoted, columns)
    )
    answer = database.execute(f"SELECT {aggregates}, {far} FROM {quoted(table)}").fetchone()
    types, notes = [], []
    for index, column in enumerate(columns):
        integers, real, text, blob = answer[4 * index : 4 * index + 4]
        if blob:
            raise DataError(
                f"Column {column!r} of {origin} holds bytes, which are not values to mask.",
                hint="Give a view without it.",
            )
        mixed = bool(text and (integers or real)) or bool(real and answer[4 * len(columns) + index])
        if mixed:
            notes.append(f"{column}: values of several types are read as text.")
        number = pa.float64() if real else pa.int64()
        types.append((column, pa.string() if mixed or text or not (integers or real) else number))
    return types, notes


def _batches(
    database: sqlite3.Connection, table: str, types: Sequence[tuple[str, pa.DataType]]
) -> Iterator[pa.RecordBatch]:
    names = [name for name, _ in types]
    listed = ", ".join(
        f"CAST({quoted(name)} AS TEXT)" if kind == pa.string() else quoted(name)
        for name, kind in types
    )
    cursor = database.execute(f"SELECT {listed} FROM {quoted(table)}")
    while rows := cursor.fetchmany(_ROWS):
        arrays = [
            pa.array(values, kind)
            for values, (_, kind) in zip(zip(*rows, strict=True), types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _with_declared(table: pa.Table, declared: dict[str, str]) -> pa.Table:
    """Convert columns to dates, times and Booleans if they are declared so and all values fit.

    Texts also become dates if all of them are ISO 8601 dates, because SQLite itself has no type for
    dates.
    """
    for index, (name, kind) in enumerate(declared.items()):
        column = table.column(index)
        converted = column
        if kind in _TIMES and pa.types.is_string(column.type):
            try:
                converted = column.cast(_TIMES[kind])
            except pa.ArrowInvalid:
                continue
        elif pa.types.is_string(column.type):
            converted = _as_dates(column)
        elif kind in ("BOOLEAN", "BOOL") and set(column.unique().to_pylist()) <= {0, 1, None}:
            converted = column.cast(pa.bool_())
        table = table.set_column(index, name, converted)
    return table


def _as_dates(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert texts to dates if all of them are ISO 8601 dates; otherwise return the texts."""
    if texts.null_count == len(texts):
        return texts
    try:
        dates = texts.cast(pa.date32())
    except pa.ArrowInvalid:
        return texts
    return dates if dates.cast(pa.string()).equals(texts) else texts
