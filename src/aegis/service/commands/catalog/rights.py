"""Commands on accounts, tokens and rights."""

from __future__ import annotations

from typing import Annotated

import typer

from aegis.cli.options import Format, FormatOption
from aegis.cli.output import Output
from aegis.service.commands.catalog.options import Token, Url, connected, show_facts, show_rows

Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account.")]
Names = Annotated[
    str, typer.Argument(metavar="ROLE,...", help="All roles that the account shall have.")
]
TokenId = Annotated[
    str, typer.Argument(metavar="TOKEN", help="Number of the token, or its first digits.")
]


def me(url: Url = "", token: Token = "", format: FormatOption = Format.TABLE) -> None:  # noqa: A002
    """Show whose token you use, and what it may do.

    Aegis prints name, roles and scopes.
    """
    with connected(url, token) as client:
        show_facts(client.me(), format)


def accounts(url: Url = "", token: Token = "", format: FormatOption = Format.TABLE) -> None:  # noqa: A002
    """List all accounts, as an admin.

    Aegis prints the name and the roles of each account, and whether it is closed.
    """
    with connected(url, token) as client:
        rows = [{**row, "roles": ", ".join(row["roles"])} for row in client.accounts()]
    show_rows(rows, format)


def roles(name: Account, given: Names, url: Url = "", token: Token = "") -> None:
    """Give an account other roles, as an admin.

    You give an account and all roles that it shall have. The roles apply from the
    account's next call on.
    """
    wanted = [role.strip() for role in given.split(",") if role.strip()]
    with connected(url, token) as client:
        changed = client.change_roles(name, wanted)
    Output().say(f"{name} is {', '.join(changed['roles']) or 'without a role'}")


def close(name: Account, url: Url = "", token: Token = "") -> None:
    """Close an account with its sessions and tokens, as an admin.

    Nobody can sign in with this account any more.
    """
    with connected(url, token) as client:
        client.close_account(name)
    Output().say(f"Closed {name}")


def tokens(url: Url = "", token: Token = "", format: FormatOption = Format.TABLE) -> None:  # noqa: A002
    """List your tokens.

    Aegis prints number, name, scopes and last day of each token. It does not store the
    secrets of tokens, so it cannot show them.
    """
    keys = ("id", "name", "scopes", "expires", "revoked")
    with connected(url, token) as client:
        rows = [{key: row[key] for key in keys} for row in client.tokens()]
    show_rows([{**row, "scopes": ",".join(row["scopes"])} for row in rows], format)


def new_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call the token.")],
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes", metavar="SCOPE,...", help="Rights of the token, among your own rights."
        ),
    ],
    days: Annotated[
        int, typer.Option("--days", min=1, max=365, help="Days until the token expires.")
    ] = 90,
    url: Url = "",
    token: Token = "",
) -> None:
    """Make another token for your account, with a token that you have.

    You give a name and scopes; your present token must have these scopes, too. Aegis
    prints the new token once and never again.
    """
    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    with connected(url, token) as client:
        Output().show(client.make_token(name, wanted, days=days)["secret"])


def end_token(number: TokenId, url: Url = "", token: Token = "") -> None:
    """End one of your tokens.

    You give the number of the token, as `aegis catalog tokens` lists it. Nobody can use the token
    any more.
    """
    from aegis.service.catalog.errors import CatalogError

    with connected(url, token) as client:
        matched = [row["id"] for row in client.tokens() if row["id"].startswith(number)]
        if len(matched) != 1:
            raise CatalogError(
                f"{len(matched)} of your tokens begin with {number!r}.",
                hint="Give the number of one: aegis catalog tokens.",
            )
        client.revoke_token(matched[0])
    Output().say(f"Ended token {number}")
