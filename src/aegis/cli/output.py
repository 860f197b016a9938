"""Print results and tables to standard output, and notes, progress and logs to standard error.

Tables for people are aligned, readable in 80 columns, and never cut outside a terminal. If results
cannot be displayed, the work is not undone. A stream that fails is redirected to the null device,
the command continues, and `run` reports the failure at the end.
"""

from __future__ import annotations

import csv
import json
import logging
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from aegis import words
from aegis._version import __version__
from aegis.cli.parameters import Force, Format, FormatOption, Quiet, Seed
from aegis.files import SILENT, Progress, Step, check
from aegis.words import finite

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bars
    from rich.progress import TaskID
    from rich.table import Table
    from rich.text import Text

LOG = logging.getLogger("aegis.run")
"""The logger of runs. Messages are written only if the user asks for a log."""
LOG.propagate = False
LOG.addHandler(logging.NullHandler())  # else warnings would go to standard error
_ours: list[logging.Handler] = []
"""The handlers that this module has added to the logger; a program may add others."""


def listen(arguments: Sequence[str], *, verbose: bool, file: Path | None) -> None:
    """Start logging: to standard error (`verbose`), to the end of a file, or to both. First log the
    command line, without passwords. Raise `OSError` if the file cannot be written.
    """
    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    if file is not None:
        _attach(logging.FileHandler(file, encoding="utf-8"), form)
    if verbose:
        _attach(logging.StreamHandler(sys.stderr), form)
    if listening():
        LOG.setLevel(logging.INFO)
        LOG.info("aegis %s: %s", __version__, shlex.join(map(shown_location, arguments)))


def shown_location(location: str) -> str:
    """Return a path or URL without a password, for display."""
    if "://" not in location:
        return location
    from aegis.sources.urls import shown_url

    return shown_url(location)


def _attach(handler: logging.Handler, form: logging.Formatter) -> None:
    handler.setFormatter(form)
    LOG.addHandler(handler)
    _ours.append(handler)


def listening() -> bool:
    """Whether this run of a command is logged, to standard error or to a file."""
    return bool(_ours)


def verbose() -> bool:
    """Whether the log goes to standard error; progress bars are then off."""
    return any(type(handler) is logging.StreamHandler for handler in _ours)


@contextmanager
def until_the_end() -> Iterator[None]:
    """Stop logging at the end of the context."""
    try:
        yield
    finally:
        while _ours:
            handler = _ours.pop()
            LOG.removeHandler(handler)
            handler.close()
        LOG.setLevel(logging.NOTSET)


class LoggedProgress:
    """A receiver of progress that logs each step and how many seconds it took."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step, and log how long it took, or that it failed."""
        started = time.perf_counter()
        try:
            with self._inner.step(title, total) as step:
                yield step
        except BaseException:
            LOG.info("%s: not finished after %.2f s", title, time.perf_counter() - started)
            raise
        LOG.info("%s: %.2f s", title, time.perf_counter() - started)


_LOST: ContextVar[OSError | None] = ContextVar("lost", default=None)


def lost() -> OSError | None:
    """Return the error with which standard output has failed since `start`; None if it has not."""
    return _LOST.get()


def start() -> None:
    """Forget that an earlier run could not write to standard output."""
    _LOST.set(None)


def write(file: IO[str], text: str) -> None:
    """Write text. If the stream fails, drop this text and all later text."""
    try:
        file.write(text)
        file.flush()
    except OSError as error:
        lose(file, error)


def flush() -> None:
    """Write buffered text now, so that writing cannot fail when Python exits."""
    for file in (sys.stdout, sys.stderr):
        write(file, "")


def lose(file: IO[str], error: OSError) -> None:
    """Redirect a stream to the null device. If it is standard output, remember the error."""
    if file is sys.stdout and _LOST.get() is None:
        _LOST.set(error)
    with suppress(OSError, ValueError):  # a stream of a program, without a number
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device, not a file
            os.dup2(nowhere.fileno(), file.fileno())
        file.flush()


def open_missing() -> None:
    """Redirect streams that the shell has closed (>&-), with their file descriptors, to the null
    device. Otherwise, the next file that is opened, perhaps a release, would get such a descriptor,
    and libraries would print into the file.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least number that is free
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - until the process ends


UNLIMITED = 100_000
"""The width of a page in files and pipes, in characters; it is so large that nothing is wrapped or
cut.
"""


@dataclass(frozen=True)
class Output:
    """The streams and the format in which a command prints; with `quiet`, only results."""

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
        """Print which files were written: below the results, or to standard error if a program
        reads these.
        """
        if not self.quiet:
            _print(sys.stdout if self.tabular else sys.stderr, parts)

    def suggest(self, *parts: RenderableType) -> None:
        """Print the next step, if people read the results. No line is broken: somebody copies it."""
        if not self.quiet and self.tabular:
            _print(sys.stdout, parts, breaks=False)

    def warn(self, warnings: Iterable[str]) -> None:
        """Print warnings on standard error, and log them."""
        texts = _logged(warnings)
        if not self.quiet:
            print_note(*texts)

    def caution(self, warnings: Iterable[str], *, short_texts: Sequence[str] | None = None) -> None:
        """Print warnings below a result, or to standard error if a program reads it. The log has
        every warning in full, even if `short_texts` are printed. Warnings are printed before the
        next step, so that people read them first.
        """
        if not self.tabular:
            self.warn(warnings)
            return
        from rich.text import Text

        texts = _logged(warnings)
        if texts and not self.quiet:
            notes = [
                labelled("- ", clean(text), style="yellow")
                for text in (texts if short_texts is None else short_texts)
            ]
            more = 0 if short_texts is None else len(texts) - len(short_texts)
            explained = f"{more} more with --explain" if more else "--explain says more"
            pointer = "" if short_texts is None else f" ({explained})"
            self.show(Text(f"\nBefore you rely on this{pointer}", style="bold"), *notes)

    def json(self, data: object) -> None:
        """Print one JSON document."""
        write_json(sys.stdout, data)

    def csv(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows as CSV below a header; null becomes an empty cell. Only for a terminal,
        control characters are escaped.
        """
        lines: Iterable[str] = map(_csv_line, (header, *rows))
        if sys.stdout.isatty():
            lines = (clean(line.removesuffix("\n")) + "\n" for line in lines)
        write(sys.stdout, "".join(lines))

    def figures(self, data: Mapping[str, Any]) -> None:
        """Print a nested result as CSV: a row per figure, named by its JSON pointer."""
        self.csv(("figure", "value"), _pointers(data))

    def as_data(
        self,
        data: Mapping[str, Any],
        header: Sequence[str] = (),
        rows: Iterable[Sequence[object]] = (),
    ) -> bool:
        """Print a result as JSON, or as CSV: its rows or, without a header, its figures. Return
        False, and print nothing, if people read the result.
        """
        if self.format is Format.JSON:
            self.json(data)
        elif self.format is Format.CSV:
            self.csv(header, rows) if header else self.figures(data)
        return not self.tabular


def _logged(warnings: Iterable[str]) -> list[str]:
    """Log warnings and return them."""
    texts = list(warnings)
    for warning in texts:
        LOG.warning("%s", clean(warning))
    return texts


def _csv_line(row: Iterable[object]) -> str:
    """Return a line of CSV; null is an empty cell."""
    text = StringIO()
    # Python before 3.13 quotes a carriage return only if the line terminator has one.
    csv.writer(text, lineterminator="\r\n").writerow("" if cell is None else cell for cell in row)
    return text.getvalue().removesuffix("\r\n") + "\n"


def console(file: IO[str], onto: IO[str] | None = None) -> Console:
    """Return a console of the library rich for a file. It is as wide as the terminal; outside a
    terminal, its width is unlimited. If `onto` is given, it writes to this file, but formats as for
    `file`.
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
    """Print texts and tables one below the other, without blanks at the ends of lines. Break long
    lines at the width of the screen unless `breaks` is False.
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
    """Yield the scalars of nested data, each with its JSON pointer (RFC 6901), which begins with
    `prefix`.
    """
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


T = TypeVar("T")
NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """A column of a table with its heading, aligned to the `right`, as numbers are, or to the left.
    `wraps` says whether its cells may wrap if the page is narrow.
    """

    title: str
    right: bool = False
    wraps: bool = False


def number(title: str) -> Column:
    """Return a column of numbers."""
    return Column(title, right=True)


def table(columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a table without a frame, with a line below its headings."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for column in columns:
        grid.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(
            *(_cell_type()(clean(cell)) if isinstance(cell, str) else cell for cell in row)
        )
    return grid


def table_of(
    entries: Iterable[T], *columns: tuple[Column, Callable[[T], str | Text]] | None
) -> Table:
    """Return a table with a row for each entry, and a column for each title and its function."""
    present = [column for column in columns if column is not None]
    rows = ([text(entry) for _, text in present] for entry in entries)
    return table([column for column, _ in present], rows)


def break_name(text: str, width: int) -> list[str]:
    """Break a text into lines. A word that is longer than a line, such as the name of a column, is
    broken after a sign that separates its parts, if it has one.

    Examples
    --------
    >>> break_name("truncate(unit=quarter)", 20)
    ['truncate(unit=', 'quarter)']
    >>> break_name("a mask", 5)
    ['a', 'mask']
    """
    from rich.cells import cell_len, chop_cells

    lines = [""]
    for word in re.findall(r"\s*\S+", text):
        fits = cell_len(word.strip()) <= width
        for piece in [word] if fits else re.findall(r"\s*[^_.,(=/\s-]*[_.,(=/-]?", word):
            if cell_len(lines[-1] + piece) <= width:
                lines[-1] += piece
                continue
            head, *rest = chop_cells(piece.lstrip(), width)
            lines += [head, *rest]
    return [line for line in lines if line] or [""]


@cache
def _cell_type() -> type[Text]:
    """Return the type of cells that `break_name` breaks if the column is narrow."""
    from rich.containers import Lines
    from rich.text import Text

    class Cell(Text):
        def wrap(self, console: Console, width: int, **options: Any) -> Lines:
            if options.get("no_wrap"):
                return super().wrap(console, width, **options)
            return Lines(Text(line) for line in break_name(self.plain, width))

    return Cell


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table with two columns without headings: names and their values."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(clean(name)), Text(clean(value)))
    return grid


def heading(text: str) -> RenderableType:
    """Return the heading of a section, with an empty line above it."""
    from rich.text import Text

    return Text(f"\n{clean(text)}", style="bold")


def line(text: str, *, style: str = "") -> RenderableType:
    """Return one paragraph, in which control characters are escaped."""
    from rich.text import Text

    return Text("\n".join(map(clean, text.split("\n"))), style=style)


def figure(value: float | None, digits: int = 5) -> str:
    """Return a number as text with `digits` significant digits; `-` for None and NaN."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:,.{digits}g}"


def fixed(value: float | None, decimals: int = 4) -> str:
    """Return a number with this many decimals. Below 1e-12 it is a rounding error, shown as 0."""
    if value is None or math.isnan(value):
        return NOTHING
    if 1e-12 <= abs(value) < 0.5 * 10**-decimals or abs(value) >= 1e15:
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,.1f}"
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def percent(value: float | None, decimals: int = 1) -> str:
    """Return a percentage; `-` for None and NaN."""
    return NOTHING if value is None or math.isnan(value) else words.percent(value, decimals)


def share(part: int, total: int) -> str:
    """Return a number of rows with its share of all rows, such as `312 (1.0 %)`."""
    return f"{part:,} ({words.portion(part / total)})" if total else f"{part:,}"


def portion(value: float | None) -> str:
    """Return a share or a risk in [0, 1] as a percentage; `-` for None and NaN."""
    return NOTHING if value is None or math.isnan(value) else words.portion(value)


class _BarStep:
    """A step that is shown as a bar."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, amount: float = 1) -> None:
        """Add to the finished units of work."""
        self._bars.advance(self._task, amount)

    def note(self, text: str) -> None:
        """Show `text` next to the bar."""
        self._bars.update(self._task, note=clean(text))


class TerminalProgress:
    """A receiver of progress that shows one bar on the terminal for each running step."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step of `total` units of work. Its bar disappears at the end of the step."""
        task = self._bars.add_task(title, total=total, note="")
        try:
            yield _BarStep(self._bars, task)
        finally:
            self._bars.remove_task(task)


class Interruptible:
    """A receiver of progress that raises an interrupt that a library has caught."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step; after an interrupt, raise `KeyboardInterrupt` at its end."""
        with self._progress.step(title, total) as step:
            yield step
        check()


class QueryClock:
    """Computes the finished share and the remaining time of the query that the engine runs. `done`
    returns the finished share (None if it is unknown), and `now` the time in seconds.
    """

    def __init__(
        self, done: Callable[[], float | None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._done = done
        self._now = now
        self._share = 0.0
        self._started = now()

    def text(self) -> str:
        """Return a text such as "query 40 %, 0:12 left"; empty if nothing is known of the query."""
        share, now = self._done(), self._now()
        if share is None or share < self._share:
            # Another query: what it has done so far was done since now at the earliest.
            self._share, self._started = share or 0.0, now
            return ""
        self._share = share
        elapsed = now - self._started
        if elapsed < SHOWN_AFTER:
            return ""
        return f"query {share:.0%}, {_clock(elapsed * (1 - share) / share)} left".replace("%", " %")


SHOWN_AFTER = 2.0
"""Number of seconds after which the progress of a query is shown."""


def _query_progress() -> float | None:
    """Return the finished share of the engine's query; None if no engine is loaded."""
    sources = sys.modules.get("aegis.sources")
    return None if sources is None else sources.query_progress()


@contextmanager
def reporting(*, quiet: bool) -> Iterator[Progress]:
    """Yield the progress of one command, which shows bars on a terminal and nothing elsewhere."""
    if quiet or verbose() or not sys.stderr.isatty():
        yield _heard(SILENT)
        return
    with _bars() as bars:
        yield _heard(TerminalProgress(bars))


def _heard(progress: Progress) -> Progress:
    """Return a receiver that also raises interrupts and, if requested, logs steps."""
    return Interruptible(LoggedProgress(progress) if listening() else progress)


def _bars() -> Bars:
    """Return the progress bars of a command, and below them the note of the running step."""
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Bar(BarColumn):
        def render(self, task: Task) -> Any:
            return Text("") if task.total is None else super().render(task)

    class Times(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = task.time_remaining
            rest = "" if task.total is None or left is None else f", {_clock(left)} left"
            return Text(_clock(task.elapsed or 0.0) + rest)

    class Noted(Bars):
        def get_renderables(self) -> Iterator[Any]:
            yield from super().get_renderables()
            notes = [task.fields["note"] for task in self.tasks if task.fields["note"]]
            texts = [note for note in (*notes[-1:], clock.text()) if note]
            if texts:
                line = f"  {', '.join(texts)}"
                yield Text(line, style="dim", no_wrap=True, overflow="ellipsis")

    clock = QueryClock(_query_progress)
    title = TextColumn("{task.description}", markup=False)
    return Noted(title, Bar(bar_width=16), Times(), console=console(sys.stderr), transient=True)


def _clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if it is longer than an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
