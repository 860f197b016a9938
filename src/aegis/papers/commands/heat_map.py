"""Draw a heat map of estimated and true rows: in the terminal, as SVG and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from rich.cells import cell_len

from aegis.arrays import Floats
from aegis.cli.output import UNLIMITED, clean
from aegis.papers.commands.estimate_tables import shorten, shorten_all

SHADES = " ░▒▓█"
"""Characters that the terminal shows as shades, from no rows to most rows."""
WIDE = 64
"""Number of columns of the map in the terminal."""
BROAD = 256
"""Number of columns of the map in a picture."""
_NAME, _WHAT = 20, 11
"""Columns of the terminal for the name of a class, and for what a band shows."""
_CELL, _LEFT, _RIGHT, _TOP, _GAP, _BETWEEN = 20, 210, 170, 46, 2, 14
_READ = "White: no rows. Each class has its own scale, the same for estimate and truth."
_BLUE = (11, 74, 117)
"""Colour of the darkest cell; other cells mix this colour with white."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """A heat map of the estimated and the true numbers of rows by value and class.

    Attributes
    ----------
    title, across
        Title of the map, and title of the horizontal axis.
    values, classes
        Names of the V values, and names of the C classes.
    estimate, truth
        Numbers of rows by value and class, shape (V, C); `truth` is None if the true numbers are
        not known.
    """

    title: str
    across: str
    values: Sequence[str]
    classes: Sequence[str]
    estimate: Floats
    truth: Floats | None

    def text(self, width: int = UNLIMITED) -> str:
        """Return the map as text, in characters of different shades.

        If there are many values, neighbouring values share a character. Names are shortened, so
        that no line is longer than `width` (at least 32 characters).
        """
        bar = min(WIDE, width - _NAME - _WHAT)
        name = _NAME
        if bar < WIDE:
            longest = max((cell_len(clean(label)) for label in self.classes), default=0)
            name = max(4, min(_NAME, longest, width // 3))
            bar = max(8, min(WIDE, width - name - _WHAT))
        names = shorten_all(list(map(clean, self.classes)), name)
        lines = []
        for of_class, what, shares, _most in self._bands(bar):
            label = names[of_class] if what == "estimate" else ""
            shades = "".join(SHADES[round(float(s) * (len(SHADES) - 1))] for s in shares)
            lines.append(f"{' ' * (name - cell_len(label))}{label}  {what:<8} {shades}")
        indent = " " * (name + _WHAT)
        return "\n".join([*lines, f"{indent}{self._ends(width - name - _WHAT)}"])

    def svg(self) -> str:
        """Return the map as SVG: strips of estimated and true rows of each class, and a scale."""
        bands = list(self._bands(BROAD))
        columns = len(bands[0][2]) if bands else 0
        width = max(2, min(_CELL, 720 // max(columns, 1)))
        right = _LEFT + columns * width
        strips = 1 if self.truth is None else 2
        foot = _top(len(bands), strips)
        size = right + _RIGHT, foot + 62
        body = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
            f'width="{size[0]}" height="{size[1]}" role="img" font-family="sans-serif" '
            'font-size="12" fill="#16212c">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>',
            f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(self.title)}</text>',
        ]
        for number, (of_class, what, shares, most) in enumerate(bands):
            top = _top(number, strips)
            if what == "estimate":
                body.append(
                    _label(12, top + _CELL + 5, self.classes[of_class][:18], "start", bold=True)
                )
                scale = f"darkest: {most:,.0f} rows"
                body.append(_label(right + 12, top + _CELL + 5, scale, "start"))
            body.append(_label(_LEFT - 8, top + 15, what, "end"))
            body.append(
                f'<rect x="{_LEFT}" y="{top}" width="{columns * width}" height="{_CELL}" '
                'fill="none" stroke="#d5dde4"/>'
            )
            body += [
                f'<rect x="{_LEFT + i * width}" y="{top}" width="{width}" height="{_CELL}" '
                f'fill="{_colour(float(share))}"/>'
                for i, share in enumerate(shares)
            ]
        body += [
            _label(_LEFT, foot + 14, self.values[0][:16], "start"),
            _label(right, foot + 14, self.values[-1][:16], "end") if columns > 1 else "",
            _label((_LEFT + right) / 2, foot + 34, self.across, "middle"),
            _label(12, foot + 54, _READ, "start"),
            "</svg>",
        ]
        return "\n".join(line for line in body if line) + "\n"

    def html(self) -> str:
        """Return an HTML page with the SVG; it loads nothing from the network."""
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>{escape(self.title)}</title>\n"
            "<style>body { margin: 2rem; } svg { max-width: 100%; height: auto; }</style>\n"
            f"</head>\n<body>\n{self.svg()}</body>\n</html>\n"
        )

    def _bands(self, columns: int) -> Iterator[tuple[int, str, Floats, float]]:
        """Yield the strips of at most `columns` cells: index and name of the class, shades from 0 to 1, and
        rows of the darkest shade, which is that of all strips of the class.
        """
        tables = {"estimate": _together(self.estimate, columns)}
        if self.truth is not None:
            tables["truth"] = _together(self.truth, columns)
        for of_class in range(len(self.classes)):
            most = max(1e-12, *(rows[:, of_class].max(initial=0) for rows in tables.values()))
            for name, rows in tables.items():
                yield of_class, name, rows[:, of_class] / most, most

    def _ends(self, width: int) -> str:
        """Return the first and the last column as a caption of `width` (at least 21) characters."""
        each = max(4, min(16, (width - 13) // 2))
        first, last = shorten_all([clean(self.values[i]) for i in (0, -1)], each)
        ends = f"{first} ... {last}"
        return f"{shorten(clean(self.across), max(1, width - cell_len(ends) - 2))}: {ends}"


def _top(band: int, strips: int) -> int:
    """Return the vertical position of a strip; the `strips` of one class are close together."""
    return _TOP + band * (_CELL + _GAP) + band // strips * _BETWEEN


def _label(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _together(table: Floats, columns: int) -> Floats:
    """Replace neighbouring rows by their mean, so that at most `columns` rows remain."""
    if len(table) <= columns:
        return table
    run = np.arange(len(table)) * columns // len(table)
    size = np.bincount(run, minlength=columns)
    sums = np.stack([np.bincount(run, weights=c, minlength=columns) for c in table.T], axis=1)
    return sums / size[:, None]


def _colour(share: float) -> str:
    """Return the colour of a cell of the map, from white for a `share` of 0 to dark blue for 1."""
    mixed = (round(255 + (dark - 255) * min(max(share, 0.0), 1.0)) for dark in _BLUE)
    return "#" + "".join(f"{c:02x}" for c in mixed)
