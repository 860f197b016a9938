"""Errors of a catalog, each with its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from aegis.errors import AegisError


class CatalogError(AegisError):
    """A call that the catalog cannot carry out as given."""

    status: ClassVar[int] = 400


class NotSignedIn(CatalogError):  # noqa: N818 - what it says
    """The caller is not signed in, or the session or token has ended."""

    status = 401


class NotAllowed(CatalogError):  # noqa: N818 - what it says
    """The account may not do this."""

    status = 403


class NotThere(CatalogError):  # noqa: N818 - what it says
    """There is no such thing, or this account may not know of it."""

    status = 404


class WrongState(CatalogError):  # noqa: N818 - what it says
    """The thing is in a state that does not allow this, or it has changed meanwhile."""

    status = 409


class TooLarge(CatalogError):  # noqa: N818 - what it says
    """An upload is larger than allowed."""

    status = 413


class TooOften(CatalogError):  # noqa: N818 - what it says
    """Too many calls in a short time."""

    status = 429
