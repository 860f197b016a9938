"""Run queries on Apache Spark. Rows stay with the executors, and results are transferred as Arrow
data.

Ibis only writes the SQL. If Ibis also ran the queries, it would transfer results through pandas,
which converts whole numbers with nulls to floats, and NaN to null. So this module runs the queries
itself, and passes small tables as Arrow data.
"""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
from sqlglot import exp

from aegis.sources.engines.engine import BUCKETS, Engine, offset_of

NAME = "pyspark"
"""Ibis's name of its Spark backend."""
_WORDS = 8
"""Number of 32-bit numbers into which a SHA-256 is split to be added up."""


def _keyed(value: int, seed: int) -> int:  # noqa: ARG001
    """Declare the signature of the engine's hash function for Ibis; this body is never called."""
    return value


def _place() -> int:
    """Declare the signature of the engine's row numbers for Ibis; this body is never called."""
    return 0


_HASH = ibis.udf.scalar.builtin(_keyed, name="xxhash64", signature=(("int64", "int64"), "int64"))
_PLACE = ibis.udf.scalar.builtin(
    _place, name="monotonically_increasing_id", signature=((), "int64")
)


class Spark(Engine):
    """The engine Spark, as a session. This process is its driver, which receives only
    aggregates.
    """

    rows_stay = True
    ordered = False

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield the rows of its result, which must fit into the memory of the
        driver.
        """
        yield from frame_of(self.backend, expression).toArrow().to_batches(max_chunksize=rows)

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Store the result of a query on Spark's executors as long as the context lasts."""
        frame = frame_of(self.backend, expression).persist()
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
        return _HASH(_PLACE(), offset_of(seed)) & (BUCKETS - 1)

    def samples(self, table: ir.Table) -> bool:  # noqa: ARG002
        """Return False: Ibis does not pass the seed to Spark, so Spark would draw other rows each
        time.
        """
        return False

    def digest(self, table: ir.Table) -> str:
        """Return a digest of the rows, which Spark's executors compute. It does not depend on the
        order of the rows.
        """
        return _digest(self.backend, table)


def frame_of(backend: Any, expression: ir.Table) -> Any:
    """Convert a query to a Spark DataFrame, without computing its rows."""
    backend._run_pre_execute_hooks(expression)
    query = infinity_is_known(expression).unbind()
    tree = null_is_not_nan(backend.compiler.to_sqlglot(query))
    return backend.raw_sql(tree.sql(dialect=backend.dialect))


def infinity_is_known(expression: ir.Table) -> ir.Table:
    """Return a copy of the query that tests correctly for infinity, because the test that Ibis
    writes for Spark is always false.
    """
    known: ir.Table = expression.op().replace(_compared).to_expr()
    return known


def null_is_not_nan(tree: exp.Expression) -> exp.Expression:
    """Return a copy of the query whose tests for null are false for NaN. The tests for null that
    Ibis writes for Spark are also true for NaN.
    """
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
    """Return a comparison for an `IsInf` node; any other node with its `changed` arguments."""
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
