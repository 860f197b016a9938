"""Define an opened table: its content, its origin, reproducible samples of it, and a digest of its
rows that does not depend on row order or file format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, time
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pyarrow.types as of
from ibis.common.exceptions import IbisError
from ibis.expr.operations import DatabaseTable

from aegis.errors import DataError
from aegis.sources.dialect import Reading, TextDialect
from aegis.sources.embedded import embedded, engine_errors
from aegis.sources.engines import BUCKETS, ROW_NUMBER, Engine, engine_of

_MODULUS = 1 << 256
_LARGEST = 1 << 53
"""From this size on, not every whole number is exact as a float."""


def content_digest(names: list[str], batches: Iterator[pa.RecordBatch]) -> str:
    """Return the SHA-256 of a table's content: column names, number of rows, sum of the rows' digests.

    Repeated rows count as often as they occur. The order of columns does not matter. Values with
    the same meaning are equal: 1 equals 1.0, and a date equals midnight of this date.
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
    write = _words_of(kind)
    return [None if value is None else write(value) for value in values]


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


_ROW_HASH = "aegis_row_hash"


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return a file's size and time of change in nanoseconds; None if there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


FILE = 1 << 40
"""Larger than the number of rows of any file: `numbered` adds it for each file before a row's."""
DIGESTED = ("files", "rows in their order", "rows in any order")
"""The content that the digest of a table covers: bytes of files, or rows. Rows of Spark are not ordered.
"""


@dataclass(frozen=True, eq=False)
class Source:
    """A table that Aegis has opened for reading.

    Attributes
    ----------
    table
        The table as an Ibis expression.
    origin
        The argument of the user, for messages and reports.
    files
        The files of the table, in reading order; empty for tables in memory or in a database.
    numbered
        The same table with an additional column `ROW_NUMBER`, which is different in each row and is
        used for sampling. None unless the engine knows row numbers without counting (as for
        Parquet).
    dialect
        The dialect of the files, if they are text.
    notes
        Messages to the user about how the table was read, one sentence each.
    reading
        Reading options for opening the table again; None if none are needed.
    by_context
        Columns of text files in which other values decide how each value is read: the order of day
        and month, or the marks and units of numbers.
    stamps
        Size in bytes and time of the last change of each file, when the table was opened; None for
        a file that was missing.
    """

    table: ir.Table
    origin: str
    files: tuple[Path, ...] = ()
    numbered: ir.Table | None = None
    dialect: TextDialect | None = None
    notes: tuple[str, ...] = ()
    reading: Reading | None = None
    by_context: tuple[str, ...] = ()
    stamps: tuple[tuple[int, int] | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.stamps:
            object.__setattr__(self, "stamps", tuple(map(_stamp, self.files)))

    @cached_property
    def backend(self) -> Any:
        """The Ibis backend that runs queries on this table."""
        try:
            return self.table.get_backend()
        except IbisError:  # an unbound memtable belongs to no engine yet
            return embedded()

    @cached_property
    def engine(self) -> Engine:
        """The engine that runs queries on this table, with the properties that Aegis must know."""
        return engine_of(self.backend)

    @property
    def is_stored(self) -> bool:
        """Whether the table is in a database, so that it still exists after this process has ended.

        The embedded engine reads files as views, which exist only in memory.
        """
        return isinstance(self.table.op(), DatabaseTable) and self.backend is not embedded()

    @cached_property
    def is_parquet(self) -> bool:
        """Whether the rows come from Parquet files, which store repeated values as dictionaries."""
        return bool(self.files) and all(f.suffix.lower() in (".parquet", ".pq") for f in self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns, in the order of the table."""
        return tuple(self.table.columns)

    def _engine_errors(self) -> AbstractContextManager[None]:
        """Return a context that turns an engine's exceptions into one clear `EngineError`."""
        return engine_errors(self.origin, self.files)

    def require(self, column: str, *, where: str = "") -> ir.Column:
        """Return a column; if there is none, the error suggests the most similar name."""
        if column not in self.table.columns:
            raise DataError.unknown_column(column, self.table.columns, where=where)
        return self.table[column]

    def refuse_other_table(self, columns: Iterable[str], *, most: float = 0.5) -> None:
        """Refuse a table that lacks more than the share `most` of a policy's columns."""
        named = list(dict.fromkeys(columns))
        missing = [name for name in named if name not in self.table.columns]
        if len(missing) > 1 and (len(missing) > most * len(named) or len(missing) == len(named)):
            raise DataError.other_table(self.origin, missing, len(named), self.columns)

    def with_copies(self, copies: Mapping[str, str]) -> Source:
        """Return the source with copies of columns, by their new names."""

        def copied(table: ir.Table) -> ir.Table:
            return table.mutate(**{new: table[name] for new, name in copies.items()})

        numbered = None if self.numbered is None else copied(self.numbered)
        return replace(self, table=copied(self.table), numbered=numbered)

    def select(self, columns: tuple[str, ...]) -> Source:
        """Return a copy of the source that has only these columns."""
        return replace(self, table=self.table.select(*columns))

    @cached_property
    def rows(self) -> int:
        """The number of rows of the table. Aegis counts it once and then remembers it."""
        return int(self.collect(self.table.aggregate(n=self.table.count()))["n"][0].as_py())

    def collect(self, expression: ir.Table) -> pa.Table:
        """Run a query and return its result in memory; failures are `EngineError`."""
        with self._engine_errors():
            return _fetched(self.engine, expression)

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Store the result of a query as a temporary table while the context lasts."""
        with self._engine_errors(), self.engine.keep(expression) as table:
            yield table

    def upload(self, table: pa.Table) -> ir.Table:
        """Return the rows of a small table in memory as a table for this engine's queries."""
        with self._engine_errors():
            return self.engine.upload(table)

    def batches(self, expression: ir.Table, *, rows: int = 1 << 18) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield the rows of its result in batches of about `rows` rows."""
        with self._engine_errors():
            yield from _batches(self.engine, expression, rows)

    def sample(self, rows: int, *, seed: int) -> ir.Table:
        """Return about `rows` rows of the table that are drawn at random. The same seed gives the
        same rows.

        A row is in the sample if the hash of its number and the seed is below a threshold
        (Bernoulli sampling). So the sample does not depend on threads or on the reading order.
        Engines that are not embedded use their own TABLESAMPLE, or `row_hash` for a view of
        PostgreSQL. They draw the same rows as long as the table does not change.
        """
        if rows >= self.rows:
            return self.table
        if self._samples_itself():
            return self.table.sample(rows / self.rows, method="row", seed=seed)
        numbered = self.table if self.numbered is None else self.numbered
        row_hash = self.engine.row_hash(numbered, seed)
        if row_hash is None:  # the engine says what it cannot do
            return self.table.sample(rows / self.rows, method="row", seed=seed)
        marked = numbered.mutate(**{_ROW_HASH: row_hash})
        in_sample = marked[_ROW_HASH] < int(BUCKETS * rows / self.rows)
        return marked.filter(in_sample).select(*self.columns)

    def sample_positions(self, rows: int, *, seed: int) -> npt.NDArray[np.int64] | None:
        """Return the positions of the rows of `sample`, ascending; None unless from Parquet."""
        if self.numbered is None or not self.is_parquet:
            return None
        sizes = [self.rows]
        if len(self.files) > 1:
            sizes = [pyarrow.parquet.read_metadata(file).num_rows for file in self.files]
        return sampled_positions(sizes, rows, seed)

    def _samples_itself(self) -> bool:
        """Return whether the engine's own TABLESAMPLE can sample the table."""
        with self._engine_errors():
            return self.engine.samples(self.table)

    @property
    def digest_of(self) -> str:
        """What `digest` is computed from: files, rows in their order, or rows in any order."""
        return DIGESTED[0] if self.files else DIGESTED[2 if self.engine.rows_stay else 1]

    def digest(self) -> str:
        """Return the SHA-256 digest of the bytes of the table's files. If there are no files,
        return the digest of the table in Arrow format.

        If rows must not be transferred to this process, the engine computes the digest of the rows,
        in any order.

        Raises
        ------
        DataError
            A file was changed or deleted after the table was opened, so its bytes need not be those
            of the rows.
        """
        sha = hashlib.sha256()
        if self.files:
            self.require_unchanged()
            for path in self.files:
                with path.open("rb") as file:
                    while chunk := file.read(1 << 20):
                        sha.update(chunk)
            return sha.hexdigest()
        with self._engine_errors():
            digest = self.engine.digest(self.table)
        if digest is not None:
            return digest
        sha.update(str(self.table.schema()).encode())
        for batch in self.batches(self.table):
            for column in batch.columns:
                # Bytes that depend only on values, not on offsets in buffers.
                alone = pa.record_batch([pa.concat_arrays([column])], names=["c"])
                sha.update(bytes(alone.serialize()))
        return sha.hexdigest()

    def require_unchanged(self) -> None:
        """Raise `DataError` if a file was changed or deleted after the table was opened."""
        for path, stamp in zip(self.files, self.stamps, strict=True):
            if stamp is None or _stamp(path) != stamp:
                raise DataError(
                    f"{path} was changed or deleted after it was opened.",
                    hint="Open the table again, and repeat what you did with it.",
                )

    def content_digest(self) -> str:
        """Return a digest of the rows in any order and file; the engine computes it if they must
        stay.
        """
        with self._engine_errors():
            digest = self.engine.digest(self.table)
        return digest or content_digest(list(self.table.columns), self.batches(self.table))


def sampled_positions(files: Sequence[int], rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the positions of a sample of about `rows` from files with so many rows each."""
    ranges = (
        f"SELECT range + {i * FILE} AS {ROW_NUMBER} FROM range({n})" for i, n in enumerate(files)
    )
    schema = ibis.schema({ROW_NUMBER: "int64"})
    numbers = embedded().sql(" UNION ALL ".join(ranges), schema=schema)
    sampled = Source(numbers, "row numbers", numbered=numbers).sample(rows, seed=seed)
    file, position = np.divmod(np.sort(fetch(embedded(), sampled)[ROW_NUMBER].to_numpy()), FILE)
    positions: npt.NDArray[np.int64] = np.cumsum([0, *files])[file] + position
    return positions


def fetch(backend: Any, expression: ir.Table) -> pa.Table:
    """Run a query on an Ibis backend and return its result."""
    return _fetched(engine_of(backend), expression)


def _fetched(engine: Engine, expression: ir.Table) -> pa.Table:
    """Return the result of a query, read in batches, because Ibis would import pandas for a whole one."""
    schema = expression.schema().to_pyarrow()
    return pa.Table.from_batches(_batches(engine, expression, 1 << 20), schema)


def _batches(engine: Engine, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
    """Stream the result of a query, with the column types that Ibis promises.

    The embedded engine sums integers in 128 bits, and truncates dates to timestamps.
    """
    schema = expression.schema().to_pyarrow()
    for batch in engine.batches(expression, rows):
        yield batch if batch.schema.equals(schema) else _conformed(batch, schema)


_DAY = 24 * 60 * 60 * 10**9
"""Nanoseconds of a day. The embedded engine counts 30 days as a month."""


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        _typed(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column with another type. Arrow cannot cast the intervals of an engine to durations."""
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    if pa.types.is_duration(kind) and pa.types.is_interval(column.type):
        spans = (
            v if v is None else (v.days + 30 * v.months, v.nanoseconds) for v in column.to_pylist()
        )
        nanoseconds = [v if v is None else v[0] * _DAY + v[1] for v in spans]
        return pa.array(nanoseconds, pa.duration("ns")).cast(kind)
    return column.cast(kind)


__all__ = ["ROW_NUMBER", "Source", "fetch"]


def refuse_duplicates(names: Iterable[str], origin: str) -> None:
    """Refuse two columns with the same name but for case: SQL engines ignore case, or rename the
    second.
    """
    earlier: dict[str, tuple[int, str]] = {}
    for position, name in enumerate(names, start=1):
        before, other = earlier.setdefault(name.lower(), (position, name))
        if before == position:
            continue
        alike = (
            f"{name!r}" if name == other else f"{other!r} and {name!r}, the same but for capitals"
        )
        raise DataError(
            f"{origin} has two columns named {alike}: number {before} and number {position}.",
            hint="Each column needs its own name, in which capitals do not count: rename one "
            "of the two.",
        )
