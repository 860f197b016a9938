"""Limit the time of all parts of a search together."""

from __future__ import annotations

import time


class OutOfTimeError(Exception):
    """The time limit of a search has passed; the caller of the search handles it."""


class Clock:
    """A time limit that several searches share.

    Parameters
    ----------
    limit
        Seconds from now; None for no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self._deadline = None if limit is None else time.monotonic() + limit

    def left(self, parts: int = 1) -> float | None:
        """Return the remaining seconds divided by `parts`, at least 0; None without a limit."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic()) / parts

    def check(self, seconds: float = 0.0) -> None:
        """Raise `OutOfTimeError` if work of this many seconds would end after the limit."""
        if not self.allows(seconds):
            raise OutOfTimeError

    def allows(self, seconds: float = 0.0) -> bool:
        """Return whether work of this many seconds would end within the limit."""
        return self._deadline is None or time.monotonic() + seconds < self._deadline

    def stop(self) -> None:
        """Set the remaining time to 0, because the user has interrupted the search."""
        self._deadline = time.monotonic()
