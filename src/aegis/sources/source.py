"""An opened table: what it is, where it came from, how to draw a reproducible sample of it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
from ibis.common.exceptions import IbisError

from aegis.errors import DataError
from aegis.sources import spark
from aegis.sources.failures import engine_errors

ROW_NUMBER = "aegis_row_number"
"""Name of the column of `Source.numbered` that tells rows apart, from 0, below 2**62."""
_BUCKETS = 1 << 30


@cache
def embedded() -> Any:
    """Return the embedded engine of this process: DuckDB in memory, opened on first use.

    What does not fit into memory goes to the system's folder for temporary files, under a name
    that no other process has.
    """
    folder = Path(tempfile.gettempdir()) / f"aegis-{os.getpid()}"
    return ibis.duckdb.connect(temp_directory=str(folder))


def _hashed(value: int) -> int:
    """Give the signature of the engine's hash function to Ibis, which never calls this one."""
    return value


# With its own result type: Ibis casts what `hash` returns to int64, slowly.
_HASH = ibis.udf.scalar.builtin(_hashed, name="hash", signature=(("int64",), "uint64"))


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
    """

    table: ir.Table
    origin: str
    files: tuple[Path, ...] = ()
    numbered: ir.Table | None = None

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

    @cached_property
    def is_spark(self) -> bool:
        """Whether queries run on Spark, so that rows must not come to this process, the driver."""
        return bool(self.backend.name == spark.NAME)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(self.table.columns)

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
        with engine_errors(self.origin):
            return fetch(self.backend, expression)

    def keep(self, expression: ir.Table) -> AbstractContextManager[ir.Table]:
        """Return a context in which the engine keeps the result of a query as a temporary table."""
        if self.is_spark:
            return self._kept(expression)
        with engine_errors(self.origin):
            # Ibis hands tables in memory to the engine before it runs a query, not before it keeps one.
            self.backend._run_pre_execute_hooks(expression)
            kept: AbstractContextManager[ir.Table] = expression.cache()
        return kept

    @contextmanager
    def _kept(self, expression: ir.Table) -> Iterator[ir.Table]:
        with engine_errors(self.origin), spark.keep(self.backend, expression) as kept:
            yield kept

    def hand_over(self, table: pa.Table) -> ir.Table:
        """Return a small table of this process for use in queries of this source's engine."""
        if not self.is_spark:
            return ibis.memtable(table)
        with engine_errors(self.origin):
            return spark.hand_over(self.backend, table)

    def batches(self, expression: ir.Table, *, rows: int = 1 << 18) -> Iterator[pa.RecordBatch]:
        """Run a query and stream its result in batches of about `rows` rows."""
        with engine_errors(self.origin):
            yield from _batches(self.backend, expression, rows)

    def sample(self, rows: int, *, seed: int) -> ir.Table:
        """Return about `rows` rows drawn uniformly: the same rows for the same seed.

        A row is in the sample when the hash of its number and the seed falls below a threshold
        (Bernoulli sampling), which no thread count or reading order can change. Engines that are
        not embedded draw by their own TABLESAMPLE, the same rows as long as the table stays.
        """
        if rows >= self.rows:
            return self.table
        if not self.is_embedded:
            return self.table.sample(rows / self.rows, method="row", seed=seed)
        threshold = int(_BUCKETS * rows / self.rows)
        offset = ibis.literal(_offset(seed), type="int64")
        if self.numbered is not None:
            numbered, number = self.numbered, self.numbered[ROW_NUMBER]
        else:
            numbered = self.table.mutate(**{ROW_NUMBER: ibis.row_number()})
            number = numbered[ROW_NUMBER]
        chosen = (_HASH(number + offset) % _BUCKETS).cast("int64") < threshold
        return numbered.filter(chosen).select(*self.columns)

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
            with engine_errors(self.origin):
                return spark.digest(self.backend, self.table)
        sha.update(str(self.table.schema()).encode())
        for batch in self.batches(self.table):
            for column in batch.columns:
                sha.update(_column_bytes(column))
        return sha.hexdigest()


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
