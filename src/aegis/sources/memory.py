"""Memory of the embedded engine: its limit, and the folder for data that does not fit."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet

from aegis.errors import PolicyError, ResourceError
from aegis.sources.embedded import embedded, limits
from aegis.words import brief

LEAST_MEMORY = 64 << 20
"""Least memory that may be asked for, in bytes."""
# Measured with DuckDB 1.5 on groups of 4 and 12 million texts: one thread does with 220 MB and more,
# two do with 260 MB and more. With less some limits do and some larger ones do not.
_BASE = 125 * 10**6
_PER_THREAD = 125 * 10**6
"""Bytes that groups and joins of any number of rows do with, and for each thread; the rest of them
goes to disk."""
_WRITTEN_ROWS = 122_880
"""Rows that a thread holds at a time to write them as Parquet."""
_FIRST_ROWS = 10_000
_FILES = 8
"""Files of a table that are looked at."""
_PARQUET = (".parquet", ".pq")
_POINTER = 16
"""Bytes that the engine takes for a value in addition to those of a long text."""
_MOST = 1 << 60
"""Most bytes that may be asked for."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit_memory(limit: str | int, *, folder: str | Path | None = None) -> int:
    """Limit the memory of the embedded engine of this process; data that does not fit goes to disk.

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
            hint=f"Give more: about {_BASE // 10**6} MB, and {_PER_THREAD // 10**6} MB for each thread.",
        )
    connection = embedded()
    connection.raw_sql(f"SET memory_limit = '{size} B'; RESET threads")
    connection.raw_sql(f"SET threads = {_threads(size, limits().threads)}")
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
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", text)
    if parts is None or (parts[3] and not parts[2]):
        raise PolicyError(
            f"{given!r} is no amount of memory.", hint="Write a number and a unit: 4GB, 512MiB."
        )
    units = _BINARY if parts[3] else _UNITS
    size = float(parts[1]) * units[parts[2]]
    if size > _MOST:
        raise PolicyError(
            f"{brief(given)} is more memory than any machine has.",
            hint="Write a number and a unit: 4GB, 512MiB.",
        )
    return int(size)


def too_small(origin: str, files: Sequence[Path], used: str) -> ResourceError:
    """Return the error for a memory limit that did not do; it says how much is needed.

    Parameters
    ----------
    origin
        What is read or written.
    files
        The files behind it.
    used
        What the engine says was used, as " (... used)"; empty if it does not.
    """
    now = limits()
    message = f"The memory limit of {now.memory} is too small for {origin}{used}."
    needed = memory_needed(files)
    if needed <= parse_size(now.memory):
        return ResourceError(
            message,
            hint=f"Most tables like it do with {_shown(needed)}; give twice the limit with "
            "--memory-limit, or leave it out for 80 % of the machine's memory.",
        )
    return ResourceError(
        message,
        hint=f"About {_shown(needed)} are needed, by the engine's threads and the width of the "
        f"rows: give --memory-limit {_shown(needed).replace(' ', '')}, or leave it out for 80 % of "
        "the machine's memory.",
    )


def memory_needed(files: Sequence[Path], *, processors: int | None = None) -> int:
    """Return about how many bytes the embedded engine needs for a table of any number of rows.

    It is what a query needs at all, and for each thread its share of a query and the rows that it
    reads or writes at a time (a row group of Parquet). Groups, sorts and joins that are larger go
    to disk.

    Parameters
    ----------
    files
        The files of the table; of files other than Parquet the width of rows is not known.
    processors
        Most threads; by default as many as this process may run on.
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
    """Return how many threads may run within a limit: each needs buffers, however few the rows."""
    return max(1, min(most, (size - _BASE) // _PER_THREAD))


def _row_group(files: Sequence[Path]) -> int:
    """Return the bytes of the rows of Parquet that a thread holds at a time, as read and as written."""
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


def _shown(size: int) -> str:
    """Return a size in megabytes, rounded up to tens."""
    return f"{-(-size // 10**7) * 10} MB"
