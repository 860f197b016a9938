"""Database tables for signing in: second factors, password links, and failed attempts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from aegis.service.catalog.records import Account, Base, Utc, now


class SecondFactor(Base):
    """The key of an account's one-time codes; it is active once a code was confirmed.

    `step` is the time step of the last accepted code, so that no code is accepted twice. `recovery`
    has the hashes of the unused recovery codes.
    """

    __tablename__ = "second_factors"
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), primary_key=True)
    secret: Mapped[str] = mapped_column(String(64))
    confirmed: Mapped[bool] = mapped_column(default=False)
    step: Mapped[int] = mapped_column(Integer, default=0)
    recovery: Mapped[list[str]] = mapped_column(JSON, default=list)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    refused_until: Mapped[datetime | None] = mapped_column(Utc)
    created: Mapped[datetime] = mapped_column(Utc, default=now)


class HalfSignIn(Base):
    """A sign-in with the right password that still needs a code; it gives no access."""

    __tablename__ = "half_sign_ins"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    created: Mapped[datetime] = mapped_column(Utc, default=now)
    account: Mapped[Account] = relationship(lazy="joined")


class PasswordLink(Base):
    """A link for setting the password of an account, which works once."""

    __tablename__ = "password_links"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), unique=True)
    kind: Mapped[str] = mapped_column(String(12))
    expires: Mapped[datetime] = mapped_column(Utc)
    created: Mapped[datetime] = mapped_column(Utc, default=now)
    account: Mapped[Account] = relationship(lazy="joined")


class Guess(Base):
    """Number of wrong passwords for a name from an address, and the end of the waiting time."""

    __tablename__ = "guesses"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    wait_until: Mapped[datetime] = mapped_column(Utc)
    changed: Mapped[datetime] = mapped_column(Utc, index=True)
