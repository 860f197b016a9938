"""Generate the reference of the command line from the commands.

Run `python -m aegis.cli.reference docs/reference/cli.md`. A test fails if the file in the
repository is not up to date.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
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
    parts = [HEAD, "```text", ABOUT, "```", *_everywhere(group)]
    for name, module in COMMANDS.items():
        parts.extend(_command(name, module, _parameters(group, name)))
    return "\n".join(parts).rstrip() + "\n"


EVERYWHERE = """
## Options of every command

Where standard output is full or closed, the exit code is 0 once the files are written, else 2 or, for a
closed pipe, 141. `--help` explains the options of a command that people use first and names the others;
`--help-all` explains all of them. `check` and `verify` are other words for `audit`, `audit-summary` for
`leak`, and `audit-together` for `compose`.

These options may be given anywhere on the line. Defaults of any option may be kept in a file: see
[install](../how-to/install.md#defaults-from-a-file).

| option | meaning | default |
|---|---|---|"""


def _everywhere(group: Any) -> Iterator[str]:
    """Yield the lines on the options that precede any command."""
    yield EVERYWHERE
    for param in group.params:
        if {"--verbose", "--log-file", "--version"} & set(param.opts):
            yield _parameter(param)


def _parameters(group: Any, name: str) -> list[Any]:
    """Return the arguments and options of a command, which may be in a group."""
    command = group
    for part in name.split():
        command = command.commands[part]
    return list(command.params)


def _command(name: str, module: Any, parameters: list[Any]) -> Iterator[str]:
    """Yield the lines of one command."""
    yield f"\n## aegis {name}\n"
    yield inspect.cleandoc(module.command.__doc__ or "")
    yield "\n```sh"
    yield from module.EXAMPLES
    yield "```\n"
    yield "| argument or option | meaning | default |"
    yield "|---|---|---|"
    for parameter in parameters:
        if parameter.name not in ("help", "help_all"):
            yield _parameter(parameter)


def _parameter(parameter: Any) -> str:
    """Return the table row of one argument or option."""
    metavar = (parameter.metavar or "").replace("|", "\\|")
    if parameter.param_type_name == "argument":
        shown = f"`{metavar}`"
    else:
        value = f" {metavar}" if metavar else ""
        shown = f"`{', '.join((*parameter.opts, *parameter.secondary_opts))}{value}`"
    return f"| {shown} | {_cell(parameter.help)} | {_default(parameter)} |"


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
