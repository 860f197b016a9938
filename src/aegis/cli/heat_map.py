"""A heat map of two tables, one above the other: in the terminal, as SVG and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

SHADES = " ░▒▓█"
"""Shades of the terminal, from no rows to most."""
WIDE = 64
"""Columns of the map in the terminal."""
BROAD = 256
"""Columns of the map in a picture."""
_CELL, _LEFT, _TOP, _GAP = 18, 170, 46, 6
_BLUE = (11, 74, 117)
"""The darkest cell; the others mix it with white."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Rows by value and class, estimated and true.

    Attributes
    ----------
    title, across
        What the map shows, and what runs from left to right.
    values, classes
        Names of the values (V) and classes (C).
    estimate, truth
        Rows, shape (V, C).
    """

    title: str
    across: str
    values: Sequence[str]
    classes: Sequence[str]
    estimate: Floats
    truth: Floats

    def text(self) -> str:
        """Return the map in shades of characters, neighbouring values together where many."""
        names = [f"{name[:20]:>20}" for name in self.classes]
        lines = []
        for (of_class, what, shares), first in zip(self._bands(WIDE), _alternating(), strict=False):
            shades = "".join(SHADES[round(float(s) * (len(SHADES) - 1))] for s in shares)
            lines.append(f"{names[of_class] if first else ' ' * 20}  {what:<8} {shades}")
        return "\n".join([*lines, f"{'':>31}{self._ends()}"])

    def svg(self) -> str:
        """Return the map as a picture."""
        bands = list(self._bands(BROAD))
        columns = len(bands[0][2]) if bands else 0
        width = max(2, min(_CELL, 720 // max(columns, 1)))
        size = _LEFT + columns * width + 20, _TOP + len(bands) * (_CELL + _GAP) + 40
        body = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
            f'width="{size[0]}" height="{size[1]}" role="img" font-family="sans-serif" '
            'font-size="12">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>',
            f'<text x="12" y="24" font-size="15">{escape(self.title)}</text>',
        ]
        for number, (of_class, what, shares) in enumerate(bands):
            top = _TOP + number * (_CELL + _GAP)
            name = f"{self.classes[of_class][:16]}: {what}"
            body.append(
                f'<text x="{_LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>'
            )
            body += [
                f'<rect x="{_LEFT + i * width}" y="{top}" width="{width}" height="{_CELL}" '
                f'fill="{_colour(float(share))}"/>'
                for i, share in enumerate(shares)
            ]
        foot = _TOP + len(bands) * (_CELL + _GAP) + 16
        body += [f'<text x="{_LEFT}" y="{foot}">{escape(self._ends())}</text>', "</svg>"]
        return "\n".join(body) + "\n"

    def html(self) -> str:
        """Return a page with the picture, readable without a network."""
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width">\n'
            f"<title>{escape(self.title)}</title>\n"
            "<style>body { margin: 2rem; } svg { max-width: 100%; height: auto; }</style>\n"
            f"</head>\n<body>\n{self.svg()}</body>\n</html>\n"
        )

    def _bands(self, columns: int) -> Iterator[tuple[int, str, Floats]]:
        """Yield class, name and shades from 0 to 1; one class has one scale for both bands."""
        estimate, truth = _together(self.estimate, columns), _together(self.truth, columns)
        for of_class in range(len(self.classes)):
            most = max(
                estimate[:, of_class].max(initial=0), truth[:, of_class].max(initial=0), 1e-12
            )
            yield of_class, "estimate", estimate[:, of_class] / most
            yield of_class, "truth", truth[:, of_class] / most

    def _ends(self) -> str:
        """Say what the first and the last column show."""
        first, last = self.values[0][:16], self.values[-1][:16]
        return f"{self.across}: {first} ... {last}"


def _together(table: Floats, columns: int) -> Floats:
    """Return the mean of runs of neighbouring rows, at most `columns` runs."""
    if len(table) <= columns:
        return table
    run = np.arange(len(table)) * columns // len(table)
    size = np.bincount(run, minlength=columns)
    sums = np.stack([np.bincount(run, weights=c, minlength=columns) for c in table.T], axis=1)
    means: Floats = sums / size[:, None]
    return means


def _alternating() -> Iterator[bool]:
    while True:
        yield True
        yield False


def _colour(share: float) -> str:
    """Return the colour of a cell: white for none, dark blue for the most."""
    mixed = (round(255 + (dark - 255) * min(max(share, 0.0), 1.0)) for dark in _BLUE)
    return "#" + "".join(f"{c:02x}" for c in mixed)
