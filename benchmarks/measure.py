"""Figures with their targets, and how they are measured."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ADULT = ROOT / "data" / "adult.parquet"
POLICY = ROOT / "examples" / "adult" / "policy.yaml"
QUASI = "age,workclass,education,marital-status,occupation,race,sex,native-country"
SHARED = Path(os.environ.get("AEGIS_DATA", ROOT.parent / "shared" / "data"))


class SkipError(Exception):
    """A task cannot run on this machine: the message says what it needs."""


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes
    ----------
    task, name
        What was measured, and which figure of it.
    value, unit
        The figure.
    target
        What it must reach, or None.
    at_most
        Whether the target is an upper bound; else it is a lower one.
    note
        How to read it.
    proven
        Whether what the target is for was proven: a search that ends without a proof misses it.
    """

    task: str
    name: str
    value: float
    unit: str
    target: float | None = None
    at_most: bool = True
    note: str = ""
    proven: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the target is reached, with its proof; None without one."""
        if self.target is None:
            return None
        if not self.proven:
            return False
        return self.value <= self.target if self.at_most else self.value >= self.target

    def line(self, before: Mapping[str, float]) -> str:
        """Return the figure as a line, compared with an earlier run's figures by task and name."""
        target = ""
        if self.target is not None:
            sign = "<=" if self.at_most else ">="
            target = f"{sign} {self.target:g} {'met' if self.met else 'MISSED'}"
        earlier = before.get(f"{self.task}: {self.name}")
        change = f" ({self.value / earlier:.2f} of the baseline)" if earlier else ""
        note = f"  [{self.note}]" if self.note else ""
        return f"{self.task:14} {self.name:52} {self.value:12,.3f} {self.unit:4} {target}{change}{note}"


@dataclass(frozen=True)
class Step:
    """What one step in a process of its own took.

    Attributes
    ----------
    seconds, cpu
        Wall and processor time of the work itself, imports left out.
    process
        Wall time of the whole process.
    peak
        Peak resident memory of the process, in MB.
    result
        What the step returned.
    """

    seconds: float
    cpu: float
    process: float
    peak: float
    result: Mapping[str, Any]


def step(name: str, **options: Any) -> Step:
    """Run a function of `benchmarks.steps` in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.steps", name, json.dumps(options, default=str)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return measured(process, f"step {name} with {options}")


def measured(running: subprocess.Popen[str], what: str) -> Step:
    """Wait for a process that prints `seconds`, `cpu`, `result` and maybe `peak` as JSON."""
    printed, (whole, _, peak) = ended(running, what)
    found = json.loads(printed.splitlines()[-1])
    return Step(found["seconds"], found["cpu"], whole, found.get("peak", peak), found["result"])


Run = tuple[float, float, float]
"""Elapsed seconds, processor seconds and peak memory (MB) of a process."""


def ended(running: subprocess.Popen[str], what: str, given: str = "") -> tuple[str, Run]:
    """Give a process this input if it has a pipe for it; return what it printed, and what it took
    from now on. Raise `RuntimeError` if it fails.
    """
    started, printed = time.perf_counter(), ""
    with running as process:
        if process.stdin is not None:
            process.stdin.write(given)
            process.stdin.close()
        if process.stdout is not None:
            printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"This ended with {process.returncode}: {what}.")
    return printed, (wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def command(*words: object, environment: Mapping[str, str] | None = None) -> Run:
    """Run `aegis` with these words; return what it took."""
    program = [str(Path(sys.executable).with_name("aegis")), *map(str, words)]
    running = subprocess.Popen(program, stdout=subprocess.DEVNULL, env=environment, text=True)
    return ended(running, " ".join(program))[1]


def four_commands(table: Sequence[object], folder: Path, name: str) -> dict[str, list[object]]:
    """Return the words of four commands on a table; each needs the files of those before it."""
    best, summary, released = (folder / f"{name}.{end}" for end in ("yaml", "aegis", "parquet"))
    policy = ["--policy", POLICY]
    return {
        "summarize": ["summarize", *table, *policy, "-o", summary, "--force"],
        "advise": ["advise", *table, *policy, "-o", best, "--force"],
        "apply": ["apply", *table, *policy, "-c", best, "-o", released, "--force"],
        "audit": ["audit", *table, "--quasi-identifiers", QUASI],  # the policy's rule is not met
    }


def in_another_process(work: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function returns in a process of its own.

    What this process holds would count as the peak of those that it starts.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as maker:
        return maker.submit(work, *arguments).result()


def advised(*words: object) -> dict[str, Any]:
    """Run `aegis` with these words once more, for what it states; return its JSON."""
    program = Path(sys.executable).with_name("aegis")
    printed = subprocess.run(
        [program, *map(str, words), "--format", "json", "--quiet"],
        stdout=subprocess.PIPE,
        check=True,
    )
    stated: dict[str, Any] = json.loads(printed.stdout)
    return stated


def imports_alone(statement: str) -> Run:
    """Run a statement in a fresh interpreter; return what it took."""
    return ended(subprocess.Popen([sys.executable, "-c", statement], text=True), statement)[1]


def timed(work: Callable[[], Any], repeat: int = 1) -> tuple[float, float]:
    """Return the median wall time and the least processor time of `repeat` runs, in seconds."""
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), min(cpus)
