"""Print estimates by value and class as tables that fit on a narrow page.

Every table shows the column of values. Long values and headings are shortened. If not all classes
fit next to each other, the other classes follow below, in blocks that repeat the column of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from aegis.cli.output import Column, clean, number, table

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""Blanks between two columns of a table."""
LONGEST_VALUE = 28
"""Most columns of the terminal for values, if the page is too narrow for the whole values."""
LONGEST_CLASS = 48
"""Most characters of a class name in the headings of a narrow page."""

Cells = Sequence[Sequence[Sequence[str]]]


def estimate_tables(
    name: str,
    labels: Sequence[str],
    label_classes: Sequence[str],
    cells: Cells,
    *,
    titles: Sequence[str],
    width: int,
) -> Iterator[Table]:
    """Yield a printable table of figures by value and class. If the page is too narrow, yield
    several tables to print below each other.

    Parameters
    ----------
    name
        Heading of the values.
    labels, label_classes
        Names of the V values, and names of the C classes.
    cells
        For each value and each class, T figures as text, shape (V, C, T).
    titles
        Names of the T figures that each class has, such as estimate and truth.
    width
        Width of the page in characters.
    """
    from rich.cells import cell_len

    name, labels = clean(name), list(map(clean, labels))
    label_classes = list(map(clean, label_classes))
    heads = [[f"{c}: {titles[0]}", *titles[1:]] for c in label_classes]
    figures = [
        [
            max(map(cell_len, (title, *(row[c][t] for row in cells))))
            for t, title in enumerate(titles)
        ]
        for c in range(len(label_classes))
    ]
    first = max(map(cell_len, (name, *labels)))
    full = [
        sum(max(cell_len(head), cell_width) + GAP for head, cell_width in zip(*both, strict=True))
        for both in zip(heads, figures, strict=True)
    ]
    if first + sum(full) <= width:
        yield _table(name, labels, heads, cells)
        return
    first = min(first, max(LONGEST_VALUE, width - sum(full)))
    least = [sum(widths) + GAP * len(widths) for widths in figures]
    first = min(first, max(8, width - max(least)))
    for block in _blocks(least, width - first):
        spare = (width - first - sum(least[c] for c in block)) // len(block)
        headings = [
            [f"{_wrapped(label_classes[c], figures[c][0] + spare)}\n{titles[0]}", *titles[1:]]
            for c in block
        ]
        block_cells = [[row[c] for c in block] for row in cells]
        yield _table(shorten(name, first), shorten_all(labels, first), headings, block_cells)


def shorten_all(texts: Sequence[str], width: int) -> list[str]:
    """Shorten texts to `width`, if need be by their common beginning, so that they stay different."""
    cut = [shorten(text, width) for text in texts]
    if len(set(cut)) == len(set(texts)):
        return cut
    ends = zip(min(texts), max(texts), strict=False)  # between them, all others begin alike
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    if common < 2:
        return cut
    return [shorten(f"…{text[common:]}", width) for text in texts]


def shorten(text: str, width: int) -> str:
    """Cut a text with an ellipsis so that it fits in `width` columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, max(width - 1, 0)).rstrip()}…"


def _table(name: str, labels: Sequence[str], heads: Sequence[Sequence[str]], cells: Cells) -> Table:
    columns = [Column(name), *(number(title) for head in heads for title in head)]
    rows = [
        [label, *(cell for of_class in row for cell in of_class)]
        for label, row in zip(labels, cells, strict=True)
    ]
    return table(columns, rows)


def _blocks(least: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield about equal runs of columns that fit a page; `least` has the width of each column."""
    fitting = max(1, width // max(least))
    blocks = -(-len(least) // fitting)
    size = -(-len(least) // blocks)
    for start in range(0, len(least), size):
        yield list(range(start, min(start + size, len(least))))


def _wrapped(text: str, width: int) -> str:
    """Break a heading into lines of at most `width` characters."""
    from rich.console import Console
    from rich.text import Text

    heading = Text(shorten(text, LONGEST_CLASS))
    lines = heading.wrap(Console(width=width), width, overflow="fold")
    return "\n".join(line.plain.rstrip() for line in lines)
