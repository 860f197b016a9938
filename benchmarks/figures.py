"""Files of measured figures: `make bench` writes them, the docs show `benchmarks/figures.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure import ROOT, Figure

FIGURES = ROOT / "benchmarks" / "figures.json"
"""The figures that the docs show."""


@dataclass(frozen=True)
class Run:
    """One run of one task.

    Attributes
    ----------
    commit
        What was measured, with "-dirty" if its files were changed.
    date
        The day, as YYYY-MM-DD.
    load
        The mean number of processes that ran or waited in the last minute, before and after.
    rows
        Rows of the large table.
    figures
        What the task measured.
    """

    commit: str
    date: str
    load: Sequence[float]
    rows: int
    figures: Sequence[Figure]


def read_runs(path: Path) -> dict[str, Run]:
    """Return the last run of each task in a file, by the name of the task."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        task: Run(**{**run, "figures": [Figure(**figure) for figure in run["figures"]]})
        for task, run in content.items()
    }


def add_run(path: Path, task: str, run: Run) -> None:
    """Write the run of a task into a file, in place of an earlier run of this task."""
    runs: Mapping[str, Run] = read_runs(path) if path.exists() else {}
    content = {name: asdict(one) for name, one in sorted({**runs, task: run}.items())}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
