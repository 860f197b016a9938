"""Memory of the embedded engine: how much it may take, and where it puts what does not fit."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from aegis.errors import PolicyError
from aegis.sources.source import embedded

LEAST_MEMORY = 64 << 20
"""Least memory that may be asked for, in bytes."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit_memory(limit: str | int, *, folder: str | Path | None = None) -> int:
    """Keep the embedded engine of this process within `limit`; what does not fit goes to disk.

    The limit is for tables, sorts and groups in the engine. Beside it stand the program itself
    (about 200 MB) and the aggregates that are handed over. Fewer rows are worked on at a time, so
    work takes longer when the limit is short.

    Parameters
    ----------
    limit
        Bytes, or a text such as "4GB", "512 MiB" or "1.5g".
    folder
        Where temporary files go; by default the system's folder for them (TMPDIR). It is made
        when it is needed and emptied afterwards.

    Returns
    -------
    int
        The limit in bytes.

    Raises
    ------
    PolicyError
        The limit is no size or too small, or the folder cannot be used.
    """
    size = parse_size(limit)
    if size < LEAST_MEMORY:
        raise PolicyError(
            f"The memory limit {limit!r} is below {LEAST_MEMORY >> 20} MiB.",
            hint="Give more: the engine needs about 125 MB for each of its threads.",
        )
    connection = embedded()
    connection.raw_sql(f"SET memory_limit = '{size} B'")
    # A thread needs buffers of its own, however many rows there are.
    threads = max(1, min(_threads(connection), size // (125 * 10**6)))
    connection.raw_sql(f"SET threads = {threads}")
    if folder is not None:
        try:
            connection.raw_sql(
                f"SET temp_directory = '{str(folder).replace(chr(39), chr(39) * 2)}'"
            )
        except duckdb.Error as error:
            raise PolicyError(
                f"{folder} cannot hold temporary files: {str(error).splitlines()[0]}",
                hint="Give a folder that can be written to.",
            ) from error
    return size


def parse_size(given: str | int) -> int:
    """Return a size in bytes, given as a number or as a text with a unit.

    K, M, G and T (with or without B) are powers of 1000, KiB to TiB powers of 1024.

    Raises
    ------
    PolicyError
        It is no size.
    """
    text = str(given).strip().upper()
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", text)
    if found is None or (found[3] and not found[2]):
        raise PolicyError(
            f"{given!r} is no amount of memory.", hint="Write a number and a unit: 4GB, 512MiB."
        )
    units = _BINARY if found[3] else _UNITS
    return int(float(found[1]) * units[found[2]])


def _threads(connection: object) -> int:
    rows = connection.raw_sql("SELECT current_setting('threads')").fetchall()  # type: ignore[attr-defined]
    return int(rows[0][0])
