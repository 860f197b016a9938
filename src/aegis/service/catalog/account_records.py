"""The tables of how accounts sign in: second factors, links, and attempts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from aegis.service.catalog.records import Account, Base, Utc, now


class SecondFactor(Base):
    """The key of an account's one-time codes; it counts once a code of it was confirmed.

    `step` is the time step of the last code that was taken: no code is taken twice. `recovery` holds
    the hashes of the recovery codes that are left.
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
    """Who gave the right password, and owes a code. It is no session, and is in no table of sessions."""

    __tablename__ = "half_sign_ins"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), index=True)
    created: Mapped[datetime] = mapped_column(Utc, default=now)
    account: Mapped[Account] = relationship(lazy="joined")


class PasswordLink(Base):
    """A link by which a person sets the password of an account; it works once."""

    __tablename__ = "password_links"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("accounts.id"), unique=True)
    kind: Mapped[str] = mapped_column(String(12))
    expires: Mapped[datetime] = mapped_column(Utc)
    created: Mapped[datetime] = mapped_column(Utc, default=now)
    account: Mapped[Account] = relationship(lazy="joined")


class Guess(Base):
    """Wrong passwords for a name from one address: how many, and until when the next attempt
    must wait.
    """

    __tablename__ = "guesses"
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    wait_until: Mapped[datetime] = mapped_column(Utc)
    changed: Mapped[datetime] = mapped_column(Utc, index=True)
