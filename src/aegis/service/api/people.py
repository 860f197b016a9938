"""API calls for passwords, password links, second factors, sessions, and handing over data sets."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import Response

from aegis.service.api import shapes
from aegis.service.api.accounts import set_session
from aegis.service.catalog import Action, accounts, handing_over, password_links, second_factor
from aegis.service.catalog.access import authorise
from aegis.service.catalog.password_links import MadeLink
from aegis.service.identity import CallOf, VisitOf
from aegis.service.routes import PUBLIC, Routes
from aegis.service.settings import ServiceSettings
from aegis.words import json_fields

routes = Routes(tags=["accounts"])


@routes.post("/me/password", Action.OWN_ACCOUNT)
def change_password(
    body: shapes.PasswordChanged, response: Response, call: CallOf
) -> dict[str, Any]:
    """Change your password; all other sessions end."""
    opened = accounts.change_password(
        call.catalog.database,
        call.actor,
        body.password.get_secret_value(),
        body.new.get_secret_value(),
        keep=call.secret,
        address=call.address,
    )
    if opened is None:
        return {"form_key": None}
    set_session(response, call.settings, opened.secret)
    return {"form_key": opened.form_key}


@routes.get("/me/sessions", Action.OWN_ACCOUNT)
def sessions(call: CallOf) -> list[dict[str, Any]]:
    """Return your open sessions, newest first."""
    present = accounts.hash_of(call.secret)
    return [
        json_fields(opened, "created", "seen") | {"this": opened.hash == present}
        for opened in call.read(accounts.sessions_of)
    ]


@routes.post("/me/sessions/end", Action.OWN_ACCOUNT)
def end_own_sessions(body: shapes.SessionsEnded, call: CallOf) -> dict[str, Any]:
    """End all your sessions except the current one, and on request your tokens."""
    return call.write(accounts.end_own_sessions, keep=call.secret, tokens=body.tokens)


@routes.get("/me/second-factor", Action.OWN_ACCOUNT)
def factor(call: CallOf) -> dict[str, Any]:
    """Return whether your second factor is on, and the number of unused recovery codes."""
    authorise(call.actor, Action.OWN_ACCOUNT)
    with call.reading() as session:
        account = accounts.account_of(session, call.actor)
        return {
            "on": second_factor.is_on(session, account),
            "recovery_codes": second_factor.recovery_codes_left(session, account),
        }


@routes.post("/me/second-factor", Action.OWN_ACCOUNT)
def begin_factor(body: shapes.PasswordGiven, call: CallOf) -> dict[str, Any]:
    """Create the key of a second factor; it is active once you confirm it with a code."""
    with call.proven(body.password.get_secret_value()) as (session, account):
        begun = second_factor.begin(session, account, service_name(call.settings))
    return {"secret": begun.secret, "address": begun.address}


@routes.post("/me/second-factor/confirm", Action.OWN_ACCOUNT)
def confirm_factor(body: shapes.CodeGiven, call: CallOf) -> dict[str, Any]:
    """Turn your second factor on with a code from your app.

    The response shows the recovery codes once. All your other sessions end.
    """
    codes = accounts.confirm_factor(call.catalog.database, call.actor, body.code, keep=call.secret)
    return {"recovery_codes": codes}


@routes.post("/me/second-factor/recovery", Action.OWN_ACCOUNT)
def renew_recovery(body: shapes.PasswordGiven, call: CallOf) -> dict[str, Any]:
    """Create new recovery codes; the old ones stop working."""
    with call.proven(body.password.get_secret_value()) as (session, account):
        codes = second_factor.renew_recovery(session, account)
    return {"recovery_codes": codes}


@routes.post("/me/second-factor/remove", Action.OWN_ACCOUNT)
def remove_factor(body: shapes.PasswordGiven, call: CallOf) -> dict[str, Any]:
    """Turn your second factor off."""
    with call.proven(body.password.get_secret_value()) as (session, account):
        second_factor.remove(session, account, call.actor.name)
    return {"on": False}


@routes.post("/password-links", PUBLIC)
def redeem(body: shapes.LinkUsed, visit: VisitOf) -> dict[str, Any]:
    """Set a password with a link from an admin; each link works once."""
    name = password_links.redeem(
        visit.catalog.database, body.secret.get_secret_value(), body.password.get_secret_value()
    )
    return {"name": name}


@routes.post("/invitations", Action.ACCOUNTS)
def invite(body: shapes.AccountInvited, call: CallOf) -> dict[str, Any]:
    """Create an account, and return a link with which its owner sets the password; the link is
    shown only once.
    """
    return _link(call.write(password_links.invite, body.name, body.roles), call.settings)


@routes.post("/accounts/{name}/reset", Action.ACCOUNTS)
def reset(name: str, call: CallOf) -> dict[str, Any]:
    """Return a link with which the owner of an account sets a new password; the link is shown only
    once.
    """
    return _link(call.write(password_links.reset, name), call.settings)


@routes.post("/accounts/{name}/reopen", Action.ACCOUNTS)
def reopen(name: str, call: CallOf) -> dict[str, Any]:
    """Reopen a closed account with its roles."""
    opened = call.write(accounts.reopen, name)
    return {"name": opened.name, "disabled": opened.disabled}


@routes.post("/accounts/{name}/sessions/end", Action.ACCOUNTS)
def end_sessions(name: str, body: shapes.SessionsEnded, call: CallOf) -> dict[str, Any]:
    """End all sessions of an account, and on request its tokens."""
    return call.write(accounts.end_sessions, name, tokens=body.tokens)


@routes.post("/accounts/{name}/second-factor/remove", Action.ACCOUNTS)
def remove_factor_of(name: str, call: CallOf) -> dict[str, Any]:
    """Turn off the second factor of somebody who lost both the device and the recovery codes."""
    authorise(call.actor, Action.ACCOUNTS)
    with call.writing() as session:
        second_factor.remove(session, accounts.named(session, name), call.actor.name)
    return {"name": name, "on": False}


@routes.post("/accounts/{name}/hand-over", Action.ACCOUNTS)
def hand_over_all(name: str, body: shapes.Receiver, call: CallOf) -> dict[str, Any]:
    """Transfer all data sets of a provider to another provider."""
    return {"data_sets": call.write(handing_over.hand_over_all, name, body.to)}


@routes.post("/data-sets/{identifier}/hand-over", Action.HAND_OVER)
def hand_over(identifier: str, body: shapes.DataSetReceiver, call: CallOf) -> dict[str, Any]:
    """Transfer a data set to another provider; the agent of that provider then does its jobs."""
    handed = call.write(handing_over.hand_over, identifier, body.to, public_key=body.public_key)
    return {"id": handed.id, "provider": handed.provider.name}


def service_name(settings: ServiceSettings) -> str:
    """Return the host of the service, which apps for one-time codes show as its name."""
    return urlsplit(settings.origin).hostname or "aegis"


def _link(new_link: MadeLink, settings: ServiceSettings) -> dict[str, Any]:
    link = {"link": new_link.address(settings.origin)}
    return json_fields(new_link, "name=account", "kind") | link | json_fields(new_link, "expires")
