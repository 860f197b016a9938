"""Verbs on the machine of the service: accounts and their tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from aegis.cli.output import Output
from aegis.cli.service_options import CATALOG, Database


def account(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.")],
    roles: Annotated[
        str,
        typer.Option(
            "--roles",
            metavar="ROLE,...",
            help="provider, operator, approver, consumer, auditor, admin.",
        ),
    ],
    password: Annotated[
        str,
        typer.Option(
            "--password",
            envvar="AEGIS_PASSWORD",
            prompt=True,
            hide_input=True,
            confirmation_prompt=True,
            help="Asked for where it is not given by the environment.",
        ),
    ],
    database: Database = CATALOG,
) -> None:
    """Make an account, on the machine of the service.

    In: a name and roles. Out: the account; the first one should be an admin, who
    makes the others on the page "Accounts".
    """
    from aegis.catalog import Catalog, accounts

    with Catalog.open(database).database.writing() as session:
        made = accounts.create(session, name, roles.split(","), password=password)
    Output().say(f"Made {made.name} ({', '.join(made.roles)})")


def token(
    name: Annotated[
        str, typer.Argument(metavar="ACCOUNT", help="The account that the token speaks for.")
    ],
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes",
            metavar="SCOPE,...",
            help="What it may do; by default all that its owner may.",
        ),
    ] = "",
    days: Annotated[
        int, typer.Option("--days", min=1, max=365, help="Days until the token expires.")
    ] = 90,
    database: Database = CATALOG,
) -> None:
    """Make a token for an account, on the machine of the service.

    In: an account and scopes. Out: the token, shown this once. An agent needs
    work,upload-summary.
    """
    from aegis.catalog import Catalog, accounts
    from aegis.catalog.access import scopes_of

    with Catalog.open(database).database.writing() as session:
        owner = accounts.actor_of(accounts.named(session, name))
        asked = [scope.strip() for scope in scopes.split(",") if scope.strip()] or scopes_of(owner)
        _, secret = accounts.make_token(session, owner, "command line", asked, days=days)
    Output().show(secret)
