"""One time limit for all that a search does."""

from __future__ import annotations

import time


class OutOfTimeError(Exception):
    """The time limit of a search has passed; the caller of the search handles this."""


class Clock:
    """Counts down from a limit that several searches share.

    Parameters
    ----------
    limit
        Seconds from now; None for no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self._deadline = None if limit is None else time.monotonic() + limit

    def left(self, parts: int = 1) -> float | None:
        """Return the seconds left for each of `parts`, at least 0; None without a limit."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic()) / parts

    def check(self, seconds: float = 0.0) -> None:
        """Raise `OutOfTimeError` if work of so many seconds would end after the limit."""
        if not self.allows(seconds):
            raise OutOfTimeError

    def allows(self, seconds: float = 0.0) -> bool:
        """Return whether work of so many seconds ends before the limit."""
        return self._deadline is None or time.monotonic() + seconds < self._deadline

    def stop(self) -> None:
        """Leave no time: the user has had enough."""
        self._deadline = time.monotonic()
