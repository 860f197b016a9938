"""Bodies of the calls in `aegis.service.api.people`."""

from __future__ import annotations

from pydantic import Field, SecretStr

from aegis.service.api.shapes import Sent

_NAME = Field(min_length=1, max_length=120)
_PASSWORD = Field(max_length=256)


class PasswordGiven(Sent):
    """The present password, before something changes that proves who you are."""

    password: SecretStr = _PASSWORD


class PasswordChanged(PasswordGiven):
    """The present password and the new one."""

    new: SecretStr = _PASSWORD


class CodeGiven(Sent):
    """A code of the second factor."""

    code: str = Field(min_length=1, max_length=64)


class LinkUsed(Sent):
    """The secret of a link, and the password that it sets."""

    secret: SecretStr = Field(max_length=64)
    password: SecretStr = _PASSWORD


class AccountInvited(Sent):
    """A new account whose person sets the password."""

    name: str = _NAME
    roles: list[str] = Field(max_length=6)


class SessionsEnded(Sent):
    """Whether tokens end, too."""

    tokens: bool = False


class Receiver(Sent):
    """The account that gets data sets."""

    to: str = _NAME


class DataSetReceiver(Receiver):
    """The account that gets a data set, and the key of its agent."""

    public_key: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
