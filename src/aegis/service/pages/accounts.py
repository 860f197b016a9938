"""Pages for admins: all accounts, and a single account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Form, Query, Request
from starlette.responses import Response

from aegis.service.catalog import (
    Action,
    accounts,
    handing_over,
    password_links,
    second_factor,
    signs,
)
from aegis.service.catalog.access import AccountRole, authorise
from aegis.service.catalog.errors import NotThere
from aegis.service.catalog.password_links import MadeLink
from aegis.service.identity import CallerOf, CatalogOf, FormCallerOf, settings_of
from aegis.service.pages.people import Text
from aegis.service.pages.render import page, see
from aegis.service.routes import Routes

routes = Routes(include_in_schema=False)
_PAGE = 50
Roles = Annotated[list[str], Form()]


@routes.get("/accounts", Action.ACCOUNTS)
def listed(
    request: Request,
    who: CallerOf,
    catalog: CatalogOf,
    words: Annotated[str, Query(max_length=200)] = "",
    offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0,
) -> Response:
    """Show all accounts, with a form for a new one."""
    return _listed(request, who, catalog, words=words, offset=offset)


@routes.post("/invitations", Action.ACCOUNTS)
def invite(
    request: Request,
    who: FormCallerOf,
    catalog: CatalogOf,
    name: Text,
    roles: Roles = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Create an account, and show the link for setting its password, only once."""
    with catalog.database.writing() as session:
        made = password_links.invite(session, who.actor, name, roles)
    return _listed(request, who, catalog, link=made)


@routes.get("/accounts/{name}", Action.ACCOUNTS)
def show(name: str, request: Request, who: CallerOf, catalog: CatalogOf) -> Response:
    """Show an account and the possible actions."""
    return _one(request, who, catalog, name)


@routes.post("/accounts/{name}", Action.ACCOUNTS)
def change(
    name: str,
    who: FormCallerOf,
    catalog: CatalogOf,
    roles: Roles = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Change the roles of an account to those chosen in the form."""
    with catalog.database.writing() as session:
        accounts.change_roles(session, who.actor, name, roles)
    return see("/accounts")


@routes.post("/accounts/{name}/{step}", Action.ACCOUNTS)
def do(
    name: str,
    step: str,
    request: Request,
    who: FormCallerOf,
    catalog: CatalogOf,
    to: Text = "",
    tokens: Annotated[bool, Form()] = False,
) -> Response:
    """Reset, close or reopen an account, end its sessions, or transfer its data sets."""
    authorise(who.actor, Action.ACCOUNTS)
    steps: dict[str, Callable[[Any], Any]] = {
        "reset": lambda s: password_links.reset(s, who.actor, name),
        "close": lambda s: accounts.disable(s, who.actor, name),
        "reopen": lambda s: accounts.reopen(s, who.actor, name),
        "end-sessions": lambda s: accounts.end_sessions(s, who.actor, name, tokens=tokens),
        "remove-factor": lambda s: second_factor.remove(s, accounts.named(s, name), who.actor.name),
        "hand-over": lambda s: handing_over.hand_over_all(s, who.actor, name, to),
    }
    if step not in steps:
        raise NotThere(f"There is no step {step!r}.", hint=f"Allowed: {', '.join(steps)}.")
    with catalog.database.writing() as session:
        done = steps[step](session)
    return _one(request, who, catalog, name, done=step, link=done if step == "reset" else None)


def _listed(
    request: Request,
    who: CallerOf,
    catalog: CatalogOf,
    *,
    words: str = "",
    offset: int = 0,
    link: MadeLink | None = None,
) -> Response:
    with catalog.database.reading() as session:
        people = accounts.listed(session, who.actor, words)
        shown = people[offset : offset + _PAGE]
        return page(
            request,
            "accounts.html",
            who,
            people=shown,
            factors={person.id for person in shown if second_factor.is_on(session, person)},
            programs=signs.listed(session, who.actor),
            count=len(people),
            words=words,
            offset=offset,
            limit=_PAGE,
            roles=list(AccountRole),
            link=link,
            origin=settings_of(request).origin,
        )


def _one(
    request: Request,
    who: CallerOf,
    catalog: CatalogOf,
    name: str,
    *,
    done: str = "",
    link: MadeLink | None = None,
) -> Response:
    authorise(who.actor, Action.ACCOUNTS)
    with catalog.database.reading() as session:
        account = accounts.named(session, name)
        return page(
            request,
            "account_of.html",
            who,
            account=account,
            factor=second_factor.is_on(session, account),
            owned=handing_over.owned_by(session, account),
            roles=list(AccountRole),
            done=done,
            link=link,
            origin=settings_of(request).origin,
        )
