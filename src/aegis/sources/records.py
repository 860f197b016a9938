"""Count the records of a text file without the engine, only from quotes and line ends.

A line end ends a record if an even number of quotes precedes it; a doubled quote within a quoted
field counts as two (RFC 4180, section 2). Bytes are processed as arrays, so that counting takes
little longer than reading.

Files of other encodings or line ends are rewritten in UTF-8, for the engine.
"""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from aegis.sources.dialect import TextDialect, not_of_encoding

CHUNK = 1 << 20
"""Bytes that are read and looked at together."""
_LF, _CR = 10, 13


@dataclass(frozen=True)
class FileRecords:
    """How many records a text file has, and with which line ends.

    Attributes
    ----------
    number
        Number of records that are not empty, including the header and the lines before it.
    empty
        Number of empty lines outside quotes.
    longest
        Length of the longest record, in bytes.
    windows
        Number of records that end in CR LF, as on Windows.
    ended
        Number of records, including empty ones, that end in a line end.
    open
        Whether a quote is open at the end of the file.
    old
        Whether records end in CR only, as in old Macintosh files.
    broken
        Number of line-end characters within fields.
    returns
        Number of CR characters that are not part of a CR LF at the end of a record.
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
        """Whether records end differently, or have other line ends within a field."""
        return self.windows > 0 and (self.windows < self.ended or self.broken > 0)

    @property
    def line_end(self) -> str:
        """The line end of all records of the file, if they have the same one."""
        if self.old:
            return "\r"
        return "\r\n" if self.windows else "\n"


class Counter:
    """Counts the records and line ends of a file, one chunk of bytes after the other.

    Parameters
    ----------
    quote, escape
        The quote character (empty if there is none), and the character that escapes it within a
        quoted field.
    old
        Whether records end in CR only, as in old Macintosh files.
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
        """Count the records and line ends in the next chunk; return where in it records end."""
        if not chunk:
            return np.zeros(0, dtype=np.int64)
        data = np.frombuffer(chunk, dtype=np.uint8)
        lines = np.flatnonzero(data == self._end)
        ends = self._outside_quotes(lines, data, chunk)
        returns = int(np.count_nonzero(data == _CR)) if b"\r" in chunk else 0
        self._returns += returns
        self._breaks += returns + (len(lines) if self._end == _LF else chunk.count(b"\n"))
        if len(ends):
            self._count(data, ends, returns > 0 or self._last == _CR)
        self._at += len(chunk)
        self._last = chunk[-1]
        return ends

    def _outside_quotes(
        self, lines: NDArray[np.int64], data: NDArray[np.uint8], chunk: bytes
    ) -> NDArray[np.int64]:
        """Return the positions of line ends that follow an even number of quotes."""
        if not self._quote or (not self._odd and self._quote not in chunk):
            self._escapes = 0  # no quote is open that one could be about
            return lines
        quotes = data == self._quote[0]
        if self._escape:
            bare = self._unescaped(data, np.flatnonzero(quotes))
            quotes = np.zeros(len(data), dtype=np.bool_)
            quotes[bare] = True
        odd, odd_at_end = _parities(quotes, lines)
        outside: NDArray[np.int64] = lines[odd == self._odd]
        self._odd ^= odd_at_end
        return outside

    def _unescaped(self, data: NDArray[np.uint8], quotes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the quotes that do not follow an odd number of escape characters."""
        if not self._escape:
            return quotes
        other = np.flatnonzero(data != self._escape[0])
        # The byte before a quote that is no escape; the escapes are all between the two.
        index = np.searchsorted(other, quotes) - 1
        before = np.where(index >= 0, other[index], -1 - self._escapes)
        if data[-1] == self._escape[0]:
            last = int(other[-1]) if len(other) else -1 - self._escapes
            self._escapes = len(data) - 1 - last
        else:
            self._escapes = 0
        bare: NDArray[np.int64] = quotes[(quotes - before - 1) % 2 == 0]
        return bare

    def _count(self, data: NDArray[np.uint8], ends: NDArray[np.int64], returns: bool) -> None:
        """Count the records that end in a chunk; `returns` says whether the chunk contains a CR."""
        windows = np.zeros(len(ends), dtype=bool)
        if returns and self._end == _LF:
            windows = np.where(ends > 0, data[ends - 1] == _CR, self._last == _CR)
        lengths = np.diff(ends, prepend=self._record_start - self._at - 1) - 1 - windows
        empty = int(np.count_nonzero(lengths <= 0))
        self._counts += (len(ends) - empty, empty, int(np.count_nonzero(windows)))
        self._longest = max(self._longest, int(lengths.max()))
        self._record_start = self._at + int(ends[-1]) + 1

    def result(self) -> FileRecords:
        """Return the numbers of records and line ends in all chunks that were added."""
        number, empty, windows = map(int, self._counts)
        rest = self._at - self._record_start
        return FileRecords(
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


def _parities(
    marked: NDArray[np.bool_], positions: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], bool]:
    """Return whether an odd number of flags precedes each position, and whether their total is odd."""
    packed = np.packbits(marked, bitorder="little")
    words = np.frombuffer(packed.tobytes() + bytes(-len(packed) % 8), dtype="<u8")
    through = np.bitwise_xor.accumulate(np.bitwise_count(words) & 1)
    word = positions >> 6
    lower = (np.uint64(1) << (positions & 63).astype(np.uint64)) - np.uint64(1)
    bits = words[word]
    odd = through[word] ^ np.bitwise_count(bits & ~lower)
    return (odd & 1).astype(np.bool_), bool(through[-1])


def count_records(file: IO[bytes], quote: str, escape: str) -> FileRecords:
    """Count the records of a file from its beginning, reading it twice if CR alone may end them."""
    records = _count(file, Counter(quote, escape))
    if records.ended or not records.returns:
        return records
    # No record ends in LF, so those that there are are in quotes, and CR may end records.
    file.seek(0)
    return _count(file, Counter(quote, escape, old=True))


def _count(file: IO[bytes], counter: Counter) -> FileRecords:
    while chunk := file.read(CHUNK):
        counter.add(chunk)
    return counter.result()


def opened(file: Path) -> IO[bytes]:
    """Open a file to read its bytes; a `.gz` file is decompressed while it is read."""
    return gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")  # type: ignore[return-value]


@contextmanager
def text_of(file: Path, dialect: TextDialect) -> Iterator[io.TextIOWrapper]:
    """Yield the text of a file in pieces, without changing its line ends.

    Raises
    ------
    DataError
        Some bytes cannot be decoded; the message names the line.
    """
    with opened(file) as checked:
        for _ in _decoded(checked, dialect.encoding, str(file)):
            pass
    with opened(file) as handle:
        yield io.TextIOWrapper(handle, encoding=_with_mark(dialect.encoding), newline="")


def rewrite(file: Path, target: Path, dialect: TextDialect) -> None:
    """Write a copy of a text file in UTF-8, without its byte-order mark and without the lines
    before the table.

    Raises
    ------
    DataError
        Some bytes cannot be decoded; the message names the line.
    """
    to_skip = dialect.skip
    with opened(file) as source, target.open("wb") as output:
        for text in _decoded(source, dialect.encoding, str(file)):
            rewritten = text
            while to_skip and rewritten:
                _, end, rewritten = rewritten.partition("\n")
                to_skip -= bool(end)
            output.write(rewritten.encode("utf-8"))


def unify_line_ends(file: Path, target: Path, dialect: TextDialect) -> None:
    """Rewrite a file of mixed line ends so that all records end in LF; fields do not change."""
    counter = Counter(dialect.quote, dialect.escape)
    with opened(file) as source, target.open("wb") as output:
        pending = b""
        while chunk := source.read(CHUNK):
            # A CR at the end is looked at with what follows.
            data = pending + chunk
            pending = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(pending)]
            ends = counter.add(data)
            bytes_ = np.frombuffer(data, dtype=np.uint8)
            before = ends[ends > 0] - 1
            output.write(np.delete(bytes_, before[bytes_[before] == 13]).tobytes())
        output.write(pending)


def _decoded(file: IO[bytes], encoding: str, name: str) -> Iterator[str]:
    """Yield the text of a file in pieces; raise `DataError` with the line if bytes cannot be decoded."""
    decoder = codecs.getincrementaldecoder(_with_mark(encoding))()
    lines = 0
    while True:
        chunk = file.read(CHUNK)
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise not_of_encoding(name, encoding, error.object, error.start, lines) from error
        lines += text.count("\n")
        yield text
        if not chunk:
            return


def _with_mark(encoding: str) -> str:
    """Return the variant of an encoding that skips a byte-order mark."""
    return "utf-8-sig" if encoding == "utf-8" else encoding
