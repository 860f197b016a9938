"""Progress of long work: the work reports its steps to an object of the caller, which shows them.

Library functions take `progress: Progress = SILENT`. The command line passes one that draws on
standard error; a notebook or a service may pass its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Step(Protocol):
    """A step of a longer job, which is running now."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units of work are done."""

    def note(self, text: str) -> None:
        """Show a text next to the step, in place of the previous one."""


class Progress(Protocol):
    """An object that receives the steps of a job, to show them."""

    def step(self, title: str, total: float | None = None) -> AbstractContextManager[Step]:
        """Open a step of `total` units of work (None: unknown); leaving the context ends it."""


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
