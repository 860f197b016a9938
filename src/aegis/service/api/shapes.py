"""Request bodies and response values of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from aegis.service.catalog.records import (
    Account,
    DataSet,
    Job,
    LogEntry,
    ReleaseRecord,
    Request,
    Token,
    Version,
)
from aegis.service.catalog.signs import SeenProgram

_NAME = Field(min_length=1, max_length=120)
_PASSWORD = Field(max_length=256)


class Sent(BaseModel):
    """A request body that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid")


class PasswordGiven(Sent):
    """Your current password, required before changes to how you sign in."""

    password: SecretStr = _PASSWORD


class PasswordChanged(PasswordGiven):
    """The current password and the new one."""

    new: SecretStr = _PASSWORD


class CodeGiven(Sent):
    """A one-time code of your second factor."""

    code: str = Field(min_length=1, max_length=64)


class LinkUsed(Sent):
    """The secret of a password link, and the new password."""

    secret: SecretStr = Field(max_length=64)
    password: SecretStr = _PASSWORD


class SessionsEnded(Sent):
    """Whether to revoke tokens together with the sessions."""

    tokens: bool = False


class Receiver(Sent):
    """The provider's account to which data sets are transferred."""

    to: str = _NAME


class DataSetReceiver(Receiver):
    """The provider's account to which a data set is transferred, and the key of its agent."""

    public_key: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")


class SignInGiven(Sent):
    """Name and password, and a code if the account has a second factor."""

    name: str = _NAME
    password: SecretStr = _PASSWORD
    code: str = Field(default="", max_length=64)


class AccountInvited(Sent):
    """Name and roles of a new account; its owner sets the password through a link."""

    name: str = _NAME
    roles: list[str] = Field(max_length=6)


class AccountGiven(AccountInvited):
    """Name, roles and optional password of a new account."""

    password: SecretStr | None = Field(default=None, max_length=256)


class RolesGiven(Sent):
    """The roles that replace an account's present roles."""

    roles: list[str] = Field(max_length=6)


class TokenGiven(Sent):
    """Name, allowed actions and lifetime of a new token."""

    name: str = _NAME
    scopes: list[str] = Field(min_length=1, max_length=40)
    days: int = Field(default=90, ge=1, le=365)


class DataSetChanged(Sent):
    """New values of a data set's fields; fields that you leave out stay unchanged."""

    title: str = Field(default="", max_length=200)
    description: str = Field(default="", max_length=20_000)
    terms: str = Field(default="", max_length=100_000)
    public: bool = False
    approvals: int = Field(default=1, ge=1, le=2)
    days: int = Field(default=365, ge=1, le=3650)
    ceiling: float | None = Field(default=None, gt=0, lt=1000, allow_inf_nan=False)


class DataSetGiven(DataSetChanged):
    """The fields of a new data set."""

    id: str = Field(max_length=80)
    source: str = Field(max_length=200)
    public_key: str = Field(max_length=64)
    population: str = Field(default="", max_length=120)


class GrantGiven(Sent):
    """A role to give to an account on a data set, or to withdraw."""

    account: str = _NAME
    role: Literal["operator", "approver", "consumer"]
    granted: bool = True


class MemberGiven(Sent):
    """A provider whose data sets may share the budget of a population."""

    account: str = _NAME
    admitted: bool = True


class SummaryAsked(Sent):
    """Policy and protection of a summary that the agent is to make."""

    policy: str = Field(max_length=4 << 20)
    protect: Literal["counts", "noise"] = "noise"
    epsilon: float = Field(default=1.0, gt=0, le=100, allow_inf_nan=False)
    delta: float = Field(default=1e-6, gt=0, lt=0.1, allow_inf_nan=False)
    threshold: int = Field(default=11, ge=2, le=10_000)


class RequestGiven(Sent):
    """The fields of a new or changed request."""

    data_set: str = Field(default="", max_length=80)
    purpose: str = Field(min_length=1, max_length=4000)
    label: str | None = Field(default=None, max_length=200)
    measure: str | None = Field(default=None, max_length=80)
    models: list[str] = Field(default_factory=list, max_length=20)
    terms_accepted: bool = False


class Reason(Sent):
    """A text that explains a decision to the other people involved."""

    message: str = Field(min_length=1, max_length=4000)


class ApprovalGiven(Sent):
    """An approval, optionally with the statement signed by the approver."""

    signed: dict[str, Any] | None = Field(default=None, max_length=4)


class Rotation(Sent):
    """A new key of an agent, signed by the old and the new key."""

    old: str = Field(pattern="^[0-9a-f]{64}$")
    new: str = Field(pattern="^[0-9a-f]{64}$")
    signatures: list[dict[str, Any]] = Field(min_length=2, max_length=2)


class Choice(Sent):
    """A configuration as YAML, as `aegis advise -o` writes it; none starts a search for the best one."""

    configuration: str | None = Field(default=None, max_length=4 << 20)


class Days(Sent):
    """Number of days to add to a release's lifetime."""

    days: int = Field(default=365, ge=1, le=3650)


class WorkAsked(Sent):
    """Request of an agent for a job, with the agent's name."""

    owner: str = _NAME


class GivenBack(Sent):
    """The attempt at a job that an agent returns to the queue."""

    attempt: int = Field(ge=1, le=1000)


class Alive(GivenBack):
    """An agent's message that it still works on a job, with the progress."""

    progress: dict[str, Any] = Field(default_factory=dict, max_length=20)


class Failed(GivenBack):
    """Why an agent failed a job; `spent` means that noise was drawn, so its epsilon stays spent."""

    reason: str = Field(max_length=2000)
    spent: bool = False


class Checked(GivenBack):
    """The configuration that an agent has checked, with the verdicts."""

    answer: dict[str, Any] = Field(max_length=50)


def moment(value: datetime | None) -> str | None:
    """Return a time as ISO 8601 text."""
    return None if value is None else value.isoformat(timespec="seconds")


def program(given: SeenProgram) -> dict[str, Any]:
    """Return an agent's or worker's place, name and last sign of life as JSON values."""
    return {
        "place": given.place,
        "name": given.name,
        "since": moment(given.since),
        "seen": moment(given.seen),
        "silent": given.silent,
    }


def account(given: Account) -> dict[str, Any]:
    """Return name, roles and state of an account as JSON values."""
    return {
        "name": given.name,
        "roles": given.roles,
        "disabled": given.disabled,
        "signs_in": "provider" if given.subject else "password" if given.password else "invited",
        "roles_claimed": given.roles_claimed,
        "created": moment(given.created),
    }


def data_set(given: DataSet, version: Version | None = None) -> dict[str, Any]:
    """Return a data set and, if given, its newest version as JSON values."""
    return {
        "id": given.id,
        "title": given.title,
        "description": given.description,
        "provider": given.provider.name,
        "label": given.label,
        "terms": given.terms,
        "population": given.population,
        "public": given.public,
        "published": given.published,
        "approvals": given.approvals,
        "days": given.days,
        "ceiling": given.ceiling,
        "created": moment(given.created),
        "version": None if version is None else version_of(version),
    }


def version_of(given: Version) -> dict[str, Any]:
    """Return number, columns and digests of a version as JSON values."""
    return {
        "number": given.number,
        "columns": given.columns,
        "policy_sha256": given.policy_digest,
        "summary_sha256": given.summary_digest,
        "protection": given.protection,
        "created": moment(given.created),
    }


def request(given: Request) -> dict[str, Any]:
    """Return a request with its state and figures as JSON values."""
    return {
        "id": given.id,
        "data_set": given.data_set_id,
        "version": given.version.number,
        "consumer": given.consumer.name,
        "state": given.state,
        "purpose": given.purpose,
        "label": given.label,
        "measure": given.measure,
        "models": given.models,
        "terms_accepted": given.terms_accepted,
        "answer": given.answer,
        "frozen": given.frozen,
        "message": given.message,
        "created": moment(given.created),
        "changed": moment(given.changed),
    }


def job(given: Job, *, task: bool = False) -> dict[str, Any]:
    """Return a job as JSON values; `task` includes the task, which only the program that does it
    may see.
    """
    shown = {
        "id": given.id,
        "kind": given.kind,
        "place": given.place,
        "data_set": given.data_set_id,
        "request": given.request_id,
        "state": given.state,
        "attempt": given.attempt,
        "progress": given.progress,
        "result": given.result,
        "error": given.error,
        "created": moment(given.created),
        "ended": moment(given.ended),
    }
    return shown | ({"task": given.task} if task else {})


def release(given: ReleaseRecord) -> dict[str, Any]:
    """Return a release as JSON values, without its file."""
    return {
        "request": given.request_id,
        "data_set": given.data_set_id,
        "file": given.file_name,
        "sha256": given.digest,
        "size": given.size,
        "created": moment(given.created),
        "expires": moment(given.expires),
        "revoked": moment(given.revoked),
    }


def log_entry(given: LogEntry) -> dict[str, Any]:
    """Return an entry of the log as JSON values."""
    return {
        "number": given.number,
        "time": moment(given.time),
        "actor": given.actor,
        "action": given.action,
        "data_set": given.data_set_id,
        "request": given.request_id,
        "detail": given.detail,
        "hash": given.hash,
    }


def token(given: Token) -> dict[str, Any]:
    """Return a token as JSON values, without its secret."""
    return {
        "id": given.id,
        "name": given.name,
        "scopes": given.scopes,
        "created": moment(given.created),
        "expires": moment(given.expires),
        "revoked": moment(given.revoked),
    }
