"""Define the progress of long work: the work reports its steps to an object of the caller, which
shows them.

Library functions accept `progress: Progress = SILENT`. The command line passes an object that draws
on standard error; a notebook or a service may pass another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Step(Protocol):
    """A step of a longer job that is running now."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units of work are done."""

    def note(self, text: str) -> None:
        """Show a text next to the step, instead of the previous text."""


class Progress(Protocol):
    """An object that receives the steps of a job, to show them."""

    def step(self, title: str, total: float | None = None) -> AbstractContextManager[Step]:
        """Open a step of `total` units of work (None: unknown). The step ends when the context
        ends.
        """


class _SilentStep:
    def advance(self, amount: float = 1) -> None:
        """Ignore the amount of work."""

    def note(self, text: str) -> None:
        """Ignore the text."""


class Silent:
    """Progress that shows nothing."""

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:  # noqa: ARG002
        """Open a step that shows nothing."""
        yield _SilentStep()


SILENT: Progress = Silent()
