"""API calls for signing in, accounts and tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from fastapi import Response

from aegis.service.api import shapes
from aegis.service.catalog import Action, accounts, handing_over
from aegis.service.catalog.errors import NotSignedIn
from aegis.service.identity import CallOf, Visit, VisitOf, cookie_name
from aegis.service.routes import PUBLIC, Routes
from aegis.service.settings import ServiceSettings

routes = Routes(tags=["accounts"])


def set_cookie(
    response: Response,
    settings: ServiceSettings,
    kind: str,
    secret: str,
    lasts: timedelta,
    *,
    samesite: Literal["lax", "strict"] = "strict",
) -> None:
    """Set a cookie of this `kind` that scripts cannot read, and that ends after the time `lasts`."""
    response.set_cookie(
        cookie_name(settings, kind),
        secret,
        max_age=int(lasts.total_seconds()),
        httponly=True,
        secure=settings.secure,
        samesite=samesite,
        path="/",
    )


def set_session(response: Response, settings: ServiceSettings, secret: str) -> None:
    """Set the session cookie in the browser."""
    set_cookie(response, settings, "session", secret, accounts.LONGEST)


def start_session(visit: Visit, response: Response, secret: str) -> None:
    """Set the cookie of a new session in the browser, and end its previous session."""
    if visit.secret:
        with visit.writing() as session:
            accounts.sign_out(session, visit.secret)
    set_session(response, visit.settings, secret)


def end_session(response: Response, settings: ServiceSettings) -> None:
    """Remove the session cookie, and make the browser delete its data of the service."""
    response.headers["Clear-Site-Data"] = '"cache", "cookies", "storage"'
    response.delete_cookie(
        cookie_name(settings), path="/", httponly=True, secure=settings.secure, samesite="strict"
    )


@routes.post("/session", PUBLIC)
def sign_in(body: shapes.SignInGiven, visit: VisitOf, response: Response) -> dict[str, Any]:
    """Sign in with name, password and, if you have a second factor, a code; sets a session cookie."""
    if visit.settings.local:
        raise NotSignedIn("This service has no accounts, because it runs for one person.")
    opened = accounts.sign_in(
        visit.catalog.database, body.name, body.password.get_secret_value(), address=visit.address
    )
    if isinstance(opened, accounts.HalfOpen):
        if not body.code:
            raise NotSignedIn(
                "Your account needs a second factor.", hint="Also send the code from your app."
            )
        opened = accounts.complete(visit.catalog.database, opened.secret, body.code)
    start_session(visit, response, opened.secret)
    return {"form_key": opened.form_key}


@routes.post("/session/end", PUBLIC)
def sign_out(visit: VisitOf, response: Response) -> dict[str, Any]:
    """End your session and delete its cookie."""
    with visit.writing() as session:
        accounts.sign_out(session, visit.secret)
    end_session(response, visit.settings)
    return {}


@routes.get("/me", Action.OWN_TOKENS)
def me(call: CallOf) -> dict[str, Any]:
    """Return your account with its name and roles."""
    scopes = None if call.actor.scopes is None else sorted(call.actor.scopes)
    return {"name": call.actor.name, "roles": sorted(call.actor.roles), "scopes": scopes}


@routes.post("/accounts", Action.ACCOUNTS)
def create(body: shapes.AccountGiven, call: CallOf) -> dict[str, Any]:
    """Create an account with a name, roles and, optionally, a password."""
    password = None if body.password is None else body.password.get_secret_value()
    with call.writing() as session:
        account = accounts.create(session, body.name, body.roles, password=password, by=call.actor)
    return {"name": account.name, "roles": account.roles}


@routes.get("/accounts", Action.ACCOUNTS)
def listed(call: CallOf) -> list[dict[str, Any]]:
    """Return all accounts with their roles."""
    return [shapes.as_json(account) for account in call.read(accounts.listed)]


@routes.post("/accounts/{name}/roles", Action.ACCOUNTS)
def change_roles(name: str, body: shapes.RolesGiven, call: CallOf) -> dict[str, Any]:
    """Replace the roles of an account; the new roles apply from the account's next call on."""
    changed = call.write(accounts.change_roles, name, body.roles)
    return {"name": changed.name, "roles": changed.roles}


@routes.post("/accounts/{name}/disable", Action.ACCOUNTS)
def disable(name: str, call: CallOf, body: shapes.AccountClosed | None = None) -> dict[str, Any]:
    """Close an account; its sessions and tokens end. An account that provides data sets is closed
    only with `leave`: its data sets are then taken out of the catalog, and the open requests for
    them go back to their consumers.
    """
    with call.writing() as session:
        leave = body is not None and body.leave
        remaining = handing_over.close(session, call.actor, name, leave=leave)
        return {
            "name": name,
            "disabled": True,
            "data_sets": [each.id for each in remaining.data_sets],
            "requests": [each.id for each in remaining.requests],
        }


@routes.get("/tokens", Action.OWN_TOKENS)
def tokens(call: CallOf) -> list[dict[str, Any]]:
    """Return your own tokens without their secrets."""
    return [shapes.as_json(token) for token in call.read(accounts.tokens_of)]


@routes.post("/tokens", Action.OWN_TOKENS)
def make_token(body: shapes.TokenGiven, call: CallOf) -> dict[str, Any]:
    """Create a token; its secret is shown only once."""
    token, secret = call.write(accounts.make_token, body.name, body.scopes, days=body.days)
    return shapes.as_json(token) | {"secret": secret}


@routes.post("/tokens/{token_id}/revoke", Action.OWN_TOKENS)
def revoke_token(token_id: str, call: CallOf) -> dict[str, Any]:
    """Revoke one of your own tokens; it then no longer works."""
    return shapes.as_json(call.write(accounts.revoke_token, token_id))
