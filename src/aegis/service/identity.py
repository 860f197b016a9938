"""Identify the caller: by browser session, by token, or as the only user of `--local`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from secrets import compare_digest
from typing import Annotated, Concatenate, ParamSpec, TypeVar, cast

from fastapi import Depends, Form, Request
from sqlalchemy.orm import Session

from aegis.service.catalog import Catalog, accounts
from aegis.service.catalog.access import AccountRole, Actor
from aegis.service.catalog.errors import NotAllowed, NotSignedIn
from aegis.service.catalog.records import Account
from aegis.service.settings import ServiceSettings

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
LOCAL = Actor("local", "local", frozenset({AccountRole.PROVIDER, AccountRole.OPERATOR}))
"""The caller of a service that runs on the caller's own machine (`--local`)."""


def cookie_name(settings: ServiceSettings, kind: str = "session") -> str:
    """Return the name of a cookie of this `kind`. Over TLS, the name makes browsers send the cookie
    only to this host.
    """
    return f"__Host-aegis_{kind}" if settings.secure else f"aegis_{kind}"


def secret_of(request: Request, settings: ServiceSettings) -> str:
    """Return the secret of a call's token, or else of its browser session; empty without both."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        return request.cookies.get(cookie_name(settings), "")
    return authorization.partition(" ")[2].strip()


@dataclass(frozen=True)
class Visit:
    """A call whose caller is not identified yet, with the catalog and the settings of the service."""

    request: Request

    @property
    def catalog(self) -> Catalog:
        """The catalog of the service."""
        return cast(Catalog, self.request.app.state.catalog)

    @property
    def settings(self) -> ServiceSettings:
        """The settings of the service."""
        return cast(ServiceSettings, self.request.app.state.settings)

    @property
    def address(self) -> str:
        """The address of the caller."""
        return "" if self.request.client is None else self.request.client.host

    @property
    def secret(self) -> str:
        """The secret of the caller's browser session; empty if the call has none."""
        return self.cookie("session")

    def cookie(self, kind: str) -> str:
        """Return the value of a cookie of this kind, such as `session`; empty without one."""
        return self.request.cookies.get(cookie_name(self.settings, kind), "")

    def reading(self) -> AbstractContextManager[Session]:
        """Open a session of the catalog's database for reading only."""
        return self.catalog.database.reading()

    def writing(self) -> AbstractContextManager[Session]:
        """Open a session that may write to the database; only one such session is open at a time."""
        return self.catalog.database.writing()


@dataclass(frozen=True)
class Call(Visit):
    """A call by an account or token (`actor`), whose permissions are checked. `form_key` is the key
    in the forms of the caller's browser session; empty for programs.
    """

    actor: Actor
    form_key: str = ""

    def read(
        self,
        function: Callable[Concatenate[Session, Actor, Arguments], Result],
        *arguments: Arguments.args,
        **more: Arguments.kwargs,
    ) -> Result:
        """Call a function of the catalog with a session for reading and the caller as actor."""
        with self.reading() as session:
            return function(session, self.actor, *arguments, **more)

    def write(
        self,
        function: Callable[Concatenate[Session, Actor, Arguments], Result],
        *arguments: Arguments.args,
        **more: Arguments.kwargs,
    ) -> Result:
        """Call a function of the catalog with a session that may write and the caller as actor."""
        with self.writing() as session:
            return function(session, self.actor, *arguments, **more)

    @contextmanager
    def proven(self, password: str) -> Iterator[tuple[Session, Account]]:
        """Check the caller's password; yield a session that may write, and the caller's account."""
        database = self.catalog.database
        accounts.require_password(database, self.actor, password, address=self.address)
        with self.writing() as session:
            yield session, accounts.account_of(session, self.actor)

    def require_form_key(self, form_key: str) -> None:
        """Raise an error unless a form contains the form key of the caller's session."""
        if not compare_digest(self.form_key.encode(), form_key.encode()):
            raise NotAllowed(
                "The form has expired.", hint="Load the page again, then send the form again."
            )


def _identified(request: Request) -> Call:
    visit = Visit(request)
    if visit.settings.local:
        return Call(request, LOCAL, request.app.state.local_key)
    authorization, secret = request.headers.get("authorization"), secret_of(request, visit.settings)
    if authorization is not None:
        if authorization.partition(" ")[0].casefold() != "bearer":
            raise NotSignedIn("Unknown kind of authorization.", hint="Use: Bearer TOKEN.")
        with visit.reading() as session:
            return Call(request, accounts.token_actor(session, secret))
    if not secret:
        raise NotSignedIn("You are not signed in.", hint="Sign in, or send a token.")
    with visit.reading() as session:
        opened = accounts.session_of(session, secret)
        stale = accounts.is_stale(opened)
        call = Call(request, accounts.actor_of(opened.account), opened.form_key)
    if stale:
        with visit.writing() as session:
            accounts.touch(session, secret)
    return call


def identified(request: Request) -> Call:
    """Identify the caller, and store the caller's account for the access log. Raise `NotSignedIn`
    if nobody is signed in, or the session or token has ended.
    """
    call = _identified(request)
    request.state.account = call.actor.name
    return call


async def _visit(request: Request) -> Visit:
    """Return the call as a `Visit`, without identifying the caller."""
    return Visit(request)


async def _call(request: Request) -> Call:
    """Return the call, whose caller the route has identified."""
    return cast(Call, request.state.call)


async def _form(
    call: Annotated[Call, Depends(_call)], form_key: Annotated[str, Form(max_length=64)]
) -> Call:
    """Return the call that sends a form, if the form has the form key of the caller's session."""
    call.require_form_key(form_key)
    return call


VisitOf = Annotated[Visit, Depends(_visit)]
CallOf = Annotated[Call, Depends(_call)]
FormCallOf = Annotated[Call, Depends(_form)]
