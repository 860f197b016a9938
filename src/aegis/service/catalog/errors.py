"""Errors of the catalog, each with its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from aegis.errors import AegisError


class CatalogError(AegisError):
    """The catalog cannot process the call, because the content of the call is wrong."""

    status: ClassVar[int] = 400


class NotSignedIn(CatalogError):  # noqa: N818 - what it says
    """The caller is not signed in, or the session or token has ended."""

    status = 401


class NotAllowed(CatalogError):  # noqa: N818 - what it says
    """The account has no permission for this action on this object."""

    status = 403


class NotThere(CatalogError):  # noqa: N818 - what it says
    """The object does not exist, or this account may not see it."""

    status = 404


class WrongState(CatalogError):  # noqa: N818 - what it says
    """The state of the object does not allow the action, or the object has changed in the meantime."""

    status = 409


class TooLarge(CatalogError):  # noqa: N818 - what it says
    """An upload exceeds the size limit."""

    status = 413


class TooOften(CatalogError):  # noqa: N818 - what it says
    """The caller made too many calls in a short time."""

    status = 429
