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
    first = without_secrets((str(error).strip() or type(error).__name__).splitlines()[0])
    if isinstance(error, duckdb.OutOfMemoryException) and "temp" not in first.lower():
        return EngineError(
            f"The memory limit is too small for {origin}: {first}",
            hint="Give more with --memory-limit (twice as much, or leave it out for 80 % of the "
            "machine's); 1 GB and 125 MB for each thread are enough for most tables.",
        )
    full = "no space left" in first.lower() or "max_temp_directory_size" in str(error)
    if full or isinstance(error, duckdb.OutOfMemoryException):
        return EngineError(
            f"The disk is full: {first}",
            hint="Free space where the output and temporary files go (TMPDIR); nothing was left half-written.",
        )
    if any(sign in str(error).lower() for sign in _GONE):
        return EngineError(
            f"The connection to {origin} was lost: {first}",
            hint="Nothing was left half-written: run the command again.",
        )
    return EngineError(f"The engine failed on {origin}: {first}")


def without_secrets(text: str) -> str:
    """Return a text with the passwords of URLs and connection strings left out."""
    return _SECRET.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***", text)


def _of_engine(error: Exception) -> bool:
    if isinstance(error, duckdb.Error | IbisError | pa.ArrowException):
        return True
    return type(error).__module__.split(".")[0] in _LIBRARIES
