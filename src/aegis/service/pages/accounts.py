"""Pages for admins: all accounts, and a single account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Form
from starlette.responses import Response

from aegis.service.api.data_sets import Words
from aegis.service.catalog import (
    Action,
    accounts,
    handing_over,
    password_links,
    second_factor,
    signs,
)
from aegis.service.catalog.access import authorise
from aegis.service.catalog.errors import NotThere
from aegis.service.catalog.password_links import MadeLink
from aegis.service.identity import Call, CallOf, FormCallOf
from aegis.service.pages.people import Offset, Text
from aegis.service.pages.render import PAGE, page, see
from aegis.service.routes import Routes

routes = Routes(include_in_schema=False)
Roles = Annotated[list[str], Form(default_factory=list)]


@routes.get("/accounts", Action.ACCOUNTS)
def listed(call: CallOf, words: Words = "", offset: Offset = 0) -> Response:
    """Show all accounts, with a form for a new one."""
    return _listed(call, words=words, offset=offset)


@routes.post("/invitations", Action.ACCOUNTS)
def invite(call: FormCallOf, name: Text, roles: Roles) -> Response:
    """Create an account, and show once the link for setting its password."""
    return _listed(call, link=call.write(password_links.invite, name, roles))


@routes.get("/accounts/{name}", Action.ACCOUNTS)
def show(name: str, call: CallOf) -> Response:
    """Show an account and the possible actions."""
    return _account(call, name)


@routes.post("/accounts/{name}", Action.ACCOUNTS)
def change(name: str, call: FormCallOf, roles: Roles) -> Response:
    """Change the roles of an account to those chosen in the form."""
    call.write(accounts.change_roles, name, roles)
    return see("/accounts")


@routes.post("/accounts/{name}/{step}", Action.ACCOUNTS)
def do(
    name: str,
    step: str,
    call: FormCallOf,
    to: Text = "",
    tokens: Annotated[bool, Form()] = False,
    leave: Annotated[bool, Form()] = False,
) -> Response:
    """Reset, close or reopen an account, end its sessions, or transfer its data sets."""
    authorise(call.actor, Action.ACCOUNTS)
    steps: dict[str, Callable[[Any], Any]] = {
        "reset": lambda s: password_links.reset(s, call.actor, name),
        "close": lambda s: handing_over.close(s, call.actor, name, leave=leave),
        "reopen": lambda s: accounts.reopen(s, call.actor, name),
        "end-sessions": lambda s: accounts.end_sessions(s, call.actor, name, tokens=tokens),
        "remove-factor": lambda s: second_factor.remove(
            s, accounts.named(s, name), call.actor.name
        ),
        "hand-over": lambda s: handing_over.hand_over_all(s, call.actor, name, to),
    }
    if step not in steps:
        raise NotThere(f"There is no step {step!r}.", hint=f"Allowed: {', '.join(steps)}.")
    with call.writing() as session:
        done = steps[step](session)
    return _account(call, name, done=step, link=done if step == "reset" else None)


def _listed(
    call: Call, *, words: str = "", offset: int = 0, link: MadeLink | None = None
) -> Response:
    with call.reading() as session:
        people = accounts.listed(session, call.actor, words)
        listed = people[offset : offset + PAGE]
        return page(
            call,
            "accounts.html",
            people=listed,
            factors={person.id for person in listed if second_factor.is_on(session, person)},
            programs=signs.listed(session, call.actor),
            count=len(people),
            words=words,
            offset=offset,
            link=link,
        )


def _account(call: Call, name: str, *, done: str = "", link: MadeLink | None = None) -> Response:
    authorise(call.actor, Action.ACCOUNTS)
    with call.reading() as session:
        account = accounts.named(session, name)
        return page(
            call,
            "account_of.html",
            account=account,
            factor=second_factor.is_on(session, account),
            left=handing_over.left_by(session, account),
            done=done,
            link=link,
        )
