"""Record when the service last heard from each agent and worker, for admins and auditors.

The service hears from a program when it asks for work, and when it reports progress on a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from aegis.service.catalog.access import Action, Actor, authorise
from aegis.service.catalog.records import SILENT_AFTER, Sign, now

__all__ = ["SILENT_AFTER", "leave", "listed", "note", "programs"]
_RETENTION = timedelta(days=30)
_EVERY = timedelta(seconds=2)
_MOST = 20
"""Largest number of names per account, because a provider may give agents any name."""


def note(session: Session, program: str, name: str, account: str | None = None) -> None:
    """Record that the service has just heard from a `program` ("agent" or "worker"). The name of an
    agent consists of the name of its `account` and its own name.
    """
    moment, sign = now(), session.get(Sign, (program, name))
    if sign is None:
        _make_room(session, program, account, moment)
        session.add(Sign(place=program, name=name, account_id=account, since=moment, seen=moment))
    elif moment - sign.seen >= _EVERY:
        sign.seen, sign.account_id = moment, account or sign.account_id


def leave(session: Session, program: str, name: str) -> None:
    """Delete the record of the last message from a program that was shut down on purpose."""
    session.execute(delete(Sign).where(Sign.place == program, Sign.name == name))


def listed(session: Session, by: Actor) -> Sequence[Sign]:
    """Return all agents and workers, the most recently seen first; for admins and auditors."""
    authorise(by, Action.OPERATE)
    return programs(session)


def programs(session: Session, account: str | None = None) -> Sequence[Sign]:
    """Return the agents of an account, or all agents and workers, the most recently seen first."""
    query = select(Sign).order_by(Sign.seen.desc(), Sign.name)
    if account is not None:
        query = query.where(Sign.account_id == account)
    return session.scalars(query).all()


def _make_room(session: Session, program: str, account: str | None, moment: datetime) -> None:
    """Delete the records of programs that have been silent for long and, for an account with too
    many programs, the oldest records.
    """
    session.execute(delete(Sign).where(Sign.seen < moment - _RETENTION))
    owner = Sign.account_id.is_(None) if account is None else Sign.account_id == account
    query = select(Sign).where(Sign.place == program, owner).order_by(Sign.seen.desc(), Sign.name)
    older: Sequence[Sign] = session.scalars(query.offset(_MOST - 1)).all()
    for sign in older:
        session.delete(sign)
