"""One time limit for all that a search does."""

from __future__ import annotations

import time


class Clock:
    """Counts down from a limit that several searches share.

    Parameters
    ----------
    limit
        Seconds from now; None for no limit.
    """

    def __init__(self, limit: float | None) -> None:
        self._deadline = None if limit is None else time.monotonic() + limit

    def left(self) -> float | None:
        """Return the seconds that are left, at least 0; None without a limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
