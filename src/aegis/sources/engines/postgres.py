"""Describe PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ibis
import ibis.expr.types as ir
from ibis.expr.operations import DatabaseTable, InMemoryTable

from aegis.sources.engines.engine import BUCKETS, Engine, afterwards, offset_of

NAME = "postgres"
"""Ibis's name of the backend."""


def _keyed(value: int, seed: int) -> int:  # noqa: ARG001
    """Declare the signature of the engine's hash function for Ibis; this body is never called."""
    return value


_HASH = ibis.udf.scalar.builtin(
    _keyed, name="hashint8extended", signature=(("int64", "int64"), "int64")
)


class Postgres(Engine):
    """The engine PostgreSQL. Aegis numbers the rows of its tables in the order in which it reads
    them.
    """

    def row_hash(self, table: ir.Table, seed: int) -> ir.Value:  # noqa: ARG002
        """Return, for each row, a hash of the seed and of the row's position. `steady` keeps the
        positions constant.
        """
        return _HASH(ibis.row_number(), offset_of(seed)) & (BUCKETS - 1)

    def samples(self, table: ir.Table) -> bool:
        """Return whether `table` is a table and not a view, because PostgreSQL cannot draw rows of
        views with TABLESAMPLE.
        """
        node = table.op()
        if not isinstance(node, DatabaseTable):
            return False
        parts = [part for part in (node.namespace.database, node.name) if part]
        name = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
        with self.backend.con.cursor() as cursor:
            cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", (name,))
            relation = cursor.fetchone()
        return relation is not None and str(relation[0]) in "rmp"

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Make PostgreSQL read rows in the same order while the context lasts, so that each row
        keeps its number.
        """
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
        """Store the result of a query as a temporary table on the server as long as the context
        lasts.

        The server computes statistics of the tables that were uploaded for the query, and of the
        result. Without statistics, it would expect each join to multiply the rows, hash the larger
        table, and sort rows in order to group them.
        """
        self.backend._run_pre_execute_hooks(expression)
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
