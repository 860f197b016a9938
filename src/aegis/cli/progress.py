"""Progress on a terminal: drawn on standard error, gone when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aegis.cli.output import clean, console
from aegis.progress import SILENT, Progress, Step

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class _BarStep:
    """One bar."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, amount: float = 1) -> None:
        """Count `amount` units of work as done."""
        self._bars.advance(self._task, amount)

    def note(self, text: str) -> None:
        """Show `text` beside the bar."""
        self._bars.update(self._task, note=clean(text))


class TerminalProgress:
    """Progress as one bar per running step."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step of `total` units of work; its bar goes when it ends."""
        task = self._bars.add_task(title, total=total, note="")
        try:
            yield _BarStep(self._bars, task)
        finally:
            self._bars.remove_task(task)


@contextmanager
def reporting(*, quiet: bool) -> Iterator[Progress]:
    """Yield the progress of one command: bars where a person watches, silence elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield SILENT
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=console(sys.stderr), transient=True) as bars:
        yield TerminalProgress(bars)
