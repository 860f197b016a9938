"""Pages for signing in and out, and for tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Form, Query
from starlette.responses import Response

from aegis.service import oidc
from aegis.service.api.accounts import end_session, set_cookie, start_session
from aegis.service.api.shapes import NO_NUL
from aegis.service.catalog import Action, accounts
from aegis.service.catalog.access import scopes_of
from aegis.service.catalog.errors import CatalogError, NotSignedIn, NotThere
from aegis.service.identity import Call, CallOf, FormCallOf, Visit, VisitOf, cookie_name, identified
from aegis.service.pages.render import page, see
from aegis.service.routes import PUBLIC, Routes
from aegis.service.settings import ServiceSettings

routes = Routes(include_in_schema=False)
_BEGUN, _HALF = "begun", "half"
_REDIRECTED = timedelta(minutes=10)
"""Time for signing in at the identity provider."""
Key = Annotated[str, Form(max_length=64)]
Text = Annotated[str, Form(max_length=256, pattern=NO_NUL)]
Offset = Annotated[int, Query(ge=0, le=1 << 40)]
"""Number of entries before the first one of a page."""


@routes.get("/sign-in", PUBLIC)
def ask(visit: VisitOf) -> Response:
    """Show the form that asks for name and password."""
    return _asking(visit)


@routes.get("/sign-in/oidc", PUBLIC)
def go_to_provider(visit: VisitOf) -> Response:
    """Redirect the browser to the identity provider."""
    provider = _named(visit.settings)
    begun = oidc.Begun.new()
    answer = see(oidc.address(provider, begun, _back(visit.settings)))
    # Not strict: the browser comes back from another site.
    set_cookie(answer, visit.settings, _BEGUN, begun.cookie, _REDIRECTED, samesite="lax")
    return answer


@routes.get("/sign-in/callback", PUBLIC)
def come_back(
    visit: VisitOf,
    code: Annotated[str, Query(max_length=4096)] = "",
    state: Annotated[str, Query(max_length=256)] = "",
) -> Response:
    """Process the response of the identity provider, and open a session."""
    provider = _named(visit.settings)
    begun = oidc.Begun.read(visit.cookie(_BEGUN))
    who = oidc.person(provider, begun, _back(visit.settings), code=code, state=state)
    with visit.writing() as session:
        opened = accounts.sign_in_elsewhere(session, who.subject, who.name, who.roles)
    # A page of its own leads on: the cookie is not sent where another site led to.
    answer = page(visit, "signed_in.html")
    answer.delete_cookie(
        cookie_name(visit.settings, _BEGUN), path="/", secure=visit.settings.secure
    )
    start_session(visit, answer, opened.secret)
    return answer


@routes.post("/sign-in", PUBLIC)
def sign_in(visit: VisitOf, name: Text, password: Text) -> Response:
    """Check name and password; open a session, ask for a code, or show the error."""
    try:
        opened = accounts.sign_in(visit.catalog.database, name, password, address=visit.address)
    except CatalogError as error:
        return _asking(visit, message=str(error), name=name, status=error.status)
    if isinstance(opened, accounts.OpenSession):
        answer = see("/")
        start_session(visit, answer, opened.secret)
        return answer
    answer = see("/sign-in/code")
    set_cookie(answer, visit.settings, _HALF, opened.secret, accounts.HALF)
    return answer


@routes.get("/sign-in/code", PUBLIC)
def ask_code(visit: VisitOf) -> Response:
    """Show the form for a code of the second factor."""
    return page(visit, "sign_in_code.html", message="")


@routes.post("/sign-in/code", PUBLIC)
def sign_in_by_code(visit: VisitOf, code: Text) -> Response:
    """Complete a sign-in with a code, or show that it failed."""
    half = visit.cookie(_HALF)
    try:
        opened = accounts.complete(visit.catalog.database, half, code)
    except CatalogError as error:
        return page(visit, "sign_in_code.html", message=str(error), status=error.status)
    answer = see("/")
    answer.delete_cookie(cookie_name(visit.settings, _HALF), path="/", secure=visit.settings.secure)
    start_session(visit, answer, opened.secret)
    return answer


@routes.post("/sign-out", PUBLIC)
def sign_out(visit: VisitOf, form_key: Key) -> Response:
    """End the session and show the sign-in form."""
    answer = see("/sign-in")
    try:
        call = identified(visit.request)
    except NotSignedIn:
        return answer
    call.require_form_key(form_key)
    with call.writing() as session:
        accounts.sign_out(session, call.secret)
    end_session(answer, call.settings)
    return answer


@routes.get("/tokens", Action.OWN_TOKENS)
def tokens(call: CallOf) -> Response:
    """Show your own tokens, with a form for a new one."""
    return _tokens(call)


@routes.post("/tokens", Action.OWN_TOKENS)
def make_token(
    call: FormCallOf,
    name: Text,
    days: Annotated[int, Form()],
    scopes: Annotated[list[str], Form(default_factory=list)],
) -> Response:
    """Create a token, and show its secret only once."""
    _, secret = call.write(accounts.make_token, name, scopes, days=days)
    return _tokens(call, secret)


@routes.post("/tokens/{token_id}/revoke", Action.OWN_TOKENS)
def revoke_token(token_id: str, call: FormCallOf) -> Response:
    """Revoke a token."""
    call.write(accounts.revoke_token, token_id)
    return see("/tokens")


def _asking(visit: Visit, message: str = "", name: str = "", status: int = 200) -> Response:
    """Show the form that asks for name and password, with an error `message` and a `name` to fill
    in, or send the browser to the identity provider.
    """
    provider = visit.settings.provider
    return page(
        visit,
        "sign_in.html",
        message=message,
        name=name,
        provider="" if provider is None else str(urlsplit(provider.issuer).hostname),
        status=status,
    )


def _named(settings: ServiceSettings) -> oidc.Provider:
    if settings.provider is None:
        raise NotThere("This service uses no identity provider.", hint="Sign in with a password.")
    return settings.provider


def _back(settings: ServiceSettings) -> str:
    return f"{settings.origin}/sign-in/callback"


def _tokens(call: Call, secret: str = "") -> Response:
    tokens = call.read(accounts.tokens_of)
    return page(call, "tokens.html", tokens=tokens, scopes=scopes_of(call.actor), secret=secret)
