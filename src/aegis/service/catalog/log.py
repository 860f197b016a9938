"""The log of the catalog: append-only, each entry chained to the previous one by SHA-256.

An entry states who did what to which data set or request, and contains no value of a row. The chain
reveals entries that were changed, removed or inserted. Somebody who can rewrite the whole table
could make a new chain. To detect this, you can store the printed `head` in another place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from aegis.service.catalog.records import LogEntry, now
from aegis.signing import canonical

START = "0" * 64
"""The value that the first entry has as the hash of the previous entry."""


@dataclass(frozen=True)
class LogCheck:
    """The result of checking the chain of log entries.

    Attributes
    ----------
    head
        Hash of the last entry. Store it elsewhere to detect later whether the log was rewritten.
    broken, reason
        Number of the first entry that does not fit the chain (None: all fit), and the reason.
    """

    entries: int
    head: str
    broken: int | None = None
    reason: str = ""

    @property
    def intact(self) -> bool:
        """Whether every entry of the log fits the hash chain."""
        return self.broken is None


def append(
    session: Session,
    actor: str,
    action: str,
    *,
    data_set: str | None = None,
    request: str | None = None,
    **detail: Any,
) -> LogEntry:
    """Add a log entry in the transaction of the change that it records. The session must be from
    `Catalog.writing`, so that no two entries follow the same entry.
    """
    last = session.scalars(select(LogEntry).order_by(LogEntry.number.desc()).limit(1)).first()
    entry = LogEntry(
        number=1 if last is None else last.number + 1,
        time=now(),
        actor=actor,
        action=action,
        data_set_id=data_set,
        request_id=request,
        detail=detail,
        previous=START if last is None else last.hash,
        hash="",
    )
    entry.hash = _hash(entry)
    session.add(entry)
    session.flush()
    return entry


def check(entries: Iterable[LogEntry], noted: str | None = None) -> LogCheck:
    """Check that each entry, oldest first, has the hash of the entry before it, and that `noted`,
    the hash of an entry that somebody stored elsewhere, is still in the chain.
    """
    previous, count = START, 0
    noted_occurs = noted is None or noted == START
    for entry in entries:
        count += 1
        if entry.number != count:
            return LogCheck(count, previous, count, f"entry {count} is missing")
        if entry.previous != previous:
            return LogCheck(count, previous, count, "it does not follow the entry before")
        if entry.hash != _hash(entry):
            return LogCheck(count, previous, count, "its content was changed")
        previous = entry.hash
        noted_occurs = noted_occurs or previous == noted
    if not noted_occurs:
        return LogCheck(count, previous, count, "the head that was noted is not in the chain")
    return LogCheck(count, previous)


def _hash(entry: LogEntry) -> str:
    content = [
        entry.number,
        entry.time.isoformat(timespec="microseconds"),
        entry.actor,
        entry.action,
        entry.data_set_id,
        entry.request_id,
        entry.detail,
        entry.previous,
    ]
    return hashlib.sha256(canonical(content)).hexdigest()
