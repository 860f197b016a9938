"""Limit the rate of calls per caller with token buckets, in one process or across several."""

from __future__ import annotations

import struct
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import Protocol

_BUCKET = struct.Struct("=8sdd")
"""A caller's name in eight bytes, the remaining calls, and the time of this number."""
_BUCKETS = 1 << 14
_TRIED = 8
"""Number of places in the file at which a caller may be stored."""


class Rates(Protocol):
    """A rate limiter of calls, with one token bucket per caller."""

    def take(self, caller: str, cost: int = 1) -> float:
        """Count a call with its cost; return the seconds to wait, or 0 if the call may proceed."""
        ...


@dataclass
class OwnRates:
    """A rate limiter within one process.

    Attributes
    ----------
    calls
        Largest number of calls in a minute.
    """

    calls: int
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, caller: str, cost: int = 1) -> float:
        """Count a call with its cost; return the seconds to wait, or 0 if the call may proceed."""
        moment = time.monotonic()
        with self._lock:
            left, seen = self._buckets.pop(caller, (float(self.calls), moment))
            left, wait = _taken(self.calls, left, moment - seen, cost)
            self._buckets[caller] = (left, moment)
            while len(self._buckets) > 10_000:
                self._buckets.popitem(last=False)
        return wait


class SharedRates:
    """A rate limiter whose buckets several processes share in a file.

    The file has a fixed number of buckets. If all buckets that a caller could use are taken, the
    one that was idle longest is reused. The file lock ends with a process that is killed.

    Parameters
    ----------
    calls
        Largest number of calls in a minute.
    file
        File made by `make_shared`.
    """

    def __init__(self, calls: int, file: Path) -> None:
        self.calls = calls
        self._file = file.open("r+b")
        self._places = mmap(self._file.fileno(), _BUCKETS * _BUCKET.size)
        self._lock = Lock()

    def take(self, caller: str, cost: int = 1) -> float:
        """Count a call with its cost; return the seconds to wait, or 0 if the call may proceed."""
        key = blake2b(caller.encode(), digest_size=8).digest()
        with self._alone():
            moment = time.monotonic()  # read under the lock, so that it never runs backwards
            place, left, seen = self._find(key, moment)
            left, wait = _taken(self.calls, left, moment - seen, cost)
            _BUCKET.pack_into(self._places, place, key, left, moment)
        return wait

    def close(self) -> None:
        """Close the file."""
        self._places.close()
        self._file.close()

    def _find(self, key: bytes, moment: float) -> tuple[int, float, float]:
        """Return the offset of a caller's bucket in the file, the calls left in it, and when it was
        last used.

        A caller without a bucket gets a full one.
        """
        first = int.from_bytes(key, "little")
        longest, idle = 0, float("inf")
        for step in range(_TRIED):
            place = (first + step) % _BUCKETS * _BUCKET.size
            name, left, seen = _BUCKET.unpack_from(self._places, place)
            if name == key:
                return place, left, seen
            if seen < idle:
                longest, idle = place, seen
        return longest, float(self.calls), moment

    @contextmanager
    def _alone(self) -> Iterator[None]:
        import fcntl

        with self._lock:  # the file's lock is one for all threads of a process
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)


@contextmanager
def shared_files() -> Iterator[tuple[Path, Path]]:
    """Create the files with the buckets of callers and of addresses; delete them at the end."""
    with tempfile.TemporaryDirectory(prefix="aegis-rates-") as folder:
        files = (Path(folder) / "callers", Path(folder) / "addresses")
        for file in files:
            file.write_bytes(bytes(_BUCKETS * _BUCKET.size))
        yield files


def _taken(calls: int, left: float, passed: float, cost: int) -> tuple[float, float]:
    """Return the calls left in a bucket after a call, and the seconds that the call must wait."""
    filled = min(calls, left + passed * calls / 60)
    if filled >= cost:
        return filled - cost, 0.0
    return filled, (cost - filled) * 60 / calls
