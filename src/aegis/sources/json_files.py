"""JSON documents: one array of records, as programs export a table; JSON lines go without this.

A document that was cut off is refused here, since whoever reads records one by one takes what is there for
all of them.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from aegis.errors import DataError

_CHUNK = 1 << 20


def require_records(file: Path) -> None:
    """Check that a document begins as an array and ends as one, or holds JSON lines.

    Raises
    ------
    DataError
        The array is never closed, or the document holds neither records nor an array of them.
    """
    first, last = _ends(file)
    if first == b"[" and last != b"]":
        raise DataError(
            f"{file} is cut off: its array of records is never closed.",
            hint="Export it again, and check that the disk is not full.",
        )
    if first not in (b"[", b"{"):
        raise DataError(
            f"{file} holds no records: it begins with {first.decode(errors='replace')!r}.",
            hint=_RECORDS,
        )


def require_several(file: str, records: int) -> None:
    """Check that a document whose fields hold others is not one object: of columns, or around a table.

    Raises
    ------
    DataError
        It is one record.
    """
    if records == 1:
        raise DataError(f"{file} holds one object, not one record per row.", hint=_RECORDS)


_RECORDS = (
    'Write an array of records, [{"age": 41, ...}, ...], as pandas does with orient="records", or JSON lines '
    "(.jsonl)."
)


def _ends(file: Path) -> tuple[bytes, bytes]:
    """Return the first and the last byte of a file that are no white space; empty where all are."""
    first = last = b""
    with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            text = chunk.strip(b" \t\r\n\xef\xbb\xbf" if not first else b" \t\r\n")
            if text:
                first, last = first or text[:1], text[-1:]
    return first, last
