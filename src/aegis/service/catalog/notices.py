"""Find the notices to send: to people who must act on a request, and to people whose request ended.

Notices are derived from the log, which records every step. The number of the last processed entry
is logged, too. So a restart sends nothing twice, and the log shows what was sent to whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from aegis.service.catalog import data_sets
from aegis.service.catalog.access import AccountRole
from aegis.service.catalog.log import append
from aegis.service.catalog.records import LogEntry, Request
from aegis.service.catalog.states import RequestState

NOTICES_SENT = "notices sent"
_MOST = 100
"""Number of entries that are processed in one turn."""
_OPERATORS = frozenset({AccountRole.OPERATOR})
_DECIDERS = frozenset({AccountRole.OPERATOR, AccountRole.APPROVER})
_CONSUMER: frozenset[AccountRole] = frozenset()


@dataclass(frozen=True)
class _Event:
    """The recipients and the text of notices for one kind of log entry, such as an approval.

    Attributes
    ----------
    roles
        Recipients: accounts with one of these roles on the data set. If empty, the recipient is the
        consumer of the request.
    words
        Text of the notice, such as "waits for review".
    while_in
        The notice is sent only while the request is in this state; None for any state.
    """

    roles: frozenset[AccountRole]
    words: str
    while_in: RequestState | None = None


_EVENTS: Mapping[str, _Event] = MappingProxyType(
    {
        "submit": _Event(_OPERATORS, "waits for review", RequestState.SUBMITTED),
        "configuration checked": _Event(_DECIDERS, "waits for approval", RequestState.IN_REVIEW),
        "approved by one of two": _Event(
            _DECIDERS, "waits for a second approval", RequestState.IN_REVIEW
        ),
        "renewed by one of two": _Event(_DECIDERS, "waits for a second renewal"),
        "approve": _Event(_OPERATORS, "is approved: make the release", RequestState.APPROVED),
        "fail": _Event(_OPERATORS, "failed: see why", RequestState.FAILED),
        "return": _Event(_CONSUMER, "was returned to you", RequestState.RETURNED),
        "drift": _Event(_CONSUMER, "was returned to you", RequestState.RETURNED),
        "reject": _Event(_CONSUMER, "was rejected"),
        "complete": _Event(_CONSUMER, "is released: download it", RequestState.RELEASED),
        "expire": _Event(_CONSUMER, "has expired"),
        "revoke": _Event(_CONSUMER, "was revoked"),
    }
)


@dataclass(frozen=True)
class Notice:
    """A notice about a log entry (its number and hash, by which receivers can identify the notice),
    and the names of the accounts that receive it. `words` say what happened, or for which action
    the request waits.
    """

    entry: int
    hash: str
    request: str
    data_set: str
    words: str
    to: tuple[str, ...]

    @property
    def title(self) -> str:
        """The subject line of the notice."""
        return f"Request {self.request[:8]} for {self.data_set} {self.words}"


def told_up_to(session: Session) -> int | None:
    """Return the number of the last entry for which notices were sent; None if there is none."""
    last = select(LogEntry).where(LogEntry.action == NOTICES_SENT).order_by(LogEntry.number.desc())
    entry = session.scalars(last.limit(1)).first()
    return None if entry is None else int(entry.detail["up_to"])


def begin(session: Session) -> int:
    """Return the number of the log entry up to which notices were sent. At the first run, record
    the newest entry as this one, so that no notices are sent for older entries.
    """
    up_to = told_up_to(session)
    if up_to is None:
        up_to = session.scalar(select(func.max(LogEntry.number))) or 0
        append(session, "system", NOTICES_SENT, up_to=up_to, to=[])
    return up_to


def since(session: Session, up_to: int) -> list[tuple[int, Notice | None]]:
    """Return the number of each entry after `up_to` that can need a notice, oldest first, and its
    notice (None if nobody is to receive one).
    """
    query = select(LogEntry).where(LogEntry.number > up_to, LogEntry.action.in_(_EVENTS))
    entries = session.scalars(query.order_by(LogEntry.number).limit(_MOST)).all()
    return [(entry.number, _notice(session, entry)) for entry in entries]


def note(session: Session, notice: Notice, before: int, failed: Sequence[str]) -> bool:
    """Record that a notice was sent, and the channels on which it failed; return False if another
    process recorded it first. `before` is the number of the entry up to which notices had been
    sent.
    """
    if told_up_to(session) != before:
        return False
    append(
        session, "system", NOTICES_SENT, up_to=notice.entry, to=list(notice.to), failed=list(failed)
    )
    return True


def _notice(session: Session, entry: LogEntry) -> Notice | None:
    request = session.get(Request, entry.request_id or "")
    event = _EVENTS[entry.action]
    outdated = event.while_in is not None and (request is None or request.state != event.while_in)
    if request is None or outdated or entry.detail.get("holds") is False:
        return None
    recipients = (
        data_sets.holders(session, request, event.roles) if event.roles else [request.consumer]
    )
    names = {account.name for account in recipients}
    to = tuple(sorted(names - {entry.actor}))
    if not to:
        return None
    return Notice(entry.number, entry.hash, request.id, request.data_set_id, event.words, to)
