"""Failures of engines as one clear error each; no secret is ever repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from ibis.common.exceptions import IbisError

from aegis.errors import EngineError

_LIBRARIES = ("ibis", "psycopg", "pyspark", "py4j", "polars", "sqlglot")
"""Modules whose exceptions come from an engine; known by name, since none need be installed."""
_SECRET = re.compile(r"(://[^\s:/@]*):[^\s@]*@|(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)
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
    "sparkcontext was shut down",
    "stopped sparkcontext",
    "connection refused",
    "connection reset",
)
_FULL = ("no space left", "max_temp_directory_size", "disk full", "disk quota exceeded")
_MEMORY = ("outofmemoryerror", "java heap space", "spark.driver.maxresultsize")
_JAVA = re.compile(
    r"^(?:Caused by: |: )?(?:[\w$]+\.)+([\w$]*(?:Exception|Error)): (.+)$", re.MULTILINE
)


@contextmanager
def engine_errors(origin: str) -> Iterator[None]:
    """Turn an engine's own exceptions into one clear `EngineError`."""
    try:
        yield
    except Exception as error:
        if not _of_engine(error):
            raise
        raise translate(error, origin) from error


def translate(error: Exception, origin: str) -> EngineError:
    """Return what an engine's exception means to whoever asked."""
    first, text = first_cause(error), str(error).lower()
    if isinstance(error, duckdb.OutOfMemoryException) and "temp" not in first.lower():
        return EngineError(
            f"The memory limit is too small for {origin}: {first}",
            hint="Give more with --memory-limit (twice as much, or leave it out for 80 % of the "
            "machine's); 1 GB and 125 MB for each thread are enough for most tables.",
        )
    if any(sign in text for sign in _FULL) or isinstance(error, duckdb.OutOfMemoryException):
        return EngineError(
            f"The disk is full: {first}",
            hint="Free space where the output and temporary files go (TMPDIR); nothing was left half-written.",
        )
    if any(sign in text for sign in _MEMORY):
        return EngineError(
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


def first_cause(error: BaseException) -> str:
    """Return the line of an error that says most; of what Java says, the innermost cause."""
    text = str(error).strip()
    causes = _JAVA.findall(text)
    first = (text or type(error).__name__).splitlines()[0]
    return without_secrets(f"{causes[-1][0]}: {causes[-1][1]}" if causes else first)


def without_secrets(text: str) -> str:
    """Return a text with the passwords of URLs and connection strings left out."""
    return _SECRET.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", text)


def _of_engine(error: Exception) -> bool:
    if isinstance(error, duckdb.Error | IbisError | pa.ArrowException | ConnectionError):
        return True
    return type(error).__module__.split(".")[0] in _LIBRARIES
