"""Describe a verb of `aegis catalog` for the command line, and connect it to a service."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_type_hints

from aegis.cli.parameters import Format, FormatOption, takes_records
from aegis.service.commands.catalog.options import Token, Url, connected, show_facts, show_rows

Facts = Mapping[str, Any]
Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Verb:
    """A subcommand of `aegis catalog` (a verb), with examples for `--help`. If the first parameter
    of `work` is `client`, the subcommand connects to a service before, and prints what the function
    returns: `Facts` of one item, or `Rows`.
    """

    work: Callable[..., Rows | Facts | None]
    EXAMPLES: tuple[str, ...]

    @property
    def command(self) -> Callable[..., None]:
        """The function that the command line runs, with its options as annotations for typer."""
        if next(iter(inspect.signature(self.work).parameters)) == "client":
            return takes_records(_connecting(self.work))
        return self.work  # type: ignore[return-value]


def _connecting(work: Callable[..., Rows | Facts | None]) -> Callable[..., None]:
    """Return a command that connects to the service, calls `work` with the client, and prints what
    it returns, unless it has a parameter `format`. Options of the command have address, token and
    format.
    """
    hints = get_type_hints(work, localns={"Client": object}, include_extras=True)

    _, *parameters = inspect.signature(work).parameters.values()
    arguments = [p.replace(annotation=hints[p.name]) for p in parameters if p.name != "format"]
    prints = len(arguments) < len(parameters)

    def connect(
        url: Url = "",
        token: Token = "",
        format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
        **values: Any,
    ) -> None:
        with connected(url, token) as client:
            answer = work(client, **values, **({"format": format} if prints else {}))
            if isinstance(answer, Mapping):
                show_facts(answer, format)
            elif answer is not None:
                show_rows(answer, format)

    *connection, form, _ = inspect.signature(connect, eval_str=True).parameters.values()
    listed = arguments + connection + ([form] if prints or hints["return"] is not NoneType else [])
    command = functools.wraps(work)(connect)
    command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in listed}
    return command
