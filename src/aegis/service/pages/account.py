"""Pages of your own account (password, second factor, sessions), and the page for password links."""

from __future__ import annotations

from typing import Annotated

import segno
from fastapi import Form, Request
from markupsafe import Markup
from starlette.responses import Response

from aegis.service.api.accounts import set_session
from aegis.service.api.people import service_name
from aegis.service.catalog import Action, accounts, password_links, passwords, second_factor
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.second_factor import Enrolment
from aegis.service.identity import (
    CallerOf,
    CatalogOf,
    FormCallerOf,
    SettingsOf,
    address_of,
    secret_of,
)
from aegis.service.pages.people import Text
from aegis.service.pages.render import page, see
from aegis.service.routes import PUBLIC, Routes

routes = Routes(include_in_schema=False)


@routes.get("/account", Action.OWN_ACCOUNT)
def show(request: Request, who: CallerOf, catalog: CatalogOf) -> Response:
    """Show the page of your account."""
    return _account(request, who, catalog)


@routes.post("/account/password", Action.OWN_ACCOUNT)
def change_password(
    request: Request,
    who: FormCallerOf,
    catalog: CatalogOf,
    settings: SettingsOf,
    password: Text,
    new: Text,
) -> Response:
    """Change your password; all other sessions end."""
    opened = accounts.change_password(
        catalog.database,
        who.actor,
        password,
        new,
        keep=secret_of(request),
        address=address_of(request),
    )
    answer = see("/account?done=password")
    if opened is not None:
        set_session(answer, settings, opened.secret)
    return answer


@routes.post("/account/sessions", Action.OWN_ACCOUNT)
def end_sessions(
    request: Request,
    who: FormCallerOf,
    catalog: CatalogOf,
    tokens: Annotated[bool, Form()] = False,
) -> Response:
    """End all your other sessions, and on request all your tokens."""
    keep = secret_of(request)
    with catalog.database.writing() as session:
        accounts.end_own_sessions(session, who.actor, keep=keep, tokens=tokens)
    return see("/account?done=sessions")


@routes.post("/account/second-factor", Action.OWN_ACCOUNT)
def begin_factor(
    request: Request,
    who: FormCallerOf,
    catalog: CatalogOf,
    settings: SettingsOf,
    password: Text,
) -> Response:
    """Create a key of a second factor, and show it once for your app."""
    accounts.require_password(catalog.database, who.actor, password, address=address_of(request))
    with catalog.database.writing() as session:
        account = accounts.own(session, who.actor)
        begun = second_factor.begin(session, account, service_name(settings))
    return _account(request, who, catalog, begun=begun)


@routes.post("/account/second-factor/confirm", Action.OWN_ACCOUNT)
def confirm_factor(request: Request, who: FormCallerOf, catalog: CatalogOf, code: Text) -> Response:
    """Turn the second factor on; the recovery codes are shown only once."""
    keep = secret_of(request)
    codes = accounts.confirm_factor(catalog.database, who.actor, code, keep=keep)
    return _account(request, who, catalog, codes=codes)


@routes.post("/account/second-factor/recovery", Action.OWN_ACCOUNT)
def renew_recovery(
    request: Request, who: FormCallerOf, catalog: CatalogOf, password: Text
) -> Response:
    """Create new recovery codes, shown only once."""
    accounts.require_password(catalog.database, who.actor, password, address=address_of(request))
    with catalog.database.writing() as session:
        codes = second_factor.renew_recovery(session, accounts.own(session, who.actor))
    return _account(request, who, catalog, codes=codes)


@routes.post("/account/second-factor/remove", Action.OWN_ACCOUNT)
def remove_factor(
    request: Request, who: FormCallerOf, catalog: CatalogOf, password: Text
) -> Response:
    """Turn the second factor off."""
    accounts.require_password(catalog.database, who.actor, password, address=address_of(request))
    with catalog.database.writing() as session:
        second_factor.remove(session, accounts.own(session, who.actor), who.actor.name)
    return see("/account?done=factor")


@routes.get("/set-password", PUBLIC)
def ask_password(request: Request) -> Response:
    """Show the page for a password link; its secret is after `#`, so the browser does not send it."""
    return page(request, "set_password.html", message="", hint="", shortest=passwords.SHORTEST)


@routes.post("/set-password", PUBLIC)
def set_password(request: Request, catalog: CatalogOf, secret: Text, password: Text) -> Response:
    """Set the password with a link, or show why that failed."""
    try:
        password_links.redeem(catalog.database, secret.strip(), password)
    except CatalogError as error:
        return page(
            request,
            "set_password.html",
            message=error.message,
            hint=error.hint,
            shortest=passwords.SHORTEST,
            secret=secret,
            status=error.status,
        )
    return see("/sign-in?done=password")


def _account(
    request: Request,
    who: CallerOf,
    catalog: CatalogOf,
    *,
    begun: Enrolment | None = None,
    codes: list[str] | None = None,
) -> Response:
    with catalog.database.reading() as session:
        account = accounts.own(session, who.actor)
        return page(
            request,
            "account.html",
            who,
            account=account,
            sessions=accounts.sessions_of(session, who.actor),
            present=accounts.hash_of(secret_of(request)),
            factor=second_factor.is_on(session, account),
            left=second_factor.left(session, account),
            begun=begun,
            picture=None if begun is None else _picture(begun.address),
            codes=codes,
            shortest=passwords.SHORTEST,
            done=request.query_params.get("done", ""),
        )


def _picture(address: str) -> Markup:
    """Return the QR code of a URL as SVG; the URL appears in it only as dots."""
    drawn = segno.make(address, error="m").svg_inline(scale=4, border=4, light="#fff", dark="#000")
    return Markup(drawn)
