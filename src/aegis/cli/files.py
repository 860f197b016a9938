"""Check, open and list the files that commands read and write, with the options for opening a
table.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.output import Output, heading, line, shown_location
from aegis.cli.parameters import FileEngine, TableName, given_options, takes_records
from aegis.cli.startup import before_tables
from aegis.errors import DataError, PolicyError
from aegis.files import (
    BUNDLE,
    TABLE_FORMATS,
    check_output,
    format_of,
    leftovers,
    require_text,
    spare_input,
)
from aegis.options import option
from aegis.registry import format_of_summary, refuse_added, refuse_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.policy import Policy
    from aegis.sources import Reading, Source
    from aegis.summary import Summary

YAML = (".yaml", ".yml")
HTML = (".html", ".htm")
REPORT = (*HTML, ".pdf")
JSON = (".json",)


def open_subject(
    location: str,
    *,
    name: str | None = None,
    memory_limit: str | None = None,
    engine: FileEngine | None = None,
    master: str | None = None,
    verify_key: Path | None = None,
    reading: Reading | None = None,
    proposing: bool = False,
) -> Source | Summary:
    """Open the table or the summary at a path, glob or URL.

    `memory_limit` holds for the embedded engine from now on. `verify_key` must verify a summary's
    signature. `proposing` tells whether more reading options may be proposed (see
    `aegis.sources.open_proposing`).
    """
    refuse_added(location)
    elsewhere = engine is not None and engine.elsewhere
    if memory_limit is not None and elsewhere:
        raise PolicyError(
            "--memory-limit works only with the embedded engine.",
            hint="Set spark.driver.memory and spark.executor.memory in Spark's configuration.",
        )
    if memory_limit is not None:
        from aegis.sources import limit_memory

        limit_memory(memory_limit)
    if is_bundle(location):
        if engine is not None or master is not None:
            raise PolicyError(
                f"{location} is a summary, and engines read only tables.",
                hint="Leave out --engine and --master.",
            )
        return read_summary(location, verify_key)
    if verify_key is not None:
        raise PolicyError(
            f"{shown_location(location)} is a table, and tables are not signed.",
            hint="Leave out --verify-key: it checks summaries (.aegis).",
        )
    from aegis.sources import open_proposing, open_table

    if proposing and name is None and not elsewhere and master is None and "://" not in location:
        return open_proposing(location, reading)
    return open_table(
        location, name=name, engine=engine and engine.value, master=master, reading=reading
    )


def read_summary(path: str | Path, verify_key: Path | None) -> Summary:
    """Read a summary; `verify_key` must verify its signature, if given."""
    from aegis.signing import load_public_key
    from aegis.summary import load_bundle

    key = None if verify_key is None else load_public_key(verify_key)
    return load_bundle(path, verify_key=key)


def is_bundle(location: str) -> bool:
    """Return whether a path names a summary file."""
    return location.lower().endswith(BUNDLE)


def check_outputs(
    outputs: Sequence[tuple[str | Path | None, tuple[str, ...] | None]],
    *,
    force: bool,
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Raise an error, before any work is done, unless every output can be written and all have
    different names.

    `outputs` are paths, each with the file extensions that it may have (None: any). `force` allows
    existing files, but no output may be one of the `inputs`. No table may be inside a folder that
    is read, because the next run would read it as data.
    """
    read = {Path(path).resolve() for path in inputs if path is not None}
    resolved_paths: set[Path] = set()
    for named, formats in outputs:
        if named is None:
            continue
        path = Path(named)
        resolved = path.resolve()
        spare_input(read, path)
        if format_of(path) in TABLE_FORMATS and not read.isdisjoint(resolved.parents):
            raise PolicyError(
                f"{path} lies in the folder that is read.",
                hint="Write it somewhere else: the next run would read it as data.",
            )
        check_output(path, force=force, formats=formats)
        _remove_leftovers(path)
        if resolved in resolved_paths:
            raise PolicyError(f"{path} is named for two outputs.", hint="Give each its own name.")
        resolved_paths.add(resolved)


def _remove_leftovers(path: Path) -> None:
    """Delete the files that a killed run left behind, and warn the user."""
    for leftover in leftovers(path):
        leftover.unlink(missing_ok=True)
        Output().warn(
            [f"An earlier run that was killed had left {leftover}, which nobody verified: deleted."]
        )


def written(paths: Sequence[str | Path | None]) -> list[RenderableType]:
    """Return the line that lists the written files with their sizes."""
    from rich.filesize import decimal

    existing = [path for path in paths if path is not None]
    if not existing:
        return []
    sizes = [_bytes(path) for path in existing]
    size_texts = ("" if length is None else f" ({decimal(length)})" for length in sizes)
    files = (f"{path}{size}" for path, size in zip(existing, size_texts, strict=True))
    return [heading(f"Written: {', '.join(files)}")]


def written_dict(paths: Sequence[str | Path | None]) -> list[dict[str, Any]]:
    """Return the paths and sizes of the written files as JSON values."""
    return [{"path": str(p), "bytes": _bytes(p)} for p in paths if p is not None]


def _bytes(path: str | Path) -> int | None:
    """Return the bytes of a file, or of all files of a folder; None if it is not on this machine."""
    local = Path(path)
    if local.is_dir():
        return sum(part.stat().st_size for part in local.rglob("*") if part.is_file())
    return local.stat().st_size if local.exists() else None


def unused(path: str | Path) -> str:
    """Return an unused file name: `path` itself, or `path` with a number if the file exists."""
    preferred = Path(path)
    names = (preferred.with_stem(f"{preferred.stem}-{number}") for number in count(2))
    return str(preferred if not preferred.exists() else next(n for n in names if not n.exists()))


def repeated(**options: object) -> list[str]:
    """Return options as words of a command line, without those that are None or off.

    `_` in a name stands for `-`, and a name of one letter is short. A value is a switch, a text, or a
    list of names; for a list of paths, the option is repeated.
    """
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = f"{'-' if len(name) == 1 else '--'}{name.replace('_', '-')}"
        if isinstance(value, list) and value and isinstance(value[0], Path):
            words += [word for path in value for word in (option, str(path))]
            continue
        words.append(option)
        if isinstance(value, list | tuple):
            words.append(",".join(map(str, value)))
        elif value is not True:
            words.append(f"{value:.15g}" if isinstance(value, float) else str(value))
    return words


def next_step(why: str, *words: str | Path, **options: object) -> list[RenderableType]:
    """Return the next step: a sentence without its full stop, and a command to copy.

    `words` follow `aegis`, and then the `options`, as `repeated` takes them. A long command is divided
    into lines before options, and before a table with a long name.
    """
    every = (*words, *repeated(**options))
    quoted = [_program(), *(shlex.quote(shown_location(str(word))) for word in every)]
    command = "  " + " ".join(quoted)
    if len(command) > 78:
        parts = [quoted[:2], quoted[2:3]]
        for word in quoted[3:]:
            parts.append([word]) if word.startswith("-") else parts[-1].append(word)
        lines = [" ".join(parts[0])]
        for part in map(" ".join, parts[1:]):
            if len(lines[-1]) + len(part) < 72:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
        command = "  " + " \\\n    ".join(lines)
    return [heading(f"Next: {why}"), line(command)]


def _program() -> str:
    """Return the words that call this program: `aegis`, or its path if the shell does not find it."""
    called = Path(sys.argv[0])
    callable_by_name = called.name != "aegis" or shutil.which("aegis") is not None
    return "aegis" if callable_by_name else shlex.quote(str(called))


_POLICIES = frozenset({"policy_file", "policy"})
"""Parameters of commands that are the path of a policy."""


@dataclass(frozen=True, kw_only=True)
class FileSyntax:
    """The syntax of a text file: separators, quotes and field names; None if not given."""

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
    """How values are written in a text file or workbook; None or empty if not given."""

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


def _refuse_unused(reading: Reading, subject: Source | Summary, location: str) -> None:
    """Refuse options in `reading` that have no effect on the format of the table."""
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
                f"--{'no-' * (value is False)}{name} says how to read {kind}, and {shown_location(location)} "
                "is not one.",
                hint="Leave the option out.",
            )


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The user's options for opening a table; None or empty if they are not given. Options for text
    files override the policy's `reading`.
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

        options: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in (vars(self.syntax) | vars(self.values)).items()
            if value is not None
        }
        return Reading(**options)

    def subject(
        self,
        location: str,
        policy: Policy | None = None,
        *,
        quiet: bool = False,
        proposing: bool = False,
        verify_key: Path | None = None,
    ) -> Source | Summary:
        """Open the table or summary at a path or URL. Warnings about how it was read go to standard
        error, unless `quiet`. `proposing` says whether more reading options may be proposed. Raise
        `PolicyError` if an option is for another format.
        """
        from aegis.sources import Source

        reading = self.reading()
        subject = open_subject(
            location,
            name=self.table_name,
            memory_limit=self.memory_limit,
            engine=self.engine,
            master=self.master,
            reading=reading.over(None if policy is None else policy.reading),
            proposing=proposing,
            verify_key=verify_key,
        )
        _refuse_unused(reading, subject, location)
        if isinstance(subject, Source):
            Output(quiet=quiet).warn(subject.notes)
        return subject

    def source(
        self,
        location: str,
        policy: Policy | None = None,
        *,
        quiet: bool = False,
        proposing: bool = False,
    ) -> Source:
        """Open a table as `subject` does; raise `DataError` if it is a summary."""
        from aegis.sources import Source

        subject = self.subject(location, policy, quiet=quiet, proposing=proposing)
        if not isinstance(subject, Source):
            raise DataError(
                f"{location} is a summary, which holds no rows.",
                hint="Give the table that it was made from.",
            )
        return subject

    def study_subject(
        self,
        location: str,
        policy: Policy,
        options: Any,
        *,
        quiet: bool = False,
        verify_key: Path | None = None,
    ) -> str | Source | Summary:
        """Return the subject for a `Study`: the result of `subject`, or the path of a summary whose
        format another package adds. Raise `PolicyError` if that format does not support one of the
        `options`.
        """
        if format_of_summary(location) is None:
            return self.subject(location, policy, quiet=quiet, verify_key=verify_key)
        refuse_options(location, given_options(options))
        return location

    def words(self) -> list[str]:
        """Return the options for opening a table that the user gave, as words of a command line."""
        words: list[str] = []
        table_options = {f.name: getattr(self, f.name) for f in fields(self)[:4]}
        for field, setting in (table_options | vars(self.syntax) | vars(self.values)).items():
            name = "table" if field == "table_name" else field
            if setting is False:
                words.append(f"--no-{name}")
            else:
                for value in setting if isinstance(setting, list) else [setting]:
                    words += repeated(**{name: value})
        return words


def opens_table(command: Callable[..., None]) -> Callable[..., None]:
    """Convert a function to a command that reads a table; fields of records become options."""
    return takes_records(command, _before_reading)


def _before_reading(options: Mapping[str, Any]) -> None:
    """Refuse policies that are no readable text, before anything else is loaded."""
    for name in _POLICIES & options.keys():
        if isinstance(options[name], Path):
            require_text(options[name], "policy", PolicyError)
    before_tables()


DEFAULT = Opening(syntax=FileSyntax(), values=FileValues())
