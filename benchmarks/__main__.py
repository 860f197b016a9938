"""`python -m benchmarks`: measure, print a table, write the figures, compare with an earlier run."""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import aegis
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
    before = _read(given.baseline)
    figures: list[Figure] = []
    failed: list[str] = []
    settings = Settings(folder, int(float(given.rows)))
    compileall.compile_dir(ROOT / "src", quiet=1)  # as an installation does
    started = time.time()
    load = os.getloadavg()
    try:
        for name in names:
            began = time.time()
            # What an earlier task left in memory would count as the peak of what this one starts.
            with ProcessPoolExecutor(1, get_context("spawn")) as alone:
                done = alone.submit(run_task, name, settings, before)
            try:
                figures += done.result()
            except Exception as error:  # noqa: BLE001  # the other tasks still run
                failed.append(name)
                print(f"{name}: FAILED. {type(error).__name__}: {error}", flush=True)
            print(f"{name}: {time.time() - began:.0f} s", flush=True)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
        path = _write(given.output, figures, settings, load, time.time() - started)
        print(f"Written: {path}")
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
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the figures go")
    parser.add_argument(
        "--folder", metavar="FOLDER", help="keep large tables here (default: a temporary folder)"
    )
    return parser.parse_args()


def _read(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {f"{one['task']}: {one['name']}": one["value"] for one in content["figures"]}


def _write(
    path: Path | None,
    figures: Sequence[Figure],
    settings: Settings,
    load: tuple[float, float, float],
    seconds: float,
) -> Path:
    now = datetime.now(UTC)
    target = path or ROOT / ".bench" / f"{now:%Y%m%dT%H%M%SZ}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "benchmark": 1,
        "aegis": aegis.__version__,
        "commit": _commit(),
        "created": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_before": load,
        "load_after": os.getloadavg(),
        "seconds": seconds,
        "rows": settings.rows,
        "figures": [figure.to_dict() for figure in figures],
    }
    target.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return target


def _commit() -> str:
    """Return the commit that was measured, marked if files differ from it; "" without Git."""
    words = ["git", "describe", "--always", "--abbrev=8", "--dirty"]
    try:
        found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip()


if __name__ == "__main__":
    main()
