"""Draw mutants of some rooms, run the tests that execute the changed line, and list survivors."""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue

import pytest
from coverage import CoverageData

from . import judge
from .mutations import Mutation, draw, key, mutations, named_equivalent

ROOT = Path(__file__).parents[2]
ROOMS = ("safe", "privacy", "release", "service/catalog", "advisor/search", "sources")
TESTS = ("safe", "privacy", "release", "advisor", "sources", "service")
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
"""Changes that no test can notice, with the reason."""
FORKS = multiprocessing.get_context("forkserver")
"""Starts processes from one that has imported the libraries, so that pytest starts at once."""
LIMIT = 1200.0
"""Seconds by the clock after which a mutant that waits for ever is killed."""


@dataclass(frozen=True)
class Verdict:
    """What the tests said of a mutant."""

    mutation: Mutation
    killed: bool
    by: list[str]
    """The test that failed; the first where none could start."""
    tests: int


def main() -> int:
    """Return 1 where fewer mutants than asked for were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=300, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0, help="which are drawn")
    parser.add_argument(
        "--rooms", default=",".join(ROOMS), help="folders or modules below src/aegis"
    )
    parser.add_argument("--tests", default=",".join(TESTS), help="folders or files below tests")
    parser.add_argument("--folder", type=Path, default=ROOT / ".mutants", help="where to work")
    parser.add_argument(
        "--again",
        action="store_true",
        help="record anew: for other rooms or tests, or a changed source",
    )
    parser.add_argument("--least", type=float, default=0.95, help="share that must be killed")
    parser.add_argument("--workers", type=int, default=2, help="mutants that are judged at a time")
    parser.add_argument(
        "--most",
        type=float,
        default=60.0,
        help="seconds of the processor of the tests for one mutant",
    )
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    folder: Path = options.folder.resolve()
    folder.mkdir(exist_ok=True)
    if options.again or not (folder / "seconds.json").exists():
        _record(folder, rooms, [f"tests/{name}" for name in options.tests.split(",")])
    executed = Executed(folder, options.most)
    drawn = draw(_candidates(rooms, executed), options.number, options.seed)
    FORKS.set_forkserver_preload(json.loads((folder / "modules.json").read_text("utf-8")))
    verdicts = _judge(drawn, executed, folder, options.workers)
    killed = sum(verdict.killed for verdict in verdicts)
    print(f"\n{killed} of {len(verdicts)} mutants killed ({killed / max(1, len(verdicts)):.1%})")
    for verdict in verdicts:
        if not verdict.killed:
            print(f"  survives {verdict.tests} tests: {verdict.mutation}")
    return 0 if killed >= options.least * len(verdicts) else 1


def _record(folder: Path, rooms: list[str], tests: list[str]) -> None:
    """Run the tests once, and keep which line of the rooms each executes and how long it takes."""
    folders = [ROOT / "src" / "aegis" / room for room in rooms]
    include = ",".join(f"{room}/*" if room.is_dir() else f"{room}" for room in folders)
    (folder / "coveragerc").write_text(
        f"[run]\ninclude = {include}\nparallel = true\n"
        f"data_file = {folder / 'executed'}\nconcurrency = multiprocessing,thread\n",
        encoding="utf-8",
    )
    for old in folder.glob("executed*"):
        old.unlink()
    environment = os.environ | {"AEGIS_MUTANTS": str(folder)}
    run = [sys.executable, "-m", "coverage", "run", f"--rcfile={folder / 'coveragerc'}"]
    run += ["-m", "pytest", "-p", "tests.mutants.recorder", *tests]
    subprocess.run(run, cwd=ROOT, env=environment, check=False)
    combine = [sys.executable, "-m", "coverage", "combine", f"--rcfile={folder / 'coveragerc'}"]
    subprocess.run(combine, cwd=ROOT, check=True)


class Executed:
    """Which tests execute a line: those that killed a mutant of the module, then the quickest."""

    def __init__(self, folder: Path, most: float) -> None:
        self._most = most
        self._data = CoverageData(str(folder / "executed"))
        self._data.read()
        self._contexts = cache(self._data.contexts_by_lineno)
        self._seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text("utf-8"))
        self._killers: dict[str, set[str]] = {}

    def note(self, path: str, tests: Iterable[str]) -> None:
        """Have tests that killed a mutant of a module judge its next ones first."""
        self._killers.setdefault(path, set()).update(tests)

    def tests(self, path: str, line: int) -> list[str]:
        """Return the tests that execute a line; none where no test does.

        The top level of a module runs before any test: it is judged by the tests that execute
        another line of the module, and then by all others.
        """
        contexts = self._contexts(str(ROOT / path))
        if line not in contexts:
            return []
        nodes = self._quickest(contexts[line])
        if not nodes:
            near = self._quickest(context for those in contexts.values() for context in those)
            nodes = [*near, *sorted(self._seconds.keys() - near, key=self._order)]
        killers = self._killers.get(path, set())
        nodes.sort(key=lambda node: node not in killers)
        spent = accumulate(self._seconds[node] for node in nodes)
        return [node for node, seconds in zip(nodes, spent, strict=True) if seconds <= self._most]

    def limit(self, tests: list[str]) -> int:
        """Return the seconds of the processor in which tests must be done: many times their own."""
        return 30 + math.ceil(5 * sum(self._seconds[node] for node in tests))

    def _quickest(self, contexts: Iterable[str]) -> list[str]:
        return sorted(self._seconds.keys() & contexts, key=self._order)

    def _order(self, node: str) -> tuple[float, str]:
        return self._seconds[node], node


def _candidates(rooms: list[str], executed: Executed) -> list[Mutation]:
    """Return every mutation of the rooms on a line that some test executes, but for equivalent ones."""
    equivalent = named_equivalent(EQUIVALENT, ROOT)
    candidates, skipped = [], 0
    for room in rooms:
        folder = ROOT / "src" / "aegis" / room
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            name = path.relative_to(ROOT).as_posix()
            edits = [e for e in mutations(path, name) if key(e, ROOT) not in equivalent]
            tested = [edit for edit in edits if executed.tests(name, edit.line)]
            candidates += tested
            skipped += len(edits) - len(tested)
    print(f"{len(candidates)} mutations, and {skipped} on lines that no test executes", flush=True)
    return candidates


def _judge(drawn: list[Mutation], executed: Executed, folder: Path, workers: int) -> list[Verdict]:
    """Return the verdicts; each worker has a copy of the source to change."""
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(workers):
        copy = folder / f"source{number}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ROOT / "src", copy)
        _require_imported(copy)
        copies.put(copy)

    def judged(mutation: Mutation) -> Verdict:
        copy = copies.get()
        try:
            tests = executed.tests(mutation.path, mutation.line)
            verdict = _run(mutation, tests, copy, executed.limit(tests))
            executed.note(mutation.path, verdict.by)
        finally:
            copies.put(copy)
        print(f"{'killed  ' if verdict.killed else 'SURVIVES'} {mutation}", flush=True)
        return verdict

    with ThreadPoolExecutor(workers) as pool:
        verdicts = list(pool.map(judged, drawn))
    tests = sorted({node for verdict in verdicts for node in verdict.by})
    _require_passing(tests, copies.get(), executed.limit(tests))
    return verdicts


def _require_imported(copy: Path) -> None:
    """End the program where Python would import another Aegis, so that every mutant would survive."""
    asked = [sys.executable, "-c", "import aegis; print(aegis.__file__)"]
    shown = subprocess.run(
        asked, env=os.environ | judge.environment(copy), capture_output=True, text=True, check=True
    )
    if not Path(shown.stdout.strip()).is_relative_to(copy):
        sys.exit(
            f"Python imports {shown.stdout.strip()}, not the changed source in {copy}: every mutant would "
            "survive. Use an environment in which PYTHONPATH comes first."
        )


def _run(mutation: Mutation, tests: list[str], copy: Path, limit: int) -> Verdict:
    """Return whether one of the tests fails on the changed source."""
    module = copy / Path(mutation.path).relative_to("src")
    before, times = module.read_bytes(), module.stat()
    module.write_bytes(mutation.apply(before))
    try:
        code, failed = _tested(copy, tests, limit, first=True)
    finally:
        module.write_bytes(before)
        os.utime(module, ns=(times.st_atime_ns, times.st_mtime_ns))
    killed = code != pytest.ExitCode.OK
    return Verdict(mutation, killed, (failed or tests[:1]) if killed else [], len(tests))


def _require_passing(tests: list[str], copy: Path, limit: int) -> None:
    """End the program where a test that killed a mutant fails on the source as it is, too."""
    code, failed = _tested(copy, tests, limit, first=False) if tests else (0, [])
    if code != pytest.ExitCode.OK:
        sys.exit(f"These tests fail without a mutant, too, so that they judge none: {failed}")


def _tested(copy: Path, tests: list[str], limit: int, *, first: bool) -> tuple[int, list[str]]:
    """Run tests on a copy of the source, and return pytest's code and the tests that failed."""
    receiving, sending = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=judge.run, args=(copy, ROOT, tests, limit, first, sending))
    process.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(LIMIT) else (pytest.ExitCode.INTERRUPTED, [])
    except EOFError:
        return pytest.ExitCode.INTERNAL_ERROR, []
    finally:
        if process.pid:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.join()


if __name__ == "__main__":
    sys.exit(main())
