"""Read the log: each actor sees the entries that concern the actor, and an auditor sees all
entries.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, le
from pathlib import Path

from sqlalchemy import ColumnElement, func, or_, select, text
from sqlalchemy.orm import Session

from aegis.errors import EngineError
from aegis.service.catalog import data_sets
from aegis.service.catalog.access import AccountRole, Action, Actor
from aegis.service.catalog.log import LogCheck, check
from aegis.service.catalog.records import LogEntry, Request


@dataclass(frozen=True)
class LogFilter:
    """A filter of log entries. Empty texts match any actor, action or data set. The moments `since`
    and `until` are included; None is no limit.
    """

    actor: str = ""
    action: str = ""
    data_set: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the filter as SQL conditions; an entry must meet all of them."""
        conditions = (
            (LogEntry.actor, eq, self.actor),
            (LogEntry.action, eq, self.action),
            (LogEntry.data_set_id, eq, self.data_set),
            (LogEntry.time, ge, self.since),
            (LogEntry.time, le, self.until),
        )
        return [holds(column, value) for column, holds, value in conditions if value]


def listed(
    session: Session,
    by: Actor,
    *,
    offset: int = 0,
    limit: int = 50,
    chosen: LogFilter | None = None,
) -> tuple[Sequence[LogEntry], int]:
    """Return a page of the entries that the actor may read, newest first, and their total number."""
    conditions = (chosen or LogFilter()).conditions()
    query = select(LogEntry).where(_readable(by), *conditions)
    count = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    query = query.order_by(LogEntry.number.desc()).offset(offset).limit(limit)
    return session.scalars(query).all(), count


def actions(session: Session, by: Actor) -> Sequence[str]:
    """Return the distinct actions in the log entries that the actor may read, sorted by name."""
    query = select(LogEntry.action).where(_readable(by)).distinct().order_by(LogEntry.action)
    return session.scalars(query).all()


def verify(session: Session, by: Actor, noted: str | None = None) -> LogCheck:
    """Check the chain of hashes of the whole log, as `log.check` does. Everybody may do so, even
    without the right to read all entries.
    """
    data_sets.authorise_some(by, Action.SEE_LOG)
    entries = session.scalars(select(LogEntry).order_by(LogEntry.number)).yield_per(1000)
    return check(entries, noted)


def ping(session: Session) -> None:
    """Check that the database answers and can be written, as far as one can see without writing.
    Raise `EngineError` if its file is on a read-only disk or cannot be written, or the server takes
    no changes.
    """
    if session.get_bind().dialect.name == "sqlite":
        session.execute(text("SELECT 1"))
        file = session.get_bind().engine.url.database
        paths = () if not file or file == ":memory:" else (Path(file), Path(file).parent)
        writable = all(os.access(path, os.W_OK) for path in paths)
    else:
        read_only = text("SELECT current_setting('transaction_read_only')")
        writable = session.execute(read_only).scalar_one() == "off"
    if not writable:
        raise EngineError(
            "The service cannot write to its database, which is read-only.",
            hint="Check the rights of the database, and whether its disk became read-only.",
        )


def _readable(by: Actor) -> ColumnElement[bool]:
    data_sets.authorise_some(by, Action.SEE_LOG)
    of_request, number = LogEntry.request_id.is_not(None), LogEntry.request_id
    of_actor = of_request & number.in_(select(Request.id).where(Request.consumer_id == by.account))
    concerning = data_sets.permitted(by, Action.SEE_LOG, LogEntry.data_set_id, of_actor)
    if by.roles & {AccountRole.AUDITOR, AccountRole.ADMIN}:
        return concerning
    unsent = of_request & number.in_(select(Request.id).where(~Request.sent))
    return or_(
        concerning & (~unsent | of_actor),
        LogEntry.data_set_id.is_(None)
        & ((LogEntry.actor == by.name) | (LogEntry.detail["account"].as_string() == by.name)),
    )
