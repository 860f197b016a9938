"""Generate the reference of the command line from the commands.

Run `python -m aegis.cli.reference docs/reference/cli.md`. A test fails if the file in the
repository is out of date.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from aegis.cli.main import ABOUT, COMMANDS, app
from aegis.files import write_text
from aegis.words import default_value

HEAD = """# Command line

Written by `python -m aegis.cli.reference docs/reference/cli.md` from the commands themselves: do
not edit. The JSON that `--format json` prints is described in [json.md](json.md).
"""


def reference() -> str:
    """Return the reference as Markdown."""
    group: Any = typer.main.get_command(app)
    rows = {name: _rows(group, name) for name in COMMANDS}
    commands = Counter(row for table in rows.values() for row in table.values())
    shared = {row for row, n in commands.items() if n >= MANY and row.startswith("| `--")}
    parts = [HEAD, "```text", ABOUT, "```", *_everywhere(group, rows, shared)]
    for name, module in COMMANDS.items():
        parts.extend(_command(name, module, rows[name], shared))
    return "\n".join(parts).rstrip() + "\n"


MANY = 10
"""If at least this many commands have an option, the reference explains it once for all of them."""
COLUMNS = ("| {} | meaning | default |", "|---|---|---|")
EVERYWHERE = """
## Options of every command

`--help` explains the options that people use first; `--help-all` explains all. You can keep defaults of
options in a file: see [install](../how-to/install.md#defaults-from-a-file). `check` and `verify` are other
names for `audit`, `audit-summary` for `leak`, and `audit-together` for `compose`.

If standard output is full or closed after Aegis has written the files, the exit code is 0. If it happens
earlier, the exit code is 141 for a closed pipe and 2 otherwise.

You can give these options anywhere on the line:
"""
SHARED = """
## Options of many commands

The list of a command names the options that it shares with others. This table explains them. The options
from `--table` down to `--sheet`, in the order of this table, say where your data is and how to read it.
"""


def _everywhere(
    group: Any, rows: Mapping[str, Mapping[str, str]], shared: set[str]
) -> Iterator[str]:
    """Yield the lines on global options, and on options that many commands have (`shared`). `rows`
    has the table row of each option, by command.
    """
    yield from (EVERYWHERE, *_head("option"))
    for param in group.params:
        if {"--verbose", "--log-file", "--version"} & set(param.opts):
            yield _parameter(param)
    yield from (SHARED, *_head("option"))
    every = (row for table in rows.values() for row in table.values())
    yield from dict.fromkeys(row for row in every if row in shared)


def _rows(group: Any, name: str) -> dict[str, str]:
    """Return the row on each argument and option of a command, such as `jobs list`, in Markdown."""
    command = group
    for part in name.split():
        command = command.commands[part]
    return {
        _name(parameter): _parameter(parameter)
        for parameter in command.params
        if parameter.name not in ("help", "help_all")
    }


def _command(name: str, module: Any, rows: Mapping[str, str], shared: set[str]) -> Iterator[str]:
    """Yield the lines on a command. `rows` has a line for each option; `shared` ones are named."""
    yield f"\n## aegis {name}\n"
    yield inspect.cleandoc(module.command.__doc__ or "")
    yield from ("\n```sh", *module.EXAMPLES, "```\n")
    unshared = [row for row in rows.values() if row not in shared]
    if unshared:
        yield from (*_head("argument or option"), *unshared, "")
    others = [f"`{option}`" for option, row in rows.items() if row in shared]
    if "`--sheet`" in others:
        first, last = others.index("`--table`"), others.index("`--sheet`")
        others[first : last + 1] = ["`--table` to `--sheet`"]
    if others:
        yield f"[Options that many commands share](#options-of-many-commands): {', '.join(others)}."


def _head(first: str) -> list[str]:
    """Return the first two lines of a table in Markdown; `first` is the title of its first column."""
    return [line.format(first) for line in COLUMNS]


def _name(parameter: Any) -> str:
    """Return the argument as the usage shows it, or the first long name of an option."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    return next(str(name) for name in parameter.opts if name.startswith("--"))


def _parameter(parameter: Any) -> str:
    """Return the row of a Markdown table that describes one argument or option."""
    metavar = (parameter.metavar or "").replace("|", "\\|")
    if parameter.param_type_name == "argument":
        usage = f"`{metavar}`"
    else:
        value = f" {metavar}" if metavar else ""
        usage = f"`{', '.join((*parameter.opts, *parameter.secondary_opts))}{value}`"
    return f"| {usage} | {_cell(parameter.help)} | {_default(parameter)} |"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    written = "on" if value is True else default_value(None if value is False else value)
    return f"`{written}`" if written else ""


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), reference())
