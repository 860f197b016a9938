"""Define what Aegis asks of an engine, as any engine answers it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from aegis.errors import EngineError, PolicyError

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
    ordered
        Whether tables have an order that a query can keep.
    """

    in_process = False
    rows_stay = False
    ordered = True

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.name = str(backend.name)

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield the rows of its result in batches of about `rows` rows."""
        with self.turn(stream=True):
            yield from self.backend.to_pyarrow_batches(expression, chunk_size=rows)

    def turn(self, *, stream: bool = False) -> AbstractContextManager[None]:  # noqa: ARG002
        """Let only this thread use the connection while the context lasts, if the engine needs
        this.
        """
        return nullcontext()

    @contextmanager
    def keep(self, expression: ir.Table) -> Iterator[ir.Table]:
        """Store the result of a query as a temporary table of the engine as long as the context
        lasts.
        """
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
        """Make the engine read rows in the same order while the context lasts, if it would not do
        so by itself.
        """
        yield

    def upload(self, table: pa.Table) -> ir.Table:
        """Return a table that queries of the engine can use, with the rows of a small table in
        memory. Ibis uploads it together with the query that uses it.
        """
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
        """Return a digest of the rows that the engine computes itself; None if this process may
        compute it, because rows may be transferred.
        """
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
        """Raise `PolicyError` if the operation `what` would transfer all rows to this process
        although they must stay in the engine.
        """
        if self.rows_stay:
            raise PolicyError(f"{what} to this process, the driver.", hint=hint)


def offset_of(seed: int) -> ir.Scalar:
    """Return a number below 2**62 for a seed. It is very likely far from the numbers for all other
    seeds.
    """
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
