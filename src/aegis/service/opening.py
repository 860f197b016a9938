"""Open a table for the workbench in a thread, so that the page can show the progress."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from aegis.files import Progress, Step
from aegis.service.catalog.errors import NotThere
from aegis.service.catalog.limited import ReportedStep
from aegis.service.workbench import Benches

_MOST_OPENINGS = 32
"""Number of openings that are remembered; older ones are forgotten."""


@dataclass
class BenchOpening:
    """A table that is being opened in a thread.

    Attributes
    ----------
    title
        The file, and the sheet or table if the file has several.
    began
        Time when opening began, on the monotonic clock.
    state
        The current step: its name, its finished and total units of work, and its note.
    ended
        Set once the table is open, or an error occurred.
    """

    title: str
    identifier: str = field(default_factory=lambda: uuid4().hex[:12])
    began: float = field(default_factory=time.monotonic)
    state: dict[str, Any] = field(default_factory=lambda: {"step": "", "done": 0.0, "total": None})
    ended: threading.Event = field(default_factory=threading.Event)
    _bench: str | None = None
    _error: Exception | None = None

    def start(self, make: Callable[[Progress], str]) -> None:
        """Call `make` in a thread; it opens the table and returns its identifier."""
        threading.Thread(target=self._run, args=(make,), daemon=True).start()

    def _run(self, make: Callable[[Progress], str]) -> None:
        try:
            self._bench = make(self)
        except Exception as error:  # noqa: BLE001  # raised again where somebody asks
            self._error = error
        finally:
            give_back()
            self.ended.set()

    def bench(self) -> str | None:
        """Return the identifier of the opened table in the workbench, None while it is being
        opened; raise the error if opening failed.
        """
        if self._error is not None:
            raise self._error
        return self._bench if self.ended.is_set() else None

    @property
    def step_words(self) -> str:
        """The current step, in words."""
        return self.state["step"] or "Reading the table"

    @property
    def noted_words(self) -> str:
        """The note on the current step, and the elapsed time."""
        seconds = f"{time.monotonic() - self.began:.0f} s"
        note = self.state.get("note")
        return f"{note}, {seconds}" if note else seconds

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Start the step `title`, which takes `total` units of work (None: unknown)."""
        self.state = {"step": title, "done": 0.0, "total": total}
        yield ReportedStep(self.state)


class Openings:
    """The tables that are being opened. Each is added to `benches` once it is open."""

    def __init__(self, benches: Benches) -> None:
        self._benches = benches
        self._openings: OrderedDict[str, BenchOpening] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, name: str, label: str | None, part: str | None) -> BenchOpening:
        """Start opening the file `name`, or its sheet or table `part`. Raise `DataError` if there
        is no such file.
        """
        opening = BenchOpening(self._benches.title_of(name, part))
        with self._lock:
            self._openings[opening.identifier] = opening
            while len(self._openings) > _MOST_OPENINGS:
                self._openings.popitem(last=False)
        opening.start(lambda progress: self._benches.open(name, label, part, progress).identifier)
        return opening

    def get(self, identifier: str) -> BenchOpening:
        """Return a table that is being opened or was opened recently; raise `NotThere` otherwise."""
        with self._lock:
            if identifier not in self._openings:
                raise NotThere("No table is being opened here.", hint="Choose the table again.")
            return self._openings[identifier]


def give_back() -> None:
    """Return freed memory to the operating system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)
