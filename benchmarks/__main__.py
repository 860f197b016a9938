"""`python -m benchmarks`: measure, print a table, write the figures, compare with an earlier run."""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from benchmarks.figures import FIGURES, Run, add_run, read_runs
from benchmarks.measure import ROOT, Figure
from benchmarks.tasks import BY_NAME_ONLY, TASKS, Settings, run_task


def main() -> None:
    """Run the tasks that are asked for."""
    given = _arguments()
    names = given.only.split(",") if given.only else [n for n in TASKS if n not in BY_NAME_ONLY]
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        sys.exit(f"No task {unknown[0]!r}. Tasks: {', '.join(TASKS)}.")
    folder = Path(given.folder or tempfile.mkdtemp(prefix="aegis-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    before = {
        f"{figure.task}: {figure.name}": figure.value
        for run in (read_runs(given.baseline) if given.baseline else {}).values()
        for figure in run.figures
    }
    figures: list[Figure] = []
    failed: list[str] = []
    settings = Settings(folder, int(float(given.rows)))
    output = given.output or ROOT / ".bench" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    commit = _commit()
    compileall.compile_dir(ROOT / "src", quiet=1)  # as an installation does
    started = time.time()
    try:
        for name in names:
            began, load = time.time(), os.getloadavg()[0]
            # What an earlier task left in memory would count as the peak of what this one starts.
            with ProcessPoolExecutor(1, get_context("spawn")) as alone:
                done = alone.submit(run_task, name, settings, before)
            seconds = time.time() - began
            try:
                of_task = done.result()
            except Exception as error:  # noqa: BLE001  # the other tasks still run
                failed.append(name)
                print(f"{name}: FAILED. {type(error).__name__}: {error}", flush=True)
                continue
            print(f"{name}: {seconds:.0f} s", flush=True)
            figures += of_task
            if of_task:  # a task that lacks a program or data yields none
                loads = [round(load, 1), round(os.getloadavg()[0], 1)]
                run = Run(commit, f"{datetime.now(UTC):%Y-%m-%d}", loads, settings.rows, of_task)
                add_run(output, name, run)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"Written: {output}")
    missed = [f for f in figures if f.met is False]
    print(
        f"{len(figures)} figures in {(time.time() - started) / 60:.0f} minutes, "
        f"{len(missed)} of them miss their target."
    )
    if failed:
        sys.exit(f"These tasks failed: {', '.join(failed)}.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        metavar="TASK,...",
        help=f"tasks: {', '.join(TASKS)}. Without this option, all run but those that take long or "
        f"need other programs: {', '.join(BY_NAME_ONLY)}",
    )
    parser.add_argument("--rows", default="1e7", help="rows of the large table (default 1e7)")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="figures of an earlier run")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where the figures go; those of other tasks in this file stay (default: a new file)",
    )
    parser.add_argument(
        "--folder", metavar="FOLDER", help="keep large tables here (default: a temporary folder)"
    )
    return parser.parse_args()


def _commit() -> str:
    """Return the commit that is measured, marked if its files were changed; "" without Git."""
    measured = ["src", "benchmarks", "data", "examples", f":!{FIGURES.relative_to(ROOT)}"]
    try:
        found = [
            subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
            for words in (
                ["rev-parse", "--short=8", "HEAD"],
                ["diff", "--stat", "HEAD", "--", *measured],
            )
        ]
    except FileNotFoundError:
        return ""
    return found[0].stdout.strip() + ("-dirty" if found[1].stdout else "")


if __name__ == "__main__":
    main()
