"""Spark: `summarize` and `apply` against plain queries of Spark, in turns, in one session on two cores."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ADULT, POLICY, Figure, SkipError
from benchmarks.processes import peaks, seconds_of
from benchmarks.tables import COLUMNS, SEED

if TYPE_CHECKING:
    from benchmarks.tasks import Settings

ROWS_OF_FILE = 6_250_000
"""Rows of each file of the table."""
Times = tuple[float, float]
"""Processor time and elapsed time."""


def spark(settings: Settings) -> Iterator[Figure]:
    """Summarise up to ten million rows on Spark against one plain GROUP BY per attribute."""
    yield from _on_spark("spark", settings, min(settings.rows, 10_000_000), rounds=4)


def spark_large(settings: Settings) -> Iterator[Figure]:
    """Summarise and release a hundred million rows on Spark, or ten times the rows asked for if fewer."""
    rows = min(10 * settings.rows, 100_000_000)
    yield from _on_spark("spark_large", settings, rows, rounds=2, released=True)


def _on_spark(
    task: str, settings: Settings, rows: int, *, rounds: int, released: bool = False
) -> Iterator[Figure]:
    if shutil.which("java") is None:
        raise SkipError("Spark needs Java: there is no program java")
    import pyspark  # noqa: F401  # without it, the task is skipped

    import aegis
    from aegis.sources import open_table
    from aegis.sources.spark import connect

    session = connect("spark", master="local[2]")._session
    try:
        path = _table(session, settings.folder, rows)
        table = session.read.parquet(path)
        summaries: list[aegis.Summary] = []

        def summarize() -> None:
            summaries[:] = [aegis.summarize(open_table(path, engine=session), POLICY)]

        def plain() -> None:
            for name in table.columns:
                if name != "income":
                    table.groupBy(name, "income").count().toArrow()

        ours, theirs = _in_turns(summarize, plain, rounds)
        name = f"summarize / the twelve plain GROUP BYs, {rows:.0e} rows"
        yield _ratio(task, f"{name}, first round", ours[:1], theirs[:1])
        yield _ratio(task, name, ours[1:], theirs[1:], 1.5)
        yield from _peaks(task, "summarize and the plain queries")
        if released:
            yield from _released(task, session, path, summaries[0])
    finally:
        session.stop()


def _released(task: str, session: Any, path: str, summary: Any) -> Iterator[Figure]:
    """Release the table once, without a certificate, and copy it once."""
    import aegis
    from aegis.sources import open_table

    best = aegis.advise(summary, POLICY, generate_count=20).best
    assert best is not None
    output, copied = f"{path}_released", f"{path}_copied"

    def apply() -> None:
        source = open_table(path, engine=session)
        aegis.apply(source, POLICY, best, output=output, force=True)

    def copy() -> None:
        table = session.read.parquet(path)
        table.write.mode("overwrite").parquet(copied, compression="zstd")

    name = f"apply without a certificate / plain copy, {summary.rows:.0e} rows"
    yield _ratio(task, name, *_in_turns(apply, copy, 1))
    yield from _peaks(task, "the same and apply")
    for folder in (output, copied):
        shutil.rmtree(folder)


def _table(session: Any, folder: Path, rows: int) -> str:
    """Return Parquet files with rows of Adult, whose age and hours are moved by at most two."""
    import pyarrow.parquet

    path = folder / f"spark_{rows}"
    if not (path / "_SUCCESS").exists():
        adult = pyarrow.parquet.read_table(ADULT)
        numbers = pyarrow.array(range(adult.num_rows), pyarrow.int32())
        numbered = session.createDataFrame(adult.append_column("place", numbers))
        session.range(0, rows, 1, -(-rows // ROWS_OF_FILE)).createOrReplaceTempView("drawn")
        numbered.createOrReplaceTempView("adult")

        def moved(name: str, more: int) -> str:
            step = f"pmod(xxhash64(id, {SEED + more}), 5) - 2"
            return f"CAST(greatest(1, `{name}` + {step}) AS INT) AS `{name}`"

        columns = [name.strip(' "') for name in COLUMNS.split(",")]
        changed = {"age": moved("age", 1), "hours-per-week": moved("hours-per-week", 2)}
        selected = ", ".join(changed.get(name, f"`{name}`") for name in columns)
        session.sql(
            f"SELECT /*+ BROADCAST(adult) */ {selected} FROM drawn JOIN adult "
            f"ON place = pmod(xxhash64(id, {SEED}), {adult.num_rows})"
        ).write.mode("overwrite").parquet(str(path))
    return str(path)


def _in_turns(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int
) -> tuple[list[Times], list[Times]]:
    """Run two steps in turns; return what each round took of this process and of Spark's."""

    def spent(step: Callable[[], Any]) -> Times:
        processor, clock = seconds_of(os.getpid()), time.perf_counter()
        step()
        return seconds_of(os.getpid()) - processor, time.perf_counter() - clock

    pairs = [(spent(ours), spent(theirs)) for _ in range(rounds)]
    return [mine for mine, _ in pairs], [other for _, other in pairs]


def _ratio(
    task: str, name: str, ours: list[Times], theirs: list[Times], target: float | None = None
) -> Figure:
    """Return the ratio of the least processor times, with all times as a note."""
    return Figure(
        task,
        name,
        min(ours)[0] / min(theirs)[0],
        "x",
        target,
        note="; ".join(
            f"{' '.join(f'{one[place]:.1f}' for one in ours)} s / "
            f"{' '.join(f'{one[place]:.1f}' for one in theirs)} s {how}"
            for place, how in enumerate(("of processor time", "elapsed"))
        ),
    )


def _peaks(task: str, name: str) -> Iterator[Figure]:
    """Yield the peak memory of Spark's Java process and of this one so far."""
    for program, size in peaks(os.getpid()).items():
        if program.startswith(("java", "python")):
            yield Figure(task, f"{name}, peak memory of {program}", size, "MB")
