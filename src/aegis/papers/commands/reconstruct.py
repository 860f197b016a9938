"""`aegis reconstruct`: estimate the joint counts of an attribute and the label from masked values.

Draw a heat map of estimated and true rows: in the terminal, as SVG and as a page.

Print estimates by value and class as tables that fit on a narrow page.

Every table shows the column of values. Long values and headings are shortened. If not all classes
fit next to each other, the other classes follow below, in blocks that repeat the column of values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.cells import cell_len

from aegis.arrays import Floats
from aegis.cli import completion
from aegis.cli.files import HTML, Opening, check_outputs, opens_table, written, written_dict
from aegis.cli.options import Format, PolicyOfTable, TableOrBundle, VerifyKey, file_option
from aegis.cli.output import (
    UNLIMITED,
    Column,
    Output,
    RunOptions,
    clean,
    console,
    number,
    reporting,
    table,
)
from aegis.cli.parameters import given_options
from aegis.summary_formats import format_of_summary, refuse_added

if TYPE_CHECKING:
    from rich.table import Table

    from aegis.papers.estimates.deviation import JointEstimate

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
    """Yield a table, or several to print below each other if the page is too narrow.

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

    name, labels, label_classes = (
        clean(name),
        list(map(clean, labels)),
        list(map(clean, label_classes)),
    )
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
        sum(max(cell_len(head), own) + GAP for head, own in zip(*both, strict=True))
        for both in zip(heads, figures, strict=True)
    ]
    if first + sum(full) <= width:
        yield _table(name, labels, heads, cells)
        return
    first = min(first, max(LONGEST_VALUE, width - sum(full)))
    least = [sum(own) + GAP * len(own) for own in figures]
    first = min(first, max(8, width - max(least)))
    for block in _blocks(least, width - first):
        spare = (width - first - sum(least[c] for c in block)) // len(block)
        headings = [
            [f"{_wrapped(label_classes[c], figures[c][0] + spare)}\n{titles[0]}", *titles[1:]]
            for c in block
        ]
        shown = [[row[c] for c in block] for row in cells]
        yield _table(shorten(name, first), shorten_all(labels, first), headings, shown)


def shorten_all(texts: Sequence[str], width: int) -> list[str]:
    """Shorten texts to at most `width` characters.

    If cutting the ends would make different texts equal, the function cuts the common beginning of
    all texts instead.
    """
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
    """Yield blocks of consecutive classes of about equal size that fit in `width` characters.
    `least` has the width that each class needs.
    """
    fitting = max(1, width // max(least))
    blocks = -(-len(least) // fitting)
    size = -(-len(least) // blocks)
    for start in range(0, len(least), size):
        yield list(range(start, min(start + size, len(least))))


def _wrapped(text: str, width: int) -> str:
    """Break a heading into lines of at most `width` columns."""
    from rich.console import Console
    from rich.text import Text

    shown = Text(shorten(text, LONGEST_CLASS))
    lines = shown.wrap(Console(width=width), width, overflow="fold")
    return "\n".join(line.plain.rstrip() for line in lines)


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
    """A heat map of how many rows each value and class have, by estimate and in truth.

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

        If there are many values, neighbouring values share a character. Names and bars are
        shortened, so that no line is longer than `width` (at least 32).
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
            shown = names[of_class] if what == "estimate" else ""
            shades = "".join(SHADES[round(float(s) * (len(SHADES) - 1))] for s in shares)
            lines.append(f"{' ' * (name - cell_len(shown))}{shown}  {what:<8} {shades}")
        indent = " " * (name + _WHAT)
        return "\n".join([*lines, f"{indent}{self._ends(width - name - _WHAT)}"])

    def svg(self) -> str:
        """Return the map as SVG, with two bands and a scale for each class."""
        bands = list(self._bands(BROAD))
        columns = len(bands[0][2]) if bands else 0
        width = max(2, min(_CELL, 720 // max(columns, 1)))
        right = _LEFT + columns * width
        beside = 1 if self.truth is None else 2
        foot = _top(len(bands), beside)
        size = right + _RIGHT, foot + 62
        body = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
            f'width="{size[0]}" height="{size[1]}" role="img" font-family="sans-serif" '
            'font-size="12" fill="#16212c">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>',
            f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(self.title)}</text>',
        ]
        for position, (of_class, what, shares, most) in enumerate(bands):
            top = _top(position, beside)
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
        """Yield each band of the map, with at most `columns` columns: the index of the class, the
        name, the shades from 0 to 1, and the number of rows of the darkest shade.

        The estimated and the true band of a class have the same scale.
        """
        shown = {"estimate": _together(self.estimate, columns)}
        if self.truth is not None:
            shown["truth"] = _together(self.truth, columns)
        for of_class in range(len(self.classes)):
            most = max(1e-12, *(rows[:, of_class].max(initial=0) for rows in shown.values()))
            for name, rows in shown.items():
                yield of_class, name, rows[:, of_class] / most, most

    def _ends(self, width: int) -> str:
        """Return a caption of the horizontal axis with the names of the first and the last column,
        in at most `width` characters (at least 21).
        """
        each = max(4, min(16, (width - 13) // 2))
        first, last = shorten_all([clean(self.values[i]) for i in (0, -1)], each)
        ends = f"{first} ... {last}"
        return f"{shorten(clean(self.across), max(1, width - cell_len(ends) - 2))}: {ends}"


def _top(band: int, beside: int) -> int:
    """Return the vertical position of the band with index `band`; the `beside` bands of a class are
    close together.
    """
    return _TOP + band * (_CELL + _GAP) + band // beside * _BETWEEN


def _label(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _together(table: Floats, columns: int) -> Floats:
    """Average runs of neighbouring rows of a table, so that at most `columns` rows remain."""
    if len(table) <= columns:
        return table
    run = np.arange(len(table)) * columns // len(table)
    size = np.bincount(run, minlength=columns)
    sums = np.stack([np.bincount(run, weights=c, minlength=columns) for c in table.T], axis=1)
    return sums / size[:, None]


def _colour(share: float) -> str:
    """Return the colour of a cell, from white for 0 to dark blue for 1."""
    mixed = (round(255 + (dark - 255) * min(max(share, 0.0), 1.0)) for dark in _BLUE)
    return "#" + "".join(f"{c:02x}" for c in mixed)


SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
PANEL = "Research"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis reconstruct table.aegis --attribute age",
    "aegis reconstruct table.csv -p policy.yaml --attribute age --method smooth --know nothing",
    "aegis reconstruct table.aegis --attribute age --method closed-form --mask quantiles",
)
SHOWN = 24
"""Number of values in the table for people; the heat map shows all values."""


@dataclass(frozen=True, kw_only=True)
class AskedEvidence:
    """Options that select the masks and counts to use, and the method of reconstruction."""

    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="all-evidence, smooth, channel-em, closed-form, ipf or sampling.",
        ),
    ] = "all-evidence"
    know: Annotated[
        str | None,
        typer.Option(
            "--know",
            metavar="WHAT",
            help="What the estimate may use besides masked values: raw (counts by value and label), "
            "histogram or nothing. By default: histogram, if the summary has it.",
        ),
    ] = None
    mask: Annotated[
        list[str] | None,
        typer.Option(
            "--mask",
            metavar="MASK",
            help="Use only this mask, such as quantiles or 'bucketize(width=10)'. Repeat the option "
            "for several. By default: all candidates.",
        ),
    ] = None
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            "-m",
            metavar="NAME",
            autocompletion=completion.measures,
            help="Measure of one attribute to compare.",
        ),
    ] = "mi"


@dataclass(frozen=True, kw_only=True)
class ReconstructCommand:
    """All options of `aegis reconstruct`."""

    table: TableOrBundle
    attribute: Annotated[
        str, typer.Option("--attribute", "-a", metavar="NAME", help="The attribute to reconstruct.")
    ]
    policy: PolicyOfTable = None
    evidence: AskedEvidence
    plot: Annotated[
        Path | None, file_option("--plot", text="Write the heat map (.html or .svg).")
    ] = None
    verify_key: VerifyKey = None
    opening: Opening
    running: RunOptions


@opens_table
def command(asked: ReconstructCommand) -> None:
    """Estimate the joint distribution of an attribute and the label from its masked values.

    You give a table and its policy, or a summary. Aegis prints estimated and true
    numbers of rows by value and class, a heat map, and the total variation distance
    between both (0: equal, 1: nothing in common). It also prints the attribute's
    estimated predictive value, with guaranteed bounds. If a summary has no counts by
    raw value and label, Aegis shows no true numbers. For a protected summary, the
    label table reveals the number of rows in each cell and class. Aegis prints these
    numbers, each with its error."""
    from aegis.files import write_text
    from aegis.papers.estimates.deviation import measure_of_attributes
    from aegis.study import Study
    from aegis.summary import Information, Summary

    table, plot, evidence = asked.table, asked.plot, asked.evidence
    check_outputs(
        [(plot, (*HTML, ".svg"))], force=asked.running.force, inputs=(table, asked.policy)
    )
    if evidence.know is not None:
        Information.of(evidence.know)
    measure_of_attributes(evidence.measure)
    shell = asked.running.shell
    added: Any = format_of_summary(table)
    if not hasattr(added, "reconstruct"):
        refuse_added(table)
    else:
        exact = {"--plot": plot, "--verify-key": asked.verify_key} | given_options(evidence)
        added.reconstruct(table, asked.attribute, exact, shell)
        return
    subject = asked.opening.subject(table, quiet=asked.running.quiet, verify_key=asked.verify_key)
    with reporting(quiet=asked.running.quiet) as progress:
        policy = None if isinstance(subject, Summary) else asked.policy  # a summary has its masks
        study = Study(subject, policy, seed=asked.running.seed, progress=progress)
        estimate = study.reconstruct(
            asked.attribute,
            know=evidence.know,
            method=evidence.method,
            masks=evidence.mask,
            measure=evidence.measure,
        )
    if plot is not None:
        picture = _picture(estimate)
        write_text(plot, picture.svg() if plot.suffix.lower() == ".svg" else picture.html())
    _print(shell, estimate, plot)


def _picture(estimate: JointEstimate) -> HeatMap:

    attribute = estimate.attribute
    return HeatMap(
        title=f"Rows by {attribute.name} and {estimate.label}",
        across=attribute.name,
        values=estimate.values,
        classes=estimate.classes,
        estimate=estimate.reconstruction.table,
        truth=None if attribute.domain else attribute.joint.astype(float),
    )


def _print(shell: Output, estimate: JointEstimate, plot: Path | None) -> None:
    values, label_classes, truth = estimate.values, estimate.classes, estimate.truth
    data = {"schema": SCHEMA} | estimate.to_dict() | {"files": written_dict([plot])}
    header = ("value", *(f"{k}:{c}" for c in label_classes for k in ("estimate", "truth")))
    known: Sequence[Sequence[int | None]] = truth or [[None] * len(label_classes)] * len(values)
    rows = zip(values, estimate.reconstruction.table.tolist(), known, strict=True)
    lines = ([value, *chain(*zip(estimated, true, strict=True))] for value, estimated, true in rows)
    if shell.as_data(data, header, lines):
        if shell.format is Format.CSV:
            shell.say(*written([plot]))
        return
    from aegis.cli.output import heading, line, pairs

    shell.warn(estimate.reconstruction.notes)
    shell.show(pairs(_overview(estimate)))
    title = "Estimate, rows" if truth is None else "Estimate and truth, rows"
    width = console(sys.stdout).width
    blocks = list(_values(estimate, width))
    shell.show(heading(title), blocks[0])
    for block in blocks[1:]:
        shell.show(line(""), block)
    if len(values) > SHOWN:
        shell.show(
            line(
                f"{SHOWN} of {len(values):,} values, the most frequent; --format csv gives all.",
                style="dim",
            )
        )
    shown = line(_picture(estimate).text(width))
    shell.show(heading("Heat map, darker where a class has more rows"), shown)
    shell.say(*written([plot]))


def _overview(estimate: JointEstimate) -> Iterator[tuple[str, str]]:
    from aegis.cli.output import fixed

    own, joint, figures = estimate.attribute, estimate.reconstruction, estimate.figures
    known = {"raw": "the raw joint", "histogram": "masks and histogram"}
    ended = "converged" if joint.converged else "did not converge"
    yield "Attribute", f"{own.name}: {len(own.all_values):,} values"
    yield "Known", known.get(str(estimate.know), "masks")
    yield "Method", f"{joint.method}, {ended} after {joint.iterations:,} iterations"
    true = "the summary carries no truth"
    if joint.total_variation is not None:
        yield "Total variation distance", fixed(joint.total_variation)
        true = f"{fixed(estimate.true)} true"
    yield f"{estimate.measure} of the attribute", f"{fixed(figures.estimate)} estimated, {true}"
    if figures.lower is not None:
        yield (
            "Bounds whatever the truth",
            f"{fixed(figures.lower)} to {fixed(figures.upper)}; "
            f"the finest mask has {fixed(figures.masked)}",
        )


def _values(estimate: JointEstimate, width: int) -> Iterator[Table]:
    from aegis.cli.output import fixed

    own, table, values = estimate.attribute, estimate.reconstruction.table, estimate.values
    known = own.domain is None
    rows_of: list[float] = own.counts.tolist() if known else table.sum(axis=1).tolist()
    chosen = sorted(sorted(range(len(values)), key=lambda i: -rows_of[i])[:SHOWN])
    cells = []
    for i in chosen:
        figures = [[fixed(float(estimated), 1)] for estimated in table[i]]
        if known:
            for cell, count in zip(figures, own.joint[i].tolist(), strict=True):
                cell.append(f"{count:,}")
        cells.append(figures)
    return estimate_tables(
        own.name,
        [values[i] for i in chosen],
        estimate.classes,
        cells,
        titles=("estimate", "truth")[: 1 + known],
        width=width,
    )
