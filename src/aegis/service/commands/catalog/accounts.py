"""Commands for the machine of the service: accounts, tokens, copies, and comparison with the log."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.output import Output
from aegis.errors import PolicyError
from aegis.service.commands.catalog.options import (
    Roles,
    Token,
    TokenDays,
    asked_secret,
    connected,
    names_in,
)
from aegis.service.commands.service_options import (
    CATALOG,
    MOST_DAYS,
    Database,
    Objects,
    require_catalog,
)

if TYPE_CHECKING:
    from aegis.service.catalog import Catalog


def account(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.")],
    roles: Roles,
    password: Annotated[
        str,
        typer.Option(
            "--password",
            envvar="AEGIS_PASSWORD",
            callback=asked_secret("Password", "AEGIS_PASSWORD", twice=True),
            help="The account's password; by default AEGIS_PASSWORD, else a line that you pipe. Otherwise "
            "Aegis prompts for it.",
        ),
    ] = "",
    database: Database = CATALOG,
    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="URL",
            help="Make the account at this service, as an admin, instead of in --database.",
        ),
    ] = "",
    token: Token = "",
) -> None:
    """Make an account: on the machine of the service, or with --url as an admin.

    You give a name and roles. Make the first account an admin. The admin makes the
    other accounts on the page "Accounts".
    """
    from aegis.service.catalog import Catalog, accounts

    _require_one_place(context, url)
    if url:
        with connected(url, token) as client:
            client.make_account(name, names_in(roles), password)
        Output().say(f"Made {name} ({', '.join(names_in(roles))})")
        return
    accounts.check_new(name, names_in(roles), password)  # before a new catalog is made
    with Catalog.open(database).database.writing() as session:
        new_account = accounts.create(session, name, names_in(roles), password=password)
    Output().say(f"Made {new_account.name} ({', '.join(new_account.roles)})")


def _require_one_place(context: typer.Context, url: str) -> None:
    """Raise `PolicyError` if options name both a service and a database, or a token but no service.
    A token in the environment may be for other commands.
    """
    sources = {name: context.get_parameter_source(name) for name in ("database", "token")}
    typed = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    if url and "database" in typed:
        raise PolicyError(
            "The options --url and --database name two places for the account.",
            hint="Give --url to make it at a service, or --database to make it in that catalog.",
        )
    if not url and "token" in typed:
        raise PolicyError(
            "The option --token needs --url: a catalog on this machine asks for no token.",
            hint="Name the service with --url, or leave out --token.",
        )


def token(
    name: Annotated[
        str, typer.Argument(metavar="ACCOUNT", help="The account whose rights the token has.")
    ],
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes",
            metavar="SCOPE,...",
            help="Rights of the token; by default all rights of its owner.",
        ),
    ] = "",
    days: TokenDays = 90,
    database: Database = CATALOG,
) -> None:
    """Make a token for an account, on the machine of the service.

    You give an account and scopes. Aegis prints the token once and never again. An
    agent needs the scopes work,upload-summary.
    """
    from aegis.service.catalog import accounts
    from aegis.service.catalog.access import scopes_of

    with _opened(database, None).database.writing() as session:
        owner = accounts.actor_of(accounts.named(session, name))
        rights = names_in(scopes) or scopes_of(owner)
        _, secret = accounts.make_token(session, owner, "command line", rights, days=days)
    Output().show(secret)


def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder for the copy.")],
    database: Database = CATALOG,
    objects: Objects = None,
) -> None:
    """Copy a catalog in SQLite while it runs.

    The copy is a folder with the catalog's database and its files.
    """
    from aegis.service.catalog import backup as copies

    count = copies.backup(database, objects or f"{database}.objects", folder)
    Output().say(f"Copied the catalog and {count:,} objects to {folder}")


def restore(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A copy, as aegis catalog backup makes it.")
    ],
    database: Database = CATALOG,
    objects: Objects = None,
) -> None:
    """Make a catalog from a copy, at a place that has no catalog yet.

    You give the folder that `aegis catalog backup` wrote. Then check the catalog with
    `aegis catalog check`.
    """
    from aegis.service.catalog import backup as copies

    count = copies.restore(folder, database, objects or f"{database}.objects")
    Output().say(f"Restored the catalog and {count:,} objects to {database}")


def clean(
    days: Annotated[
        float,
        typer.Option(
            "--keep-days",
            metavar="DAYS",
            min=0,
            max=MOST_DAYS,
            help="How many days to keep the file of a release after the release ended.",
        ),
    ],
    database: Database = CATALOG,
    objects: Objects = None,
) -> None:
    """Remove files that are no longer needed, on the machine of the service.

    You give the number of days to keep files of ended releases. Aegis removes older
    files, files that no record names, and ended sessions, and prints how many. It keeps
    certificates and the log."""
    from aegis.service.catalog import retention

    removed = retention.clean(_opened(database, objects), timedelta(days=days))
    Output().say(
        f"Removed {removed.files:,} files of ended releases, {removed.orphans:,} files that "
        f"no record names, {removed.sessions:,} ended sessions"
    )


def _opened(database: str, objects: str | None) -> Catalog:
    """Open an existing catalog; raise an error if there is none."""
    from aegis.service.catalog import Catalog

    require_catalog(database)
    return Catalog.open(database, objects)


def check(database: Database = CATALOG, objects: Objects = None) -> None:
    """Compare the state of a catalog with its log, on the machine of the service.

    Aegis lists every difference between the tables and the log, and every file that is
    missing or was changed. If there is a difference, the exit code is 1.
    """
    from aegis.service.catalog import consistency

    catalog = _opened(database, objects)
    with catalog.database.reading() as session:
        wrong = consistency.compare(session, catalog.objects)
    if wrong:
        Output().show(*wrong)
        raise typer.Exit(1)
    Output().show("Database and files agree with the log.")
