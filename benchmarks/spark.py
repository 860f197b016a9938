"""Processor time of `summarize` and `apply` on Spark, compared with plain queries of Spark.

python -m benchmarks.spark --rows 1e7 --runs 3
python -m benchmarks.spark --rows 1e8 --runs 2 --release

`summarize` is compared with one plain GROUP BY per attribute. With --release, `apply` is compared
with a plain copy of the table. All run in turns in one session of Spark on two cores of this
machine. The first run includes the compiler of the Java machine. Processor times are those of this
process and of Spark's, from /proc. Spark makes the table, once for each number of rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet

import aegis
from aegis.sources import open_table
from aegis.sources.spark import connect
from benchmarks.measure import ADULT, POLICY
from benchmarks.servers import COLUMNS, TICK
from benchmarks.tables import SEED

ROWS_OF_FILE = 6_250_000
"""Rows of each file of the table."""


def processes() -> dict[int, float]:
    """Return the processor time of this process and of each process below it, with that of those
    below that have ended.
    """
    parents, times = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(place.name)] = int(fields[1])
        times[int(place.name)] = sum(map(int, fields[11:15])) / TICK
    below = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in below} - below:
        below |= more
    return {process: times[process] for process in below}


def peaks() -> str:
    """Return the peak memory of this process and of Spark's."""
    found: dict[str, float] = {}
    for process in processes():
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        size = int(fields.get("VmHWM", "0 kB").split()[0]) / 1000
        found[fields["Name"]] = max(found.get(fields["Name"], 0), size)
    return ", ".join(f"{name} {size:.0f} MB" for name, size in found.items() if size > 50)


def made(session: Any, folder: Path, rows: int) -> str:
    """Return Parquet files with rows of Adult, whose age and hours are moved by at most two."""
    place = folder / f"spark_{rows}"
    if not (place / "_SUCCESS").exists():
        adult = pyarrow.parquet.read_table(ADULT)
        numbers = pyarrow.array(range(adult.num_rows), pyarrow.int32())
        known = session.createDataFrame(adult.append_column("place", numbers))
        session.range(0, rows, 1, -(-rows // ROWS_OF_FILE)).createOrReplaceTempView("drawn")
        known.createOrReplaceTempView("adult")

        def moved(name: str, more: int) -> str:
            step = f"pmod(xxhash64(id, {SEED + more}), 5) - 2"
            return f"CAST(greatest(1, `{name}` + {step}) AS INT) AS `{name}`"

        columns = [name.strip(' "') for name in COLUMNS.split(",")]
        changed = {"age": moved("age", 1), "hours-per-week": moved("hours-per-week", 2)}
        selected = ", ".join(changed.get(name, f"`{name}`") for name in columns)
        session.sql(
            f"SELECT /*+ BROADCAST(adult) */ {selected} FROM drawn JOIN adult "
            f"ON place = pmod(xxhash64(id, {SEED}), {adult.num_rows})"
        ).write.mode("overwrite").parquet(str(place))
    return str(place)


def timed(step: Callable[[], Any]) -> tuple[float, str]:
    """Return the processor time of a step, and a text with it and the elapsed time."""
    processor, clock = sum(processes().values()), time.perf_counter()
    step()
    spent = sum(processes().values()) - processor
    return spent, f"{spent:.1f} s ({time.perf_counter() - clock:.0f} by the clock)"


def compared(names: tuple[str, str], ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Run two steps, one after the other, and print their times and the ratio."""
    (mine, said), (other, plain) = timed(ours), timed(theirs)
    print(
        f"{names[0]} {said}, {names[1]} {plain}, ratio {mine / other:.2f}, "
        f"load {os.getloadavg()[0]:.0f}, peak memory {peaks()}",
        flush=True,
    )


def main() -> None:
    """Run the steps in turns, and print the times of each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1e7")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    session = connect("spark", master="local[2]")._session
    path = made(session, options.folder, int(float(options.rows)))
    table = session.read.parquet(path)
    summaries: list[aegis.Summary] = []

    def summarize() -> None:
        summaries[:] = [aegis.summarize(open_table(path, engine=session), POLICY)]

    def plain() -> None:
        for name in table.columns:
            if name != "income":
                table.groupBy(name, "income").count().toArrow()

    for _ in range(options.runs):
        compared(("summarize", "plain queries"), summarize, plain)
        if options.release:
            best = aegis.advise(summaries[0], POLICY, generate_count=20).best
            output = f"{path}_released"

            def apply(output: str = output, best: Any = best) -> None:
                aegis.apply(
                    open_table(path, engine=session), POLICY, best, output=output, force=True
                )

            def copy(output: str = output) -> None:
                table.write.mode("overwrite").parquet(f"{output}_plain", compression="zstd")

            compared(("apply", "plain copy"), apply, copy)
            for place in (output, f"{output}_plain"):
                shutil.rmtree(place)


if __name__ == "__main__":
    main()
