"""Access the embedded engine of this process, DuckDB: limit its memory, choose its folder for data
beyond the limit, and show its progress. Convert exceptions of engines to one clear error, without
revealing secrets.
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
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
import pyarrow as pa
import pyarrow.parquet
from ibis.common.exceptions import IbisError

from aegis.blas import addresses_left, addresses_limited
from aegis.errors import EngineError, PolicyError, ResourceError, is_of_memory
from aegis.files import check, is_interrupt, name_for, remove_abandoned
from aegis.sources.urls import without_secrets
from aegis.words import brief

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
    """Start one of each kind of Arrow's threads now, while there is memory for them. Later, Arrow would
    wait forever if a thread gets no address space or memory for its stack.
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
    listed = ", ".join(literal(str(folder.resolve())) for folder in allowed)
    embedded().raw_sql(
        f"SET allowed_directories = [{listed}]; SET enable_external_access = false; "
        "SET lock_configuration = true"
    )


_NUMBERS = itertools.count()


def fresh_name() -> str:
    """Return a name that no table of this process's embedded engine has had."""
    return f"aegis_{next(_NUMBERS)}"


def stored(query: str, **arrow: pa.Table) -> ir.Table:
    """Store the rows of a query in a table of the embedded engine. The engine drops the table when
    no Python object refers to it any more.

    With a view instead, every query would read the files again.

    Parameters
    ----------
    query
        The query, in SQL.
    arrow
        Arrow tables, under the names that the query uses.
    """
    name = fresh_name()
    connection = embedded()
    with connection.con.cursor() as cursor:
        for used, rows in arrow.items():
            cursor.register(used, rows)
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
    """Return which share of the running query the embedded engine has done; None if unknown.

    Call this function from a thread that does not wait for the query.
    """
    if _opened.cache_info().currsize == 0:
        return None
    percent = float(embedded().con.query_progress())
    return percent / 100 if 0 < percent < 100 else None


def stop_queries() -> None:
    """Stop queries that go on after an interrupt; they would delay the end of the program."""
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
    """Give a connection to a database file the limits of the embedded engine, and forbid it other files
    and the network: somebody else may have made it, with views that read files of this machine.

    `stop_queries` then also stops its queries.
    """
    _OPEN.add(connection.con)
    if is_locked(connection):  # connections to one file share their settings
        return
    now = limits()
    folder = literal(f"{now.folder}-{uuid4().hex[:8]}")
    files = connection.con.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL")
    allowed = {str(Path(path).resolve().parent) for (path,) in files.fetchall()}
    connection.raw_sql(
        f"SET memory_limit = '{now.memory}'; SET threads = {now.threads}; "
        f"SET temp_directory = {folder}; "
        f"SET allowed_directories = [{', '.join(map(literal, sorted(allowed)))}]; "
        "SET enable_external_access = false"
    )


def is_locked(connection: Any) -> bool:
    """Return whether a DuckDB connection may open files only in some folders."""
    with connection.con.cursor() as cursor:
        answer = cursor.execute("SELECT current_setting('enable_external_access')").fetchone()
    return not answer[0]


LEAST_MEMORY = 64 << 20
"""Smallest memory limit that is allowed, in bytes."""
# Measured with DuckDB 1.5 on groups of 4 and 12 million texts: one thread does with 220 MB and more,
# two do with 260 MB and more. With less some limits do and some larger ones do not.
_BASE = 125 * 10**6
_PER_THREAD = 125 * 10**6
"""Bytes that groups and joins of any size need, plus this for each thread; the rest goes to disk."""
_WRITTEN_ROWS = 122_880
"""Number of rows that a thread keeps in memory to write them as Parquet."""
_FIRST_ROWS = 10_000
_FILES = 8
"""Number of files of a table that are examined."""
_PARQUET = (".parquet", ".pq")
_POINTER = 16
"""Bytes that the engine needs for each value, without the characters of long texts."""
_MOST = 1 << 60
"""Largest memory limit that is allowed, in bytes."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit_memory(limit: str | int) -> int:
    """Limit the memory of the embedded engine. The engine writes data beyond the limit to disk.

    The limit covers tables, sorts and groups in the engine. In addition, the program itself needs
    about 200 MB and memory for the results. With a low limit, the engine processes fewer rows at a
    time, so work takes longer.

    Parameters
    ----------
    limit
        Bytes, or a text such as "4GB", "512 MiB" or "1.5g".

    Returns
    -------
    int
        The limit in bytes.

    Raises
    ------
    PolicyError
        The limit is not a size, or is too small.
    """
    size = parse_size(limit)
    if size < LEAST_MEMORY:
        raise PolicyError(
            f"The memory limit {limit!r} is below {LEAST_MEMORY >> 20} MiB.",
            hint=f"Give more: about {_BASE // 10**6} MB, and {_PER_THREAD // 10**6} MB for each thread.",
        )
    connection = embedded()
    connection.raw_sql(f"SET memory_limit = '{size} B'; RESET threads")
    connection.raw_sql(f"SET threads = {_threads(size, limits().threads)}")
    return size


def parse_size(amount: str | int) -> int:
    """Return a size in bytes, whether it is given as a number or as a text with a unit.

    K, M, G and T (with or without B) are powers of 1000; KiB to TiB are powers of 1024.

    Raises
    ------
    PolicyError
        The text is not a size.
    """
    text = str(amount).strip().upper()
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", text)
    if parts is None or (parts[3] and not parts[2]):
        raise PolicyError(
            f"{amount!r} is not an amount of memory.",
            hint="Write a number and a unit: 4GB, 512MiB.",
        )
    units = _BINARY if parts[3] else _UNITS
    size = float(parts[1]) * units[parts[2]]
    if size > _MOST:
        raise PolicyError(
            f"{brief(amount)} is more memory than any machine has.",
            hint="Write a number and a unit: 4GB, 512MiB.",
        )
    return int(size)


def too_small(origin: str, files: Sequence[Path], used: str) -> ResourceError:
    """Return the error for a memory limit that was too low, with the memory that the files need.

    `used` is what the engine says that it used, as " (... used)", or empty.
    """
    now = limits()
    message = f"The memory limit of {now.memory} is too small for {origin}{used}."
    needed = memory_needed(files)
    if needed <= parse_size(now.memory):
        return ResourceError(
            message,
            hint=f"Most tables like it do with {_megabytes(needed)}; give twice the limit with "
            "--memory-limit, or leave it out for 80 % of the machine's memory.",
        )
    return ResourceError(
        message,
        hint=f"Give --memory-limit {_megabytes(needed).replace(' ', '')}, or leave it out to use 80 % of the "
        f"machine's memory. The engine needs about {_megabytes(needed)} for its threads and for rows of "
        "this width.",
    )


def memory_needed(files: Sequence[Path], *, processors: int | None = None) -> int:
    """Estimate the bytes of memory that the embedded engine needs for a table of any length.

    It is a fixed amount plus, for each thread, its part of the query and the rows that it reads or
    writes at a time (a row group of Parquet; unknown for other files). The rest goes to disk. There
    are at most `processors` threads, by default those of this process.
    """
    most = processors or os.cpu_count() or 1
    rows = _row_group([file for file in files if file.suffix.lower() in _PARQUET])
    threads = 1
    while True:
        needed = _BASE + threads * (_PER_THREAD + rows)
        # So much memory may start more threads, each of which needs its own.
        started = _threads(needed, most)
        if started <= threads:
            return needed
        threads = started


def _threads(size: int, most: int) -> int:
    """Return how many threads, at most `most`, fit in this memory; each needs buffers."""
    return max(1, min(most, (size - _BASE) // _PER_THREAD))


def _row_group(files: Sequence[Path]) -> int:
    """Return the bytes of the Parquet rows that a thread has in memory, for reading and writing."""
    largest = 0
    for file in files[:_FILES]:
        with pyarrow.parquet.ParquetFile(file) as opened:
            about = opened.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            first = next(opened.iter_batches(_FIRST_ROWS), None)
        read = max((_compressed(group) for group in groups), default=0)
        width = first.nbytes / len(first) + _POINTER * first.num_columns if first else 0
        rows = min(about.num_rows, _WRITTEN_ROWS)
        largest = max(largest, read, 2 * int(width * rows))
    return largest


def _compressed(group: Any) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _megabytes(size: int) -> str:
    """Return a size in megabytes as text, rounded up to a multiple of ten."""
    return f"{-(-size // 10**7) * 10} MB"


_LIBRARIES = ("ibis", "psycopg", "pyspark", "py4j", "polars", "sqlglot")
"""Modules whose exceptions come from an engine, listed by name because they need not be installed."""
_LOST_CONNECTION = (
    "server closed the connection",
    "connection is closed",
    "connection is lost",
    "terminating connection",
    "connection has been closed",
    "broken pipe",
    "answer from java side is empty",
    "error while sending or receiving",
    "an error occurred while trying to connect to the java server",
    "does not exist in the jvm",
    "sparkcontext was shut down",
    "stopped sparkcontext",
    "connection refused",
    "connection reset",
)
_FULL = (
    "no space left",
    "max_temp_directory_size",
    "failed to offload",
    "disk full",
    "disk quota exceeded",
)
_UNREPRESENTABLE = ("valid decimal128", "date too ", "timestamp too ", "year is out of range")
"""What drivers say of values that Python or Arrow cannot represent, such as infinite dates."""
_TEXTS = "maximum total string size"
"""What DuckDB says if the texts of a batch of rows are too long for Arrow."""
_MEMORY = ("outofmemoryerror", "java heap space", "spark.driver.maxresultsize")
_JAVA = re.compile(
    r"^(?:Caused by: |: )?(?:[\w$]+\.)+([\w$]*(?:Exception|Error)): (.+)$", re.MULTILINE
)


@contextmanager
def engine_errors(origin: str, files: Sequence[Path] = ()) -> Iterator[None]:
    """Convert any exception of an engine to one clear `EngineError` while the context lasts.

    Parameters
    ----------
    origin
        Name of the table that is read or written, for the message.
    files
        The files of the table, from which the needed memory is estimated.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted the work.
    """
    try:
        yield
    except Exception as error:
        if is_interrupt(error):
            stop_queries()
            raise KeyboardInterrupt from error
        if not _of_engine(error):
            raise
        raise translate(error, origin, files) from error
    except KeyboardInterrupt:
        stop_queries()
        raise
    check()


def translate(error: Exception, origin: str, files: Sequence[Path] = ()) -> EngineError:
    """Return an error that explains to the user what an exception of the engine means."""
    first, text = first_cause(error), str(error).lower()
    if any(sign in text for sign in _FULL):
        return _full(error, first, origin)
    if isinstance(error, duckdb.OutOfMemoryException):
        return too_small(origin, files, _used(first))
    if is_of_memory(error):
        return ResourceError(
            f"There is too little memory for {origin}: {first}",
            hint="Give the process more (ulimit -v, the container's limit).",
        )
    if _TEXTS in text:
        return ResourceError(
            f"Texts of {origin} are too long: together, those of one column have more than 2 GB in a "
            "part of the rows.",
            hint="Shorten them, or leave the column out.",
        )
    if any(sign in text for sign in _MEMORY):
        return ResourceError(
            f"Spark has too little memory for {origin}: {first}",
            hint="Give more in Spark's configuration: spark.driver.memory (aggregates come to the "
            "driver), spark.executor.memory.",
        )
    if isinstance(error, ConnectionError) or any(sign in text for sign in _LOST_CONNECTION):
        return EngineError(
            f"The connection to {origin} was lost: {first}",
            hint="Nothing was left half-written: run the command again.",
        )
    unreadable = any(sign in text for sign in _UNREPRESENTABLE)
    hint = (
        "Give a view in which such values are null, or one without their column."
        if unreadable
        else ""
    )
    return EngineError(f"The engine failed on {origin}: {first}", hint=hint)


def _full(error: Exception, first: str, origin: str) -> ResourceError:
    """Return the error for a full disk, which says whether temporary files or the output filled it."""
    if not isinstance(error, duckdb.Error):
        return ResourceError(
            f"The disk is full: {first}",
            hint="Free space where the output and temporary files go; nothing was left half-written.",
        )
    named = re.search(r'file "([^"]+)"', first)
    written = Path(named[1]).parent if named else None
    spilled = limits().folder
    if written is None or written.name.startswith(spilled.name):
        return ResourceError(
            f"The disk is full: no space is left in {(written or spilled).parent} for the temporary "
            f"files of {origin}, which did not fit into memory{_used(first)}.",
            hint="Free space there, name another folder (TMPDIR), or give more "
            "memory (--memory-limit); nothing was left half-written.",
        )
    return ResourceError(
        f"The disk is full: no space is left in {written}.",
        hint="Free space there, or write elsewhere; nothing was left half-written.",
    )


def _used(first: str) -> str:
    """Return the words "(... used)" of an engine's message on memory (`first`), or an empty text."""
    used = re.search(r" \([^()]* used\)", first)
    return used[0] if used else ""


def first_cause(error: BaseException) -> str:
    """Return the most informative line of an error; for Java, that of the innermost cause."""
    text = str(error).strip()
    causes = _JAVA.findall(text)
    first = (text or type(error).__name__).splitlines()[0]
    return without_secrets(f"{causes[-1][0]}: {causes[-1][1]}" if causes else first)


def _of_engine(error: Exception) -> bool:
    if isinstance(error, duckdb.Error | IbisError | pa.ArrowException | ConnectionError):
        return True
    if isinstance(error, OSError):  # of a stream of rows, which has no exception of its own
        return _TEXTS in str(error) or is_of_memory(error)
    return type(error).__module__.split(".")[0] in _LIBRARIES


def quoted(name: str) -> str:
    """Return a name in quotation marks, as SQL writes identifiers."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in quotation marks, as SQL writes text values."""
    return "'" + text.replace("'", "''") + "'"
