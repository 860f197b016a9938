"""Describe DuckDB, which runs within this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import ibis
import ibis.expr.types as ir

from aegis.sources.embedded import turn
from aegis.sources.engines.engine import BUCKETS, ROW_NUMBER, Engine, offset_of

NAME = "duckdb"
"""Ibis's name of the backend."""


def _hashed(value: int) -> int:
    """Declare the signature of the engine's hash function for Ibis; this body is never called."""
    return value


# With its own result type: Ibis casts what `hash` returns to int64, slowly.
_HASH = ibis.udf.scalar.builtin(_hashed, name="hash", signature=(("int64",), "uint64"))


class DuckDB(Engine):
    """The engine DuckDB: the embedded one in memory, or a database file that this process has
    opened.
    """

    in_process = True

    def turn(self, *, stream: bool = False) -> AbstractContextManager[None]:
        """Keep all other threads from using the connection while the context lasts."""
        return turn(stream=stream)

    def row_hash(self, table: ir.Table, seed: int) -> ir.Value:
        """Return, for each row, a hash of the seed and of the number that the row has in its
        file.
        """
        number = table[ROW_NUMBER] if ROW_NUMBER in table.columns else ibis.row_number()
        return (_HASH(number + offset_of(seed)) % BUCKETS).cast("int64")

    def samples(self, table: ir.Table) -> bool:  # noqa: ARG002
        """Return False, because the rows that DuckDB draws with TABLESAMPLE depend on the number of
        threads.
        """
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
