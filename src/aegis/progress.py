"""Progress as a callback interface: long work reports its steps, and the caller decides how to show
them.

Library functions take `progress: Progress = SILENT`. The command line passes one that draws on
standard error; a notebook or a service may pass its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Step(Protocol):
    """One running step of a longer job."""

    def advance(self, amount: float = 1) -> None:
        """Count `amount` units of work as done."""

    def note(self, text: str) -> None:
        """Show `text` next to the step, in place of the note before."""


class Progress(Protocol):
    """Receives the steps of a job."""

    def step(self, title: str, total: float | None = None) -> AbstractContextManager[Step]:
        """Open a step of `total` units of work (None: unknown); it ends with the context."""


class _SilentStep:
    def advance(self, amount: float = 1) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


class Silent:
    """Progress that shows nothing."""

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:  # noqa: ARG002
        """Open a step that shows nothing."""
        yield _SilentStep()


SILENT: Progress = Silent()
