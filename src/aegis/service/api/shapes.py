"""Request bodies and response values of the API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from aegis.service.catalog.budget import BudgetLeft
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.log import LogCheck
from aegis.service.catalog.records import (
    Account,
    DataSet,
    Job,
    LogEntry,
    ReleaseRecord,
    Request,
    Sign,
    SpendRecord,
    Token,
    Version,
)
from aegis.words import json_fields

_NAME = Field(min_length=1, max_length=120)
_PASSWORD = Field(max_length=256)
NO_NUL = r"^[^\x00]*$"
"""Pattern of the texts of a form. PostgreSQL stores no NUL character."""
_MOST_FIELDS = 100
"""Largest number of fields of a body. Each unknown field would be an error of its own."""
_DEEPEST = 64
"""Largest number of lists and mappings within one another in a body."""
Epsilon = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
"""Epsilon of a summary that is protected by noise."""
Protection = Literal["counts", "noise"]
"""Level of protection of a summary."""


class Sent(BaseModel):
    """Base class of request bodies, without unknown fields and values that JSON cannot represent."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, body: Any) -> Any:
        """Refuse NaN, infinite numbers, half characters, NUL characters and deep nesting, which
        Python reads but cannot write to a database or an answer.
        """
        if isinstance(body, dict) and len(body) > _MOST_FIELDS:
            raise ValueError(f"more than {_MOST_FIELDS} fields")
        level: list[Any] = [[body]]
        for _ in range(_DEEPEST):
            nodes = (node.values() if isinstance(node, dict) else node for node in level)
            level = [part for node in nodes for part in node if isinstance(part, dict | list)]
            if not level:
                break
        else:
            raise ValueError(f"more than {_DEEPEST} lists and mappings within one another")
        try:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False, default=str)
            text.encode()
        except ValueError as error:
            raise ValueError("a number is not finite, or a text is not Unicode") from error
        if "\\u0000" in text.replace("\\\\", ""):
            raise ValueError("a text has a NUL character")
        return body


class OfProgram(Sent):
    """Base class of request bodies from programs: values of another type than their field are
    refused.
    """

    model_config = ConfigDict(strict=True)


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
    """The choice whether to revoke an account's tokens when its sessions end."""

    tokens: bool = False


class AccountClosed(Sent):
    """The choice whether to close an account even if it provides data sets."""

    leave: bool = False


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


class GrantGiven(Sent):
    """A role on a data set that a request gives to an account, or withdraws from it."""

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
    protect: Protection = "noise"
    epsilon: Epsilon = 1.0
    delta: float = Field(default=1e-6, gt=0, lt=0.1, allow_inf_nan=False)
    threshold: int = Field(default=11, ge=2, le=10_000)


class DataSetGiven(DataSetChanged):
    """The fields of a new data set. With `summary`, the agent is asked for it at once; if that is
    refused, the data set is not registered.
    """

    id: str = Field(max_length=80)
    source: str = Field(max_length=200)
    public_key: str = Field(max_length=64)
    population: str = Field(default="", max_length=120)
    summary: SummaryAsked | None = None


class RequestGiven(Sent):
    """The fields of a new or changed request."""

    data_set: str = Field(default="", max_length=80)
    purpose: str = Field(min_length=1, max_length=4000)
    label: str | None = Field(default=None, max_length=200)
    measure: str | None = Field(default=None, max_length=80)
    models: list[str] = Field(default_factory=list, max_length=20)
    terms_accepted: bool = False


class NewRequest(RequestGiven):
    """The fields of a new request. With `submit`, it is submitted at once, or not created."""

    submit: bool = False


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
    """A configuration as YAML, as `aegis advise -o` writes it. If none is given, a search for the
    best starts.
    """

    configuration: str | None = Field(default=None, max_length=4 << 20)


class Days(Sent):
    """The number of days by which a release's lifetime is to be extended."""

    days: int = Field(default=365, ge=1, le=3650)


class WorkAsked(OfProgram):
    """Request of an agent for a job, with the agent's name."""

    owner: str = _NAME


class GivenBack(OfProgram):
    """The attempt at a job that an agent returns to the queue."""

    attempt: int = Field(ge=1, le=1000)


class StepTold(OfProgram):
    """The current step of a job: its name, its finished and total units of work, and a note."""

    step: str = Field(default="", max_length=2000)
    done: float = Field(default=0.0, ge=0)
    total: float | None = Field(default=None, ge=0)
    note: str = Field(default="", max_length=2000)


class Alive(GivenBack):
    """An agent's message that it still works on a job, with the progress."""

    progress: StepTold = StepTold()


class Failed(GivenBack):
    """The reason why an agent could not do a job. `spent` means that noise was drawn, so the
    epsilon of the job stays spent.
    """

    reason: str = Field(max_length=2000)
    spent: bool = False


class Uploaded(BaseModel):
    """The fields of an upload that are the same for each kind of file."""

    attempt: int = Field(ge=1, le=1000)
    signature: str = Field(max_length=2000)


class SummaryUploaded(Uploaded):
    """A protected summary, the policy under which it was made, and the agent's signature."""

    policy: str
    bundle: UploadFile


class ReleaseUploaded(Uploaded):
    """A masked file, its certificate, and the agent's signature."""

    certificate: str
    file: UploadFile


class Checked(GivenBack):
    """The configuration that an agent has checked, and whether it meets the rule, alone and
    together with earlier releases.
    """

    answer: dict[str, Any] = Field(max_length=50)


_FIELDS: Mapping[type, str] = {
    Sign: "place name since seen silent",
    Account: "name roles disabled signs_in roles_claimed created",
    Token: "id name scopes created expires revoked",
    DataSet: "id title description provider=provider.name label terms population public published "
    "approvals days ceiling created",
    Version: "number columns policy_sha256=policy_digest summary_sha256=summary_digest protection "
    "created",
    Request: "id data_set=data_set_id version=version.number consumer=consumer.name state purpose "
    "label measure models terms_accepted answer frozen message created changed",
    Job: "id kind place data_set=data_set_id request=request_id state attempt progress result error "
    "created ended",
    ReleaseRecord: "request=request_id data_set=data_set_id file=file_name sha256=digest size created "
    "expires revoked",
    SpendRecord: "epsilon state created",
    BudgetLeft: "population spent reserved ceiling left=remaining",
    LogEntry: "number time actor action data_set=data_set_id request=request_id detail hash",
    LogCheck: "whole=intact entries head broken reason",
}
"""Fields of each record in the answers of the API, as `name` or `name=attribute`."""


def as_json(record: object) -> dict[str, Any]:
    """Return a record of the catalog as JSON values."""
    return json_fields(record, *_FIELDS[type(record)].split())


_BEFORE_RELEASE = ("holds", "masks", "measure", "utility_kept", "searched", "combinations")
"""Fields of the answer of a request that its consumer sees before the release exists. The others
tell counts of rows under masks that may never be released, or the configuration."""
_HIDDEN = ("signers",)
"""Fields of the answer of a request that nobody sees: the keys that the agent knows."""


def request(record: Request, *, masks: bool) -> dict[str, Any]:
    """Return a request as JSON values; without `masks` its configuration is left out."""
    return as_json(record) | {"answer": answer_of(record, masks=masks)}


def answer_of(record: Request, *, masks: bool) -> dict[str, Any] | None:
    """Return the result of the check of a request's configuration; None if there is none. Without
    `masks`, return only the fields that the consumer may see before the release exists.
    """
    if not record.answer:
        return record.answer
    if masks:
        visible = {k: v for k, v in record.answer.items() if k not in _HIDDEN}
        return visible | {"signature_needed": bool(record.answer.get("signers"))}
    verdict = "meets the rule" if record.answer.get("holds") else "breaks the rule"
    headline = f"The chosen configuration {verdict}. You see its figures once the release exists."
    before_release = {k: v for k, v in record.answer.items() if k in _BEFORE_RELEASE}
    return before_release | {"headline": headline, "why": []}


def data_set(record: DataSet, version: Version | None = None) -> dict[str, Any]:
    """Return a data set and, if given, its newest version as JSON values."""
    return as_json(record) | {"version": None if version is None else as_json(version)}


def json_object(text: str, what: str, hint: str) -> dict[str, Any]:
    """Parse a text, which error messages call `what`, as a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{what} is not JSON.", hint=hint) from error
    if not isinstance(value, dict):
        raise CatalogError(f"{what} is not a JSON object.", hint=hint)
    return value
