"""Print registries, for people and programs: as a list, or one entry in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from aegis.cli.options import Format
from aegis.cli.output import Output
from aegis.words import default_value

SCHEMA = 1
"""Version of the JSON form of a list; it changes when a field changes its meaning."""

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="Name of the entry to explain. Without it, Aegis lists all."
    ),
]


def print_list(
    shell: Output, entries: Sequence[dict[str, Any]], shown: Sequence[str], more: str
) -> None:
    """Print all entries of a registry.

    Parameters
    ----------
    shell
        The output.
    entries
        One mapping per entry, all with the same keys.
    shown
        Keys of the columns of the table; the last column has prose.
    more
        The command that explains one entry.
    """
    if shell.format is Format.JSON:
        shell.json({"schema": SCHEMA, "entries": entries})
    elif shell.format is Format.CSV:
        header = list(entries[0])
        shell.csv(header, ([_cell(entry[key]) for key in header] for entry in entries))
    else:
        from aegis.cli.tables import Column, line, table

        columns = [Column(key, wraps=key == shown[-1]) for key in shown]
        shell.show(table(columns, ([_cell(entry[key]) for key in shown] for entry in entries)))
        shell.suggest(line(f"\n{more} NAME explains one, in full.", style="dim"))


def print_entry(shell: Output, entry: dict[str, Any], example: str) -> None:
    """Print one entry in full, with an example for the policy."""
    if shell.format is Format.JSON:
        shell.json({"schema": SCHEMA, "entries": [entry]})
        return
    if shell.format is Format.CSV:
        shell.csv(list(entry), [[_cell(value) for value in entry.values()]])
        return
    from aegis.cli.tables import heading, line, pairs

    plain = {key: value for key, value in entry.items() if key not in ("parameters", "example")}
    shell.show(
        pairs((key.replace("_", " "), _cell(value)) for key, value in plain.items() if value != "")
    )
    if entry.get("parameters"):
        shell.show(heading("Parameters"))
        shell.show(
            pairs((parameter["name"], _parameter(parameter)) for parameter in entry["parameters"])
        )
    shell.show(heading("In a policy"), line("\n".join(f"  {text}" for text in example.split("\n"))))


def _parameter(parameter: dict[str, Any]) -> str:
    if parameter["required"]:
        return f"{parameter['description']} (required)"
    default = default_value(parameter["default"])
    return f"{parameter['description']}{f' (default {default})' if default else ''}"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        named = [item["name"] if isinstance(item, dict) else str(item) for item in value]
        return ", ".join(named)
    return "" if value is None else str(value)
