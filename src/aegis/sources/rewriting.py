"""Rewrite text files that have other encodings or line ends in UTF-8, for the engine."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from aegis.sources.dialect import TextDialect, not_of_encoding
from aegis.sources.records import CHUNK, Counter


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
    left = dialect.skip
    with opened(file) as source, target.open("wb") as made:
        for text in _decoded(source, dialect.encoding, str(file)):
            rewritten = text
            while left and rewritten:
                _, end, rewritten = rewritten.partition("\n")
                left -= bool(end)
            made.write(rewritten.encode("utf-8"))


def unify_line_ends(file: Path, target: Path, dialect: TextDialect) -> None:
    """Rewrite a file in which some records end in LF and others in CR LF, so that all records end
    in LF. Fields in quotation marks do not change.
    """
    counter = Counter(dialect.quote, dialect.escape)
    with opened(file) as source, target.open("wb") as made:
        held = b""
        while chunk := source.read(CHUNK):
            # A CR at the end is looked at with what follows.
            data = held + chunk
            held = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(held)]
            ends = counter.add(data)
            bytes_ = np.frombuffer(data, dtype=np.uint8)
            before = ends[ends > 0] - 1
            made.write(np.delete(bytes_, before[bytes_[before] == 13]).tobytes())
        made.write(held)


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
