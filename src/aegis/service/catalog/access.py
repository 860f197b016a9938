"""Decide what an actor may do, from one table of permissions; nothing else is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from aegis.service.catalog.errors import NotAllowed


class AccountRole(StrEnum):
    """A role of an account."""

    PROVIDER = "provider"
    OPERATOR = "operator"
    APPROVER = "approver"
    CONSUMER = "consumer"
    AUDITOR = "auditor"
    ADMIN = "admin"


class Tie(StrEnum):
    """The relation to an object that an account must have, in addition to a role, to do an action.
    For example, it must own the object.
    """

    ANY = "any"
    """No relation is needed."""
    OWNER = "own"
    """The account is the provider of the data set, or the consumer of the request."""
    ASSIGNED = "assigned"
    """The account was granted this role on the data set, and is not the consumer of the request."""
    VISIBLE = "visible"
    """The data set is published, and is public or granted to the account."""


class Action(StrEnum):
    """Everything that an actor can do. Routes, commands and methods of `Catalog` have the same
    names.
    """

    REGISTER = "register"
    EDIT_DATA_SET = "edit-data-set"
    PUBLISH = "publish"
    UPLOAD_SUMMARY = "upload-summary"
    BROWSE = "browse"
    STUDY = "study"
    REQUEST = "request"
    CHANGE_REQUEST = "change-request"
    SEE_REQUEST = "see-request"
    REVIEW = "review"
    APPROVE = "approve"
    REJECT = "reject"
    RUN = "run"
    WORK = "work"
    DOWNLOAD = "download"
    VERIFY = "verify"
    REVOKE = "revoke"
    SEE_LEDGER = "see-ledger"
    SEE_LOG = "see-log"
    OPERATE = "operate"
    ACCOUNTS = "accounts"
    OWN_TOKENS = "own-tokens"
    OWN_ACCOUNT = "own-account"
    HAND_OVER = "hand-over"


_EVERYONE = MappingProxyType(dict.fromkeys(AccountRole, Tie.ANY))
_DECIDERS = MappingProxyType(
    {AccountRole.OPERATOR: Tie.ASSIGNED, AccountRole.APPROVER: Tie.ASSIGNED}
)
_STAFF = MappingProxyType({AccountRole.PROVIDER: Tie.OWNER, **_DECIDERS})
_PARTIES = MappingProxyType(
    {AccountRole.CONSUMER: Tie.OWNER, **_STAFF, AccountRole.AUDITOR: Tie.ANY}
)
_OVERSEERS = MappingProxyType({AccountRole.AUDITOR: Tie.ANY, AccountRole.ADMIN: Tie.ANY})

PERMISSIONS: Mapping[Action, Mapping[AccountRole, Tie]] = MappingProxyType(
    {
        Action.REGISTER: {AccountRole.PROVIDER: Tie.ANY},
        Action.EDIT_DATA_SET: {AccountRole.PROVIDER: Tie.OWNER, AccountRole.OPERATOR: Tie.ASSIGNED},
        Action.PUBLISH: {AccountRole.PROVIDER: Tie.OWNER},
        Action.UPLOAD_SUMMARY: {AccountRole.PROVIDER: Tie.OWNER},
        Action.BROWSE: {**_STAFF, AccountRole.CONSUMER: Tie.VISIBLE, **_OVERSEERS},
        Action.STUDY: _STAFF,
        Action.REQUEST: {AccountRole.CONSUMER: Tie.VISIBLE},
        Action.CHANGE_REQUEST: {AccountRole.CONSUMER: Tie.OWNER},
        Action.SEE_REQUEST: _PARTIES,
        Action.REVIEW: {AccountRole.OPERATOR: Tie.ASSIGNED},
        Action.APPROVE: _DECIDERS,
        Action.REJECT: {**_DECIDERS, AccountRole.PROVIDER: Tie.OWNER},
        Action.RUN: {AccountRole.OPERATOR: Tie.ASSIGNED, AccountRole.PROVIDER: Tie.OWNER},
        Action.WORK: {AccountRole.PROVIDER: Tie.OWNER},
        Action.DOWNLOAD: {AccountRole.CONSUMER: Tie.OWNER},
        Action.VERIFY: _PARTIES,
        Action.REVOKE: {**_DECIDERS, AccountRole.PROVIDER: Tie.OWNER},
        Action.SEE_LEDGER: {**_STAFF, AccountRole.AUDITOR: Tie.ANY},
        Action.SEE_LOG: {**_STAFF, AccountRole.CONSUMER: Tie.OWNER, **_OVERSEERS},
        Action.OPERATE: _OVERSEERS,
        Action.ACCOUNTS: {AccountRole.ADMIN: Tie.ANY},
        Action.OWN_TOKENS: _EVERYONE,
        Action.OWN_ACCOUNT: _EVERYONE,
        Action.HAND_OVER: {AccountRole.PROVIDER: Tie.OWNER, AccountRole.ADMIN: Tie.ANY},
    }
)
"""For each action the roles that may do it, each with the relation to the object that it needs."""


@dataclass(frozen=True)
class Actor:
    """The account or token that calls the service, with its name in the log. `scopes` are the
    actions that the token allows, and `until` is when it expires; None for a person.
    """

    account: str
    name: str
    roles: frozenset[AccountRole]
    scopes: frozenset[str] | None = None
    token: str | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class ActedOn:
    """The properties of a data set or request that decide whether the actor may act on it.

    Attributes
    ----------
    provider, consumer
        Accounts of the data set's provider and of the request's consumer, if there is a request.
    granted
        Roles that the actor has on the data set.
    visible
        Whether the data set is published, and is public or granted to the actor.
    unsent
        Whether the request was never submitted: it then concerns its consumer only.
    """

    provider: str | None = None
    consumer: str | None = None
    granted: frozenset[AccountRole] = field(default_factory=frozenset)
    visible: bool = False
    unsent: bool = False


NOTHING = ActedOn()
"""Stands for the object in actions that have no particular object."""


def may(actor: Actor, action: Action, subject: ActedOn = NOTHING) -> bool:
    """Return whether an actor may do an action on an object."""
    if actor.scopes is not None and action not in actor.scopes:
        return False
    if subject.unsent and subject.consumer != actor.account:
        return False
    permitted = PERMISSIONS.get(action, {})
    return any(
        role in actor.roles and _tied(actor, role, tie, subject) for role, tie in permitted.items()
    )


def authorise(actor: Actor, action: Action, subject: ActedOn = NOTHING) -> None:
    """Raise `NotAllowed` unless the actor may do the action on the object."""
    if not may(actor, action, subject):
        narrow = actor.scopes is not None and action not in actor.scopes
        if narrow and action in scopes_of(actor):
            raise NotAllowed(
                f"This token of {actor.name} does not have the right {action}.",
                hint="Make a token that has it. This one has: "
                f"{', '.join(sorted(actor.scopes or ()))}.",
            )
        roles = ", ".join(PERMISSIONS.get(action, {})) or "nobody"
        raise NotAllowed(
            f"{actor.name} lacks the right {str(action)!r} here.",
            hint=f"These roles have it: {roles}.",
        )


def scopes_of(actor: Actor) -> list[str]:
    """Return the actions that the actor's roles allow on some object: what tokens may do."""
    return [
        str(action) for action in Action if any(role in actor.roles for role in PERMISSIONS[action])
    ]


def _tied(actor: Actor, role: AccountRole, tie: Tie, subject: ActedOn) -> bool:
    if tie is Tie.ANY:
        return True
    if tie is Tie.VISIBLE:
        return subject.visible
    if tie is Tie.ASSIGNED:
        return role in subject.granted and actor.account != subject.consumer
    owner = subject.consumer if role is AccountRole.CONSUMER else subject.provider
    return owner == actor.account
