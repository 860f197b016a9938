"""Describe engines: a class for each known engine, and `Engine` for all others that Ibis supports.

Code outside `aegis.sources` uses the properties of `Engine` and never the name of an engine.

Rows in Apache Spark stay with its executors, and results are transferred as Arrow data. Ibis only
writes the SQL for Spark. If Ibis also ran the queries, it would transfer results through pandas,
which converts whole numbers with nulls to floats, and NaN to null. So the class `Spark` runs the
queries itself, and passes small tables as Arrow data.
"""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Lock
from typing import Any
from uuid import uuid4

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
from ibis.expr.operations import DatabaseTable, InMemoryTable
from sqlglot import exp

from aegis.errors import EngineError, PolicyError
from aegis.sources.embedded import quoted, turn
from aegis.sources.functions import engine_function

ROW_NUMBER = "aegis_row_number"
"""Name of the column with row numbers, if the engine has them. They are at least 0 and below 2**62.
"""
BUCKETS = 1 << 30
"""The hashes of rows are below this number."""


class Engine:
    """The engine that runs the queries on a table, with the properties that Aegis must know: of any
    engine that Ibis supports, if Aegis does not know its special properties.

    Parameters
    ----------
    backend
        The Ibis backend.

    Attributes
    ----------
    name
        Ibis's name of the backend.
    in_process
        Whether queries run within this process, so that rows are not transferred.
    rows_stay
        Whether rows must not be transferred to this process, because there may be too many.
    sends_combinations
        Whether this process may read how many rows have each combination of values of many columns,
        if there are few combinations. Many occur only once, so they do not leave a database.
    ordered
        Whether tables have an order that a query can keep.
    """

    in_process = False
    rows_stay = False
    sends_combinations = False
    ordered = True

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.name = str(backend.name)

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield the rows of its result in batches of about `rows` rows."""
        with self.turn(stream=True):
            yield from self.backend.to_pyarrow_batches(expression, chunk_size=rows)

    def turn(self, *, stream: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002
        """Let only this thread use the connection while the context lasts, if the engine needs it."""
        return nullcontext()

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Store the result of a query as a temporary table while the context lasts."""
        with self.turn(), self.steady():
            # Ibis uploads tables in memory before it runs a query, not before it keeps one.
            self.backend._run_pre_execute_hooks(expression)
            table = expression.cache()

        def release() -> None:
            with self.turn():
                table.release()

        with afterwards(release):
            yield table

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Make the engine read rows in the same order while the context lasts."""
        yield

    def upload(self, table: pa.Table) -> ir.Table:
        """Return the rows of a small table in memory as a table for queries."""
        return ibis.memtable(table)

    def row_hash(self, table: ir.Table, seed: int) -> ir.Value | None:  # noqa: ARG002
        """Return a pseudo-random number below `BUCKETS` for each row of a table; None if Aegis knows
        no hash function of the engine. The same seed gives the same numbers, and another seed gives
        unrelated ones.

        It is a hash of the row's number and the seed. PostgreSQL and Spark number rows in the order
        in which they read them, so the numbers stay the same as long as the table and the way it is
        read do not change.
        """
        return None

    def samples(self, table: ir.Table) -> bool:  # noqa: ARG002
        """Return whether the engine can draw rows of this table with TABLESAMPLE, and draws the
        same rows each time for the same seed. Aegis tries it on an unknown engine.
        """
        return True

    def digest(self, table: ir.Table) -> str | None:  # noqa: ARG002
        """Return a digest of the rows that the engine computes; None if this process may do so."""
        return None

    def transaction(self, origin: str) -> AbstractContextManager[Callable[[str], Any]]:
        """Yield a function that runs one SQL statement. If the body of the context fails, all these
        statements are undone. An unknown engine may be unable to do so: raise `EngineError`.
        """
        raise EngineError(
            f"{origin} cannot make tables in one transaction.",
            hint="Release into a file, or write the SQL with `aegis sql` and run it there.",
        )

    def require_here(self, what: str, hint: str) -> None:
        """Refuse the operation `what` if it would transfer rows that must stay."""
        if self.rows_stay:
            raise PolicyError(f"{what} to this process, the driver.", hint=hint)


def offset_of(seed: int) -> ir.Scalar:
    """Return a number below 2**62 for a seed, very likely far from those of other seeds."""
    number = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8]) >> 2
    return ibis.literal(number, type="int64")


@contextmanager
def afterwards(undo: Callable[[], None]) -> Iterator[None]:
    """Call `undo` after the body of the context, even if the body fails.

    If both fail, the failure of the body is raised, because it may have ended the connection.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):
            undo()
        raise
    undo()


DUCKDB = "duckdb"
"""Ibis's name of the backend."""


# With its own result type: Ibis casts what `hash` returns to int64, slowly.
_DUCKDB_HASH = engine_function("hash", ("int64",), "uint64")


class DuckDB(Engine):
    """The engine DuckDB: the embedded one in memory, or a database file that this process has
    opened.
    """

    in_process = True

    def turn(self, *, stream: bool = False) -> AbstractContextManager[None]:
        """Keep all other threads from using the connection to DuckDB while the context lasts."""
        return turn(stream=stream)

    def row_hash(self, table: ir.Table, seed: int) -> ir.Value:
        """Return, for each row, a hash of the seed and of its number in its file."""
        number = table[ROW_NUMBER] if ROW_NUMBER in table.columns else ibis.row_number()
        return (_DUCKDB_HASH(number + offset_of(seed)) % BUCKETS).cast("int64")

    def samples(self, table: ir.Table) -> bool:  # noqa: ARG002
        """Return False: what DuckDB draws with TABLESAMPLE depends on the number of threads."""
        return False

    @contextmanager
    def transaction(self, origin: str) -> Iterator[Callable[[str], Any]]:  # noqa: ARG002
        """Yield a function that runs one SQL statement. If the body of the context fails, all these
        statements are undone.
        """
        connection = self.backend.con
        with turn():
            connection.execute("BEGIN")
            try:
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise


POSTGRES = "postgres"
"""Ibis's name of the backend."""


_POSTGRES_HASH = engine_function("hashint8extended", ("int64", "int64"), "int64")


class Postgres(Engine):
    """The engine PostgreSQL, whose rows are numbered in the order in which they are read."""

    def row_hash(self, table: ir.Table, seed: int) -> ir.Value:  # noqa: ARG002
        """Return a hash of the seed and of each row's position, which `steady` keeps."""
        return _POSTGRES_HASH(ibis.row_number(), offset_of(seed)) & (BUCKETS - 1)

    def samples(self, table: ir.Table) -> bool:
        """Return whether it is a table: PostgreSQL draws no rows of views with TABLESAMPLE."""
        node = table.op()
        if not isinstance(node, DatabaseTable):
            return False
        parts = [part for part in (node.namespace.database, node.name) if part]
        name = ".".join(map(quoted, parts))
        with self.backend.con.cursor() as cursor:
            cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", (name,))
            relation = cursor.fetchone()
        return relation is not None and str(relation[0]) in "rmp"

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Make PostgreSQL read rows in the same order, so that each keeps its number."""
        settings = {"max_parallel_workers_per_gather": "0", "synchronize_seqscans": "off"}

        def reset() -> None:
            for name in settings:
                self.backend.raw_sql(f"RESET {name}").close()

        with afterwards(reset):
            for name, value in settings.items():
                self.backend.raw_sql(f"SET {name} = {value}").close()
            yield

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Store the result of a query as a temporary table on the server."""
        self.backend._run_pre_execute_hooks(expression)
        # Without statistics, the server would expect each join to multiply the rows.
        for uploaded in expression.op().find(InMemoryTable):
            self.backend.raw_sql(f'ANALYZE "{uploaded.name}"').close()
        with super().keep(expression) as table:
            self.backend.raw_sql(f'ANALYZE "{table.get_name()}"').close()
            yield table

    @contextmanager
    def transaction(self, origin: str) -> Iterator[Callable[[str], Any]]:  # noqa: ARG002
        """Yield a function that runs one SQL statement. If the body of the context fails, all these
        statements are undone.
        """
        connection = self.backend.con
        with connection.transaction(), connection.cursor() as cursor:
            yield lambda sql: cursor.execute(sql)


SPARK = "pyspark"
"""Ibis's name of its Spark backend."""
_WORDS = 8
"""Number of 32-bit numbers into which a SHA-256 is split to be added up."""


_SPARK_HASH = engine_function("xxhash64", ("int64", "int64"), "int64")
_ROW_POSITION = engine_function("monotonically_increasing_id", (), "int64")
_SMALL_TABLE = "spark.sql.codegen.aggregate.map.twolevel.enabled"
_KEEPING = Lock()
"""Held while the setting `_SMALL_TABLE` is changed, so that threads do not mix up its values."""


class Spark(Engine):
    """The engine Spark, as a session whose driver, this process, receives only aggregates."""

    rows_stay = True
    sends_combinations = True
    ordered = False

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield the rows of its result, which must fit into memory."""
        yield from frame_of(self.backend, expression).toArrow().to_batches(max_chunksize=rows)

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Store the result of a query on Spark's executors as long as the context lasts, computed without
        the small hash table for the first groups, which is slow with many columns.
        """
        settings = self.backend._session.conf
        with _KEEPING:
            before = settings.get(_SMALL_TABLE)
            settings.set(_SMALL_TABLE, "false")
            try:  # Spark copies its settings when it plans what to store
                frame = frame_of(self.backend, expression).persist()
            finally:
                settings.set(_SMALL_TABLE, before)
        table = as_table(self.backend, frame)
        try:
            yield table
        finally:
            frame.unpersist()

    def upload(self, table: pa.Table) -> ir.Table:
        """Return a table of the Spark session, with the rows of a small table in memory."""
        return as_table(self.backend, self.backend._session.createDataFrame(table))

    def row_hash(self, table: ir.Table, seed: int) -> ir.Value:  # noqa: ARG002
        """Return, for each row, a hash of its position and of the seed."""
        return _SPARK_HASH(_ROW_POSITION(), offset_of(seed)) & (BUCKETS - 1)

    def samples(self, table: ir.Table) -> bool:  # noqa: ARG002
        """Return False: Ibis passes no seed to Spark, which would draw other rows each time."""
        return False

    def digest(self, table: ir.Table) -> str:
        """Return a digest of the rows in any order, which Spark's executors compute."""
        return _digest(self.backend, table)


def frame_of(backend: Any, expression: ir.Table) -> Any:
    """Convert a query to a Spark DataFrame, without computing its rows."""
    backend._run_pre_execute_hooks(expression)
    query = infinity_is_known(expression).unbind()
    tree = null_is_not_nan(backend.compiler.to_sqlglot(query))
    return backend.raw_sql(tree.sql(dialect=backend.dialect))


def infinity_is_known(expression: ir.Table) -> ir.Table:
    """Return the query with a right test for infinity; that of Ibis for Spark is always false."""
    changed: ir.Table = expression.op().replace(_compared).to_expr()
    return changed


def null_is_not_nan(tree: exp.Expression) -> exp.Expression:
    """Return the query with tests for null that are false for NaN; those of Ibis are true."""
    changed: exp.Expression = tree.transform(_null_alone)
    return changed


def as_table(backend: Any, frame: Any) -> ir.Table:
    """Return a Spark DataFrame as an Ibis table that has a unique name."""
    name = f"aegis_{uuid4().hex}"
    frame.createTempView(name)
    table: ir.Table = backend.table(name)
    # The name goes when no query can ask for it any more.
    weakref.finalize(table.op(), _forget, backend._session, name).atexit = False
    return table


def _digest(backend: Any, table: ir.Table) -> str:
    """Compute a digest of the rows of a table that does not depend on their order.

    The executors take the SHA-256 of each row as JSON, and add these up as vectors of 32-bit
    numbers; the digest is the SHA-256 of the schema, the number of rows and the sums. (Bellare and
    Micciancio, A new paradigm for collision-free hashing, EUROCRYPT 1997, section 1.3: hashes of
    parts combined by addition.) It distinguishes tables that differ by chance or mistake; 32-bit
    sums do not stop somebody who constructs another table to match.
    """
    row = (
        "sha2(to_json(struct(*), map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', "
        "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), 256) AS h"
    )
    words = [
        f"sum(CAST(conv(substr(h, {1 + 8 * i}, 8), 16, 10) AS DECIMAL(20, 0))) AS w{i}"
        for i in range(_WORDS)
    ]
    summed = frame_of(backend, table).selectExpr(row).selectExpr("count(*) AS n", *words)
    sums = summed.toArrow().to_pylist()[0]
    sha = hashlib.sha256(str(table.schema()).encode())
    for value in sums.values():
        sha.update(f"\n{0 if value is None else int(value)}".encode())
    return sha.hexdigest()


def _forget(session: Any, name: str) -> None:
    # The session may have ended in the meantime, and its names with it.
    with suppress(Exception):
        session.catalog.dropTempView(name)


def _compared(node: Any, changed: dict[str, Any] | None) -> Any:
    """Return a comparison in place of a test for infinity, and other nodes with changed arguments."""
    node = node.__recreate__(changed) if changed else node
    if not isinstance(node, ops.IsInf):
        return node
    # NaN, which is no infinity, compares above all numbers there.
    most = ops.Literal(sys.float_info.max, dt.float64)
    return ops.And(ops.Greater(ops.Abs(node.arg), most), ops.Not(ops.IsNan(node.arg)))


def _null_alone(node: exp.Expression) -> exp.Expression:
    """Replace `x IS NULL OR isnan(x)` by `x IS NULL`, and the negated form in the same way."""
    if not isinstance(node, exp.Or | exp.And):
        return node
    left, right = node.this, node.expression
    if isinstance(node, exp.And):
        if not (isinstance(left, exp.Not) and isinstance(right, exp.Not)):
            return node
        left, right = left.this, right.this
    null: exp.Expression = node.this
    return null if _same(left, right) else node


def _same(null: exp.Expression, nan: exp.Expression) -> bool:
    return bool(
        isinstance(null, exp.Is)
        and isinstance(null.expression, exp.Null)
        and isinstance(nan, exp.IsNan)
        and null.this == nan.this
    )


def is_of_spark(instance: Any, name: str) -> bool:
    """Return whether an object has Spark's class `name`; refuse one of Spark Connect."""
    kind = next((k for k in type(instance).__mro__ if k.__module__.split(".")[0] == SPARK), object)
    if kind.__name__ != name:
        return False
    if ".connect." in f".{kind.__module__}.":
        raise PolicyError(
            f"The {name} is one of Spark Connect, which is not supported.",
            hint="Give the path or the name of the table, with a session on the master itself.",
        )
    return True


_ENGINES: dict[str, type[Engine]] = {
    DUCKDB: DuckDB,
    POSTGRES: Postgres,
    SPARK: Spark,
}


def engine_of(backend: Any) -> Engine:
    """Return the object that describes the engine behind an Ibis backend."""
    return _ENGINES.get(str(backend.name), Engine)(backend)


__all__ = ["BUCKETS", "ROW_NUMBER", "Engine", "engine_of"]
