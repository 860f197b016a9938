"""How a table is opened: options that every command with a TABLE takes, declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import open_subject, repeated
from aegis.cli.lean import before_tables
from aegis.cli.options import EngineOption, Master, MemoryLimit, TableName
from aegis.cli.output import Output
from aegis.errors import PolicyError
from aegis.files import require_text

if TYPE_CHECKING:
    from aegis.policy import Policy
    from aegis.sources import Reading, Source
    from aegis.summary import Summary

PANEL = "How the table is read"
_POLICIES = frozenset({"policy_file", "policy"})
"""Parameters of commands that are the path of a policy."""


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=PANEL)


@dataclass(frozen=True)
class Opening:
    """What a user says of how a table is opened; None or empty for nothing.

    What is said of text files stands before what the policy says under `reading`.
    """

    table_name: TableName = None
    memory_limit: MemoryLimit = None
    engine: EngineOption = None
    master: Master = None
    encoding: Annotated[
        str | None,
        _option("--encoding", "NAME", "Encoding of a text file, such as cp1252 or utf-16."),
    ] = None
    delimiter: Annotated[
        str | None,
        _option("--delimiter", "CHAR", "The character between fields; tab for a tabulator."),
    ] = None
    quote: Annotated[
        str | None,
        _option(
            "--quote",
            "CHAR",
            "The character around fields that are quoted: a double quote by default; none "
            "where no field is.",
        ),
    ] = None
    escape: Annotated[
        str | None,
        _option(
            "--escape",
            "CHAR",
            "The character that goes before a quote within a quoted field: by default a "
            "second quote.",
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line names the columns; without one they are c1, c2, ...",
            rich_help_panel=PANEL,
        ),
    ] = None
    decimal: Annotated[str | None, _option("--decimal", "CHAR", "The decimal mark: . or ,")] = None
    thousands: Annotated[
        str | None, _option("--thousands", "CHAR", "The separator of thousands.")
    ] = None
    units: Annotated[
        list[str] | None,
        _option(
            "--units",
            "TEXT",
            "What stands before or behind all numbers of a column and is no part of them, such as $ "
            "or %; may be given again.",
        ),
    ] = None
    null: Annotated[
        list[str] | None,
        _option("--null", "TEXT", "A text that means null, such as NA; may be given again."),
    ] = None
    dates: Annotated[
        str | None,
        _option("--dates", "ORDER", "Order of dates such as 03/04/2024: day-first or month-first."),
    ] = None
    text: Annotated[
        list[str] | None,
        _option("--text", "COLUMN", "A column that is read as text; may be given again."),
    ] = None
    numbers: Annotated[
        list[str] | None,
        _option(
            "--numbers",
            "COLUMN",
            "A column that is read as numbers although 1 and 1.0 then become one value; may be "
            "given again.",
        ),
    ] = None
    sheet: Annotated[str | None, _option("--sheet", "NAME", "The sheet of a workbook.")] = None

    def reading(self) -> Reading:
        """Return what is said of text files and workbooks."""
        from aegis.sources import Reading

        said: dict[str, Any] = {}
        for name in _READING:
            given = getattr(self, name)
            if given is not None:
                said[name] = tuple(given) if isinstance(given, list) else given
        return Reading(**said)

    def subject(
        self,
        given: str,
        policy: Policy | None = None,
        *,
        quiet: bool = False,
        proposing: bool = False,
        verify_key: Path | None = None,
    ) -> Source | Summary:
        """Return the summary or the opened table that a path or URL names; what its user should
        know of how it was read goes to standard error."""
        from aegis.sources import Source

        subject = open_subject(
            given,
            name=self.table_name,
            memory_limit=self.memory_limit,
            engine=self.engine,
            master=self.master,
            reading=self.reading().over(None if policy is None else policy.reading),
            proposing=proposing,
            verify_key=verify_key,
        )
        if isinstance(subject, Source):
            Output(quiet=quiet).warn(subject.notes)
        return subject

    def words(self) -> list[str]:
        """Return the options as they were given, to be given again."""
        words: list[str] = []
        for field in fields(self):
            name = "table" if field.name == "table_name" else field.name
            given = getattr(self, field.name)
            if given is False:
                words.append(f"--no-{name}")
            else:
                for value in given if isinstance(given, list) else [given]:
                    words += repeated(**{name: value})
        return words


_READING = tuple(
    field.name
    for field in fields(Opening)
    if field.name not in ("table_name", "memory_limit", "engine", "master")
)


def opens_table(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameter `opening` is an option for each field of `Opening`."""
    own = inspect.signature(command, eval_str=True)
    options = inspect.signature(Opening, eval_str=True).parameters.values()
    parameters = []
    for parameter in own.parameters.values():
        if parameter.name == "opening":
            parameters += [option.replace(kind=parameter.kind) for option in options]
        else:
            parameters.append(parameter)
    names = [option.name for option in options]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        for name in _POLICIES & given.keys():  # before all that reads a table is loaded for it
            if isinstance(given[name], Path):
                require_text(given[name], "policy", PolicyError)
        before_tables()
        opening = Opening(**{name: given.pop(name) for name in names if name in given})
        command(**given, opening=opening)

    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_options


DEFAULT = Opening()
__all__ = ["DEFAULT", "Opening", "opens_table"]
