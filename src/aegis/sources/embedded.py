"""Access the embedded engine of this process, DuckDB; limit it, and show its progress."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4
from weakref import WeakSet, finalize

import duckdb
import ibis
import ibis.expr.types as ir

from aegis.limits import addresses_left, addresses_limited
from aegis.temporary import name_for, remove_abandoned

_THREADS = 192 << 20
"""Address space of two threads: 8 MB of stack each, and 64 MB for their allocations."""
_OPEN: WeakSet[Any] = WeakSet()
"""Connections to DuckDB that this process has opened."""
_OPENING, _TURNS = RLock(), RLock()
_streams: list[bool] = []
"""For each nested turn, whether it streams a result."""


@contextmanager
def turn(*, stream: bool = False) -> Iterator[None]:
    """Keep all other threads from using a DuckDB connection while the context lasts.

    If rows are streamed from a connection, a new query on the connection ends the stream without an
    error. And two threads deadlock if one holds Python's lock and waits for the connection, while
    the other uses the connection to read a Python table. Separate cursors do not need this
    protection.

    Parameters
    ----------
    stream
        Whether rows are streamed, so that no other query may run between the batches.
    """
    with _TURNS:
        if any(_streams):
            raise RuntimeError("a second query began while rows of the first were still being read")
        _streams.append(stream)
        try:
            yield
        finally:
            _streams.pop()


def embedded() -> Any:
    """Return the embedded engine of this process: one DuckDB in memory, which all threads share."""
    with _OPENING:
        return _opened()


@cache
def _opened() -> Any:
    """Open the embedded engine.

    Data that does not fit into memory goes to the system's folder for temporary files, under a name
    that no other process uses. Files that killed processes left there are removed.
    """
    parent = Path(tempfile.gettempdir())
    remove_abandoned(parent)
    folder = parent / name_for("engine")
    connection = ibis.duckdb.connect(temp_directory=str(folder))
    # Counted, for `query_progress`, and not drawn. In a notebook without ipywidgets DuckDB refuses to
    # count, and nothing is told of a query that runs.
    with suppress(duckdb.InvalidInputException):
        connection.raw_sql("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    if addresses_limited():
        if not addresses_left(_THREADS):
            raise MemoryError("There are too few addresses for threads.")
        start_arrow_threads(connection.con)
    _OPEN.add(connection.con)
    atexit.register(_close, connection.con, folder)
    return connection


def _close(connection: Any, folder: Path) -> None:
    """Close the embedded engine, and remove its temporary files."""
    stop_queries()
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)


def start_arrow_threads(connection: Any) -> None:
    """Start one of each kind of Arrow's threads now, while there is memory for them.

    The engine uses these threads to read data in memory. Otherwise, Arrow would start threads when
    they are first needed, and would wait forever if a thread does not get address space or memory
    for its stack.
    """
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    name = f"aegis_{uuid4().hex}"
    connection.register(name, pa.table({"a": [1]}))
    connection.execute(f"SELECT sum(a) FROM {name}").fetchall()
    connection.unregister(name)


def limit_embedded(memory: int) -> None:
    """Limit the memory of the embedded engine to this many bytes, and start Arrow's threads.

    Data beyond the limit goes to the engine's folder for temporary files. Call this function before
    you limit the memory of the process.
    """
    start_arrow_threads(embedded().con)
    embedded().raw_sql(f"SET memory_limit = '{max(memory >> 20, 1)}MiB'")


def lock_embedded(folders: Sequence[Path]) -> None:
    """Allow the embedded engine to open files only in the given folders, and to open no network
    connections.

    Call this function in processes that read untrusted files. No statement can undo it.

    Parameters
    ----------
    folders
        Folders for reading and writing, in addition to the system's folder for temporary files.
    """
    allowed = [*folders, Path(tempfile.gettempdir())]
    listed = ", ".join("'{}'".format(str(f.resolve()).replace("'", "''")) for f in allowed)
    embedded().raw_sql(
        f"SET allowed_directories = [{listed}]; SET enable_external_access = false; "
        "SET lock_configuration = true"
    )


def stored(query: str) -> ir.Table:
    """Store the rows of a query in a table of the embedded engine. The engine drops the table when
    no Python object refers to it any more.

    With a view instead, every query would read the files again.
    """
    name = ibis.util.gen_name("aegis")
    connection = embedded()
    with connection.con.cursor() as cursor:
        cursor.execute(f'CREATE TABLE memory.main."{name}" AS {query}')
    with turn():
        # A result that nobody read to its end keeps an old view of the tables, without the new one.
        connection.con.execute("SELECT 1").fetchall()
        table: ir.Table = connection.table(name)
    finalize(table.op(), _drop, connection, name).atexit = False
    return table


def _drop(connection: Any, name: str) -> None:
    """Drop a stored table; it may be in use, or the engine be closed, as the program ends."""
    with suppress(duckdb.Error), connection.con.cursor() as cursor:
        cursor.execute(f'DROP TABLE memory.main."{name}"')


def query_progress() -> float | None:
    """Return which share of the running query the embedded engine has done, from 0 to 1.

    Call this function from a thread that does not wait for the query. The result is None if no
    query runs, or if the engine does not know its progress.
    """
    if _opened.cache_info().currsize == 0:
        return None
    percent = float(embedded().con.query_progress())
    return percent / 100 if 0 < percent < 100 else None


def stop_queries() -> None:
    """Stop the queries of DuckDB that continue to run after the user has interrupted the program.

    Otherwise, DuckDB's threads would continue with queries for which Python no longer waits, and
    delay the end of the program.
    """
    for connection in tuple(_OPEN):
        with suppress(duckdb.Error):  # one that is closed runs nothing
            connection.interrupt()


@dataclass(frozen=True)
class Limits:
    """How much memory and how many threads the embedded engine may use.

    Attributes
    ----------
    memory
        Largest amount of memory, as text, such as "190.7 MiB".
    threads
        Number of threads.
    folder
        Folder for temporary files.
    """

    memory: str
    threads: int
    folder: Path


def limits() -> Limits:
    """Return how much memory and how many threads the embedded engine may use."""
    # A cursor of its own, so that a result that is being read is left alone.
    with embedded().con.cursor() as cursor:
        answer = cursor.execute(
            "SELECT current_setting('memory_limit'), current_setting('threads'), "
            "current_setting('temp_directory')"
        ).fetchall()
    memory, threads, folder = answer[0]
    return Limits(str(memory), int(threads), Path(str(folder)))


def limit_alike(connection: Any) -> None:
    """Give a DuckDB connection to a database file the same limits that the embedded engine has.

    `stop_queries` then also stops the queries of this connection.
    """
    _OPEN.add(connection.con)
    now = limits()
    folder = f"{now.folder}-{uuid4().hex[:8]}".replace("'", "''")
    connection.raw_sql(
        f"SET memory_limit = '{now.memory}'; SET threads = {now.threads}; "
        f"SET temp_directory = '{folder}'"
    )
