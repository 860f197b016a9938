"""Processor time of `summarize` on Spark, compared with one plain GROUP BY per attribute.

python -m benchmarks.spark --rows 1e7 --runs 3

Both run in turns in one session of Spark on two cores of this machine. The first run includes the
compiler of the Java machine. Processor times are those of this process and of Spark's, from /proc.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aegis
from aegis.sources import open_table
from aegis.sources.spark import connect
from benchmarks.measure import POLICY
from benchmarks.servers import TICK, jittered


def seconds() -> float:
    """Return the processor time of this process, of the processes below it, and of those of them
    that have ended.
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
    return sum(times[process] for process in below)


def timed(step: Callable[[], Any]) -> tuple[float, float]:
    """Return the processor time and the elapsed time of a step."""
    processor, clock = seconds(), time.perf_counter()
    step()
    return seconds() - processor, time.perf_counter() - clock


def main() -> None:
    """Run both steps in turns, and print the times of each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1e7")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    path = str(jittered(options.folder, int(float(options.rows))))
    session = connect("spark", master="local[2]")._session
    table = session.read.parquet(path)

    def plain() -> None:
        for name in table.columns:
            if name != "income":
                table.groupBy(name, "income").count().toArrow()

    for run in range(options.runs):
        ours = timed(lambda: aegis.summarize(open_table(path, engine=session), POLICY))
        theirs = timed(plain)
        shown = [f"{cpu:.1f} s ({wall:.1f} by the clock)" for cpu, wall in (ours, theirs)]
        ratio, load = ours[0] / theirs[0], os.getloadavg()[0]
        print(
            f"run {run}: summarize {shown[0]}, plain {shown[1]}, ratio {ratio:.2f}, load {load:.0f}"
        )


if __name__ == "__main__":
    main()
