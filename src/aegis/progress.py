"""Define the progress of long work: the work reports its steps to an object of the caller, which
shows them.

Library functions accept `progress: Progress = SILENT`. The command line passes an object that draws
on standard error; a notebook or a service may pass another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable


class Step(Protocol):
    """A step of a longer job that is running now, and whose progress is shown."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units of the step's work are done."""

    def note(self, text: str) -> None:
        """Show a text next to the step, in place of the previous text."""


@runtime_checkable
class Progress(Protocol):
    """An object whose method `step(title, total)` is told about the steps of a job, to show them."""

    def step(self, title: str, total: float | None = None) -> AbstractContextManager[Step]:
        """Open a step with `total` units of work (None if the number is unknown). The step ends
        when the context ends.
        """


class _SilentStep:
    def advance(self, amount: float = 1) -> None:
        """Ignore the amount of work."""

    def note(self, text: str) -> None:
        """Ignore the text."""


SILENT_STEP: Step = _SilentStep()
"""A `Step` whose progress is not shown."""


class Silent:
    """A `Progress` that shows nothing."""

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:  # noqa: ARG002
        """Open a step whose progress is not shown."""
        yield SILENT_STEP


SILENT: Progress = Silent()
