"""An opened table: what it is, where it came from, how to draw a reproducible sample of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
from ibis.common.exceptions import IbisError
from ibis.expr.operations import DatabaseTable

from aegis.errors import DataError
from aegis.sources import spark
from aegis.sources.dialect import Dialect, Reading
from aegis.sources.embedded import embedded
from aegis.sources.failures import engine_errors

ROW_NUMBER = "aegis_row_number"
"""Name of the column of `Source.numbered` that tells rows apart, from 0, below 2**62."""
_BUCKETS = 1 << 30
_SCATTERED = "aegis_scattered"


def _hashed(value: int) -> int:
    """Give the signature of the engine's hash function to Ibis, which never calls this one."""
    return value


# With its own result type: Ibis casts what `hash` returns to int64, slowly.
_HASH = ibis.udf.scalar.builtin(_hashed, name="hash", signature=(("int64",), "uint64"))


def _keyed(value: int, seed: int) -> int:  # noqa: ARG001
    """Give the signature of an engine's keyed hash function to Ibis, which never calls this one."""
    return value


def _place() -> int:
    """Give the signature of Spark's numbers of rows to Ibis, which never calls this one."""
    return 0


_BIG = (("int64", "int64"), "int64")
_POSTGRES_HASH = ibis.udf.scalar.builtin(_keyed, name="hashint8extended", signature=_BIG)
_SPARK_HASH = ibis.udf.scalar.builtin(_keyed, name="xxhash64", signature=_BIG)
_SPARK_PLACE = ibis.udf.scalar.builtin(
    _place, name="monotonically_increasing_id", signature=((), "int64")
)


@dataclass(frozen=True, eq=False)
class Source:
    """A table opened for reading.

    Attributes
    ----------
    table
        The table as an Ibis expression.
    origin
        What the user passed, for messages and reports.
    files
        The files behind the table, in reading order; empty for tables in memory or in a database.
    numbered
        The same table with a column `ROW_NUMBER`, different in each row, where the engine knows
        row numbers without counting (Parquet); used for sampling.
    dialect
        How the files are written, where they are text.
    notes
        What a user should know of how the table was read, a sentence each.
    reading
        What is to be said when it is opened again; None for nothing.
    """

    table: ir.Table
    origin: str
    files: tuple[Path, ...] = ()
    numbered: ir.Table | None = None
    dialect: Dialect | None = None
    notes: tuple[str, ...] = ()
    reading: Reading | None = None

    @cached_property
    def backend(self) -> Any:
        """The Ibis backend that runs this table's queries."""
        try:
            return self.table.get_backend()
        except IbisError:  # an unbound memtable belongs to no engine yet
            return embedded()

    @cached_property
    def is_embedded(self) -> bool:
        """Whether queries run within this process on DuckDB, so that rows need not travel."""
        return bool(self.backend.name == "duckdb")

    @property
    def is_stored(self) -> bool:
        """Whether the table is one of a database, which is still there when this process has ended.

        The embedded engine reads files as views of its own memory.
        """
        return isinstance(self.table.op(), DatabaseTable) and self.backend is not embedded()

    @cached_property
    def is_parquet(self) -> bool:
        """Whether the rows are read from Parquet files, which store few values as dictionaries."""
        return bool(self.files) and all(f.suffix.lower() in (".parquet", ".pq") for f in self.files)

    @cached_property
    def is_spark(self) -> bool:
        """Whether queries run on Spark, so that rows must not come to this process, the driver."""
        return bool(self.backend.name == spark.NAME)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(self.table.columns)

    def _told(self) -> AbstractContextManager[None]:
        """Return a context that turns an engine's exceptions into one clear `EngineError`."""
        return engine_errors(self.origin, self.files)

    def require(self, column: str, *, where: str = "") -> ir.Column:
        """Return a column; raise `DataError` with the nearest name when the table lacks it."""
        if column not in self.table.columns:
            raise DataError.unknown_column(column, self.table.columns, where=where)
        return self.table[column]

    def select(self, columns: tuple[str, ...]) -> Source:
        """Return the source with only these columns."""
        return replace(self, table=self.table.select(*columns))

    @cached_property
    def rows(self) -> int:
        """Number of rows (counted once)."""
        return int(self.collect(self.table.aggregate(n=self.table.count()))["n"][0].as_py())

    def collect(self, expression: ir.Table) -> pa.Table:
        """Run a query and return its result; engine failures become `EngineError`."""
        with self._told():
            return fetch(self.backend, expression)

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Have the engine keep the result of a query as a temporary table while the context lasts."""
        if self.is_spark:
            with self._told(), spark.keep(self.backend, expression) as kept:
                yield kept
            return
        with self._told(), _steady(self.backend):
            # Ibis hands tables in memory to the engine before it runs a query, not before it keeps one.
            self.backend._run_pre_execute_hooks(expression)
            table = expression.cache()
        with self._told(), _afterwards(table.release):
            yield table

    def hand_over(self, table: pa.Table) -> ir.Table:
        """Return a small table of this process for use in queries of this source's engine."""
        if not self.is_spark:
            return ibis.memtable(table)
        with self._told():
            return spark.hand_over(self.backend, table)

    def batches(self, expression: ir.Table, *, rows: int = 1 << 18) -> Iterator[pa.RecordBatch]:
        """Run a query and stream its result in batches of about `rows` rows."""
        with self._told():
            yield from _batches(self.backend, expression, rows)

    def sample(self, rows: int, *, seed: int) -> ir.Table:
        """Return about `rows` rows drawn uniformly: the same rows for the same seed.

        A row is in the sample when the hash of its number and the seed falls below a threshold
        (Bernoulli sampling), which no thread count or reading order can change. Engines that are
        not embedded draw by their own TABLESAMPLE, or from a view of PostgreSQL by `scatter`: the
        same rows as long as the table stays.
        """
        if rows >= self.rows:
            return self.table
        if not self.is_embedded and self._samples_itself():
            return self.table.sample(rows / self.rows, method="row", seed=seed)
        numbered = self.table if self.numbered is None else self.numbered
        scattered = self.scatter(numbered, seed=seed)
        if scattered is None:  # the engine says what it cannot do
            return self.table.sample(rows / self.rows, method="row", seed=seed)
        marked = numbered.mutate(**{_SCATTERED: scattered})
        threshold = int(_BUCKETS * rows / self.rows)
        return marked.filter(marked[_SCATTERED] < threshold).select(*self.columns)

    def scatter(self, table: ir.Table, *, seed: int) -> ir.Value | None:
        """Return a number from 0 to 2**30 for each row, as if drawn: the same for the same seed.

        It is a hash of the row's number and the seed. PostgreSQL and Spark number rows as they
        read them, which is the same as long as the table and the way it is read stay. None where
        it is not known how the engine hashes.

        Parameters
        ----------
        table
            A table of this source's engine.
        seed
            Another seed gives unrelated numbers.
        """
        offset = ibis.literal(_offset(seed), type="int64")
        if self.is_embedded:
            known = ROW_NUMBER in table.columns
            number = table[ROW_NUMBER] if known else ibis.row_number()
            return (_HASH(number + offset) % _BUCKETS).cast("int64")
        if self.is_spark:
            return _SPARK_HASH(_SPARK_PLACE(), offset) & (_BUCKETS - 1)
        if self.backend.name == "postgres":
            return _POSTGRES_HASH(ibis.row_number(), offset) & (_BUCKETS - 1)
        return None

    def _samples_itself(self) -> bool:
        """Return whether the engine's own TABLESAMPLE works: in PostgreSQL not on views.

        Ibis does not tell Spark the seed.
        """
        if self.backend.name != "postgres":
            return not self.is_spark
        node = self.table.op()
        if not isinstance(node, DatabaseTable):
            return False
        parts = [part for part in (node.namespace.database, node.name) if part]
        name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
        with self._told(), self.backend.con.cursor() as cursor:
            cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", (name,))
            found = cursor.fetchone()
        return found is not None and str(found[0]) in "rmp"

    def digest(self) -> str:
        """Return the SHA-256 of the bytes of the files, or of the table's Arrow form.

        On Spark the executors compute it, of the rows in any order: `aegis.sources.spark.digest`.
        """
        sha = hashlib.sha256()
        if self.files:
            for path in self.files:
                with path.open("rb") as file:
                    while chunk := file.read(1 << 20):
                        sha.update(chunk)
            return sha.hexdigest()
        if self.is_spark:
            with self._told():
                return spark.digest(self.backend, self.table)
        sha.update(str(self.table.schema()).encode())
        for batch in self.batches(self.table):
            for column in batch.columns:
                sha.update(_column_bytes(column))
        return sha.hexdigest()


@contextmanager
def _steady(backend: Any) -> Iterator[None]:
    """Have PostgreSQL read rows in the same order each time, so that their numbers stay."""
    if backend.name != "postgres":
        yield
        return
    settings = {"max_parallel_workers_per_gather": "0", "synchronize_seqscans": "off"}

    def reset() -> None:
        for name in settings:
            backend.raw_sql(f"RESET {name}").close()

    with _afterwards(reset):
        for name, value in settings.items():
            backend.raw_sql(f"SET {name} = {value}").close()
        yield


@contextmanager
def _afterwards(undo: Callable[[], None]) -> Iterator[None]:
    """Undo something after the body, whether it fails or not.

    Where both fail it is the body's failure that is told: it may have ended the connection.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):
            undo()
        raise
    undo()


def fetch(backend: Any, expression: ir.Table) -> pa.Table:
    """Return the result of a query.

    In batches, since Ibis imports pandas to return a whole result.
    """
    schema = expression.schema().to_pyarrow()
    return pa.Table.from_batches(_batches(backend, expression, 1 << 20), schema)


def _batches(backend: Any, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
    """Stream the result of a query, with the types that Ibis promises.

    The embedded engine adds up whole numbers in 128 bits, and truncates dates to times.
    """
    schema = expression.schema().to_pyarrow()
    found = (
        spark.fetch(backend, expression).to_batches(max_chunksize=rows)
        if backend.name == spark.NAME
        else backend.to_pyarrow_batches(expression, chunk_size=rows)
    )
    for batch in found:
        yield batch if batch.schema.equals(schema) else _conformed(batch, schema)


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.nulls(len(batch)) if pa.types.is_null(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _offset(seed: int) -> int:
    """Return a number below 2**62 that no other seed is likely to come near."""
    return int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8]) >> 2


def _column_bytes(column: pa.Array) -> bytes:
    """Return bytes that depend on the values of a column alone, not on its buffers' offsets."""
    batch = pa.record_batch([pa.concat_arrays([column])], names=["c"])
    return bytes(batch.serialize())
