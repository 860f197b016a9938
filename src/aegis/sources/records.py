"""An independent count of the records of a text file, by its quotes and line ends alone.

A line end is the end of a record where an even number of quotes stands before it: doubled quotes
within a quoted field count twice (RFC 4180, section 2). Bytes are looked at as arrays, so that the
count costs little beside reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 23
_LF, _CR = 10, 13


@dataclass(frozen=True)
class Records:
    """What stands in a file of bytes.

    Attributes
    ----------
    number
        Records that are not empty, with the header and all before it.
    empty
        Empty lines outside quotes.
    longest
        Bytes of the longest record.
    windows
        Records that end in CR LF.
    ended
        Records, empty ones too, that end in a line end.
    open
        Whether a quote is left open at the end.
    old
        Whether records end in CR alone.
    broken
        Characters of line ends within fields.
    returns
        Characters CR that are no part of a CR LF that ends a record.
    """

    number: int
    empty: int
    longest: int
    windows: int
    ended: int
    open: bool
    old: bool
    broken: int
    returns: int

    @property
    def mixed(self) -> bool:
        """Whether some records end in CR LF, and others do not or hold line ends of other kinds."""
        return self.windows > 0 and (self.windows < self.ended or self.broken > 0)

    @property
    def line_end(self) -> str:
        """What all records end in, where they are not mixed."""
        if self.old:
            return "\r"
        return "\r\n" if self.windows else "\n"


class Counter:
    """Counts records chunk by chunk.

    Parameters
    ----------
    quote, escape
        The quote, or empty for none; and what stands before one within a quoted field.
    old
        Whether records end in CR alone, as in old files of the Macintosh.
    """

    def __init__(self, quote: str, escape: str, *, old: bool = False) -> None:
        self._quote = quote.encode("ascii")
        self._escape = escape.encode("ascii") if escape != quote else b""
        self._escapes = 0
        self._end = _CR if old else _LF
        self._odd = False
        self._at = 0
        self._record_start = 0
        self._last = -1
        self._counts = np.zeros(3, dtype=np.int64)  # not empty, empty, windows
        self._longest = 0
        self._breaks = 0
        self._returns = 0

    def add(self, chunk: bytes) -> NDArray[np.int64]:
        """Count one more chunk, and return where in it records end."""
        if not chunk:
            return np.zeros(0, dtype=np.int64)
        data = np.frombuffer(chunk, dtype=np.uint8)
        ends = self._record_ends(data, chunk)
        returns = chunk.count(b"\r")
        self._returns += returns
        self._breaks += chunk.count(b"\n") + returns
        if len(ends):
            self._count(data, ends)
        self._at += len(chunk)
        self._last = chunk[-1]
        return ends

    def _record_ends(self, data: NDArray[np.uint8], chunk: bytes) -> NDArray[np.int64]:
        ends = np.flatnonzero(data == self._end)
        if not self._quote or (not self._odd and self._quote not in chunk):
            self._escapes = 0  # no quote is open that one could be about
            return ends
        quotes = self._unescaped(data, np.flatnonzero(data == self._quote[0]))
        before = np.searchsorted(quotes, ends) + self._odd
        self._odd = bool((len(quotes) + self._odd) % 2)
        outside: NDArray[np.int64] = ends[before % 2 == 0]
        return outside

    def _unescaped(self, data: NDArray[np.uint8], quotes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the quotes before which no odd number of escapes stands."""
        if not self._escape:
            return quotes
        other = np.flatnonzero(data != self._escape[0])
        # The byte before a quote that is no escape; the escapes are all between the two.
        place = np.searchsorted(other, quotes) - 1
        before = np.where(place >= 0, other[place], -1 - self._escapes)
        if data[-1] == self._escape[0]:
            last = int(other[-1]) if len(other) else -1 - self._escapes
            self._escapes = len(data) - 1 - last
        else:
            self._escapes = 0
        bare: NDArray[np.int64] = quotes[(quotes - before - 1) % 2 == 0]
        return bare

    def _count(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        before = np.where(ends > 0, data[ends - 1], self._last)
        windows = (before == _CR) if self._end == _LF else np.zeros(len(ends), dtype=bool)
        starts = np.concatenate(([self._record_start - self._at], ends[:-1] + 1))
        lengths = ends - starts - windows
        empty = int(np.count_nonzero(lengths <= 0))
        self._counts += (len(ends) - empty, empty, int(np.count_nonzero(windows)))
        self._longest = max(self._longest, int(lengths.max()))
        self._record_start = self._at + int(ends[-1]) + 1

    def result(self) -> Records:
        """Return what was counted."""
        number, empty, windows = map(int, self._counts)
        rest = self._at - self._record_start
        return Records(
            number + (rest > 0),
            empty,
            max(self._longest, rest),
            windows,
            number + empty,
            self._odd,
            self._end == _CR,
            self._breaks - number - empty - windows,
            self._returns - windows,
        )


def count_records(file: IO[bytes], quote: str, escape: str) -> Records:
    """Return the records of a file, which is read from its beginning, twice if need be."""
    chunk = file.read(CHUNK)
    counter = Counter(quote, escape, old=b"\r" in chunk and b"\n" not in chunk)
    while chunk:
        counter.add(chunk)
        chunk = file.read(CHUNK)
    records = counter.result()
    if records.old or records.ended or not records.returns:
        return records
    # No record ends in LF, so those that there are stand in quotes, and CR may end records.
    file.seek(0)
    counter = Counter(quote, escape, old=True)
    while chunk := file.read(CHUNK):
        counter.add(chunk)
    return counter.result()
