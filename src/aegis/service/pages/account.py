"""Pages of your own account (password, second factor, sessions), and the page for password links."""

from __future__ import annotations

from typing import Annotated

import segno
from fastapi import Form
from markupsafe import Markup
from starlette.responses import Response

from aegis.service.api.accounts import set_session
from aegis.service.api.people import service_name
from aegis.service.catalog import Action, accounts, password_links, second_factor
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.second_factor import Enrolment
from aegis.service.identity import CallOf, FormCallOf, VisitOf
from aegis.service.pages.people import Text
from aegis.service.pages.render import page, see
from aegis.service.routes import PUBLIC, Routes

routes = Routes(include_in_schema=False)


@routes.get("/account", Action.OWN_ACCOUNT)
def show(call: CallOf) -> Response:
    """Show the page of your account."""
    return _account(call)


@routes.post("/account/password", Action.OWN_ACCOUNT)
def change_password(call: FormCallOf, password: Text, new: Text) -> Response:
    """Change your password; all other sessions end."""
    opened = accounts.change_password(
        call.catalog.database, call.actor, password, new, keep=call.secret, address=call.address
    )
    answer = see("/account?done=password")
    if opened is not None:
        set_session(answer, call.settings, opened.secret)
    return answer


@routes.post("/account/sessions", Action.OWN_ACCOUNT)
def end_sessions(call: FormCallOf, tokens: Annotated[bool, Form()] = False) -> Response:
    """End all your other sessions, and on request all your tokens."""
    call.write(accounts.end_own_sessions, keep=call.secret, tokens=tokens)
    return see("/account?done=sessions")


@routes.post("/account/second-factor", Action.OWN_ACCOUNT)
def begin_factor(call: FormCallOf, password: Text) -> Response:
    """Create a key of a second factor, and show it once for your app."""
    with call.proven(password) as (session, account):
        begun = second_factor.begin(session, account, service_name(call.settings))
    return _account(call, begun=begun)


@routes.post("/account/second-factor/confirm", Action.OWN_ACCOUNT)
def confirm_factor(call: FormCallOf, code: Text) -> Response:
    """Turn the second factor on; the recovery codes are shown only once."""
    codes = accounts.confirm_factor(call.catalog.database, call.actor, code, keep=call.secret)
    return _account(call, codes=codes)


@routes.post("/account/second-factor/recovery", Action.OWN_ACCOUNT)
def renew_recovery(call: FormCallOf, password: Text) -> Response:
    """Create new recovery codes, shown only once."""
    with call.proven(password) as (session, account):
        codes = second_factor.renew_recovery(session, account)
    return _account(call, codes=codes)


@routes.post("/account/second-factor/remove", Action.OWN_ACCOUNT)
def remove_factor(call: FormCallOf, password: Text) -> Response:
    """Turn the second factor off."""
    with call.proven(password) as (session, account):
        second_factor.remove(session, account, call.actor.name)
    return see("/account?done=factor")


@routes.get("/set-password", PUBLIC)
def ask_password(visit: VisitOf) -> Response:
    """Show the page of a password link. The secret of the link follows `#` in the URL, so the
    browser does not send it.
    """
    return page(visit, "set_password.html", message="", hint="")


@routes.post("/set-password", PUBLIC)
def set_password(visit: VisitOf, secret: Text, password: Text) -> Response:
    """Set the password with a link, or show why that failed."""
    try:
        password_links.redeem(visit.catalog.database, secret.strip(), password)
    except CatalogError as error:
        return page(
            visit,
            "set_password.html",
            message=error.message,
            hint=error.hint,
            secret=secret,
            status=error.status,
        )
    return see("/sign-in?done=password")


def _account(
    call: CallOf, *, begun: Enrolment | None = None, codes: list[str] | None = None
) -> Response:
    with call.reading() as session:
        account = accounts.account_of(session, call.actor)
        return page(
            call,
            "account.html",
            account=account,
            sessions=accounts.sessions_of(session, call.actor),
            present=accounts.hash_of(call.secret),
            factor=second_factor.is_on(session, account),
            left=second_factor.recovery_codes_left(session, account),
            begun=begun,
            picture=None if begun is None else _picture(begun.address),
            codes=codes,
        )


def _picture(address: str) -> Markup:
    """Return a QR code of the URL `address` as SVG."""
    code = segno.make(address, error="m")
    return Markup(code.svg_inline(scale=4, border=4, light="#fff", dark="#000"))
