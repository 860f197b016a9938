"""Define the options for opening a table, once for all commands with a TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import open_subject, repeated, shown
from aegis.cli.options import FileEngine, TableName
from aegis.cli.output import Output
from aegis.cli.parameters import given_options, takes_records
from aegis.cli.startup import before_tables
from aegis.errors import PolicyError
from aegis.files import require_text
from aegis.options import option
from aegis.summary_formats import format_of_summary, refuse_options

if TYPE_CHECKING:
    from aegis.policy import Policy
    from aegis.sources import Reading, Source
    from aegis.summary import Summary

_POLICIES = frozenset({"policy_file", "policy"})
"""Parameters of commands that are the path of a policy."""


@dataclass(frozen=True, kw_only=True)
class FileSyntax:
    """The syntax of a text file: separators, quotes and field names. An option that the user does
    not give is None.
    """

    encoding: str | None = option(
        None, "Encoding of a text file, such as cp1252 or utf-16.", "NAME"
    )
    delimiter: str | None = option(None, "The character between fields, such as ; or tab.", "CHAR")
    quote: str | None = option(
        None,
        "The quotation mark around fields (default: a double quote); none if the file quotes "
        "no field.",
        "CHAR",
    )
    escape: str | None = option(
        None,
        "The character before a quotation mark inside a quoted field (default: a second "
        "quotation mark).",
        "CHAR",
    )
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line names the columns. With --no-header they are named c1, c2, "
            "...",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FileValues:
    """How values are written in a text file or workbook. An option that the user does not give is
    None or empty.
    """

    decimal: str | None = option(None, "The decimal mark: . or ,", "CHAR")
    thousands: str | None = option(None, "The thousands separator, such as ' in 1'000.", "CHAR")
    units: list[str] | None = option(
        None,
        "A unit that Aegis removes from numbers, such as $ or %. Repeat the option for several.",
        "TEXT",
    )
    null: list[str] | None = option(
        None, "A text that means null, such as NA. Repeat the option for several.", "TEXT"
    )
    dates: str | None = option(
        None, "How to read a date such as 03/04/2024: day-first or month-first.", "ORDER"
    )
    text: list[str] | None = option(
        None,
        "A column to read as text, such as a postcode with leading zeros. Repeat the option "
        "for several.",
        "COLUMN",
    )
    numbers: list[str] | None = option(
        None,
        "A column to read as numbers, even if two spellings such as 1 and 1.0 then become "
        "one value. Repeat the option for several.",
        "COLUMN",
    )
    sheet: str | None = option(None, "The sheet to read from a workbook.", "NAME")


def _refuse_unused(reading: Reading, subject: Source | Summary, given: str) -> None:
    """Raise `PolicyError` if the format of what was opened does not use one of these options."""
    from aegis.sources import Source

    unused: tuple[str, ...] | None
    if not isinstance(subject, Source) or subject.reading is None:
        kind, unused = "a text file or a workbook", None
    elif subject.dialect is not None:
        kind, unused = "a workbook", ("sheet",)
    else:
        kind, unused = "a text file", ("encoding", "delimiter", "quote", "escape")
    for name, value in reading.to_dict().items():
        if unused is None or name in unused:
            raise PolicyError(
                f"--{'no-' * (value is False)}{name} says how to read {kind}, and {shown(given)} "
                "is not one.",
                hint="Leave the option out.",
            )


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The user's options for opening a table. An option that the user does not give is None or
    empty.

    Options for text files override the policy's `reading`.
    """

    table_name: TableName = None
    memory_limit: str | None = option(
        None,
        "How much memory DuckDB may use, such as 4GB (default: 80 % of the machine). It "
        "writes the rest to disk (TMPDIR).",
        "SIZE",
    )
    engine: FileEngine | None = option(
        None,
        "The engine that reads TABLE: duckdb (default) or spark. For spark, TABLE is a path "
        "of Parquet files or a table in Spark's catalog.",
    )
    master: str | None = option(
        None,
        "Where Spark runs: local[4], spark://HOST:7077, yarn, k8s://... By default, Spark's "
        "configuration decides.",
        "URL",
    )
    syntax: FileSyntax
    values: FileValues

    def reading(self) -> Reading:
        """Return the options for text files and workbooks."""
        from aegis.sources import Reading

        said: dict[str, Any] = {
            name: tuple(given) if isinstance(given, list) else given
            for name, given in (vars(self.syntax) | vars(self.values)).items()
            if given is not None
        }
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
        """Open the table or summary at a path or URL.

        Warnings about how it was read go to standard error.

        Raises
        ------
        PolicyError
            An option is for a format other than the format of the table.
        """
        from aegis.sources import Source

        reading = self.reading()
        subject = open_subject(
            given,
            name=self.table_name,
            memory_limit=self.memory_limit,
            engine=self.engine,
            master=self.master,
            reading=reading.over(None if policy is None else policy.reading),
            proposing=proposing,
            verify_key=verify_key,
        )
        _refuse_unused(reading, subject, given)
        if isinstance(subject, Source):
            Output(quiet=quiet).warn(subject.notes)
        return subject

    def study_subject(
        self,
        given: str,
        policy: Policy,
        asked: Any,
        *,
        quiet: bool = False,
        verify_key: Path | None = None,
    ) -> str | Source | Summary:
        """Return the subject for a `Study`: the result of `subject`, or the path of a summary whose
        format another package adds.

        Raises
        ------
        PolicyError
            Summaries of this format do not support an option in `asked`, the record of the command.
        """
        if format_of_summary(given) is None:
            return self.subject(given, policy, quiet=quiet, verify_key=verify_key)
        refuse_options(given, given_options(asked))
        return given

    def words(self) -> list[str]:
        """Return the options that the user gave, as words of a command line."""
        words: list[str] = []
        own = {f.name: getattr(self, f.name) for f in fields(self)[:4]}
        for field, given in (own | vars(self.syntax) | vars(self.values)).items():
            name = "table" if field == "table_name" else field
            if given is False:
                words.append(f"--no-{name}")
            else:
                for value in given if isinstance(given, list) else [given]:
                    words += repeated(**{name: value})
        return words


def opens_table(command: Callable[..., None]) -> Callable[..., None]:
    """Convert a function to a command that reads a table. Each field of the function's records
    becomes an option.
    """
    return takes_records(command, _before_reading)


def _before_reading(given: Mapping[str, Any]) -> None:
    """Raise an error, before anything else is loaded, if a policy is not a readable text file."""
    for name in _POLICIES & given.keys():
        if isinstance(given[name], Path):
            require_text(given[name], "policy", PolicyError)
    before_tables()


DEFAULT = Opening(syntax=FileSyntax(), values=FileValues())
__all__ = ["DEFAULT", "Opening", "opens_table"]
