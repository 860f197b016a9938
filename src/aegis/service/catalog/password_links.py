"""Create links with which a person sets a password once: an invitation, or a reset by an admin.

The admin gives the link to the person. The service stores only the SHA-256 of the link's secret. An
account has at most one link: a new link replaces the old one, and using a link deletes it.
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
from aegis.service.catalog.database import Database
from aegis.service.catalog.errors import NotThere, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, PasswordLink, now

INVITATION = "invitation"
RESET = "reset"
_LASTS = {INVITATION: timedelta(days=7), RESET: timedelta(days=1)}
PATH = "/set-password"
"""Path of the page for links; the secret is after `#`, so browsers do not send or log it."""


@dataclass(frozen=True)
class MadeLink:
    """A new password link: `invitation` or `reset`. Its `secret`, which the person sends with the
    new password, is shown only once.
    """

    account: str
    kind: str
    secret: str
    expires: datetime

    def address(self, origin: str) -> str:
        """Return the full URL of the link; `origin` is the URL of the service."""
        return f"{origin}{PATH}#{self.secret}"


def invite(session: Session, by: Actor, name: str, roles: Iterable[str]) -> MadeLink:
    """As an admin, create an account without a password, and a link for setting one."""
    return _make(session, by, accounts.create(session, name, roles, by=by))


def reset(session: Session, by: Actor, name: str) -> MadeLink:
    """Create a link for setting a new password. An account that has no password yet gets a new
    invitation. The old password is valid until the link is used; the second factor is not changed.
    Raise `WrongState` if the account is closed, or signs in at an identity provider.
    """
    authorise(by, Action.ACCOUNTS)
    account = accounts.named(session, name)
    if account.disabled:
        raise WrongState(f"The account {name} is closed.", hint="Reopen it first.")
    if account.subject is not None:
        raise WrongState(
            f"{name} signs in at an identity provider.", hint="Change the password there."
        )
    return _make(session, by, account)


def redeem(database: Database, secret: str, password: str) -> str:
    """Set the password with a link, which becomes invalid; end all sessions of the account; return
    its name. Raise `NotThere` if the link was used, replaced by another one, or has expired. Raise
    `CatalogError` if the password is too weak; the link can be used again.
    """
    with database.reading() as session:
        name = _valid(session, secret).account.name
    stored = passwords.hashed(password, name)
    with database.writing() as session:
        link = _valid(session, secret)
        account, kind, name = link.account, link.kind, link.account.name
        account.password = stored
        session.delete(link)
        ended = accounts.end_all(session, account)
        append(session, name, "password set by link", account=name, kind=kind, ended=ended)
        return name


def _make(session: Session, by: Actor, account: Account) -> MadeLink:
    kind = INVITATION if account.password is None else RESET
    secret, expires = secrets.token_urlsafe(32), now() + _LASTS[kind]
    session.execute(delete(PasswordLink).where(PasswordLink.account_id == account.id))
    hashed = accounts.hash_of(secret)
    session.add(PasswordLink(hash=hashed, account_id=account.id, kind=kind, expires=expires))
    session.flush()
    action = "invited" if kind == INVITATION else "reset link made"
    until = expires.isoformat(timespec="seconds")
    append(session, by.name, action, account=account.name, until=until)
    return MadeLink(account.name, kind, secret, expires)


def _valid(session: Session, secret: str) -> PasswordLink:
    link = session.get(PasswordLink, accounts.hash_of(secret))
    if link is None or link.expires <= now() or link.account.disabled:
        raise NotThere(
            "This link is no longer valid: it was used, replaced by a newer link, or has expired.",
            hint="Ask an admin for a new link.",
        )
    return link
