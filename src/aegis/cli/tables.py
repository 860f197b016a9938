"""Format tables for people: aligned, readable in 80 columns, and never cut outside a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from aegis import words
from aegis.cli.output import clean

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")
NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    title
        Heading of the column.
    right
        Whether cells are aligned to the right, as numbers are.
    wraps
        Whether cells may wrap if the page is narrow.
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

    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for column in columns:
        made.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for row in rows:
        made.add_row(
            *(_cell_type()(clean(cell)) if isinstance(cell, str) else cell for cell in row)
        )
    return made


def table_of(
    entries: Iterable[T], *columns: tuple[Column, Callable[[T], str | Text]] | None
) -> Table:
    """Return a table with a row for each entry. Each column comes with the text of an entry; columns
    that are None are left out.
    """
    shown = [column for column in columns if column is not None]
    rows = ([text(entry) for _, text in shown] for entry in entries)
    return table([column for column, _ in shown], rows)


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
    """Return a table of names and their values, in two columns without headings."""
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(Text(clean(name)), Text(clean(value)))
    return made


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
    return f"{value:.{digits}g}"


def fixed(value: float | None, decimals: int = 4) -> str:
    """Return a number as text with a fixed number of decimals, so that a column of numbers is easy
    to compare.
    """
    if value is None or math.isnan(value):
        return NOTHING
    if value and (abs(value) < 0.5 * 10**-decimals or abs(value) >= 1e15):
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,.1f}"
    return f"{value:.{decimals}f}"


def percent(value: float | None, decimals: int = 1) -> str:
    """Return a percentage; `-` for None and NaN."""
    return NOTHING if value is None or math.isnan(value) else words.percent(value, decimals)


def share(part: int, whole: int) -> str:
    """Return a number of rows with its share of all rows, such as `312 (1.0 %)`."""
    return f"{part:,} ({words.portion(part / whole)})" if whole else f"{part:,}"


def portion(value: float | None) -> str:
    """Return a share or a risk in [0, 1] as a percentage; `-` for None and NaN."""
    return NOTHING if value is None or math.isnan(value) else words.portion(value)
