"""Limit the time, or the counted work, of all parts of a search together."""

from __future__ import annotations

import time

from aegis.requests import SearchRequest

_CHECK = 1e-4
"""Work between two looks at the clock, besides what is announced."""


class OutOfTimeError(Exception):
    """Raised when the time limit of a search has passed. The caller of the search catches it."""


class Work:
    """The work that a search has done so far, in seconds of an ordinary idle machine.

    The work is not measured: each fit, class count and score counts with its usual duration. So the
    same search does the same work on a fast, a slow and a busy machine.
    """

    def __init__(self) -> None:
        self.done = 0.0

    def add(self, seconds: float) -> None:
        """Record work that usually takes this many seconds."""
        self.done += seconds


class Clock:
    """A limit of time, or of work, that several searches share.

    Parameters
    ----------
    limit
        Seconds from now; None for no limit.
    work
        If given, the clock counts this work instead of elapsed seconds.
    """

    def __init__(self, limit: float | None, work: Work | None = None) -> None:
        self._work = work
        self._deadline = None if limit is None else self._now() + limit
        self._began: float | None = None
        self._longest = 0.0

    @classmethod
    def of(cls, limit: Clock | float | None) -> Clock:
        """Return a clock that stops after `limit` seconds (None: never). If `limit` is already a
        clock, return it unchanged.
        """
        return limit if isinstance(limit, Clock) else cls(limit)

    @classmethod
    def asked(cls, request: SearchRequest, work: Work) -> Clock:
        """Return a clock with the time limit of a request; if it has none, with its limit of
        work.
        """
        if request.time_limit is None and request.work is not None:
            return cls(request.work, work)
        return cls(request.time_limit)

    def _now(self) -> float:
        return time.monotonic() if self._work is None else self._work.done

    def left(self) -> float | None:
        """Return how many seconds remain, at least 0; None if there is no limit."""
        return None if self._deadline is None else max(0.0, self._deadline - self._now())

    def part(self, share: float = 1.0) -> Clock:
        """Return a clock that stops after the given share of the remaining seconds."""
        left = self.left()
        return Clock(None if left is None else share * left, self._work)

    def check(self, seconds: float = 0.0) -> None:
        """Raise `OutOfTimeError` if work of this many seconds would not end before the limit. With
        0, raise it if the limit has passed.
        """
        if self._work is not None:
            self._work.add(_CHECK)
        if not self.allows(seconds):
            raise OutOfTimeError

    def allows(self, seconds: float = 0.0, times: int = 1) -> bool:
        """Return whether work of this many seconds would end before the limit.

        Parameters
        ----------
        seconds
            Estimated seconds of one piece of the work. If an earlier piece took longer than this
            estimate, its duration is used instead; 0 means that the work takes no time.
        times
            Number of pieces.
        """
        now = self._now()
        if self._began is not None:
            self._longest, self._began = max(self._longest, now - self._began), None
        if seconds > 0.0:
            self._began, seconds = now, max(seconds, self._longest)
        return self._deadline is None or now + times * seconds < self._deadline

    def stop(self) -> None:
        """Set the remaining time to 0, because the user has interrupted the search."""
        self._deadline = self._now()
