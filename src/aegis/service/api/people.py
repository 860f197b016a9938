"""API calls for passwords, password links, second factors, sessions, and handing over data sets."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response

from aegis.service.api import shapes
from aegis.service.api.accounts import set_session
from aegis.service.api.shapes import moment
from aegis.service.catalog import Action, accounts, handing_over, password_links, second_factor
from aegis.service.catalog.access import authorise
from aegis.service.catalog.password_links import MadeLink
from aegis.service.identity import ActorOf, CatalogOf, SettingsOf, address_of, secret_of
from aegis.service.routes import PUBLIC, Routes
from aegis.service.settings import ServiceSettings

routes = Routes(tags=["accounts"])


@routes.post("/me/password", Action.OWN_ACCOUNT)
def change_password(
    given: shapes.PasswordChanged,
    request: Request,
    response: Response,
    actor: ActorOf,
    catalog: CatalogOf,
    settings: SettingsOf,
) -> dict[str, Any]:
    """Change your password; all other sessions end."""
    opened = accounts.change_password(
        catalog.database,
        actor,
        given.password.get_secret_value(),
        given.new.get_secret_value(),
        keep=secret_of(request),
        address=address_of(request),
    )
    if opened is None:
        return {"form_key": None}
    set_session(response, settings, opened.secret)
    return {"form_key": opened.form_key}


@routes.get("/me/sessions", Action.OWN_ACCOUNT)
def sessions(request: Request, actor: ActorOf, catalog: CatalogOf) -> list[dict[str, Any]]:
    """Return your open sessions, newest first."""
    present = accounts.hash_of(secret_of(request))
    with catalog.database.reading() as session:
        return [
            {
                "created": moment(opened.created),
                "seen": moment(opened.seen),
                "this": opened.hash == present,
            }
            for opened in accounts.sessions_of(session, actor)
        ]


@routes.post("/me/sessions/end", Action.OWN_ACCOUNT)
def end_own_sessions(
    given: shapes.SessionsEnded, request: Request, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """End all your sessions except the current one, and on request your tokens."""
    keep = secret_of(request)
    with catalog.database.writing() as session:
        return accounts.end_own_sessions(session, actor, keep=keep, tokens=given.tokens)


@routes.get("/me/second-factor", Action.OWN_ACCOUNT)
def factor(actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Return whether your second factor is on, and the number of unused recovery codes."""
    authorise(actor, Action.OWN_ACCOUNT)
    with catalog.database.reading() as session:
        account = accounts.own(session, actor)
        return {
            "on": second_factor.is_on(session, account),
            "recovery_codes": second_factor.left(session, account),
        }


@routes.post("/me/second-factor", Action.OWN_ACCOUNT)
def begin_factor(
    given: shapes.PasswordGiven,
    request: Request,
    actor: ActorOf,
    catalog: CatalogOf,
    settings: SettingsOf,
) -> dict[str, Any]:
    """Create the key of a second factor; it is active once you confirm it with a code."""
    password = given.password.get_secret_value()
    accounts.require_password(catalog.database, actor, password, address=address_of(request))
    with catalog.database.writing() as session:
        begun = second_factor.begin(session, accounts.own(session, actor), service_name(settings))
    return {"secret": begun.secret, "address": begun.address}


@routes.post("/me/second-factor/confirm", Action.OWN_ACCOUNT)
def confirm_factor(
    given: shapes.CodeGiven, request: Request, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Turn your second factor on with a code from your app.

    The response shows the recovery codes once. All your other sessions end.
    """
    keep = secret_of(request)
    codes = accounts.confirm_factor(catalog.database, actor, given.code, keep=keep)
    return {"recovery_codes": codes}


@routes.post("/me/second-factor/recovery", Action.OWN_ACCOUNT)
def renew_recovery(
    given: shapes.PasswordGiven, request: Request, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Create new recovery codes; the old ones stop working."""
    password = given.password.get_secret_value()
    accounts.require_password(catalog.database, actor, password, address=address_of(request))
    with catalog.database.writing() as session:
        codes = second_factor.renew_recovery(session, accounts.own(session, actor))
    return {"recovery_codes": codes}


@routes.post("/me/second-factor/remove", Action.OWN_ACCOUNT)
def remove_factor(
    given: shapes.PasswordGiven, request: Request, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Turn your second factor off."""
    password = given.password.get_secret_value()
    accounts.require_password(catalog.database, actor, password, address=address_of(request))
    with catalog.database.writing() as session:
        second_factor.remove(session, accounts.own(session, actor), actor.name)
    return {"on": False}


@routes.post("/password-links", PUBLIC)
def redeem(given: shapes.LinkUsed, catalog: CatalogOf) -> dict[str, Any]:
    """Set a password with a link from an admin; each link works once."""
    name = password_links.redeem(
        catalog.database, given.secret.get_secret_value(), given.password.get_secret_value()
    )
    return {"name": name}


@routes.post("/invitations", Action.ACCOUNTS)
def invite(
    given: shapes.AccountInvited, actor: ActorOf, catalog: CatalogOf, settings: SettingsOf
) -> dict[str, Any]:
    """Create an account without a password; return, once, the link with which its owner sets one."""
    with catalog.database.writing() as session:
        made = password_links.invite(session, actor, given.name, given.roles)
    return _link(made, settings)


@routes.post("/accounts/{name}/reset", Action.ACCOUNTS)
def reset(name: str, actor: ActorOf, catalog: CatalogOf, settings: SettingsOf) -> dict[str, Any]:
    """Return, once, a link with which the owner of an account sets a new password."""
    with catalog.database.writing() as session:
        made = password_links.reset(session, actor, name)
    return _link(made, settings)


@routes.post("/accounts/{name}/reopen", Action.ACCOUNTS)
def reopen(name: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Reopen a closed account with its roles."""
    with catalog.database.writing() as session:
        opened = accounts.reopen(session, actor, name)
        return {"name": opened.name, "disabled": opened.disabled}


@routes.post("/accounts/{name}/sessions/end", Action.ACCOUNTS)
def end_sessions(
    name: str, given: shapes.SessionsEnded, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """End all sessions of an account, and on request its tokens."""
    with catalog.database.writing() as session:
        return accounts.end_sessions(session, actor, name, tokens=given.tokens)


@routes.post("/accounts/{name}/second-factor/remove", Action.ACCOUNTS)
def remove_factor_of(name: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Turn off the second factor of somebody who lost device and recovery codes."""
    authorise(actor, Action.ACCOUNTS)
    with catalog.database.writing() as session:
        second_factor.remove(session, accounts.named(session, name), actor.name)
    return {"name": name, "on": False}


@routes.post("/accounts/{name}/hand-over", Action.ACCOUNTS)
def hand_over_all(
    name: str, given: shapes.Receiver, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Transfer all data sets of a provider to another provider."""
    with catalog.database.writing() as session:
        return {"data_sets": handing_over.hand_over_all(session, actor, name, given.to)}


@routes.post("/data-sets/{identifier}/hand-over", Action.HAND_OVER)
def hand_over(
    identifier: str, given: shapes.DataSetReceiver, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Transfer a data set to another provider, whose agent then does the data set's jobs."""
    with catalog.database.writing() as session:
        handed = handing_over.hand_over(
            session, actor, identifier, given.to, public_key=given.public_key
        )
        return {"id": handed.id, "provider": handed.provider.name}


def service_name(settings: ServiceSettings) -> str:
    """Return the host of the service, as shown in apps for one-time codes."""
    return urlsplit(settings.origin).hostname or "aegis"


def _link(made: MadeLink, settings: ServiceSettings) -> dict[str, Any]:
    return {
        "name": made.account,
        "kind": made.kind,
        "link": made.address(settings.origin),
        "expires": moment(made.expires),
    }
