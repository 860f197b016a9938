"""The database tables of the catalog, as SQLAlchemy classes.

No column contains a row of a provider's data. The catalog stores only the schema of a table, a
protected summary and releases. Times are in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    JSON,
    ColumnElement,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    cast,
    false,
)
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from aegis.service.catalog.states import RequestState

SILENT_AFTER = timedelta(seconds=15)
"""Time after which a program counts as silent, because it was killed or lost its connection.

It is longer than a lease plus the time between two checks for work.
"""
_MAY_BE_UNSENT = (RequestState.DRAFT, RequestState.WITHDRAWN)


def new_id() -> str:
    """Return a random identifier that is too long to guess."""
    return uuid4().hex


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


class Utc(TypeDecorator[datetime]):
    """A column type for times in UTC that also works in databases without time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time as the database stores it."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the stored time with the zone UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base class of all tables."""


class Numbered:
    """Base class of records with a random identifier."""

    id: Mapped[str] = mapped_column(String(32), primary_key=True, default=new_id, sort_order=-1)


class Dated:
    """Base class of records with the time at which they were made."""

    created: Mapped[datetime] = mapped_column(Utc, default=now, sort_order=1)


class Account(Numbered, Dated, Base):
    """An account: a person, or the agent of a provider. `roles` apply everywhere; a `Grant` says on
    which data sets an operator or approver works.
    """

    __tablename__ = "accounts"
    name: Mapped[str] = mapped_column(String(120), unique=True)
    roles: Mapped[list[str]] = mapped_column(JSON, default=list)
    password: Mapped[str | None] = mapped_column(String(200))
    subject: Mapped[str | None] = mapped_column(String(255), unique=True)
    disabled: Mapped[bool] = mapped_column(default=False)
    roles_claimed: Mapped[bool] = mapped_column(default=False, server_default=false())

    @property
    def signs_in(self) -> str:
        """How the owner of the account signs in: at an identity provider, with a password, or not
        yet.
        """
        return "provider" if self.subject else "password" if self.password else "invited"


class SignIn(Dated, Base):
    """A browser session; the database stores only the hash of the session's secret."""

    __tablename__ = "sign_ins"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    form_key: Mapped[str] = mapped_column(String(64))
    seen: Mapped[datetime] = mapped_column(Utc, default=now)
    account: Mapped[Account] = relationship(lazy="joined")


class Token(Numbered, Dated, Base):
    """A token for programs, stored as a hash; it has some of its owner's permissions, and expires."""

    __tablename__ = "tokens"
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    name: Mapped[str] = mapped_column(String(120))
    scopes: Mapped[list[str]] = mapped_column(JSON)
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("tokens.id", name="tokens_by_maker"))
    expires: Mapped[datetime] = mapped_column(Utc)
    revoked: Mapped[datetime | None] = mapped_column(Utc)
    account: Mapped[Account] = relationship(lazy="joined")


class SecondFactor(Dated, Base):
    """The key of an account's one-time codes, active once a code was confirmed. `step` is the time
    step of the last accepted code, so that no code is accepted twice. `recovery` has the hashes of
    the unused recovery codes.
    """

    __tablename__ = "second_factors"
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), primary_key=True)
    secret: Mapped[str] = mapped_column(String(64))
    confirmed: Mapped[bool] = mapped_column(default=False)
    step: Mapped[int] = mapped_column(Integer, default=0)
    recovery: Mapped[list[str]] = mapped_column(JSON, default=list)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    refused_until: Mapped[datetime | None] = mapped_column(Utc)


class HalfSignIn(Dated, Base):
    """A sign-in with the right password that still needs a code; it gives no access."""

    __tablename__ = "half_sign_ins"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    account: Mapped[Account] = relationship(lazy="joined")


class PasswordLink(Dated, Base):
    """A link that works once, for setting the password of an account."""

    __tablename__ = "password_links"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), unique=True)
    kind: Mapped[str] = mapped_column(String(12))
    expires: Mapped[datetime] = mapped_column(Utc)
    account: Mapped[Account] = relationship(lazy="joined")


class Guess(Base):
    """The number of wrong passwords for a name from an address, and the end of the waiting time."""

    __tablename__ = "guesses"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    wait_until: Mapped[datetime] = mapped_column(Utc)
    changed: Mapped[datetime] = mapped_column(Utc, index=True)


class DataSet(Dated, Base):
    """A data set in the catalog: a description of a table, which stays with its provider."""

    __tablename__ = "data_sets"
    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    title: Mapped[str] = mapped_column(String(200))
    description: Mapped[str] = mapped_column(Text, default="")
    provider_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    source: Mapped[str] = mapped_column(String(200))
    label: Mapped[str | None] = mapped_column(String(200))
    terms: Mapped[str] = mapped_column(Text, default="")
    population: Mapped[str] = mapped_column(String(120), index=True)
    public: Mapped[bool] = mapped_column(default=False)
    published: Mapped[bool] = mapped_column(default=False)
    approvals: Mapped[int] = mapped_column(Integer, default=1)
    days: Mapped[int] = mapped_column(Integer, default=365)
    ceiling: Mapped[float | None] = mapped_column(Float)
    proposed: Mapped[str | None] = mapped_column(Text)
    public_key: Mapped[str] = mapped_column(String(64))
    former_keys: Mapped[list[str]] = mapped_column(JSON, default=list, server_default="[]")
    provider: Mapped[Account] = relationship(lazy="joined")


class OwnedPopulation(Dated, Base):
    """A population: its data sets share one privacy budget, and its owner admits other providers."""

    __tablename__ = "populations"
    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    members: Mapped[list[str]] = mapped_column(JSON, default=list)


class Grant(Base):
    """The role that an account has on a data set: operator, approver, or consumer who may see it."""

    __tablename__ = "grants"
    data_set_id: Mapped[str] = mapped_column(ForeignKey("data_sets.id"), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(20), primary_key=True)


class Version(Numbered, Dated, Base):
    """A version of a data set: its policy, its schema and its protected summary."""

    __tablename__ = "versions"
    __table_args__ = (UniqueConstraint("data_set_id", "number"),)
    data_set_id: Mapped[str] = mapped_column(ForeignKey("data_sets.id"), index=True)
    number: Mapped[int] = mapped_column(Integer)
    policy: Mapped[str] = mapped_column(Text)
    policy_digest: Mapped[str] = mapped_column(String(64))
    columns: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    summary_key: Mapped[str] = mapped_column(String(200))
    summary_digest: Mapped[str] = mapped_column(String(64))
    protection: Mapped[dict[str, Any]] = mapped_column(JSON)


class Request(Numbered, Dated, Base):
    """A consumer's request for a release, and its state."""

    __tablename__ = "requests"
    __table_args__ = (
        Index("requests_by_state", "state", "created"),
        Index("requests_by_time", "created"),
    )
    data_set_id: Mapped[str] = mapped_column(ForeignKey("data_sets.id"), index=True)
    version_id: Mapped[str] = mapped_column(ForeignKey("versions.id"))
    consumer_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    state: Mapped[str] = mapped_column(String(20), default=RequestState.DRAFT)
    purpose: Mapped[str] = mapped_column(Text)
    label: Mapped[str | None] = mapped_column(String(200))
    measure: Mapped[str | None] = mapped_column(String(80))
    models: Mapped[list[str]] = mapped_column(JSON, default=list)
    terms_accepted: Mapped[bool] = mapped_column(default=False)
    configuration: Mapped[str | None] = mapped_column(Text)
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    asked: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict, server_default="{}")
    frozen: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    message: Mapped[str] = mapped_column(Text, default="")
    changed: Mapped[datetime] = mapped_column(Utc, default=now, onupdate=now)
    consumer: Mapped[Account] = relationship(lazy="joined")
    data_set: Mapped[DataSet] = relationship(lazy="joined")
    version: Mapped[Version] = relationship(lazy="joined")

    @hybrid_property
    def sent(self) -> bool:
        """Whether the request was submitted at least once. Before, only its consumer sees it."""
        return self.state not in _MAY_BE_UNSENT or bool(self.asked)

    @sent.inplace.expression
    @classmethod
    def _sent(cls) -> ColumnElement[bool]:
        return cls.state.not_in(_MAY_BE_UNSENT) | (cast(cls.asked, Text) != "{}")


class Approval(Numbered, Dated, Base):
    """A person's approval of the content of a release, or of a longer time for downloading it.
    `signed` is the signed statement, which agents verify.
    """

    __tablename__ = "approvals"
    __table_args__ = (UniqueConstraint("request_id", "account_id", "step", name="approvals_once"),)
    request_id: Mapped[str] = mapped_column(ForeignKey("requests.id"), index=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"))
    step: Mapped[str] = mapped_column(String(10), default="approve")
    digest: Mapped[str] = mapped_column(String(64))
    signed: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class Job(Numbered, Dated, Base):
    """A job for the agent at the data, or for the worker of the service. The program that holds the
    lease does the job. Answers of earlier attempts than `attempt` are refused.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index("jobs_by_place", "place", "state", "created"),)
    kind: Mapped[str] = mapped_column(String(20))
    place: Mapped[str] = mapped_column(String(10))
    data_set_id: Mapped[str] = mapped_column(ForeignKey("data_sets.id"), index=True)
    request_id: Mapped[str | None] = mapped_column(ForeignKey("requests.id"), index=True)
    state: Mapped[str] = mapped_column(String(10), default="queued")
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    owner: Mapped[str | None] = mapped_column(String(120))
    leased_until: Mapped[datetime | None] = mapped_column(Utc)
    task: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    progress: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    error: Mapped[str | None] = mapped_column(Text)
    ended: Mapped[datetime | None] = mapped_column(Utc)


class Sign(Base):
    """The last time that the service heard from an agent or worker; the log does not record it. The
    name of an agent consists of the name of its account and its own name.
    """

    __tablename__ = "signs"
    place: Mapped[str] = mapped_column(String(10), primary_key=True)
    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id"), index=True)
    since: Mapped[datetime] = mapped_column(Utc, default=now)
    seen: Mapped[datetime] = mapped_column(Utc, default=now)

    @property
    def silent(self) -> bool:
        """Whether the service has not heard from the program for longer than `SILENT_AFTER`."""
        return now() - self.seen > SILENT_AFTER


class ReleaseRecord(Numbered, Dated, Base):
    """A released masked file, with its signed certificate."""

    __tablename__ = "releases"
    request_id: Mapped[str] = mapped_column(ForeignKey("requests.id"), unique=True)
    data_set_id: Mapped[str] = mapped_column(ForeignKey("data_sets.id"), index=True)
    population: Mapped[str] = mapped_column(String(120), index=True)
    object_key: Mapped[str] = mapped_column(String(200))
    file_name: Mapped[str] = mapped_column(String(120))
    digest: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(Integer)
    certificate: Mapped[str] = mapped_column(Text)
    signature: Mapped[dict[str, Any]] = mapped_column(JSON)
    expires: Mapped[datetime] = mapped_column(Utc)
    revoked: Mapped[datetime | None] = mapped_column(Utc)


class SpendRecord(Numbered, Dated, Base):
    """A charge to a population's privacy budget: reserved when a job starts, committed with its output."""

    __tablename__ = "spends"
    population: Mapped[str] = mapped_column(String(120), index=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), unique=True)
    epsilon: Mapped[float] = mapped_column(Float)
    state: Mapped[str] = mapped_column(String(10))


class LogEntry(Base):
    """A log entry. Entries are never changed; each has the hash of the previous one."""

    __tablename__ = "log"
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    time: Mapped[datetime] = mapped_column(Utc)
    actor: Mapped[str] = mapped_column(String(120))
    action: Mapped[str] = mapped_column(String(40))
    data_set_id: Mapped[str | None] = mapped_column(String(80), index=True)
    request_id: Mapped[str | None] = mapped_column(String(32), index=True)
    detail: Mapped[dict[str, Any]] = mapped_column(JSON)
    previous: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
