"""Accounts with roles, browser sessions and tokens for programs.

Passwords are stored as Argon2id hashes, secrets of sessions and tokens as SHA-256 hashes. These
secrets are random, so they need no slower hash. See OWASP ASVS 5.0, chapters 6, 7 and 11. Where
sessions end, `keep` is the secret of the one that stays open.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Text, bindparam, cast, delete, select, update
from sqlalchemy.orm import Session

from aegis.service.catalog import guessing, passwords, second_factor
from aegis.service.catalog.access import AccountRole, Action, Actor, authorise, scopes_of
from aegis.service.catalog.database import Database
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotSignedIn, NotThere, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, DataSet, HalfSignIn, SignIn, Token, now

IDLE = timedelta(minutes=30)
"""A session ends after this time without calls."""
LONGEST = timedelta(hours=12)
"""A session ends after this time in any case."""
HALF = timedelta(minutes=5)
"""Time within which the code of the second factor must follow the right password."""
_SEEN_EVERY = timedelta(minutes=1)
_OF_LOG = ("system", "identity provider")
"""Names in the log for the service itself; no account may have one, so nobody poses as the service."""
_INVISIBLE = {"BLANK", "FILLER", "JOINER", "SELECTOR"}
"""Words in the Unicode names of characters that are printable, but show nothing."""
_PAIRS = (
    "Il 1l 0O ͿJ ΑA ΒB ΕE ΖZ ΗH Ιl ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX αa γy ιi νv οo ρp σo υu ϜF ϳj ϺM "
    "ЅS Іl ЈJ АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX Ьb аa гr еe оo рp сc уy хx ѕs іi јj ѡw ѴV ѵv "
    "ҮY үy һh ҽe Ӏl ӏi ԁd ԌG ԛq ԜW ԝw ꙇi ՍU ՏS ՕO աw գq զq հh ոn ռn սu ցg քf օo ᎠD ᎡR ᎢT Ꭵi ᎩY "
    "ᎪA ᎫJ ᎬE ᎳW ᎷM ᎻH ᎽY ᏀG Ꮒh ᏃZ Ꮟb ᏒR ᏔW ᏕS ᏙV ᏚS ᏞL ᏟC ᏢP ᏦK Ꮷd ᏳG ᏴB"
)
"""Letters of Latin, Greek, Cyrillic, Armenian and Cherokee, each with the Latin letter that looks like
it, as in the list of Unicode Technical Standard 39.
"""
_ALIKE = str.maketrans({pair[0]: pair[1] for pair in _PAIRS.split()})


@dataclass(frozen=True)
class OpenSession:
    """A new browser session. Its `secret`, the value of the session cookie, is sent to the browser
    and not stored. `form_key` is in the forms of this session, against forged forms.
    """

    secret: str
    form_key: str


@dataclass(frozen=True)
class HalfOpen:
    """A sign-in that still misses the code of the second factor. The caller must send `secret`
    together with the code; it does not open a session alone.
    """

    secret: str


def hash_of(secret: str) -> str:
    """Return the SHA-256 hash under which the secret of a session or token is stored."""
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
    """Create an account.

    `password` is None for accounts that sign in at an identity provider, which knows their owner by
    `subject` (issuer and subject). `by` is None for the command line on the service's machine.
    Raise `CatalogError` if the name is taken or empty, a role is unknown, or the password is too
    weak, and `NotAllowed` if `by` may not administer accounts.
    """
    if by is not None:
        authorise(by, Action.ACCOUNTS)
    name = _new_name(session, name)
    account = Account(
        name=name,
        roles=_roles(roles),
        password=None if password is None else passwords.hashed(password, name),
        subject=subject,
    )
    session.add(account)
    session.flush()
    maker = "system" if by is None else by.name
    append(session, maker, "account made", account=name, roles=account.roles)
    return account


def check_new(name: str, roles: Iterable[str], password: str) -> None:
    """Raise `CatalogError` if no catalog can have such an account. No catalog need exist yet."""
    _roles(roles)
    passwords.require_strong(password, _proper_name(name))


def change_roles(session: Session, by: Actor, name: str, roles: Iterable[str]) -> Account:
    """Replace the roles of an account, also for its open sessions from the next call. Raise
    `WrongState` if no account could administer accounts any more, nobody would provide a data set
    any more, or the identity provider sets the roles.
    """
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    if account.roles_claimed:
        raise WrongState(
            f"The identity provider says which roles {name} has.",
            hint="Change them there. They apply from the next sign-in. Here, you can only close "
            "the account.",
        )
    new_roles = _roles(roles)
    if AccountRole.ADMIN not in new_roles:
        _require_another_admin(session, account)
    owned = ", ".join(each.id for each in owned_by(session, account))
    if owned and AccountRole.PROVIDER not in new_roles:
        raise WrongState(
            f"{name} provides {owned}, so this account needs the role provider.",
            hint=f"First hand the data sets over: aegis catalog hand-over {name} PROVIDER --all.",
        )
    old, account.roles = account.roles, new_roles
    append(session, by.name, "roles changed", account=name, old=old, roles=account.roles)
    return account


def disable(session: Session, by: Actor, name: str) -> Account:
    """Close an account, and end its sessions and tokens. `handing_over.close` does this, and
    answers the requests for its data sets. Raise `WrongState` if no account could administer
    accounts any more.
    """
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    _require_another_admin(session, account)
    old, account.disabled = account.disabled, True
    ended = end_all(session, account, tokens=True)
    append(session, by.name, "account closed", account=name, old=old, new=True, ended=ended)
    return account


def owned_by(session: Session, account: Account) -> Sequence[DataSet]:
    """Return the data sets of a provider, sorted by name."""
    query = select(DataSet).where(DataSet.provider_id == account.id).order_by(DataSet.id)
    return session.scalars(query).all()


def reopen(session: Session, by: Actor, name: str) -> Account:
    """Reopen a closed account with its roles; its old sessions and tokens stay ended."""
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    if not account.disabled:
        raise WrongState(f"The account {name} is open.", hint="Nothing to do.")
    account.disabled = False
    append(
        session, by.name, "account reopened", account=name, old=True, new=False, roles=account.roles
    )
    return account


def end_sessions(session: Session, by: Actor, name: str, *, tokens: bool = False) -> dict[str, int]:
    """End all sessions of an account, and on request its tokens; return how many of each ended.
    `by` must be allowed to administer accounts.
    """
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    ended = end_all(session, account, tokens=tokens)
    append(session, by.name, "sessions ended", account=name, ended=ended)
    return ended


def end_own_sessions(
    session: Session, by: Actor, *, keep: str = "", tokens: bool = False
) -> dict[str, int]:
    """End the actor's other sessions, and on request tokens; return how many of each ended."""
    authorise(by, Action.OWN_ACCOUNT)
    ended = end_all(session, account_of(session, by), keep=keep, tokens=tokens)
    append(session, by.name, "sessions ended", account=by.name, ended=ended)
    return ended


def sessions_of(session: Session, by: Actor) -> Sequence[SignIn]:
    """Return the actor's own open sessions, newest first."""
    authorise(by, Action.OWN_ACCOUNT)
    moment = now()
    query = select(SignIn).where(
        SignIn.account_id == by.account,
        SignIn.seen > moment - IDLE,
        SignIn.created > moment - LONGEST,
    )
    return session.scalars(query.order_by(SignIn.created.desc())).all()


def account_of(session: Session, by: Actor) -> Account:
    """Return the account record of the actor."""
    account = session.get(Account, by.account)
    if account is None:
        raise NotThere(f"There is no account {by.name!r}.", hint="Sign in again.")
    return account


def end_all(
    session: Session, account: Account, *, keep: str = "", tokens: bool = False
) -> dict[str, int]:
    """End an account's incomplete sign-ins, its other sessions and, with `tokens`, its tokens.
    Return how many sessions and tokens were ended.
    """
    opened = delete(SignIn).where(SignIn.account_id == account.id, SignIn.hash != hash_of(keep))
    ended = {"sessions": len(session.scalars(opened.returning(SignIn.hash)).all()), "tokens": 0}
    session.execute(delete(HalfSignIn).where(HalfSignIn.account_id == account.id))
    if tokens:
        valid = update(Token).where(Token.account_id == account.id, Token.revoked.is_(None))
        revoked = session.scalars(valid.values(revoked=now()).returning(Token.id))
        ended["tokens"] = len(revoked.all())
    return ended


def _require_another_admin(session: Session, account: Account) -> None:
    """Raise an error if this account is the last open account that can administer accounts."""
    if AccountRole.ADMIN not in account.roles or account.disabled:
        return
    others = session.scalars(
        select(Account).where(
            Account.id != account.id,
            Account.disabled.is_(False),
            Account.password.is_not(None) | Account.subject.is_not(None),
        )
    )
    if not any(AccountRole.ADMIN in other.roles for other in others):
        raise WrongState(
            f"{account.name} is the last admin who can sign in.",
            hint="First make somebody else an admin.",
        )


def listed(session: Session, by: Actor, words: str = "") -> Sequence[Account]:
    """Return all accounts by name, or only those with all words in their name or roles."""
    authorise(by, Action.ACCOUNTS)
    query = select(Account).order_by(Account.name)
    for word in words.split()[:8]:
        query = query.where(
            Account.name.icontains(word, autoescape=True)
            | cast(Account.roles, Text).icontains(word, autoescape=True)
        )
    return session.scalars(query).all()


def named(session: Session, name: str) -> Account:
    """Return the account with this name; raise `NotThere` if there is none."""
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        raise NotThere(f"There is no account {name!r}.", hint="Check the name.")
    return account


def sign_in(
    database: Database, name: str, password: str, *, address: str = ""
) -> OpenSession | HalfOpen:
    """Check name and password; return a session or, with a second factor, an incomplete sign-in.

    For an unknown name, the answer is the same as for a wrong password, and takes as long. The slow
    hash is computed outside of transactions, so that guessing does not block other callers. Raise
    `NotSignedIn` if name and password do not match, and `TooOften` if too many wrong passwords for
    this name came from this `address`. Callers from other addresses need not wait.
    """
    if not _knows(database, name, password, address):
        raise NotSignedIn(
            "The name or the password is wrong.",
            hint="Check both. After five wrong passwords, you have to wait longer each time.",
        )
    with database.writing() as session:
        account = named(session, name)
        if account.disabled:
            opened: OpenSession | HalfOpen | None = None
        elif second_factor.is_on(session, account):
            opened = _half(session, account)
        else:
            opened = open_session(session, account)
    if opened is None:
        raise NotSignedIn("The name or the password is wrong.", hint="Check both, or ask an admin.")
    return opened


def complete(database: Database, half: str, code: str) -> OpenSession:
    """Complete the sign-in with the secret `half` by a code of the second factor or a recovery
    code. Raise `NotSignedIn` if the code is wrong or was used before, or the sign-in has expired.
    """
    opened = None
    with database.writing() as session:
        half_open = session.get(HalfSignIn, hash_of(half))
        over = half_open is None or now() - half_open.created > HALF or half_open.account.disabled
        if (
            half_open is not None
            and not over
            and second_factor.fits(session, half_open.account, code)
        ):
            opened = open_session(session, half_open.account)
        if half_open is not None and (over or opened is not None):
            session.delete(half_open)
    if over:
        raise NotSignedIn("This sign-in has expired.", hint="Start again with your password.")
    if opened is None:
        raise NotSignedIn(
            "The code is wrong.",
            hint="Each code works once: wait for the next one. After five wrong codes, only a recovery "
            "code works for five minutes.",
        )
    return opened


def require_password(database: Database, by: Actor, password: str, *, address: str = "") -> None:
    """Check the actor's password, which changes to sign-in settings require. Raise `NotAllowed` if
    it is wrong or the account signs in at an identity provider, and `TooOften` if too many wrong
    passwords came from this address.
    """
    authorise(by, Action.OWN_ACCOUNT)
    with database.reading() as session:
        if account_of(session, by).password is None:
            raise NotAllowed(
                "Your account has no password here.",
                hint="You sign in at your identity provider. Change the password there.",
            )
    if not _knows(database, by.name, password, address):
        raise NotAllowed("The password is wrong.", hint="Give your current password.")


def change_password(
    database: Database, by: Actor, password: str, new: str, *, keep: str = "", address: str = ""
) -> OpenSession | None:
    """Change the actor's password. The session with the secret `keep` gets a new secret, and all
    others end. Raise `NotAllowed` if the current password is wrong, and `CatalogError` if the new
    one is weak.
    """
    require_password(database, by, password, address=address)
    if new == password:
        raise CatalogError(
            "The new password is the same as the current one.", hint="Choose another one."
        )
    stored = passwords.hashed(new, by.name)
    with database.writing() as session:
        account = account_of(session, by)
        account.password = stored
        present = session.get(SignIn, hash_of(keep))
        ended = end_all(session, account)
        append(session, by.name, "password changed", account=by.name, ended=ended)
        stays = present is not None and present.account_id == account.id
        return open_session(session, account) if stays else None


def _knows(database: Database, name: str, password: str, address: str) -> bool:
    """Return whether name and password match. If not, count a failed attempt for name and address."""
    key = guessing.key_of(address, name)
    with database.writing() as session:
        account = session.scalar(select(Account).where(Account.name == name))
        stored = None if account is None else account.password
        if guessing.count(session, key) and account is not None:
            append(session, "system", "sign-ins slowed", account=name, wrong=guessing.FREE)
    if not passwords.fits(stored, password):
        return False
    with database.writing() as session:
        guessing.forget(session, key)
        return session.scalar(select(Account.password).where(Account.name == name)) == stored


def _half(session: Session, account: Account) -> HalfOpen:
    half = HalfOpen(secrets.token_urlsafe(32))
    session.execute(delete(HalfSignIn).where(HalfSignIn.created < now() - HALF))
    session.add(HalfSignIn(hash=hash_of(half.secret), account_id=account.id))
    return half


def sign_in_elsewhere(
    session: Session, subject: str, name: str, roles: Iterable[str] | None = None
) -> OpenSession:
    """Open a session for a person whom an identity provider has identified by `subject` (issuer and
    subject). Raise `NotSignedIn` if the account is closed.

    A new account gets this name, or another one if the name is taken. `roles` are those that the
    provider states; with None, admins of this service assign roles.
    """
    account = session.scalar(select(Account).where(Account.subject == subject))
    if account is None:
        account = create(session, _free(session, name, subject), (), subject=subject)
    if account.disabled:
        raise NotSignedIn("This account was closed.", hint="Ask an admin.")
    _claim(session, account, roles)
    return open_session(session, account)


def _claim(session: Session, account: Account, roles: Iterable[str] | None) -> None:
    """Set an account's roles to those that its identity provider states; None leaves them
    unchanged.
    """
    account.roles_claimed = roles is not None
    if roles is None:
        return
    old, account.roles = account.roles, _roles(roles)
    if account.roles != sorted(old):
        append(
            session,
            "identity provider",
            "roles changed",
            account=account.name,
            old=old,
            roles=account.roles,
        )


def _free(session: Session, name: str, subject: str) -> str:
    allowed = (c for c in name if c.isprintable() and c != "/")
    printable = "".join(allowed).strip()[:100]
    printable = printable if printable.strip(".") and not _may_deceive(printable) else "somebody"
    if _is_free(session, printable):
        return printable
    return f"{printable} {int(hash_of(subject)[:12], 16)}"  # digits are of no alphabet


def _new_name(session: Session, name: str) -> str:
    """Return a name for a new account, without blanks around it; raise an error if it cannot be one."""
    name = _proper_name(name)
    if not _is_free(session, name):
        raise CatalogError(
            f"There is an account {name!r} already, or one whose name differs only in capitals, or in "
            "letters and digits that look alike, as l and 1 do.",
            hint="Choose another name.",
        )
    return name


def _proper_name(name: str) -> str:
    """Return a name without blanks around it; raise an error if no account can have it."""
    name = name.strip()
    if not name.strip(".") or len(name) > 120 or not name.isprintable() or "/" in name:
        raise CatalogError(
            f"{name!r} cannot be an account's name.",
            hint="Use 1 to 120 printable characters, no slash, and not only dots.",
        )
    if _may_deceive(name):
        raise CatalogError(
            f"{name!a} mixes alphabets or contains invisible characters, so it can look like another "
            "name.",
            hint="Write all its letters in one alphabet: Latin, Cyrillic, Greek, ...",
        )
    return name


def _is_free(session: Session, name: str) -> bool:
    """Return whether no account has a name that looks like this one, apart from case and width."""
    names = [*_OF_LOG, *session.scalars(select(Account.name))]
    return all(looks(name) not in map(looks, names) for looks in (_folded, _skeleton))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _skeleton(name: str) -> str:
    """Return a text that is the same for all names that look alike, in whatever alphabet."""
    return unicodedata.normalize("NFKD", name).translate(_ALIKE).casefold()


def _may_deceive(name: str) -> bool:
    """Return whether a name mixes alphabets or has invisible characters, so that it can look like
    another. Only alphabets with capitals count, because their letters look alike; names in
    Japanese, for example, mix scripts.
    """
    normalised = unicodedata.normalize("NFKC", name)
    alphabets = {unicodedata.name(c).split()[0] for c in normalised if c.lower() != c.upper()}
    words = {word for c in name for word in unicodedata.name(c, "").replace("-", " ").split()}
    return len(alphabets) > 1 or not words.isdisjoint(_INVISIBLE)


def open_session(session: Session, account: Account) -> OpenSession:
    """Open a session for an account whose owner has been authenticated."""
    opened = OpenSession(secrets.token_urlsafe(32), secrets.token_urlsafe(24))
    session.add(
        SignIn(hash=hash_of(opened.secret), account_id=account.id, form_key=opened.form_key)
    )
    append(session, account.name, "signed in")
    return opened


def session_of(session: Session, secret: str) -> SignIn:
    """Return the session of a cookie, with the current state of its account. Raise `NotSignedIn` if
    there is no such session, it has ended, or its account is closed.
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
    """Return whether the last recorded use is so old that `touch` must record another."""
    return now() - opened.seen > _SEEN_EVERY


def touch(session: Session, secret: str) -> None:
    """Record the present time as the last use of a session."""
    opened = session.get(SignIn, hash_of(secret))
    if opened is not None:
        opened.seen = now()


def confirm_factor(database: Database, by: Actor, code: str, *, keep: str = "") -> list[str]:
    """Turn the actor's second factor on with a code, and end all other sessions of the account;
    return the recovery codes. Raise `CatalogError` if the code does not match the key.
    """
    authorise(by, Action.OWN_ACCOUNT)
    with database.writing() as session:
        codes = second_factor.confirm(session, account_of(session, by), code)
        if codes is not None:
            end_own_sessions(session, by, keep=keep)
    if codes is None:
        raise CatalogError(
            "The code does not belong to this key.",
            hint="Type the six digits that the app shows now. Check the clock of your phone. After "
            "five wrong codes, start again with your password.",
        )
    return codes


def sign_out(session: Session, secret: str) -> None:
    """End the session with this secret."""
    opened = session.get(SignIn, hash_of(secret))
    if opened is not None:
        append(session, opened.account.name, "signed out")
        session.delete(opened)
        session.flush()


def actor_of(account: Account, token: Token | None = None) -> Actor:
    """Return the actor for an account or for one of its tokens."""
    roles = frozenset(AccountRole(role) for role in account.roles)
    if token is None:
        return Actor(account.id, account.name, roles)
    return Actor(account.id, account.name, roles, frozenset(token.scopes), token.id, token.expires)


def make_token(
    session: Session, by: Actor, name: str, scopes: Sequence[str], *, days: int = 90
) -> tuple[Token, str]:
    """Create a token with some of its creator's permissions; return the token and its secret. If
    another token creates it, it ends when that one expires or is revoked. Raise `NotAllowed` if a
    scope is not among the caller's permissions, and `CatalogError` if a scope is unknown, no scope
    is given, or the time is not 1 to 365 days.
    """
    authorise(by, Action.OWN_TOKENS)
    actions = [str(action) for action in Action]
    unknown = [scope for scope in scopes if scope not in actions]
    if unknown or not scopes:
        raise CatalogError(
            f"Unknown rights: {', '.join(unknown) or 'none were named'}.",
            hint=f"Allowed: {', '.join(actions)}.",
        )
    if not 1 <= days <= 365:
        raise CatalogError(f"A token cannot last {days} days.", hint="Allowed: 1 to 365 days.")
    allowed = [scope for scope in scopes_of(by) if by.scopes is None or scope in by.scopes]
    wider = [scope for scope in scopes if scope not in allowed]
    if wider:
        raise NotAllowed(
            f"{by.name} may not {', '.join(wider)}, so its tokens may not either.",
            hint="Leave these rights out.",
        )
    secret, lasts = f"aegis_{secrets.token_urlsafe(32)}", now() + timedelta(days=days)
    token = Token(
        hash=hash_of(secret),
        account_id=by.account,
        name=name,
        scopes=sorted(set(scopes)),
        parent_id=by.token,
        expires=lasts if by.until is None else min(lasts, by.until),
    )
    session.add(token)
    session.flush()
    append(session, by.name, "token made", token=token.id, scopes=token.scopes)
    return token, secret


def tokens_of(session: Session, by: Actor) -> Sequence[Token]:
    """Return the actor's own tokens."""
    authorise(by, Action.OWN_TOKENS)
    query = select(Token).where(Token.account_id == by.account).order_by(Token.created)
    return session.scalars(query).all()


def revoke_token(session: Session, by: Actor, token_id: str) -> Token:
    """Revoke one of the actor's own tokens."""
    authorise(by, Action.OWN_TOKENS)
    token = session.get(Token, token_id)
    if token is None or token.account_id != by.account:
        raise NotThere("You have no such token.", hint="See the list of your tokens.")
    token.revoked = now()
    append(session, by.name, "token revoked", token=token.id)
    return token


_BY_HASH = select(Token).where(Token.hash == bindparam("hash"))


def token_actor(session: Session, secret: str) -> Actor:
    """Return a token's actor. Raise `NotSignedIn` if the token is unknown, revoked or expired."""
    token = session.scalar(_BY_HASH, {"hash": hash_of(secret)})
    if token is None or token.account.disabled or not _lasts(session, token):
        raise NotSignedIn("This token is not valid.", hint="Make another one.")
    return actor_of(token.account, token)


def _lasts(session: Session, token: Token) -> bool:
    """Return whether a token and all tokens from which it was created are still valid."""
    following: Token | None = token
    while following is not None:
        if following.revoked is not None or following.expires <= now():
            return False
        following = session.get(Token, following.parent_id) if following.parent_id else None
    return True


def _roles(roles: Iterable[str]) -> list[str]:
    distinct = sorted(set(roles))
    unknown = [role for role in distinct if role not in list(AccountRole)]
    if unknown:
        raise CatalogError(
            f"Unknown role {unknown[0]!r}.", hint=f"Allowed: {', '.join(AccountRole)}."
        )
    return distinct
