"""Tables larger than the others: what a summary and an advice take, and how little memory suffices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, command, four_commands, in_another_process, step
from benchmarks.tables import make_table

if TYPE_CHECKING:
    from benchmarks.tasks import Settings

LIMIT = "64MiB"


def memory(settings: Settings) -> Iterator[Figure]:
    """Run four commands on a large table with little memory for the engine."""
    table = in_another_process(make_table, settings.folder, settings.rows)
    for name, words in four_commands([table], settings.folder, "limited").items():
        wall, cpu, peak = command(*words, "--memory-limit", LIMIT, "--quiet")
        yield Figure(
            "memory",
            f"{name}, {settings.rows:.0e} rows, --memory-limit {LIMIT}, peak memory",
            peak,
            "MB",
            note=f"{cpu:.1f} s of processor time, {wall:.1f} s elapsed",
        )


def large(settings: Settings) -> Iterator[Figure]:
    """Advise on and summarise a hundred million rows, or ten times the rows asked for if fewer."""
    rows = min(10 * settings.rows, 100_000_000)
    yield from _once("large", settings, rows, {"advise": (None, None), "summarize": (None, None)})


def huge(settings: Settings) -> Iterator[Figure]:
    """Advise on a billion rows, or a hundred times the rows asked for if fewer."""
    rows = min(100 * settings.rows, 1_000_000_000)
    yield from _once("huge", settings, rows, {"advise": (360, 6000)})


def _once(
    task: str,
    settings: Settings,
    rows: int,
    targets: dict[str, tuple[float | None, float | None]],
) -> Iterator[Figure]:
    """Run each step once, and the plain queries; the targets bound elapsed time and memory."""
    table = in_another_process(make_table, settings.folder, rows)
    plain = step("group_bys", table=table)
    for name, (seconds, megabytes) in targets.items():
        ran = step(name, table=table)
        what = f"{name}, {rows:.0e} rows"
        yield Figure(task, what, ran.cpu, "s")
        yield Figure(task, f"{what}, elapsed", ran.seconds, "s", seconds)
        yield Figure(task, f"{what}, peak memory", ran.peak, "MB", megabytes)
        yield Figure(
            task,
            f"{name} / the 14 plain GROUP BYs, {rows:.0e} rows",
            ran.cpu / plain.cpu,
            "x",
            note=f"{ran.cpu:.1f} s / {plain.cpu:.1f} s; {ran.seconds / plain.seconds:.2f} in elapsed time",
        )
