"""Processor time of four commands on PostgreSQL, compared with the embedded engine.

python -m benchmarks.servers postgres://user:password@127.0.0.1/database --rows 1e6

The server must run on this machine, because its processor time is read from /proc.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import ibis

from benchmarks.measure import ADULT, POLICY, command
from benchmarks.tables import SEED

COLUMNS = (
    'age, workclass, education, "marital-status", occupation, relationship, race, sex, '
    '"capital-gain", "capital-loss", "hours-per-week", "native-country", income'
)
"""All columns but the sampling weight and the number of the education."""
QUASI = "age,workclass,education,marital-status,occupation,race,sex,native-country"
TICK = 100
"""Ticks per second in /proc."""


def jittered(folder: Path, rows: int) -> Path:
    """Return a Parquet file with rows of Adult, whose age and hours are moved by at most two."""
    path = folder / f"jittered_{rows}.parquet"
    if not path.exists():
        connection = duckdb.connect()
        connection.execute(
            f"CREATE TABLE adult AS SELECT *, row_number() OVER () - 1 AS place "
            f"FROM read_parquet('{ADULT}')"
        )
        size = connection.sql("SELECT count(*) FROM adult").fetchall()[0][0]
        moved = (
            f"SELECT adult.* REPLACE ((age + (hash(i + {SEED + 1}) % 5)::INT - 2)::INT AS age, "
            f'greatest(1, "hours-per-week" + (hash(i + {SEED + 2}) % 5)::INT - 2)::INT '
            f'AS "hours-per-week") FROM range({rows}) AS drawn(i) '
            f"JOIN adult ON place = hash(i + {SEED}) % {size}"
        )
        connection.execute(f"COPY (SELECT {COLUMNS} FROM ({moved})) TO '{path}' (FORMAT parquet)")
    return path


def load(url: str, path: Path, name: str) -> None:
    """Make a table of the database from a Parquet file, unless it is there."""
    connection = ibis.connect(url)
    if name not in connection.list_tables():
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
    connection.disconnect()


def server_of(url: str) -> int:
    """Return the process of the server, which starts a process for each connection."""
    connection = ibis.connect(url)
    place = Path(f"/proc/{connection.con.info.backend_pid}/stat")
    parent = int(place.read_text().rpartition(") ")[2].split()[1])
    connection.disconnect()
    return parent


def seconds_of(server: int) -> float:
    """Return the processor time of the server and of its processes that have ended.

    A connection's process may end a little after the command; its time counts only then.
    """
    while any(map(_serves, Path(f"/proc/{server}/task/{server}/children").read_text().split())):
        time.sleep(0.1)
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / TICK


def _serves(process: str) -> bool:
    """Return whether a process of the server answers a client, works for one that does, or has just ended."""
    try:
        title = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return not title or b"127.0.0.1" in title or b"parallel worker" in title


def words_of(table: list[str], folder: Path, engine: str) -> dict[str, list[Any]]:
    """Return the words of the four commands; each needs the files of those before it."""
    policy = ["--policy", POLICY]
    best, summary = folder / "best.yaml", folder / f"{engine}.aegis"
    released = folder / f"{engine}.parquet"
    return {
        "summarize": ["summarize", *table, *policy, "-o", summary, "--force"],
        "advise": ["advise", *table, *policy, "-o", best, "--force"],
        "apply": ["apply", *table, *policy, "-c", best, "-o", released, "--force"],
        "audit": ["audit", *table, "--quasi-identifiers", QUASI],  # the policy's rule is not met
    }


def main() -> None:
    """Run the commands in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--rows", default="1e6")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="summarize,advise,apply,audit")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    rows = int(float(given.rows))
    path, name = jittered(given.folder, rows), f"jittered_{rows}"
    load(given.url, path, name)
    server = server_of(given.url)
    tables = {"duckdb": [str(path)], "postgres": [given.url, "--table", name]}
    totals = dict.fromkeys(tables, 0.0)
    for task in given.only.split(","):
        cpu: dict[str, list[float]] = {engine: [] for engine in tables}
        clock: dict[str, list[float]] = {engine: [] for engine in tables}
        for _ in range(given.runs):
            for engine, table in tables.items():
                before = seconds_of(server)
                wall, own, _ = command(*words_of(table, given.folder, engine)[task], "--quiet")
                cpu[engine].append(own + seconds_of(server) - before)
                clock[engine].append(wall)
        here, there = (statistics.median(cpu[engine]) for engine in tables)
        for engine in tables:
            totals[engine] += statistics.median(cpu[engine])
        shown = " ".join(
            f"{e}: {statistics.median(cpu[e]):.2f} s ({statistics.median(clock[e]):.2f} by the clock)"
            for e in tables
        )
        print(f"{task:10} {shown} ratio {there / here:.1f}", flush=True)
    print(f"total ratio {totals['postgres'] / totals['duckdb']:.1f}")


if __name__ == "__main__":
    main()
