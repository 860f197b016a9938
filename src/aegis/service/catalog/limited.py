"""Do a task in a separate process, under limits of time and memory.

Nobody knows beforehand what a search, a leak audit, the check of an uploaded file or a job of an
agent costs. The separate process can be killed at any moment, ends with the process that started
it, and answers in JSON. In the service, it opens no file outside of its folder.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from aegis.errors import AegisError, EngineError
from aegis.files import SILENT, Progress, Step, temporary_folder
from aegis.service.catalog.errors import CatalogError

_PAUSE = 1.0
_REPORT_EVERY = 0.5
MIB = 1 << 20
_LEAST = 64 * MIB
"""Number of bytes that must remain for the work once its libraries are loaded."""
NO_MEMORY = 3
"""Exit code of a process that exceeded its memory limit."""
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of the process. Arrow's own pool would reserve a GiB with its first value, and this
counts towards the limit.
"""
_NEEDED = (
    "aegis.service.catalog.summaries",
    "aegis.service.catalog.verifying",
    "aegis.release",
    "scipy.optimize",
    "scipy.linalg.lapack",
)
"""Modules that load the libraries of all tasks."""


@dataclass(frozen=True)
class WorkLimits:
    """The most seconds, from start to answer, and on Linux the most bytes of memory (None: no
    limit) that a task may use in a separate process.
    """

    seconds: float = 900.0
    memory: int | None = 4 << 30


USUAL = WorkLimits()


class LimitError(CatalogError):
    """A task exceeded its time or memory limit; the message quotes no data."""


_ERRORS = {kind.__name__: kind for kind in (EngineError, LimitError, CatalogError)}
"""Errors that keep their kind. An error of a subclass gets the first kind that it belongs to, and any
other error becomes a `CatalogError`.
"""
_HINT = "Use fewer candidate masks, or ask the operator to raise --job-seconds or --job-memory."


def run(
    task: str,
    limits: WorkLimits | None,
    *,
    alive: Callable[[Mapping[str, Any]], None] = lambda state: None,  # noqa: ARG005
    progress: Progress = SILENT,
    say: Callable[[str], None] = lambda line: None,  # noqa: ARG005
    **values: Any,
) -> Any:
    """Do a task of `TASKS` with these arguments in a separate process under limits, and return its
    answer. Without limits, do it in this process.

    `alive` is called once a second with the progress; if it raises an exception, the work ends. In
    this process, `progress` is used instead. `say` receives each line of text that the task writes
    for people. Raise `LimitError` if the work exceeded the limits, or ended without an answer, or the error of the task.
    """
    if limits is None:
        return resolve_name(TASKS[task])(progress=progress, **values)
    with temporary_folder("work") as folder:
        return _Process(task, folder, limits, say).answer(values, alive)


class _Process:
    """A separate process that does one task."""

    def __init__(
        self, task: str, folder: Path, limits: WorkLimits, say: Callable[[str], None]
    ) -> None:
        self._task = task
        self._limits = limits
        self._say = say
        self._state: dict[str, Any] = {}
        self._answer: dict[str, Any] | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "aegis.service.catalog.limited", str(limits.memory or 0)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if task in _OF_AGENT else subprocess.DEVNULL,
            env={**os.environ, **ENVIRONMENT, "TMPDIR": str(folder)},
        )

    def answer(self, values: Mapping[str, Any], alive: Callable[[Mapping[str, Any]], None]) -> Any:
        assert self._process.stdin is not None
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        try:
            with suppress(BrokenPipeError):  # `_result` reports its end
                pickle.dump((self._task, dict(values)), self._process.stdin)
                self._process.stdin.flush()
            self._wait(alive)
        finally:
            self._process.kill()
            self._process.wait()
            reader.join()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()
        return self._result()

    def _wait(self, alive: Callable[[Mapping[str, Any]], None]) -> None:
        end = time.monotonic() + self._limits.seconds
        while True:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_PAUSE)
                return
            alive(self._state)
            if time.monotonic() > end:
                raise LimitError(
                    f"The work took more than {self._limits.seconds:g} seconds.", hint=_HINT
                )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "told" in message:
                self._state = message["told"]
            elif "said" in message:
                self._say(message["said"])
            else:
                self._answer = message

    def _result(self) -> Any:
        if self._answer is None:
            code, most = self._process.returncode, self._limits.memory
            ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            reason = f"The {self._task} ended without an answer ({ended})."
            if code == NO_MEMORY and most is not None:
                reason = (
                    f"The {self._task} took more than the {most / MIB:.0f} MiB of memory that a job "
                    "may have."
                )
            raise LimitError(reason, hint=_HINT)
        if "error" in self._answer:
            error = self._answer["error"]
            raised = _ERRORS[error["kind"]](error["message"], hint=error["hint"])
            raised.noise_drawn = error["noise_drawn"]
            raise raised
        return self._answer["answer"]


TASKS = {
    "search": "aegis.service.catalog.summaries:candidates",
    "leak": "aegis.service.catalog.summaries:leak",
    "verify": "aegis.service.catalog.verifying:verify_file",
    "job": "aegis.service.agent:do_given",
}
"""The functions that can be called under limits, by name of the task."""
_OF_AGENT = ("job",)
"""Tasks that an agent does on its own tables: its owner may see the text of unexpected errors."""


@dataclass
class ReportedStep:
    """A step of a job, with its progress as JSON values for other programs. `state` has the name of
    the step, the finished and the total units of work, and a note. `tell` is called after each
    change.
    """

    state: dict[str, Any]
    tell: Callable[[dict[str, Any]], None] = lambda state: None  # noqa: ARG005

    def advance(self, amount: float = 1) -> None:
        """Add to the number of finished units of work."""
        self.state["done"] += amount
        self.tell(self.state)

    def note(self, text: str) -> None:
        """Report a text that is shown next to the name of the current step."""
        self.state["note"] = text
        self.tell(self.state)


class ThrottledProgress(ABC):
    """Sends the progress of a job as JSON values: a new step at once, and the progress within a
    step at most twice a second.
    """

    _next = 0.0

    @abstractmethod
    def send(self, state: dict[str, Any]) -> None:
        """Send the name and the progress of the current step, `state`, to the receiver."""

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Start a step of `total` units of work (None: unknown)."""
        step = ReportedStep({"step": title, "done": 0, "total": total}, self._tell)
        self._next = 0.0
        self._tell(step.state)
        yield step

    def _tell(self, state: dict[str, Any]) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _REPORT_EVERY
            self.send(state)


class Lines(ThrottledProgress):
    """Writes the progress of a job as lines of JSON to the parent process."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def send(self, state: dict[str, Any]) -> None:
        """Write the progress of a step (`state`) to the parent process, as a line of JSON."""
        self.write({"told": state})

    def say(self, text: str) -> None:
        """Write a line of text for people."""
        self.write({"said": text})

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a mapping as a line of JSON."""
        self._out.write(json.dumps(line, default=str).encode() + b"\n")
        self._out.flush()


def _confine(task: str, memory: int) -> None:
    """Limit the memory of this process and the files it may open, before it reads untrusted content."""
    from importlib import import_module

    from aegis.sources.embedded import limit_embedded, lock_embedded

    for name in _NEEDED:
        import_module(name)
    if memory:
        limit_embedded(memory // 2)
    if task not in _OF_AGENT:
        lock_embedded([Path(os.environ["TMPDIR"])])
    if memory:
        limit_memory(memory)


def limit_memory(memory: int) -> None:
    """Limit the memory of this process, on Linux.

    Call this after the libraries are loaded and have started their threads: some libraries retry
    forever if a thread gets no memory at its start. Raise `LimitError` if the limit leaves too
    little memory for the work.
    """
    used = _memory_used()
    if memory - used < _LEAST:
        raise LimitError(
            f"At most {memory / MIB:.0f} MiB of memory are allowed, and the work takes "
            f"{used / MIB:.0f} MiB before it begins.",
            hint=f"Set --job-memory to {(used + _LEAST) / MIB:.0f} MiB or more.",
        )
    if sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _memory_used() -> int:
    """Return the bytes of memory that count towards this process's limit; 0 outside Linux."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    data = next(line for line in status.read_text().splitlines() if line.startswith("VmData:"))
    return int(data.split()[1]) << 10


def _end_with_parent() -> None:
    """Start a thread that ends this process once its parent process has ended."""
    while os.read(sys.stdin.fileno(), 1 << 10):
        continue
    os._exit(1)


def main() -> None:
    """Read a task from standard input, do it, and write its answer to standard output as JSON."""
    task, values = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    lines = Lines(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what a library prints is no answer
    try:
        work = resolve_name(TASKS[task])  # with its libraries, before the memory is limited
        _confine(task, int(sys.argv[1]))
        answer = work(progress=lines, **values)
    except AegisError as error:
        kinds = [name for name, kind in _ERRORS.items() if isinstance(error, kind)]
        sent = {"kind": next(iter(kinds), CatalogError.__name__), "noise_drawn": error.noise_drawn}
        lines.write({"error": sent | {"message": error.message, "hint": error.hint}})
    except MemoryError:
        os._exit(NO_MEMORY)  # to end in order takes memory, too
    else:
        lines.write({"answer": answer})
    os._exit(0)  # without waiting for a library's threads: the parent has the answer


if __name__ == "__main__":
    main()
