"""Limit the memory of the embedded engine, and choose its folder for data beyond the limit."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet

from aegis.errors import PolicyError, ResourceError
from aegis.sources.embedded import embedded, limits
from aegis.words import brief

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


def parse_size(given: str | int) -> int:
    """Return a size in bytes, whether it is given as a number or as a text with a unit.

    K, M, G and T (with or without B) are powers of 1000; KiB to TiB are powers of 1024.

    Raises
    ------
    PolicyError
        The text is not a size.
    """
    text = str(given).strip().upper()
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", text)
    if parts is None or (parts[3] and not parts[2]):
        raise PolicyError(
            f"{given!r} is not an amount of memory.", hint="Write a number and a unit: 4GB, 512MiB."
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
    """Return the error for a memory limit that was too low. The message says how much memory the
    table needs.

    Parameters
    ----------
    origin
        Name of the table that is read or written.
    files
        The files of the table.
    used
        How much memory the engine says that it used, as " (... used)"; empty if it says nothing.
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
        hint=f"Give --memory-limit {_shown(needed).replace(' ', '')}, or leave it out to use 80 % of the "
        f"machine's memory. The engine needs about {_shown(needed)} for its threads and for rows of "
        "this width.",
    )


def memory_needed(files: Sequence[Path], *, processors: int | None = None) -> int:
    """Estimate how many bytes of memory the embedded engine needs for a table with any number of
    rows.

    The estimate is a fixed amount, plus an amount for each thread: its part of the query, and the
    rows that it reads or writes at a time (a row group of Parquet). Larger groups, sorts and joins
    go to disk.

    Parameters
    ----------
    files
        The files of the table. The width of rows is unknown for files other than Parquet.
    processors
        Largest number of threads; by default, the number of processors that this process may use.
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
    """Return how many threads fit in a memory limit; each thread needs buffers, even for few rows."""
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


def _shown(size: int) -> str:
    """Return a size in megabytes as text, rounded up to a multiple of ten."""
    return f"{-(-size // 10**7) * 10} MB"
