"""Identify the caller: by browser session, by token, or as the only user of `--local`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Form, Request

from aegis.service.catalog import Catalog, accounts
from aegis.service.catalog.access import AccountRole, Actor
from aegis.service.catalog.errors import NotAllowed, NotSignedIn
from aegis.service.settings import ServiceSettings

LOCAL = Actor("local", "local", frozenset({AccountRole.PROVIDER, AccountRole.OPERATOR}))
"""The caller of a service on one's own machine."""


@dataclass(frozen=True)
class Caller:
    """The caller of a request, and the form key of the session.

    Attributes
    ----------
    actor
        The actor, whose permissions are checked.
    form_key
        Key in the forms of this session; empty for programs.
    """

    actor: Actor
    form_key: str = ""


def cookie_name(settings: ServiceSettings, kind: str = "session") -> str:
    """Return the name of the cookie of this kind; over TLS, browsers bind it to this host."""
    return f"__Host-aegis_{kind}" if settings.secure else f"aegis_{kind}"


def catalog_of(request: Request) -> Catalog:
    """Return the catalog of the service."""
    catalog: Catalog = request.app.state.catalog
    return catalog


def settings_of(request: Request) -> ServiceSettings:
    """Return the settings of the service."""
    settings: ServiceSettings = request.app.state.settings
    return settings


def address_of(request: Request) -> str:
    """Return the address of the caller."""
    return "" if request.client is None else request.client.host


def secret_of(request: Request) -> str:
    """Return the secret of the caller's browser session; empty if the call has none."""
    return request.cookies.get(cookie_name(settings_of(request)), "")


def _caller(request: Request) -> Caller:
    settings = settings_of(request)
    if settings.local:
        return Caller(LOCAL, request.app.state.local_key)
    catalog = catalog_of(request)
    given = request.headers.get("authorization")
    if given is not None:
        kind, _, secret = given.partition(" ")
        if kind.casefold() != "bearer":
            raise NotSignedIn("Unknown kind of authorization.", hint="Use: Bearer TOKEN.")
        with catalog.database.reading() as session:
            return Caller(accounts.token_actor(session, secret.strip()))
    secret = secret_of(request)
    if not secret:
        raise NotSignedIn("Nobody is signed in.", hint="Sign in, or send a token.")
    with catalog.database.reading() as session:
        opened = accounts.session_of(session, secret)
        stale = accounts.is_stale(opened)
        signed_in = Caller(accounts.actor_of(opened.account), opened.form_key)
    if stale:
        with catalog.database.writing() as session:
            accounts.touch(session, secret)
    return signed_in


def caller(request: Request) -> Caller:
    """Identify the caller, and store the caller's account for the access log.

    Raises
    ------
    NotSignedIn
        Nobody is signed in, or the session or token has ended.
    """
    matched = _caller(request)
    request.state.account = matched.actor.name
    return matched


async def _actor(signed_in: Annotated[Caller, Depends(caller)]) -> Actor:
    """Return the actor whose permissions apply to this call."""
    return signed_in.actor


async def _catalog(request: Request) -> Catalog:
    """Return the catalog of the service.

    The function is `async` because FastAPI runs other functions in a thread, which is slower.
    """
    return catalog_of(request)


async def _settings(request: Request) -> ServiceSettings:
    """Return the settings of the service."""
    return settings_of(request)


def require_form_key(signed_in: Caller, given: str) -> None:
    """Raise an error unless a form contains the form key of the caller's session."""
    from secrets import compare_digest

    if not compare_digest(signed_in.form_key.encode(), given.encode()):
        raise NotAllowed(
            "The form has expired.", hint="Load the page again, then send the form again."
        )


async def _form_caller(
    signed_in: Annotated[Caller, Depends(caller)], form_key: Annotated[str, Form(max_length=64)]
) -> Caller:
    """Return who sends a form, after checking the form key of the session."""
    require_form_key(signed_in, form_key)
    return signed_in


ActorOf = Annotated[Actor, Depends(_actor)]
CallerOf = Annotated[Caller, Depends(caller)]
FormCallerOf = Annotated[Caller, Depends(_form_caller)]
CatalogOf = Annotated[Catalog, Depends(_catalog)]
SettingsOf = Annotated[ServiceSettings, Depends(_settings)]
