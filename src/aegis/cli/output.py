"""Print results to standard output, and everything else to standard error."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from aegis.cli.logs import LOG
from aegis.cli.options import Force, Format, FormatOption, Quiet, Seed
from aegis.cli.streams import write
from aegis.words import finite

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

UNLIMITED = 100_000
"""The width of a page in files and pipes, in characters; it is so large that nothing is wrapped or
cut.
"""


@dataclass(frozen=True)
class Output:
    """The streams and the format in which a command prints.

    Attributes
    ----------
    format
        How results are printed.
    quiet
        Whether to print results only.
    """

    format: Format = Format.TABLE
    quiet: bool = False

    @property
    def tabular(self) -> bool:
        """Whether results are printed as text and tables, and not as JSON or CSV."""
        return self.format is Format.TABLE

    def show(self, *parts: RenderableType) -> None:
        """Print results for people."""
        _print(sys.stdout, parts)

    def say(self, *parts: RenderableType) -> None:
        """Print which files were written.

        If people read the results, the text is printed below the results. If a program reads the
        results, the text goes to standard error.
        """
        if not self.quiet:
            _print(sys.stdout if self.tabular else sys.stderr, parts)

    def suggest(self, *parts: RenderableType) -> None:
        """Print the next step, if people read the results. No line is broken: somebody copies it."""
        if not self.quiet and self.tabular:
            _print(sys.stdout, parts, breaks=False)

    def warn(self, warnings: Iterable[str]) -> None:
        """Print warnings on standard error, and log them."""
        said = _logged(warnings)
        if not self.quiet:
            print_note(*said)

    def caution(self, warnings: Iterable[str], *, shown: Sequence[str] | None = None) -> None:
        """Print warnings below a result, and log them.

        The log has every warning in full, even if shorter texts (`shown`) are printed. Warnings are
        printed before the next step, so that people read them first. If a program reads the result,
        they go to standard error.
        """
        if not self.tabular:
            self.warn(warnings)
            return
        from rich.text import Text

        said = _logged(warnings)
        if said and not self.quiet:
            notes = [
                labelled("- ", clean(text), style="yellow")
                for text in (said if shown is None else shown)
            ]
            more = 0 if shown is None else len(said) - len(shown)
            explained = f"{more} more with --explain" if more else "--explain says more"
            whole = "" if shown is None else f" ({explained})"
            self.show(Text(f"\nBefore you rely on this{whole}", style="bold"), *notes)

    def json(self, data: object) -> None:
        """Print one JSON document."""
        write_json(sys.stdout, data)

    def csv(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows as CSV below a header; null becomes an empty cell."""
        write(sys.stdout, "".join(map(_csv_line, (header, *rows))))

    def figures(self, data: Mapping[str, Any]) -> None:
        """Print a nested result as CSV, with one row per figure; the JSON pointer of a figure is
        its name.
        """
        self.csv(("figure", "value"), _pointers(data))

    def as_data(
        self,
        data: Mapping[str, Any],
        header: Sequence[str] = (),
        rows: Iterable[Sequence[object]] = (),
    ) -> bool:
        """Print a result as JSON, or as CSV: its rows or, without a header, its figures.

        Return False, and print nothing, if people read the result.
        """
        if self.format is Format.JSON:
            self.json(data)
        elif self.format is Format.CSV:
            self.csv(header, rows) if header else self.figures(data)
        return not self.tabular


def _logged(warnings: Iterable[str]) -> list[str]:
    """Log warnings and return them."""
    said = list(warnings)
    for warning in said:
        LOG.warning("%s", clean(warning))
    return said


def _csv_line(row: Iterable[object]) -> str:
    """Return a line of CSV; null is an empty cell.

    Python before 3.13 quotes a carriage return only if the line terminator has one.
    """
    text = StringIO()
    csv.writer(text, lineterminator="\r\n").writerow("" if cell is None else cell for cell in row)
    return text.getvalue().removesuffix("\r\n") + "\n"


def console(file: IO[str], onto: IO[str] | None = None) -> Console:
    """Return a console that is as wide as the terminal. Outside a terminal, its width is unlimited.

    If `onto` is given, the text is written to this file, but formatted as for `file`.
    """
    from rich.console import Console

    terminal = file.isatty()
    wide = None if terminal or os.environ.get("COLUMNS", "").isdigit() else UNLIMITED
    return Console(
        file=file if onto is None else onto,
        force_terminal=None if onto is None or not terminal else True,
        width=wide,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _print(file: IO[str], parts: Iterable[RenderableType], *, breaks: bool = True) -> None:
    """Print parts one below the other, without blanks at the ends of lines.

    If `breaks` is True, long lines are broken at the width of the screen.
    """
    text = StringIO()
    target = console(file, onto=text)
    for part in parts:
        target.print(part, soft_wrap=not breaks)
    write(file, "".join(f"{line.rstrip(' ')}\n" for line in text.getvalue().splitlines()))


def print_note(*notes: str) -> None:
    """Print notes on standard error."""
    _print(sys.stderr, [labelled("Note: ", clean(note), style="yellow") for note in notes])


def print_error(*lines: str) -> None:
    """Print one error block on standard error."""
    _print(sys.stderr, [labelled("Error: ", *map(clean, lines), style="bold red")])


def labelled(label: str, *lines: str, style: str) -> RenderableType:
    """Return a block of text next to a label."""
    from rich.table import Table
    from rich.text import Text

    block = Table.grid(padding=0)
    block.add_column(no_wrap=True)
    block.add_column(overflow="fold")
    for number, line in enumerate(lines):
        block.add_row(Text(label if number == 0 else "", style=style), Text(line))
    return block


def clean(text: object) -> str:
    """Return text in which control characters are escaped, so that none reaches a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def write_json(file: IO[str], data: object) -> None:
    """Write one JSON document. Numbers that are not finite become null."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    ascii_only = not encoding.lower().startswith("utf")
    text = json.dumps(finite(data), indent=2, ensure_ascii=ascii_only, allow_nan=False, default=str)
    write(file, text + "\n")


def _pointers(data: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the scalars of nested data, each with its JSON pointer (RFC 6901)."""
    if isinstance(data, Mapping):
        entries: Iterable[tuple[object, Any]] = data.items()
    elif isinstance(data, list | tuple):
        entries = enumerate(data)
    else:
        yield prefix, data
        return
    for key, value in entries:
        name = str(key).replace("~", "~0").replace("/", "~1")
        yield from _pointers(value, f"{prefix}/{name}")


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """Options for what a command prints. The help lists them last."""

    format: FormatOption = Format.TABLE
    quiet: Quiet = False

    @property
    def shell(self) -> Output:
        """The output for results and warnings."""
        return Output(self.format, self.quiet)


@dataclass(frozen=True, kw_only=True)
class RunOptions(PrintOptions):
    """Options for how a command runs. The help lists them last."""

    seed: Seed = 0
    force: Force = False
