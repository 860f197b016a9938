"""Links by which a person sets a password once: an invitation, or a reset that an admin makes.

The secret of a link is handed over by the admin, and kept here as its SHA-256 alone. An account has one link at a
time: another one ends it, and so does its use.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from aegis.service.catalog import accounts, passwords
from aegis.service.catalog.access import Action, Actor, authorise
from aegis.service.catalog.account_records import PasswordLink
from aegis.service.catalog.database import Database
from aegis.service.catalog.errors import NotThere, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, now

INVITATION = "invitation"
RESET = "reset"
_LASTS = {INVITATION: timedelta(days=7), RESET: timedelta(days=1)}
PATH = "/set-password"
"""The page of a link; its secret stands after `#`, which no browser sends and no log of calls holds."""


@dataclass(frozen=True)
class MadeLink:
    """A link that was made: its secret is shown this once.

    Attributes
    ----------
    account
        Whose password it sets.
    kind
        `invitation` or `reset`.
    secret
        What the person gives with the new password.
    expires
        When it ends.
    """

    account: str
    kind: str
    secret: str
    expires: datetime

    def address(self, origin: str) -> str:
        """Return the link under the address of the service."""
        return f"{origin}{PATH}#{self.secret}"


def invite(session: Session, by: Actor | None, name: str, roles: Iterable[str]) -> MadeLink:
    """Make an account whose password its person sets by a link.

    `by` administers accounts; None for the command line on the machine of the service.
    """
    made = accounts.create(session, name, roles, by=by)
    return _make(session, by, made)


def reset(session: Session, by: Actor | None, name: str) -> MadeLink:
    """Make a link by which a person sets another password; an invited person gets another
    invitation.

    The password counts until the link is used, and the second factor stays.

    Raises
    ------
    WrongState
        The account is closed, or signs in at an identity provider.
    """
    if by is not None:
        authorise(by, Action.ACCOUNTS)
    account = accounts.named(session, name)
    if account.disabled:
        raise WrongState(f"The account {name} is closed.", hint="Reopen it first.")
    if account.subject is not None:
        raise WrongState(
            f"{name} signs in at an identity provider.", hint="The password is changed there."
        )
    return _make(session, by, account)


def redeem(database: Database, secret: str, password: str) -> str:
    """Set the password by a link, which ends, as do all sessions of the account; return its name.

    Raises
    ------
    NotThere
        The link was used, replaced by another one, or is over.
    CatalogError
        The password is too weak; the link can be used again.
    """
    with database.reading() as session:
        name = _valid(session, secret).account.name
    stored = passwords.hashed(password, name)
    with database.writing() as session:
        link = _valid(session, secret)
        account, kind = link.account, link.kind
        account.password = stored
        session.delete(link)
        ended = accounts.end_all(session, account)
        append(
            session,
            account.name,
            "password set by link",
            account=account.name,
            kind=kind,
            ended=ended,
        )
        return account.name


def end(session: Session, account: Account) -> None:
    """End the link of an account, if there is one."""
    session.execute(delete(PasswordLink).where(PasswordLink.account_id == account.id))


def _make(session: Session, by: Actor | None, account: Account) -> MadeLink:
    kind = INVITATION if account.password is None else RESET
    secret, expires = secrets.token_urlsafe(32), now() + _LASTS[kind]
    end(session, account)
    session.add(
        PasswordLink(
            hash=accounts.hash_of(secret), account_id=account.id, kind=kind, expires=expires
        )
    )
    session.flush()
    append(
        session,
        "system" if by is None else by.name,
        "invited" if kind == INVITATION else "reset link made",
        account=account.name,
        until=expires.isoformat(timespec="seconds"),
    )
    return MadeLink(account.name, kind, secret, expires)


def _valid(session: Session, secret: str) -> PasswordLink:
    link = session.get(PasswordLink, accounts.hash_of(secret))
    if link is None or link.expires <= now() or link.account.disabled:
        raise NotThere(
            "This link is not valid: it was used, another one was made, or its time is over.",
            hint="Ask an admin for another one.",
        )
    return link
