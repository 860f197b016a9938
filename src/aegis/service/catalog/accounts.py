"""Accounts: passwords, sessions of browsers, tokens of programs.

Passwords are kept as Argon2id, secrets of sessions and tokens as SHA-256: they are drawn at
random, so that nothing slower is needed. OWASP ASVS 5.0, chapters 6, 7 and 11.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from aegis.service.catalog.access import PERMISSIONS, AccountRole, Action, Actor, authorise
from aegis.service.catalog.database import Database
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotSignedIn, NotThere
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, SignIn, Token, now

SHORTEST = 12
"""Characters of the shortest password."""
IDLE = timedelta(minutes=30)
"""A session ends when nothing was asked for this long."""
LONGEST = timedelta(hours=12)
"""A session ends after this time, whatever was asked."""
_SEEN_EVERY = timedelta(minutes=1)
_FAILURES = 5
_LOCKED = timedelta(minutes=5)
_HASHER = PasswordHasher()


@dataclass(frozen=True)
class OpenSession:
    """A session that was opened: the secret goes to the browser and is kept nowhere.

    Attributes
    ----------
    secret
        Value of the cookie.
    form_key
        What forms of this session carry against forged ones.
    """

    secret: str
    form_key: str


def hash_of(secret: str) -> str:
    """Return how the secret of a session or token is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create(
    session: Session,
    name: str,
    roles: Iterable[str],
    *,
    password: str | None = None,
    subject: str | None = None,
    by: Actor | None = None,
) -> Account:
    """Make an account.

    Parameters
    ----------
    session
        A writing session.
    name
        By which it signs in.
    roles
        What it is for.
    password
        At least 12 characters and no common one; None for accounts that sign in elsewhere.
    subject
        Its issuer and subject at the identity provider.
    by
        Who makes it; None for the command line on the machine of the service.

    Raises
    ------
    CatalogError
        The name is taken or empty, a role is unknown, or the password is too weak.
    NotAllowed
        `by` administers no accounts.
    """
    if by is not None:
        authorise(by, Action.ACCOUNTS)
    name = name.strip()
    if not name or len(name) > 120 or not name.isprintable():
        raise CatalogError(
            f"{name!r} cannot be an account's name.", hint="Use 1 to 120 printable characters."
        )
    if session.scalar(select(Account).where(Account.name == name)) is not None:
        raise CatalogError(f"There is an account {name!r} already.", hint="Choose another name.")
    account = Account(
        name=name,
        roles=_roles(roles),
        password=None if password is None else _HASHER.hash(_strong(password)),
        subject=subject,
    )
    session.add(account)
    session.flush()
    append(
        session,
        "system" if by is None else by.name,
        "account made",
        account=name,
        roles=account.roles,
    )
    return account


def change_roles(session: Session, by: Actor, name: str, roles: Iterable[str]) -> Account:
    """Give an account other roles; open sessions have them from their next call on."""
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    old, account.roles = account.roles, _roles(roles)
    append(session, by.name, "roles changed", account=name, old=old, roles=account.roles)
    return account


def disable(session: Session, by: Actor, name: str) -> Account:
    """Close an account with all its sessions and tokens."""
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    account.disabled = True
    for opened in session.scalars(select(SignIn).where(SignIn.account_id == account.id)):
        session.delete(opened)
    append(session, by.name, "account closed", account=name)
    return account


def listed(session: Session, by: Actor) -> Sequence[Account]:
    """Return all accounts, by name."""
    authorise(by, Action.ACCOUNTS)
    return session.scalars(select(Account).order_by(Account.name)).all()


def named(session: Session, name: str) -> Account:
    """Return the account of a name; raise `NotThere` otherwise."""
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        raise NotThere(f"There is no account {name!r}.", hint="Check the name.")
    return account


def sign_in(database: Database, name: str, password: str) -> OpenSession:
    """Open a session for who knows the password.

    A name that is not there takes as long as a wrong password, and is answered alike. The slow hash
    is computed outside of transactions, so that guessing holds nobody up.

    Raises
    ------
    NotSignedIn
        Name and password do not belong together, or the account is locked for a few minutes after
        too many wrong ones; both are answered alike, so that no answer tells that a name is there.
    """
    with database.reading() as session:
        account = session.scalar(select(Account).where(Account.name == name))
        stored = account.password if account is not None else None
    fits = _verify(_decoy() if stored is None else stored, password) and stored is not None
    with database.writing() as session:
        opened = _admitted(session, name, fits)
    if opened is None:
        raise NotSignedIn(
            "Name and password do not fit.",
            hint="Check both. After five wrong passwords an account is closed for five minutes.",
        )
    return opened


def _admitted(session: Session, name: str, fits: bool) -> OpenSession | None:
    """Open the session or count the failure, which must not be rolled back."""
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        return None
    moment = now()
    if account.locked_until is not None and account.locked_until > moment:
        return None
    if not fits or account.disabled:
        _count_failure(account, moment)
        return None
    account.failures, account.locked_until = 0, None
    return open_session(session, account)


def sign_in_elsewhere(session: Session, subject: str, name: str) -> OpenSession:
    """Open a session for whom an identity provider has named; a new account has no role.

    Parameters
    ----------
    session
        A writing session.
    subject
        Issuer and subject, which alone say who it is.
    name
        What to call a new account; another one where the name is taken.

    Raises
    ------
    NotSignedIn
        The account was closed.
    """
    account = session.scalar(select(Account).where(Account.subject == subject))
    if account is None:
        account = create(session, _free(session, name, subject), (), subject=subject)
    if account.disabled:
        raise NotSignedIn("This account was closed.", hint="Ask an admin.")
    return open_session(session, account)


def _free(session: Session, name: str, subject: str) -> str:
    printable = "".join(c for c in name if c.isprintable()).strip()[:100] or "somebody"
    if session.scalar(select(Account).where(Account.name == printable)) is None:
        return printable
    return f"{printable} {hash_of(subject)[:12]}"


def open_session(session: Session, account: Account) -> OpenSession:
    """Open a session for an account that has shown who it is."""
    opened = OpenSession(secrets.token_urlsafe(32), secrets.token_urlsafe(24))
    session.add(
        SignIn(hash=hash_of(opened.secret), account_id=account.id, form_key=opened.form_key)
    )
    append(session, account.name, "signed in")
    return opened


def session_of(session: Session, secret: str) -> SignIn:
    """Return the session of a cookie, with its account as it is now.

    Raises
    ------
    NotSignedIn
        There is none, it has ended, or its account was closed.
    """
    opened = session.get(SignIn, hash_of(secret))
    moment = now()
    if (
        opened is None
        or opened.account.disabled
        or moment - opened.seen > IDLE
        or moment - opened.created > LONGEST
    ):
        raise NotSignedIn("Your session has ended.", hint="Sign in again.")
    return opened


def is_stale(opened: SignIn) -> bool:
    """Return whether `touch` is due: not on each call, which would write on each call."""
    return now() - opened.seen > _SEEN_EVERY


def touch(session: Session, secret: str) -> None:
    """Note that a session is in use."""
    opened = session.get(SignIn, hash_of(secret))
    if opened is not None:
        opened.seen = now()


def sign_out(session: Session, secret: str) -> None:
    """End a session."""
    opened = session.get(SignIn, hash_of(secret))
    if opened is not None:
        append(session, opened.account.name, "signed out")
        session.delete(opened)
        session.flush()


def actor_of(account: Account, token: Token | None = None) -> Actor:
    """Return who acts for an account, by itself or with one of its tokens."""
    roles = frozenset(AccountRole(role) for role in account.roles)
    if token is None:
        return Actor(account.id, account.name, roles)
    return Actor(account.id, account.name, roles, frozenset(token.scopes), token.id, token.expires)


def make_token(
    session: Session, by: Actor, name: str, scopes: Sequence[str], *, days: int = 90
) -> tuple[Token, str]:
    """Make a token that may do some of what its maker may; return it with its secret.

    What a token makes ends with it: by time, and when it is revoked.

    Raises
    ------
    NotAllowed
        A scope is beyond what the caller may do.
    CatalogError
        A scope is unknown, none is named, or the time is not 1 to 365 days.
    """
    authorise(by, Action.OWN_TOKENS)
    known = [str(action) for action in Action]
    unknown = [scope for scope in scopes if scope not in known]
    if unknown or not scopes:
        raise CatalogError(
            f"Unknown scopes: {', '.join(unknown) or 'none were named'}.",
            hint=f"Allowed: {', '.join(known)}.",
        )
    if not 1 <= days <= 365:
        raise CatalogError(f"A token of {days} days.", hint="Allowed: 1 to 365 days.")
    wider = [scope for scope in scopes if not _within(by, Action(scope))]
    if wider:
        raise NotAllowed(
            f"{by.name} may not {', '.join(wider)}, so no token of it may.",
            hint="Leave these scopes out.",
        )
    secret = f"aegis_{secrets.token_urlsafe(32)}"
    token = Token(
        hash=hash_of(secret),
        account_id=by.account,
        name=name,
        scopes=sorted(set(scopes)),
        parent_id=by.token,
        expires=_earlier(now() + timedelta(days=days), by.until),
    )
    session.add(token)
    session.flush()
    append(session, by.name, "token made", token=token.id, scopes=token.scopes)
    return token, secret


def tokens_of(session: Session, by: Actor) -> Sequence[Token]:
    """Return one's own tokens."""
    authorise(by, Action.OWN_TOKENS)
    query = select(Token).where(Token.account_id == by.account).order_by(Token.created)
    return session.scalars(query).all()


def revoke_token(session: Session, by: Actor, token_id: str) -> Token:
    """End one of one's own tokens."""
    authorise(by, Action.OWN_TOKENS)
    token = session.get(Token, token_id)
    if token is None or token.account_id != by.account:
        raise NotThere("You have no such token.", hint="List your tokens.")
    token.revoked = now()
    append(session, by.name, "token revoked", token=token.id)
    return token


_BY_HASH = select(Token).where(Token.hash == bindparam("hash"))


def token_actor(session: Session, secret: str) -> Actor:
    """Return who acts with a token.

    Raises
    ------
    NotSignedIn
        It is unknown, revoked or over.
    """
    token = session.scalar(_BY_HASH, {"hash": hash_of(secret)})
    if token is None or token.account.disabled or not _lasts(session, token):
        raise NotSignedIn("This token is not valid.", hint="Make another one.")
    return actor_of(token.account, token)


def _lasts(session: Session, token: Token) -> bool:
    """Return whether a token, and each one that it was made with, is neither over nor revoked."""
    following: Token | None = token
    while following is not None:
        if following.revoked is not None or following.expires <= now():
            return False
        following = session.get(Token, following.parent_id) if following.parent_id else None
    return True


def _earlier(moment: datetime, other: datetime | None) -> datetime:
    return moment if other is None else min(moment, other)


def _within(actor: Actor, action: Action) -> bool:
    """Return whether some thing exists on which the actor may do this."""
    scoped = actor.scopes is None or action in actor.scopes
    return scoped and any(role in actor.roles for role in PERMISSIONS[action])


def _roles(roles: Iterable[str]) -> list[str]:
    given = sorted(set(roles))
    unknown = [role for role in given if role not in list(AccountRole)]
    if unknown:
        raise CatalogError(
            f"Unknown role {unknown[0]!r}.", hint=f"Allowed: {', '.join(AccountRole)}."
        )
    return given


def _strong(password: str) -> str:
    if len(password) < SHORTEST:
        raise CatalogError(
            f"The password has {len(password)} characters.",
            hint=f"Use at least {SHORTEST}; a sentence is fine.",
        )
    if len(password) > 256:
        raise CatalogError("The password is too long.", hint="Use at most 256 characters.")
    if password.casefold() in _common():
        raise CatalogError("The password is one of the common ones.", hint="Choose another one.")
    return password


@cache
def _common() -> frozenset[str]:
    text = (
        files("aegis.service.catalog").joinpath("common_passwords.txt").read_text(encoding="utf-8")
    )
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


@cache
def _decoy() -> str:
    """Return a hash that no password fits, for names that are not there."""
    return _HASHER.hash(secrets.token_urlsafe(32))


def _verify(stored: str, password: str) -> bool:
    try:
        return _HASHER.verify(stored, password)
    except Argon2Error:
        return False


def _count_failure(account: Account, moment: datetime) -> None:
    account.failures += 1
    if account.failures >= _FAILURES:
        account.failures, account.locked_until = 0, moment + _LOCKED
