"""When each agent and each worker was last seen, for those who run the service.

An agent or worker is seen when it looks for work, and when it shows that a job is alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from aegis.service.catalog.access import Action, Actor, authorise
from aegis.service.catalog.records import Sign, now

SILENT_AFTER = timedelta(seconds=15)
"""Who is not seen for so long was killed, or is cut off: a lease and a look for work are shorter together."""
_KEPT = timedelta(days=30)
_EVERY = timedelta(seconds=2)
_MOST = 20
"""So many names of one account are kept: a provider may call an agent anything."""


@dataclass(frozen=True)
class SeenProgram:
    """An agent or a worker, as it was last seen.

    Attributes
    ----------
    place, name
        "agent" with the names of its account and its own, or "worker" with its name.
    since
        When it was first seen.
    seen
        When it was last seen.
    silent
        Whether that is longer ago than a program that runs ever waits.
    """

    place: str
    name: str
    since: datetime
    seen: datetime
    silent: bool


def note(session: Session, place: str, name: str, account: str | None = None) -> None:
    """Note that a program was seen now.

    Parameters
    ----------
    session
        A writing session.
    place, name
        As in `SeenProgram`.
    account
        For agents: the account of their token.
    """
    moment, sign = now(), session.get(Sign, (place, name))
    if sign is None:
        _make_room(session, place, account, moment)
        session.add(Sign(place=place, name=name, account_id=account, since=moment, seen=moment))
    elif moment - sign.seen >= _EVERY:
        sign.seen, sign.account_id = moment, account or sign.account_id


def leave(session: Session, place: str, name: str) -> None:
    """Forget a program that was told to end."""
    session.execute(delete(Sign).where(Sign.place == place, Sign.name == name))


def listed(session: Session, by: Actor) -> list[SeenProgram]:
    """Return all agents and workers, the last one seen first: for admins and auditors."""
    authorise(by, Action.OPERATE)
    return programs(session)


def programs(session: Session, account: str | None = None) -> list[SeenProgram]:
    """Return the agents of an account, or all agents and workers, the last one seen first."""
    moment = now()
    query = select(Sign).order_by(Sign.seen.desc(), Sign.name)
    if account is not None:
        query = query.where(Sign.account_id == account)
    return [
        SeenProgram(s.place, s.name, s.since, s.seen, moment - s.seen > SILENT_AFTER)
        for s in session.scalars(query)
    ]


def _make_room(session: Session, place: str, account: str | None, moment: datetime) -> None:
    """Forget who was not seen for long, and the earliest of an account with many names."""
    session.execute(delete(Sign).where(Sign.seen < moment - _KEPT))
    own = Sign.account_id.is_(None) if account is None else Sign.account_id == account
    query = select(Sign).where(Sign.place == place, own).order_by(Sign.seen.desc(), Sign.name)
    older: Sequence[Sign] = session.scalars(query.offset(_MOST - 1)).all()
    for sign in older:
        session.delete(sign)
