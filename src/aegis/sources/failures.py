"""Convert exceptions of engines to one clear error, without revealing secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from ibis.common.exceptions import IbisError

from aegis.errors import EngineError, ResourceError, is_of_memory
from aegis.interrupts import check, is_interrupt
from aegis.sources.embedded import limits, stop_queries
from aegis.sources.memory import too_small
from aegis.sources.urls import without_secrets

_LIBRARIES = ("ibis", "psycopg", "pyspark", "py4j", "polars", "sqlglot")
"""Modules whose exceptions come from an engine, listed by name because they need not be installed."""
_GONE = (
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
    if any(sign in text for sign in _MEMORY):
        return ResourceError(
            f"Spark has too little memory for {origin}: {first}",
            hint="Give more in Spark's configuration: spark.driver.memory (aggregates come to the "
            "driver), spark.executor.memory.",
        )
    if isinstance(error, ConnectionError) or any(sign in text for sign in _GONE):
        return EngineError(
            f"The connection to {origin} was lost: {first}",
            hint="Nothing was left half-written: run the command again.",
        )
    return EngineError(f"The engine failed on {origin}: {first}")


def _full(error: Exception, first: str, origin: str) -> ResourceError:
    """Return the error for a full disk, which holds either temporary files or the output."""
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
    """Return the words "(... used)" of an engine's message on memory, or an empty text."""
    used = re.search(r" \([^()]* used\)", first)
    return used[0] if used else ""


def first_cause(error: BaseException) -> str:
    """Return the most informative line of an error. For errors of Java, this is the line of the
    innermost cause.
    """
    text = str(error).strip()
    causes = _JAVA.findall(text)
    first = (text or type(error).__name__).splitlines()[0]
    return without_secrets(f"{causes[-1][0]}: {causes[-1][1]}" if causes else first)


def _of_engine(error: Exception) -> bool:
    if isinstance(error, duckdb.Error | IbisError | pa.ArrowException | ConnectionError):
        return True
    return type(error).__module__.split(".")[0] in _LIBRARIES
