"""Limit the rate of calls per caller with token buckets, in one process or across several."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from mmap import mmap
from pathlib import Path
from threading import Lock

from aegis.files import temporary_folder

_BUCKET = struct.Struct("=8sdd")
"""A caller's name in eight bytes, the number of calls left, and when this number was computed."""
_BUCKETS = 1 << 14
_TRIED = 8
"""Number of places in the file at which a caller may be stored."""


class Rates:
    """Limits how many `calls` a minute each caller may make, with one token bucket per caller.
    Several processes can share the buckets in a `file` of `shared_files`. The number of buckets is
    fixed. If there is no free one for a new caller, the bucket that was idle longest is reused.
    """

    def __init__(self, calls: int, file: Path | None = None) -> None:
        self.calls = calls
        self._file = None if file is None else file.open("r+b")
        handle = -1 if self._file is None else self._file.fileno()  # -1: in memory
        self._places = mmap(handle, _BUCKETS * _BUCKET.size)
        self._lock = Lock()

    def take(self, caller: str, cost: int = 1) -> float:
        """Count a call with its cost. Return the seconds that the caller must wait, or 0."""
        key = blake2b(caller.encode(), digest_size=8).digest()
        with self._alone():
            moment = time.monotonic()  # read under the lock, so that it never runs backwards
            offset, calls_left, last_use = self._find(key, moment)
            filled = min(self.calls, calls_left + (moment - last_use) * self.calls / 60)
            wait = max(0.0, (cost - filled) * 60 / self.calls)
            _BUCKET.pack_into(self._places, offset, key, filled - (0 if wait else cost), moment)
        return wait

    def close(self) -> None:
        """Free the buckets, and close the file."""
        self._places.close()
        if self._file is not None:
            self._file.close()

    def _find(self, key: bytes, moment: float) -> tuple[int, float, float]:
        """Return the offset of a caller's bucket in the file, the number of calls left in it, and
        the time of its last use. A caller without a bucket gets a full one.
        """
        first = int.from_bytes(key, "little")
        longest, idle = 0, float("inf")
        for step in range(_TRIED):
            offset = (first + step) % _BUCKETS * _BUCKET.size
            name, calls_left, last_use = _BUCKET.unpack_from(self._places, offset)
            if name == key:
                return offset, calls_left, last_use
            if last_use < idle:
                longest, idle = offset, last_use
        return longest, float(self.calls), moment

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock:  # the file's lock is one for all threads of a process
            if self._file is None:
                yield
                return
            import fcntl

            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)


@contextmanager
def shared_files() -> Iterator[tuple[Path, Path]]:
    """Yield two files with which processes share the call limits, for callers and for addresses.
    Delete them at the end.
    """
    with temporary_folder("rates") as folder:
        files = (folder / "callers", folder / "addresses")
        for file in files:
            file.write_bytes(bytes(_BUCKETS * _BUCKET.size))
        yield files
