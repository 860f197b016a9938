"""Figures of Aegis next to ARX: searches in turns, and whole processes in turns."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.arx.cases import ADULT, ADULT_QUASI, CASES, FARS, Case
from benchmarks.arx.turns import Answer, Turns, take_turns
from benchmarks.measure import Figure, Run, SkipError, advised, command, ended

if TYPE_CHECKING:
    from benchmarks.tasks import Settings

CLASSES = "AEGIS_ARX"
"""The environment variable with the class path of ARX."""
SEARCHES = 6
PROCESSES = 5


def arx(settings: Settings) -> Iterator[Figure]:
    """Search 30 cases with Aegis and with ARX in turns."""
    java = _java(settings.folder)
    for case in CASES:
        yield _compared(case, take_turns(case, java, SEARCHES))


def _compared(case: Case, turns: Turns) -> Figure:
    ours, arx = turns.medians
    notes = [
        f"{1000 * ours:,.0f} / {1000 * arx:,.0f} ms",
        f"classes counted {turns.ours[-1].checked:,} / {turns.arx[-1].checked:,} times",
        f"first search {1000 * turns.ours[0].seconds:,.0f} / {1000 * turns.arx[0].seconds:,.0f} ms, "
        f"ratio {turns.first:.2f}",
    ]
    if not turns.agree:
        notes.append(f"NOT the same result: {turns.ours[-1]}, ARX {turns.arx[-1]}")
    return Figure(
        "arx",
        f"{case.name}, Aegis / ARX",
        ours / arx,
        "x",
        1.0,
        note="; ".join(notes),
        proven=turns.agree,
    )


def arx_process(settings: Settings) -> Iterator[Figure]:
    """Load Adult and search it once by loss, in fresh processes of Aegis and of ARX in turns."""
    import yaml

    java = _java(settings.folder)
    for share in (0.0, 0.05):
        case = Case(ADULT, ADULT_QUASI[:8], "loss", share)
        policy = settings.folder / "arx.yaml"
        policy.write_text(yaml.safe_dump(case.rules()), encoding="utf-8")
        words = ("advise", ADULT.path, "-p", policy, "--search", "--objective", case.objective)
        pairs = []
        for _ in range(PROCESSES):
            ours = command(*words, "--quiet")
            arx, answer = _one_search(java, case)
            pairs.append((ours, arx))
        stated = advised(*words)
        best = Answer(0.0, 0, stated["search"]["best"], answer.levels, stated["optimal"])
        yield _whole(share, pairs, proven=best.proven and best.same_result(answer))


def _whole(share: float, pairs: list[tuple[Run, Run]], *, proven: bool) -> Figure:
    ours, arx = (
        [statistics.median(run[i] for run in runs) for i in range(3)]
        for runs in zip(*pairs, strict=True)
    )
    elapsed, busy = (statistics.median(one[i] / other[i] for one, other in pairs) for i in (0, 1))
    return Figure(
        "arx_process",
        f"whole process, 8 QI, loss, s = {share:.0%}, Aegis / ARX",
        busy,
        "x",
        0.4,
        note=f"{ours[1]:.2f} / {arx[1]:.2f} s; elapsed {ours[0]:.2f} / {arx[0]:.2f} s, "
        f"ratio {elapsed:.2f}; peak {ours[2]:.0f} / {arx[2]:.0f} MB",
        proven=proven,
    )


def _one_search(java: list[str], case: Case) -> tuple[Run, Answer]:
    """Start Java, load the table, search once; return what the process took, and its answer."""
    words = [*java, *case.arguments()]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    printed, run = ended(running, f"ARX with {case.name}", "search\n")
    return run, Answer.parse(printed.splitlines()[-1])


def _java(folder: Path) -> list[str]:
    """Compile ArxSearch.java; return the words that start it."""
    found = os.environ.get(CLASSES)
    if not found:
        raise SkipError(f"no ARX. Set {CLASSES} to its class path (benchmarks/arx/README.md)")
    missing = [table.path for table in (ADULT, FARS) if not table.path.exists()]
    if missing:
        raise SkipError(f"no file {missing[0]}. Set AEGIS_DATA to the folder with the data")
    classes = folder / "arx"
    source = Path(__file__).with_name("ArxSearch.java")
    subprocess.run(["javac", "-d", classes, "-classpath", found, source], check=True)
    return ["java", "-classpath", os.pathsep.join([str(classes), found]), "ArxSearch"]
