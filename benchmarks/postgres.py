"""PostgreSQL: four commands on a server, against the embedded engine."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Figure, SkipError, command, four_commands, in_another_process
from benchmarks.processes import seconds_of
from benchmarks.tables import jittered

if TYPE_CHECKING:
    from tests.postgres_server import Server

    from benchmarks.tasks import Settings

ROUNDS = 3
ROWS = 1_000_000
Spent = tuple[float, float]
"""Processor time of client and server, and elapsed time."""


def postgres(settings: Settings) -> Iterator[Figure]:
    """Run summarize, advise, apply and audit on a million rows in PostgreSQL, and embedded, in turns."""
    rows = min(settings.rows, ROWS)
    path = in_another_process(jittered, settings.folder, rows)
    medians: dict[str, list[Spent]] = {"PostgreSQL": [], "embedded": []}
    with running_server() as server:
        _load(server.url, path, "jittered")
        process = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        tables = {"PostgreSQL": [server.url, "--table", "jittered"], "embedded": [path]}
        words = {
            engine: four_commands(table, settings.folder, engine)
            for engine, table in tables.items()
        }
        for name in words["embedded"]:
            runs: dict[str, list[Spent]] = {engine: [] for engine in tables}
            for _ in range(ROUNDS):
                for engine, taken in runs.items():
                    taken.append(_spent(process, words[engine][name]))
            for engine, taken in runs.items():
                processor, clock = (statistics.median(times) for times in zip(*taken, strict=True))
                medians[engine].append((processor, clock))
            yield _ratio(f"{name}, {rows:.0e} rows", *(each[-1:] for each in medians.values()))
    yield _ratio(f"all four commands, {rows:.0e} rows", *medians.values(), target=5.0)


def _spent(server: int, words: list[Any]) -> Spent:
    before = seconds_of(server)
    wall, client, _ = command(*words, "--quiet")
    return client + seconds_of(server) - before, wall


def _ratio(name: str, there: list[Spent], here: list[Spent], target: float | None = None) -> Figure:
    """Return the ratio of the summed processor times of client and server."""
    (server, elapsed), (embedded, alone) = (
        map(sum, zip(*one, strict=True)) for one in (there, here)
    )
    return Figure(
        "postgres",
        f"{name}, PostgreSQL / embedded",
        server / embedded,
        "x",
        target,
        note=f"{server:.2f} s / {embedded:.2f} s; {elapsed:.2f} s / {alone:.2f} s elapsed",
    )


@contextmanager
def running_server() -> Iterator[Server]:
    """Start the server that the tests use; skip the task where its programs are missing."""
    import psycopg  # noqa: F401  # without it, the task is skipped
    import pytest
    from tests.postgres_server import server

    try:
        with server() as running:
            yield running
    except pytest.skip.Exception as why:
        raise SkipError(str(why)) from None


def _load(url: str, path: Path, name: str) -> None:
    """Make a table of the database from a Parquet file."""
    import ibis

    connection = ibis.connect(url)
    source = ibis.duckdb.connect()
    connection.create_table(name, schema=source.read_parquet(path).schema())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        source.raw_sql(f"COPY (FROM '{path}') TO '{file}' (FORMAT csv, HEADER false)")
        with (
            connection.con.cursor() as cursor,
            file.open("rb") as rows,
            cursor.copy(f'COPY "{name}" FROM STDIN (FORMAT csv)') as copy,
        ):
            while block := rows.read(1 << 20):
                copy.write(block)
    connection.con.commit()
    connection.raw_sql(f'ANALYZE "{name}"').close()
    connection.con.commit()
    connection.raw_sql("CHECKPOINT").close()  # the server writes the table now, not later
    connection.disconnect()
