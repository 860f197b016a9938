"""Options and output functions that the verbs of the catalog share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.output import Output, clean, pairs
from aegis.cli.parameters import Format
from aegis.errors import PolicyError

if TYPE_CHECKING:
    from aegis.service.client import Client
    from aegis.signing import PrivateKey

Url = Annotated[
    str, typer.Option("--url", envvar="AEGIS_URL", metavar="URL", help="URL of the service.")
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        envvar="AEGIS_TOKEN",
        metavar="TOKEN",
        help="Your token. Set AEGIS_TOKEN instead, so that other users cannot see it among the "
        "running commands.",
    ),
]
DataSet = Annotated[
    str, typer.Argument(metavar="DATA-SET", help="The data set's name in the catalog.")
]
RequestId = Annotated[
    str, typer.Argument(metavar="REQUEST", help="The request's number, or its first digits.")
]
_DIGITS = 32
SHORT = 8
"""Number of digits of a request number that people see; any unique start of the number works."""
Roles = Annotated[
    str,
    typer.Option(
        "--roles",
        metavar="ROLE,...",
        help="provider, operator, approver, consumer, auditor, admin.",
    ),
]
TokenDays = Annotated[
    int, typer.Option("--days", min=1, max=365, help="Days until the token expires.")
]
Account = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account.")]
Message = Annotated[
    str, typer.Option("--message", "-m", metavar="TEXT", help="The reason, for the log.")
]


def connected(url: str, token: str, key: PrivateKey | None = None) -> Client:
    """Return a client of the service; raise an error if its URL or the token is missing."""
    from aegis.service.client import connect

    if not url or not token:
        raise PolicyError(
            "You gave no service, or no token.",
            hint="Set AEGIS_URL and AEGIS_TOKEN, or give --url and --token.",
        )
    return connect(url, token, key=key)


def asked_secret(
    prompt: str, variable: str, *, twice: bool = False
) -> Callable[[typer.Context, str], str]:
    """Return a callback for an option with a secret. If the option is not given, the callback reads
    a line from a pipe, or prompts for it, with `twice` two times. Errors name the environment
    `variable` that can contain the secret.
    """

    def callback(context: typer.Context, value: str) -> str:
        if value or context.resilient_parsing:  # Tab was pressed, so nobody waits for a question
            return value
        if sys.stdin.isatty():
            entered: str = typer.prompt(prompt, hide_input=True, confirmation_prompt=twice)
            return entered
        piped = sys.stdin.readline().rstrip("\r\n")
        if not piped:
            raise PolicyError(
                f"{prompt}: none was given.",
                hint=f"Pipe it as one line, set {variable}, or run the command in a terminal.",
            )
        return piped

    return callback


def names_in(text: str) -> list[str]:
    """Split a text at its commas, and return the names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def show_rows(rows: Iterable[Mapping[str, Any]], form: Format) -> None:
    """Print rows as a table, JSON or CSV."""
    from rich.table import Table

    listed = [dict(row) for row in rows]
    if form is Format.JSON:
        Output().json(listed)
        return
    if form is Format.CSV:
        header = list(listed[0]) if listed else []
        Output().csv(header, ([_in_sheet(value) for value in row.values()] for row in listed))
        return
    table = Table(box=None, pad_edge=False)
    for name in listed[0] if listed else ("nothing",):
        table.add_column(clean(name))
    for row in listed:
        table.add_row(*(_text(name, value) for name, value in row.items()))
    Output().show(table)


def show_facts(facts: Mapping[str, Any], form: Format) -> None:
    """Print the properties of one item as lines, as JSON, or as one row of CSV."""
    row = [_text("", _in_sheet(value)) for value in facts.values()]
    if not Output(form).as_data(facts, list(facts), [row]):
        named = ((name.replace("_", " "), _text(name, value)) for name, value in facts.items())
        Output().show(pairs(named))


def _in_sheet(value: Any) -> Any:
    """Return a value for CSV. A text of others that a spreadsheet would run as a formula gets an
    apostrophe in front.
    """
    from aegis.sources.table_files import FORMULA

    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _text(name: str, value: Any) -> str:
    """Return a value as text; numbers of requests, jobs and tokens are cut to their first digits."""
    if name in ("id", "request", "job") and isinstance(value, str) and len(value) == _DIGITS:
        return value[:SHORT]
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    # Others wrote it: a purpose, a title, the name of an agent. No control character reaches the terminal.
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
