"""Register data sets, add versions, assign roles, and publish."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    bindparam,
    cast,
    false,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, defer

from aegis.errors import AegisError
from aegis.service.catalog import populations
from aegis.service.catalog.access import (
    NOTHING,
    PERMISSIONS,
    AccountRole,
    ActedOn,
    Action,
    Actor,
    Tie,
    authorise,
    may,
)
from aegis.service.catalog.accounts import named
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, DataSet, Grant, Request, Version
from aegis.service.catalog.statements import digest
from aegis.service.catalog.states import RequestState
from aegis.signing import PublicKey, Signature, canonical, verify_bytes

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,78}[a-z0-9])?")
_GRANTED = (AccountRole.OPERATOR, AccountRole.APPROVER, AccountRole.CONSUMER)
TERMS = ("public", "approvals", "days", "ceiling")
"""Fields that only the provider may change, and that are frozen with each request."""
CHANGEABLE = ("title", "description", "label", "terms", *TERMS)
"""Fields that `change` can change."""
LOGGED = (*CHANGEABLE, "source", "population", "public_key", "published")
"""Fields whose values are logged."""
_NOT_RELEASED = (
    RequestState.DRAFT,
    RequestState.SUBMITTED,
    RequestState.IN_REVIEW,
    RequestState.RETURNED,
    RequestState.APPROVED,
    RequestState.FAILED,
)
"""States in which a request must be submitted again if the terms change."""
# Asked with nearly each call, so built once: building one takes longer than an SQLite file its answer.
_GRANTS = select(Grant.role).where(
    Grant.data_set_id == bindparam("data_set"), Grant.account_id == bindparam("account")
)
_NEWEST = (
    select(Version)
    .where(Version.data_set_id == bindparam("data_set"))
    .order_by(Version.number.desc())
    .limit(1)
)
_LAST = (
    select(Version.data_set_id, func.max(Version.number).label("number"))
    .where(Version.data_set_id.in_(bindparam("data_sets", expanding=True)))
    .group_by(Version.data_set_id)
    .subquery()
)
_NEWEST_OF = (
    select(Version)
    .join(_LAST, (Version.data_set_id == _LAST.c.data_set_id) & (Version.number == _LAST.c.number))
    .options(defer(Version.policy))
)


def register(
    session: Session,
    by: Actor,
    /,
    identifier: str,
    *,
    source: str,
    public_key: str,
    title: str = "",
    population: str = "",
    **about: Any,
) -> DataSet:
    """Register a data set; until it is published, only its provider (`by`) sees it. Raise
    `CatalogError` if the name is taken or malformed, or a number is out of range.

    Parameters
    ----------
    identifier
        Name of the data set in URLs: small letters, digits and hyphens.
    source
        Name of the table in the file of the provider's agent; not a path or URL.
    public_key
        The Ed25519 public key, in hexadecimal, of the agent that signs uploads.
    population
        Name of the population that the data set is about; by default the name of the data set.
    about
        Other fields that can be changed later.
    """
    authorise(by, Action.REGISTER)
    _check_names(session, identifier, source, public_key)
    data_set = DataSet(
        id=identifier,
        title=title or identifier,
        provider_id=by.account,
        source=source,
        population=population or identifier,
        public_key=public_key,
        former_keys=[],
    )
    _set(data_set, about)
    populations.join(session, by, data_set.population, identifier)
    session.add(data_set)
    session.flush()
    new = {name: getattr(data_set, name) for name in LOGGED}
    append(session, by.name, "data set registered", data_set=identifier, new=new)
    return data_set


def _check_names(session: Session, identifier: str, source: str, public_key: str) -> None:
    """Refuse a name that is taken, and a name, a source or a key that is malformed."""
    if not _SLUG.fullmatch(identifier):
        raise CatalogError(
            f"{identifier!r} cannot be a data set's name.",
            hint="Use 1 to 80 small letters, digits and hyphens, such as census-2026.",
        )
    if session.get(DataSet, identifier) is not None:
        raise CatalogError(
            f"There is a data set {identifier!r} already.", hint="Choose another name."
        )
    if not _SLUG.fullmatch(source.replace("_", "-").casefold()):
        raise CatalogError(
            f"The source {source!r} is not a name.",
            hint="Give the name of the table under `sources` in the agent's file, not its path or URL.",
        )
    require_key(public_key)


def require_key(public_key: str) -> None:
    """Raise `CatalogError` unless a text is an Ed25519 public key in hexadecimal."""
    if not re.fullmatch("[0-9a-f]{64}", public_key):
        raise CatalogError(
            "The public key is not an Ed25519 key.",
            hint="Give the public key that `aegis keygen agent` writes to agent.pub: the API takes "
            "its 64 hexadecimal digits, the page also the whole text of the file.",
        )


def change(session: Session, by: Actor, identifier: str, **about: Any) -> DataSet:
    """Set fields of a data set. Only its provider may set its terms (`TERMS`). Consumers who have
    accepted another text of the terms must accept the new one before they submit again.
    """
    data_set = authorised(session, by, Action.EDIT_DATA_SET, identifier)
    terms = [name for name in TERMS if name in about and about[name] != getattr(data_set, name)]
    if terms and data_set.provider_id != by.account:
        raise NotAllowed(
            f"{by.name} may not change {', '.join(terms)} here.",
            hint="Only the provider can change approvals, duration, budget and visibility.",
        )
    old = {name: getattr(data_set, name, None) for name in about}
    _set(data_set, about)
    if about.get("terms", old.get("terms")) != old.get("terms"):
        accepted = (Request.data_set_id == identifier) & Request.state.in_(_NOT_RELEASED)
        session.execute(update(Request).where(accepted).values(terms_accepted=False))
    append(session, by.name, "data set changed", data_set=identifier, old=old, new=dict(about))
    return data_set


def terms_of(data_set: DataSet) -> dict[str, Any]:
    """Return the current terms of a data set, and the digest of their text."""
    return {name: getattr(data_set, name) for name in TERMS} | {"terms": digest(data_set.terms)}


def rotate(session: Session, by: Actor, rotation: Mapping[str, Any]) -> int:
    """Replace the signing key of the actor's agent; return the number of data sets with the new
    key. Signatures by the old key can still be verified.

    `rotation` has the public keys `old` and `new` in hexadecimal, and `signatures`, in which both
    keys sign the bytes of `rotation_of`. Raise `CatalogError` if a signature is missing or not
    valid.
    """
    authorise(by, Action.WORK, ActedOn(provider=by.account))
    old, new = str(rotation.get("old")), str(rotation.get("new"))
    signed = rotation.get("signatures")
    for key, value in zip((old, new), signed if isinstance(signed, list) else (), strict=False):
        _require_signed(rotation_of(old, new), key, value)
    if not isinstance(signed, list) or len(signed) != 2:
        raise CatalogError(
            "To rotate the key, sign with the old and with the new key.",
            hint="Use: aegis agent FILE --rotate.",
        )
    query = select(DataSet).where(DataSet.provider_id == by.account, DataSet.public_key == old)
    changed = session.scalars(query).all()
    for data_set in changed:
        data_set.former_keys = [*data_set.former_keys, old]
        data_set.public_key = new
        append(
            session,
            by.name,
            "key rotated",
            data_set=data_set.id,
            old={"public_key": old},
            new={"public_key": new},
        )
    return len(changed)


def rotation_of(old: str, new: str) -> bytes:
    """Return the bytes that both keys of an agent sign when the key `new` replaces the key `old`."""
    return canonical({"kind": "rotation", "old": old, "new": new})


def _require_signed(content: bytes, key: str, signature: object) -> None:
    try:
        good = verify_bytes(content, Signature.of(signature), PublicKey(bytes.fromhex(key)))
    except (AegisError, ValueError):
        good = False
    if not good:
        raise CatalogError(
            f"The rotation is not signed by {key[:16]}.", hint="Use: aegis agent FILE --rotate."
        )


def propose(session: Session, by: Actor, identifier: str, policy: str) -> DataSet:
    """Store a policy as a proposal, which takes effect only if the provider adopts it."""
    data_set = authorised(session, by, Action.EDIT_DATA_SET, identifier)
    data_set.proposed = policy
    append(session, by.name, "policy proposed", data_set=identifier)
    return data_set


def publish(session: Session, by: Actor, identifier: str, *, published: bool = True) -> DataSet:
    """Show a data set to consumers or, with `published=False`, hide it from them."""
    data_set = authorised(session, by, Action.PUBLISH, identifier)
    if published and newest(session, identifier) is None:
        raise WrongState(
            f"{identifier} has no protected summary yet.",
            hint="Ask for one (aegis catalog summary), and run the agent (aegis agent).",
        )
    set_published(session, by, data_set, published=published)
    return data_set


def set_published(session: Session, by: Actor, data_set: DataSet, *, published: bool) -> None:
    """Show or hide a data set, for an actor whose permission was checked."""
    old, new = {"published": data_set.published}, {"published": published}
    data_set.published = published
    action = "published" if published else "taken out"
    append(session, by.name, action, data_set=data_set.id, old=old, new=new)


def unserved(data_set: DataSet) -> str | None:
    """Return why no agent can work on a data set, because of its provider's account; None if one
    can.
    """
    provider = data_set.provider
    if provider.disabled:
        return f"The account of {provider.name}, the provider of {data_set.id}, is closed."
    if AccountRole.PROVIDER not in provider.roles:
        return f"{provider.name}, the provider of {data_set.id}, has lost the role provider."
    return None


def require_served(data_set: DataSet) -> None:
    """Raise `WrongState` if no agent can work on a data set, because of its provider's account."""
    why = unserved(data_set)
    if why is not None:
        raise WrongState(why, hint="Ask an admin to hand the data set over to another provider.")


def grant(
    session: Session, by: Actor, identifier: str, account: str, role: str, *, granted: bool = True
) -> None:
    """Give an account a role on a data set: operator, approver, or consumer who may see it.
    `granted=False` revokes the role.
    """
    data_set = authorised(session, by, Action.PUBLISH, identifier)
    if role not in _GRANTED:
        raise CatalogError(f"{role!r} cannot be granted.", hint=f"Allowed: {', '.join(_GRANTED)}.")
    other = named(session, account)
    if role not in other.roles:
        raise CatalogError(
            f"{account} does not have the role {role}.", hint="Ask an admin to give the role."
        )
    if other.id == data_set.provider_id and role == AccountRole.APPROVER:
        raise CatalogError(
            "The provider of a data set cannot be its approver.", hint="Name another approver."
        )
    key = (identifier, other.id, str(role))
    entry = session.get(Grant, key)
    if granted and entry is None:
        session.add(Grant(data_set_id=identifier, account_id=other.id, role=str(role)))
    elif not granted and entry is not None:
        session.delete(entry)
    action = "granted" if granted else "grant taken back"
    append(session, by.name, action, data_set=identifier, account=account, role=str(role))


def grants(session: Session, data_set: DataSet) -> list[tuple[str, str]]:
    """Return the name and the role of each account that has a role on a data set, by name."""
    query = select(Account.name, Grant.role).join(Account, Account.id == Grant.account_id)
    granted = session.execute(query.where(Grant.data_set_id == data_set.id))
    return sorted((name, role) for name, role in granted)


def holders(session: Session, request: Request, roles: Iterable[AccountRole]) -> list[Account]:
    """Return the open accounts, other than the consumer, that have one of these roles on the data
    set of a request.
    """
    query = select(Account, Grant.role).join(Grant, Grant.account_id == Account.id)
    granted = query.where(
        Grant.data_set_id == request.data_set_id,
        Grant.role.in_([str(role) for role in roles]),
        Account.disabled.is_(False),
        Account.id != request.consumer_id,
    )
    return [account for account, role in session.execute(granted) if role in account.roles]


def add_version(
    session: Session, by: Actor, identifier: str, version: Version, *, label: str | None = None
) -> Version:
    """Number and store a new version of a data set: a new summary with its policy. The caller then
    sends back unreleased requests for earlier versions with `requests.drift`.
    """
    data_set = authorised(session, by, Action.UPLOAD_SUMMARY, identifier)
    data_set.label = label or data_set.label
    last = newest(session, identifier)
    version.data_set_id, version.number = identifier, 1 if last is None else last.number + 1
    session.add(version)
    session.flush()
    append(
        session,
        by.name,
        "summary uploaded",
        data_set=identifier,
        version=version.number,
        digest=version.summary_digest,
        protection=version.protection.get("level"),
        new={"label": data_set.label},
    )
    return version


def newest(session: Session, identifier: str) -> Version | None:
    """Return the newest version of a data set; None if it has no version."""
    return session.scalars(_NEWEST, {"data_set": identifier}).first()


def newest_of(session: Session, identifiers: Sequence[str]) -> dict[str, Version]:
    """Return the newest version of each of several data sets that have one, without its policy."""
    newest = session.scalars(_NEWEST_OF, {"data_sets": list(identifiers)})
    return {version.data_set_id: version for version in newest}


def versions(session: Session, by: Actor, identifier: str) -> Sequence[Version]:
    """Return all versions of a data set, newest first."""
    authorised(session, by, Action.BROWSE, identifier)
    query = select(Version).where(Version.data_set_id == identifier)
    return session.scalars(query.order_by(Version.number.desc())).all()


def authorised(session: Session, by: Actor, action: Action, identifier: str) -> DataSet:
    """Return a data set on which the actor may do this action. Raise `NotThere` if there is no such
    data set that the actor may see, and `NotAllowed` if the actor may only see it.
    """
    data_set = session.get(DataSet, identifier)
    if data_set is None:
        raise _unknown(identifier)
    subject = subject_of(session, by, data_set)
    if not may(by, action, subject):
        if not may(unscoped(by), Action.BROWSE, subject):
            raise _unknown(identifier)
        authorise(by, action, subject)
    return data_set


def search(
    session: Session, by: Actor, words: str = "", *, offset: int = 0, limit: int = 50
) -> tuple[Sequence[DataSet], int]:
    """Return a page of the data sets that the actor may see, and their total number. All `words`
    must be in the name, title, description, label or a column's name.
    """
    authorise_some(by, Action.BROWSE)
    conditions = [permitted(by, Action.BROWSE, DataSet.id, false())]
    for word in words.split()[:8]:
        of_columns = select(Version.data_set_id).where(
            cast(Version.columns, Text).icontains(word, autoescape=True)
        )
        texts = (DataSet.id, DataSet.title, DataSet.description, DataSet.label)
        matches = [text.icontains(word, autoescape=True) for text in texts]
        conditions.append(or_(*matches, DataSet.id.in_(of_columns)))
    count = session.scalar(select(func.count(DataSet.id)).where(*conditions)) or 0
    query = select(DataSet).where(*conditions).order_by(DataSet.title, DataSet.id)
    return session.scalars(query.offset(offset).limit(limit)).all(), count


def subject_of(
    session: Session, by: Actor, data_set: DataSet, request: Request | None = None
) -> ActedOn:
    """Return what decides whether the actor may act on a data set, or on a request for it."""
    roles = session.scalars(_GRANTS, {"data_set": data_set.id, "account": by.account})
    granted = frozenset(map(AccountRole, roles))
    return ActedOn(
        provider=data_set.provider_id,
        consumer=None if request is None else request.consumer_id,
        granted=granted,
        visible=data_set.published and (data_set.public or AccountRole.CONSUMER in granted),
        unsent=request is not None and not request.sent,
    )


def permitted(
    by: Actor, action: Action, data_set: InstrumentedAttribute[Any], of_actor: ColumnElement[bool]
) -> ColumnElement[bool]:
    """Return the SQL condition that selects the rows on which the actor may do an action, by the
    table of permissions that `may` uses. `data_set` is the column with the data set of a row, and
    `of_actor` selects the rows of requests that the actor made. The scopes of a token do not matter.
    """

    def granted(role: AccountRole) -> Select[Any]:
        roles = select(Grant.data_set_id).where(Grant.account_id == by.account)
        return roles.where(Grant.role == str(role))

    visible = DataSet.published & (DataSet.public | DataSet.id.in_(granted(AccountRole.CONSUMER)))
    provided = data_set.in_(select(DataSet.id).where(DataSet.provider_id == by.account))
    ties: Mapping[Tie, Callable[[AccountRole], ColumnElement[bool]]] = {
        Tie.ANY: lambda _: true(),
        Tie.OWNER: lambda role: of_actor if role is AccountRole.CONSUMER else provided,
        Tie.ASSIGNED: lambda role: data_set.in_(granted(role)) & ~of_actor,
        Tie.VISIBLE: lambda _: data_set.in_(select(DataSet.id).where(visible)),
    }
    needed = PERMISSIONS[action].items()
    return or_(false(), *(ties[tie](role) for role, tie in needed if role in by.roles))


def authorise_some(by: Actor, action: Action) -> None:
    """Raise `NotAllowed` if the actor's token does not have the scope for this action."""
    if by.scopes is not None and action not in by.scopes:
        authorise(by, action, NOTHING)


def unscoped(by: Actor) -> Actor:
    """Return the owner of a token as an actor whose permissions are not limited by scopes."""
    return Actor(by.account, by.name, by.roles)


def _unknown(identifier: str) -> NotThere:
    return NotThere(
        f"There is no data set {identifier!r} that you may see.", hint="Search the catalog."
    )


def _set(data_set: DataSet, about: Mapping[str, Any]) -> None:
    for name, value in about.items():
        if name not in CHANGEABLE:
            raise CatalogError(
                f"A data set has no setting {name!r}.", hint=f"Allowed: {', '.join(CHANGEABLE)}."
            )
        setattr(data_set, name, value)
    if data_set.approvals not in (None, 1, 2):
        raise CatalogError(
            f"A data set cannot need {data_set.approvals} approvals.",
            hint="Allowed: 1 or 2.",
        )
    if data_set.days is not None and not 1 <= data_set.days <= 3650:
        raise CatalogError(
            f"A release cannot last {data_set.days} days.", hint="Allowed: 1 to 3650."
        )
    if data_set.ceiling is not None and not 0 < data_set.ceiling < 1000:
        raise CatalogError(
            f"The budget cannot be {data_set.ceiling}.",
            hint="Give an epsilon above 0 and below 1000.",
        )
