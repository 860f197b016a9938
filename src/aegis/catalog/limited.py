"""Work on files of others in a process of its own, under limits of time and memory.

What a search, a leak audit or an uploaded file takes is known only afterwards. The process that does
it may be ended at any moment, opens no file outside of its folder, and answers in JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aegis.catalog.errors import CatalogError
from aegis.errors import AegisError
from aegis.progress import SILENT, Progress, Step

_PAUSE = 1.0
_TOLD_EVERY = 0.5


@dataclass(frozen=True)
class WorkLimits:
    """What one piece of work may take.

    Attributes
    ----------
    seconds
        Most seconds, from its start to its answer.
    memory
        Most bytes of memory of its process, on Linux.
    """

    seconds: float = 900.0
    memory: int = 4 << 30


USUAL = WorkLimits()


def run(
    task: str,
    limits: WorkLimits | None,
    *,
    alive: Callable[[Mapping[str, Any]], None] = lambda told: None,  # noqa: ARG005
    progress: Progress = SILENT,
    **given: Any,
) -> Any:
    """Do a task of `TASKS`; return its answer.

    Parameters
    ----------
    task, given
        Its name, and its arguments.
    limits
        What it may take; None for this process, without limits.
    alive
        Hears once a second how far it is; what it raises ends the work.
    progress
        In place of `alive`, for work in this process.

    Raises
    ------
    CatalogError
        It took more than the limits.
    AegisError
        What the task raised.
    """
    if limits is None:
        return TASKS[task](progress=progress, **given)
    with tempfile.TemporaryDirectory(prefix="aegis-work-") as folder:
        return _Process(folder, limits).answer(task, given, alive)


class _Process:
    """A process that does one task."""

    def __init__(self, folder: str, limits: WorkLimits) -> None:
        self._limits = limits
        self._told: dict[str, Any] = {}
        self._answer: dict[str, Any] | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "aegis.catalog.limited", str(limits.memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": folder},
        )

    def answer(
        self, task: str, given: Mapping[str, Any], alive: Callable[[Mapping[str, Any]], None]
    ) -> Any:
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        try:
            self._ask(task, given)
            self._wait(alive)
        finally:
            self._process.kill()
            self._process.wait()
            reader.join()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        return self._said(task)

    def _ask(self, task: str, given: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:  # its end is told by `_said`
            pickle.dump((task, dict(given)), pipe)

    def _wait(self, alive: Callable[[Mapping[str, Any]], None]) -> None:
        end = time.monotonic() + self._limits.seconds
        while True:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_PAUSE)
                return
            alive(self._told)
            if time.monotonic() > end:
                raise CatalogError(
                    f"The work took more than {self._limits.seconds:g} seconds.",
                    hint="Use fewer candidate masks, or have the operator raise the limit of a job.",
                )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if "told" in told:
                self._told = told["told"]
            else:
                self._answer = told

    def _said(self, task: str) -> Any:
        if self._answer is None:
            code = self._process.returncode
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise CatalogError(
                f"The {task} ended without an answer ({ended}); at most "
                f"{self._limits.memory / (1 << 30):.3g} GiB of memory are allowed.",
                hint="Use fewer candidate masks, or have the operator raise the limit of a job.",
            )
        if "error" in self._answer:
            error = self._answer["error"]
            raise CatalogError(error["message"], hint=error["hint"])
        return self._answer["answer"]


def _search(*, bundle: bytes, seconds: float, progress: Progress) -> Any:
    from aegis.catalog.summaries import candidates

    return list(candidates(bundle, seconds=seconds, progress=progress))


def _leak(*, bundle: bytes, progress: Progress) -> Any:
    from aegis.catalog.summaries import leak

    return leak(bundle, progress=progress)


def _audit(*, content: bytes, suffix: str, policy: str, progress: Progress) -> Any:
    from aegis.catalog.summaries import audit_file

    with progress.step("Counting the rule anew"):
        return audit_file(content, suffix, policy)


TASKS: Mapping[str, Callable[..., Any]] = {"search": _search, "leak": _leak, "audit": _audit}
"""What can be done under limits, by name."""


class _Lines:
    """Progress as lines of JSON for the process that waits."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._last = 0.0

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step."""
        told: dict[str, Any] = {"step": title, "done": 0, "total": total}
        self.tell(told)
        yield _Counter(self, told)

    def tell(self, told: Mapping[str, Any]) -> None:
        """Write a line, at most twice a second."""
        if time.monotonic() - self._last >= _TOLD_EVERY:
            self._last = time.monotonic()
            self.write({"told": told})

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        self._out.write(json.dumps(line, default=str).encode() + b"\n")
        self._out.flush()


@dataclass
class _Counter:
    lines: _Lines
    told: dict[str, Any]

    def advance(self, amount: float = 1) -> None:
        """Count work as done."""
        self.told["done"] += amount
        self.lines.tell(self.told)

    def note(self, text: str) -> None:
        """Show a text beside the step."""
        self.told["note"] = text
        self.lines.tell(self.told)


def _confine(memory: int) -> None:
    """Hold this process to its memory and its folder, before it reads a byte of others."""
    if sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from aegis.sources.embedded import lock_embedded

    lock_embedded([Path(tempfile.gettempdir())])


def main() -> None:
    """Do the task that stands on standard input, and write its answer as JSON."""
    task, given = pickle.load(sys.stdin.buffer)
    lines = _Lines(sys.stdout.buffer)
    _confine(int(sys.argv[1]))
    try:
        answer = TASKS[task](progress=lines, **given)
    except AegisError as error:
        lines.write({"error": {"message": error.message, "hint": error.hint}})
    except MemoryError:
        sys.exit(1)
    else:
        lines.write({"answer": answer})


if __name__ == "__main__":
    main()
