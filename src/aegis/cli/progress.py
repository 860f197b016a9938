"""Show progress bars on standard error; they disappear when the work is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aegis.cli import logs
from aegis.cli.output import clean, console
from aegis.interrupts import check
from aegis.progress import SILENT, Progress, Step

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class _BarStep:
    """A step that is shown as a bar."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, amount: float = 1) -> None:
        """Add to the finished units of work."""
        self._bars.advance(self._task, amount)

    def note(self, text: str) -> None:
        """Show `text` next to the bar."""
        self._bars.update(self._task, note=clean(text))


class TerminalProgress:
    """Progress with one bar per running step."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step of `total` units of work. Its bar disappears at the end of the step."""
        task = self._bars.add_task(title, total=total, note="")
        try:
            yield _BarStep(self._bars, task)
        finally:
            self._bars.remove_task(task)


class Interruptible:
    """Progress that raises `KeyboardInterrupt` at the end of a step, if a library has swallowed the
    interrupt.
    """

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step. If an interrupt arrives during the step, raise `KeyboardInterrupt` at its
        end.
        """
        with self._shown.step(title, total) as step:
            yield step
        check()


class QueryClock:
    """Computes the finished share and the remaining time of the query that the engine runs.

    Parameters
    ----------
    done
        Function that returns the finished share of the query; None if it is unknown.
    now
        Function that returns the time in seconds.
    """

    def __init__(
        self, done: Callable[[], float | None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._done = done
        self._now = now
        self._share = 0.0
        self._started = now()

    def text(self) -> str:
        """Return a text such as "query 40 %, 0:12 left"; empty if the query is new or its progress
        is unknown.
        """
        share, now = self._done(), self._now()
        if share is None or share < self._share:
            # Another query: what it has done so far was done since now at the earliest.
            self._share, self._started = share or 0.0, now
            return ""
        self._share = share
        elapsed = now - self._started
        if elapsed < SHOWN_AFTER:
            return ""
        return f"query {share:.0%}, {_clock(elapsed * (1 - share) / share)} left".replace("%", " %")


SHOWN_AFTER = 2.0
"""Number of seconds after which the progress of a query is shown."""


def _query_progress() -> float | None:
    """Return the finished share of the engine's query; None if no engine is loaded."""
    sources = sys.modules.get("aegis.sources")
    return None if sources is None else sources.query_progress()


@contextmanager
def reporting(*, quiet: bool) -> Iterator[Progress]:
    """Yield the progress of one command, which shows bars on a terminal and nothing elsewhere."""
    if quiet or logs.verbose() or not sys.stderr.isatty():
        yield _heard(SILENT)
        return
    with _bars() as bars:
        yield _heard(TerminalProgress(bars))


def _heard(progress: Progress) -> Progress:
    """Return progress that raises interrupts and, if requested, logs steps."""
    return Interruptible(logs.LoggedProgress(progress) if logs.listening() else progress)


def _bars() -> Bars:
    """Return the bars, with times and, below them, the note of the running step."""
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Bar(BarColumn):
        def render(self, task: Task) -> Any:
            return Text("") if task.total is None else super().render(task)

    class Times(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = task.time_remaining
            rest = "" if task.total is None or left is None else f", {_clock(left)} left"
            return Text(_clock(task.elapsed or 0.0) + rest)

    class Noted(Bars):
        def get_renderables(self) -> Iterator[Any]:
            yield from super().get_renderables()
            notes = [task.fields["note"] for task in self.tasks if task.fields["note"]]
            shown = [note for note in (*notes[-1:], clock.text()) if note]
            if shown:
                line = f"  {', '.join(shown)}"
                yield Text(line, style="dim", no_wrap=True, overflow="ellipsis")

    clock = QueryClock(_query_progress)
    title = TextColumn("{task.description}", markup=False)
    return Noted(title, Bar(bar_width=16), Times(), console=console(sys.stderr), transient=True)


def _clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if it is longer than an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
