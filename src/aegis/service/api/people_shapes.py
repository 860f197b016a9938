"""Request bodies of the calls in `aegis.service.api.people`."""

from __future__ import annotations

from pydantic import Field, SecretStr

from aegis.service.api.shapes import Sent

_NAME = Field(min_length=1, max_length=120)
_PASSWORD = Field(max_length=256)


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


class AccountInvited(Sent):
    """Name and roles of a new account; its owner sets the password through a link."""

    name: str = _NAME
    roles: list[str] = Field(max_length=6)


class SessionsEnded(Sent):
    """Whether to revoke tokens together with the sessions."""

    tokens: bool = False


class Receiver(Sent):
    """The provider's account to which data sets are transferred."""

    to: str = _NAME


class DataSetReceiver(Receiver):
    """The provider's account to which a data set is transferred, and the key of its agent."""

    public_key: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
