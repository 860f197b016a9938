"""Commands on accounts, tokens and rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.output import Output
from aegis.service.commands.catalog.options import SHORT, Account, TokenDays, names_in
from aegis.service.commands.catalog.verb import Facts, Rows

if TYPE_CHECKING:
    from aegis.service.client import Client

Names = Annotated[
    str, typer.Argument(metavar="ROLE,...", help="All roles that the account shall have.")
]
TokenId = Annotated[
    str, typer.Argument(metavar="TOKEN", help="Number of the token, or its first digits.")
]


def me(client: Client) -> Facts:
    """Show whose token you use, and what it may do.

    Aegis prints name, roles and scopes.
    """
    return client.me()


def accounts(client: Client) -> Rows:
    """List all accounts, as an admin.

    Aegis prints the name and the roles of each account, and whether it is closed.
    """
    return [{**row, "roles": ", ".join(row["roles"])} for row in client.accounts()]


def roles(client: Client, name: Account, role_names: Names) -> None:
    """Replace the roles of an account, as an admin.

    You give an account and all roles that it shall have. The roles apply from the
    account's next call on.
    """
    changed = client.change_roles(name, names_in(role_names))
    Output().say(f"{name} is {', '.join(changed['roles']) or 'without a role'}")


def close(
    client: Client,
    name: Account,
    leave: Annotated[
        bool,
        typer.Option(
            "--leave",
            help="Also close the account if it provides data sets. They are taken out of the "
            "catalog, and the open requests for them go back to their consumers.",
        ),
    ] = False,
) -> None:
    """Close an account with its sessions and tokens, as an admin.

    Nobody can sign in with this account any more. If it provides data sets, Aegis names
    them and the open requests for them, and closes the account only with --leave.
    """
    remaining = client.close_account(name, leave=leave)
    Output().say(f"Closed {name}")
    if remaining["data_sets"]:
        returned = ", ".join(number[:SHORT] for number in remaining["requests"]) or "none"
        Output().say(f"Out of the catalog: {', '.join(remaining['data_sets'])}")
        Output().say(f"Requests that went back to their consumers: {returned}")


def tokens(client: Client) -> Rows:
    """List your tokens.

    Aegis prints number, name, scopes and last day of each token. It does not store the
    secrets of tokens, so it cannot show them.
    """
    keys = ("id", "name", "scopes", "expires", "revoked")
    rows = client.tokens()
    return [{key: row[key] for key in keys} | {"scopes": ",".join(row["scopes"])} for row in rows]


def new_token(
    client: Client,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call the token.")],
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes", metavar="SCOPE,...", help="Rights of the token, among your own rights."
        ),
    ],
    days: TokenDays = 90,
) -> None:
    """Make another token for your account; you sign in with a token that you have.

    You give a name and scopes; your present token must have these scopes, too. Aegis
    prints the new token once and never again.
    """
    Output().show(client.make_token(name, names_in(scopes), days=days)["secret"])


def end_token(client: Client, number: TokenId) -> None:
    """End one of your tokens.

    You give the number of the token, as `aegis catalog tokens` lists it. Nobody can use the token
    any more.
    """
    from aegis.service.catalog.errors import CatalogError

    matched = [row["id"] for row in client.tokens() if row["id"].startswith(number)]
    if len(matched) != 1:
        raise CatalogError(
            f"{'Several' if matched else 'None'} of your tokens begin with {number!r}.",
            hint="See their numbers: aegis catalog tokens.",
        )
    client.revoke_token(matched[0])
    Output().say(f"Ended token {number}")
