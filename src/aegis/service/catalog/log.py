"""The log of the catalog: append-only, each entry chained to the one before by SHA-256.

An entry says who did what to which data set or request, and holds no value of a row. The chain
shows that an entry was changed, taken out or put in; who can rewrite the whole table could make a
new chain, so `head` is printed for keeping elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from aegis.service.catalog.records import LogEntry, now

START = "0" * 64
"""What the first entry has for the hash of the entry before."""


@dataclass(frozen=True)
class LogCheck:
    """Whether the log is whole.

    Attributes
    ----------
    entries
        How many there are.
    head
        Hash of the last one: keep it elsewhere, and a log that was made anew shows.
    broken
        Number of the first entry that does not fit, or None.
    reason
        What does not fit.
    """

    entries: int
    head: str
    broken: int | None = None
    reason: str = ""

    @property
    def whole(self) -> bool:
        """Whether every entry fits."""
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
    """Add an entry within the transaction that it describes.

    The transaction must be one that writes alone (`Catalog.writing`), or two entries would follow
    the same one.
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
    """Follow the chain from its start.

    Parameters
    ----------
    entries
        All entries, the oldest first.
    noted
        A head that somebody wrote down elsewhere, which must still be in the chain.
    """
    previous, count = START, 0
    seen = noted is None or noted == START
    for entry in entries:
        count += 1
        if entry.number != count:
            return LogCheck(count, previous, count, f"entry {count} is missing")
        if entry.previous != previous:
            return LogCheck(count, previous, count, "it does not follow the entry before")
        if entry.hash != _hash(entry):
            return LogCheck(count, previous, count, "its content was changed")
        previous = entry.hash
        seen = seen or previous == noted
    if not seen:
        return LogCheck(count, previous, count, "the head that was noted is not in the chain")
    return LogCheck(count, previous)


def _hash(entry: LogEntry) -> str:
    content = [
        entry.number,
        _text(entry.time),
        entry.actor,
        entry.action,
        entry.data_set_id,
        entry.request_id,
        entry.detail,
        entry.previous,
    ]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
