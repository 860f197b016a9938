"""Make the charts of the report with Altair, from plain points, in the colours of its light and dark
mode.

A name from the data never becomes a field, the domain of a scale or an expression. Charts use
indices, and axes look up the names in a list. So Vega cannot interpret a name as syntax, and two
names that look the same stay separate. Admissible configurations are filled circles and all others
are hollow diamonds, so that shape and colour carry the same information.

Vega cuts labels between UTF-16 units. This breaks characters beyond the basic plane and stops the
renderer. So labels are cut here, between characters, and Vega draws them unchanged.

Templates and charts refer to a colour by its CSS variable, so that one drawing works in both modes.
The contrast to the background is at least 4.5 for text, and at least 3 for marks that carry meaning
(WCAG 2.2, success criteria 1.4.3 and 1.4.11). A test computes the contrast of every pair.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

SIZE = 12
"""Size of a label's type, in pixels."""

_NARROW = frozenset(" .,:;!'|ijltfrI()[]{}-/\\`")
_BROAD = frozenset("mwMW@%&")


def text_width(text: str, size: int = SIZE) -> float:
    """Return the estimated width of a text in pixels at this type size. It tends to be too large, because
    fonts of non-Latin scripts differ too much.
    """
    return size * sum(map(_ems, text))


def fit(text: str, pixels: float, size: int = SIZE) -> str:
    """Return the text at most `pixels` wide; longer text is cut and ends in "…"."""
    if text_width(text, size) <= pixels:
        return text
    room, used = pixels - size, 0.0
    for index, character in enumerate(text):
        used += size * _ems(character)
        if used > room:
            return text[:index].rstrip() + "…"
    return text


def _ems(character: str) -> float:
    """Return the width of a character, in multiples of the type size."""
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.34
    if character in _BROAD:
        return 0.92
    return 0.7 if character.isupper() or ord(character) > 0x24F else 0.57


HEAT_STEPS = 6
"""Number of colour steps of the heat map, from little kept to everything kept."""

HEAT_BOUNDS = (10.0, 30.0, 50.0, 70.0, 90.0)
"""The percentages kept at which the next colour step of the heat map begins."""

LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "page": "#f5f7f9",
        "card": "#ffffff",
        "sunken": "#eef2f5",
        "line": "#d5dde4",
        "ink": "#16212c",
        "muted": "#516070",
        "accent": "#0b5b89",
        "accent-soft": "#e4f0f7",
        "caution": "#a8410f",
        "caution-soft": "#fcefe7",
        "mark-line": "#a9b6c2",
        "heat-0": "#eef3f7",
        "heat-1": "#d3e3ef",
        "heat-2": "#a9cbe2",
        "heat-3": "#74abd0",
        "heat-4": "#2b74a8",
        "heat-5": "#0b4a75",
        "heat-text-0": "#16212c",
        "heat-text-1": "#16212c",
        "heat-text-2": "#16212c",
        "heat-text-3": "#0d1720",
        "heat-text-4": "#ffffff",
        "heat-text-5": "#ffffff",
    }
)

DARK: Mapping[str, str] = MappingProxyType(
    {
        "page": "#10161c",
        "card": "#18202a",
        "sunken": "#202b37",
        "line": "#334252",
        "ink": "#e9eef3",
        "muted": "#a5b3c1",
        "accent": "#74bce8",
        "accent-soft": "#17344a",
        "caution": "#f2a071",
        "caution-soft": "#3a2619",
        "mark-line": "#5c6d7e",
        "heat-0": "#202b37",
        "heat-1": "#1d3d55",
        "heat-2": "#1d5479",
        "heat-3": "#3f87b5",
        "heat-4": "#79b8df",
        "heat-5": "#bfe0f5",
        "heat-text-0": "#e9eef3",
        "heat-text-1": "#e9eef3",
        "heat-text-2": "#ffffff",
        "heat-text-3": "#0b1219",
        "heat-text-4": "#0b1219",
        "heat-text-5": "#0b1219",
    }
)


def variable(name: str) -> str:
    """Return the CSS variable of a colour, to use in the attributes of a drawing.

    Raises
    ------
    KeyError
        The palette has no colour with this name.
    """
    LIGHT[name]
    return f"var(--{name})"


def heat_step(utility: float | None) -> int | None:
    """Return the number of the heat map's colour for a utility, 0 for the lowest; None for None."""
    return None if utility is None else sum(utility >= bound for bound in HEAT_BOUNDS)


FULL, HALF, SMALL = 936, 456, 316
"""Widths in pixels: of the page, of half the page, and of a small screen."""

_COLUMN_SIZE, _COLUMN_ROOM = 11, 96
"""Pixels of the type above the heat map, and of the space for upright names."""

_STATUS = ("recommended", "admissible", "failing")

Points = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Plot:
    """An Altair chart with its data.

    Attributes
    ----------
    chart
        The Altair chart, which refers to data sets by name.
    data
        The rows of each data set, by the name of the data set.
    """

    chart: Any
    data: Mapping[str, Points]


def ranking_chart(points: Points, axis: str, width: int) -> Plot:
    """Return a chart of the ranking: the utility or score of each configuration, with the best at
    the top.

    The axis does not start at zero but spans the scores, so that it shows their differences.

    Parameters
    ----------
    points
        One entry for each configuration, best first, with its name and utility.
    axis
        Title of the axis.
    width
        Width in pixels.
    """
    import altair as alt

    data = [{"place": rank, **with_status(p)} for rank, p in enumerate(points)]
    names = [fit(p.get("label", p["name"]), 0.45 * width) for p in points]
    domain = _spread([p["utility"] for p in points])
    base = alt.Chart(alt.NamedData("points")).encode(
        y=alt.Y("place:O", title=None, axis=row_axis())
    )
    x = alt.X(
        "utility:Q",
        title=axis,
        scale=alt.Scale(domain=domain, padding=10, nice=False),
        axis=grid(4),
    )
    heads = base.mark_point(**SYMBOL).encode(x=x, **symbols())
    weight = alt.expr("datum.recommended ? 'bold' : 'normal'")
    figures = base.mark_text(align="left", dx=12, fontSize=12, fontWeight=weight).encode(
        x=x, text="text:N", color=alt.value(variable("ink"))
    )
    layers = (heads + figures).resolve_scale(color="independent")
    inner = width - left_margin(names) - 72
    chart = layers.properties(width=inner, height=alt.Step(26))
    return Plot(with_names(chart, row_names=names), {"points": data})


def scatter_chart(points: Points, axis: str, width: int, *, limit: float | None) -> Plot:
    """Return a chart of utility against privacy, with one point for each configuration.

    With a suppression `limit` in percent, privacy is the share of suppressed rows, and a line shows the
    limit. Otherwise, it is the size of the smallest class.
    """
    import altair as alt

    data: dict[str, Points] = {
        "points": [with_status(p) for p in points],
        "named": [{**p, "name": fit(p["name"], 150)} for p in points if p["recommended"]],
        "limit": [] if limit is None else [{"limit": limit, "text": f"limit {limit:g} %"}],
    }
    position = {
        "x": alt.X(
            "utility:Q",
            title=axis,
            scale=alt.Scale(domain=_spread([p["utility"] for p in points]), padding=14),
            axis=grid(5 if width == HALF else 4),
        ),
        "y": _class_axis(points) if limit is None else _left_out_axis(points, limit),
    }
    chart = alt.Chart(alt.NamedData("points")).mark_point(**SYMBOL)
    layers = [chart.encode(**position, **symbols())]
    name = alt.Chart(alt.NamedData("named")).encode(**position, text="name:N")
    text_style = {"align": "center", "baseline": "bottom", "dy": -11, "fontSize": 12}
    # A ground in the colour of the card keeps the name legible above other points.
    ground = name.mark_text(**text_style, fontWeight="bold", strokeWidth=4, stroke=variable("card"))
    layers += [
        ground.encode(color=alt.value(variable("card"))),
        name.mark_text(**text_style, fontWeight="bold").encode(color=alt.value(variable("ink"))),
    ]
    if limit is not None:
        layers = [*_limit_line(), *layers]
    height = 420 if width == HALF else 260
    return Plot(alt.layer(*layers).properties(width=width - 70, height=height), data)


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis that does not exaggerate small differences between the values.

    It spans at least a fiftieth of the largest value. So scores that differ only by sampling error
    do not look far apart.
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    least = 0.02 * max(abs(low), abs(high), 1e-9)
    return (low - max(0.0, least - (high - low)), high)


def heat_chart(names: Sequence[str], columns: Points, cells: Sequence[Points], width: int) -> Plot:
    """Return a heat map of the utility kept, by attribute (rows) and configuration (columns).

    Parameters
    ----------
    names
        Names of the attributes.
    columns
        One entry for each configuration, with its name and status.
    cells
        For each configuration, the utility kept of each attribute.
    width
        Width in pixels.
    """
    import altair as alt

    names = fitted(names, width)
    titles = [fit(column["name"], _COLUMN_ROOM, _COLUMN_SIZE) for column in columns]
    step = min((width - left_margin(names) - 8) / max(len(columns), 1), 44)
    axis = _column_axis(any(text_width(t, _COLUMN_SIZE) > step - 2 for t in titles))
    body = heat_body(axis, 11 if step >= 26 else 10)
    across = alt.Scale(paddingInner=0.06, paddingOuter=0)
    marks = alt.Chart(alt.NamedData("columns")).mark_point(**SYMBOL)
    strip = marks.encode(
        x=alt.X("column:O", axis=None, scale=across), **{**symbols(), "size": alt.value(50)}
    )
    chart = alt.vconcat(
        strip.properties(width=step * len(columns), height=16),
        body.properties(width=step * len(columns), height=alt.Step(26)),
        spacing=4,
    )
    data = {
        "cells": [
            {
                "row": row,
                "column": column,
                "text": cell["kept"] or "–",
                "step": HEAT_STEPS if cell["step"] is None else cell["step"],
            }
            for column, attributes in enumerate(cells)
            for row, cell in enumerate(attributes)
        ],
        "columns": [{"column": i, **with_status(c)} for i, c in enumerate(columns)],
    }
    return Plot(with_names(chart, row_names=names, column_names=titles), data)


def histogram_chart(
    points: Points, sizes: Sequence[str], series: Sequence[str], width: int, unit: str
) -> Plot:
    """Return a chart of the share of rows or persons (`unit`) by size of their class: hollow marks before
    masking, filled marks after it. `points` has the share for each size and series.
    """
    import altair as alt

    labels = [f"{size} (unique)" if size == "1" else size for size in sizes]
    top = max([1.0, *(p["share"] for p in points)])
    base = alt.Chart(alt.NamedData("points")).encode(
        y=alt.Y(
            "bin:O",
            title=f"{unit} in the class",
            axis=row_axis(),
            scale=alt.Scale(paddingInner=0.3, paddingOuter=0.1),
        ),
        yOffset=alt.YOffset("series:O", scale=alt.Scale(paddingInner=0.12)),
    )
    title, scale = f"share of all {unit} (%)", alt.Scale(domain=[0, top])
    x = alt.X("share:Q", title=title, scale=scale, axis=grid(5))
    fills = [variable("card")] * (len(series) - 1) + [variable("accent")]
    fill = alt.Fill(
        "series:O", legend=None, scale=alt.Scale(domain=list(range(len(series))), range=fills)
    )
    bars = base.mark_bar(strokeWidth=1.5, stroke=variable("accent")).encode(x=x, fill=fill)
    figures = base.mark_text(align="left", dx=6, fontSize=11).encode(
        x=x, text="text:N", color=alt.value(variable("muted"))
    )
    chart = (bars + figures).properties(width=width - 164, height=alt.Step(17))
    return Plot(with_names(chart, row_names=labels), {"points": points})


def front_chart(points: Points, parameter: str, width: int) -> Plot:
    """Return a chart of utility kept by a parameter of the rule; the knee is filled."""
    import altair as alt

    levels = [p["value"] for p in points]
    wide_spread = min(levels) > 0 and max(levels) > 20 * min(levels)
    scale = alt.Scale(type="log" if wide_spread else "linear", zero=False, nice=False, padding=16)
    base = alt.Chart(alt.NamedData("points")).encode(
        x=alt.X("value:Q", title=parameter, scale=scale, axis=grid(6, format="~r")),
        y=_from_least(alt.Y, "kept:Q", "utility kept (% of unmasked)", 5),
    )
    accent = variable("accent")
    knee = base.transform_filter("datum.knee")
    layers = [
        base.mark_line(interpolate="step-before", strokeWidth=2, color=accent),
        base.mark_point(size=70, strokeWidth=2, fill=variable("card"), opacity=1, color=accent),
        knee.mark_point(size=190, filled=True, opacity=1, color=accent),
        knee.mark_text(
            text="knee",
            align="left",
            baseline="bottom",
            dx=9,
            dy=-7,
            fontSize=12,
            fontWeight="bold",
            color=variable("ink"),
        ),
    ]
    return Plot(alt.layer(*layers).properties(width=width - 76, height=280), {"points": points})


def tradeoff_chart(points: Points, width: int) -> Plot:
    """Return a chart of loss against diversity of MO-OBAM's settings; Pareto-optimal ones are
    filled.
    """
    import altair as alt

    base = alt.Chart(alt.NamedData("points")).encode(
        x=_from_least(alt.X, "loss:Q", "information loss (IL)", 6),
        y=_from_least(alt.Y, "entropy:Q", "least entropy of a cluster (bits)", 5),
    )
    accent = variable("accent")
    efficient = base.transform_filter("datum.efficient")
    layers = [
        efficient.mark_line(interpolate="step-after", strokeWidth=1.5, color=accent),
        base.mark_point(
            size=70, strokeWidth=2, fill=variable("card"), opacity=1, color=variable("mark-line")
        ),
        efficient.mark_point(size=90, filled=True, opacity=1, color=accent),
    ]
    return Plot(alt.layer(*layers).properties(width=width - 76, height=280), {"points": points})


def _from_least(channel: Any, field: str, title: str, ticks: int) -> Any:
    """Return an axis for `field` that begins near the least value, not at 0."""
    import altair as alt

    return channel(field, title=title, scale=alt.Scale(zero=False, padding=16), axis=grid(ticks))


SYMBOL: Mapping[str, Any] = {"strokeWidth": 2, "opacity": 1, "fillOpacity": 1}


def with_status(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point with its status, which determines its symbol."""
    chosen = 0 if point["recommended"] else 1 if point["admissible"] else 2
    return {**point, "status": _STATUS[chosen]}


def symbols() -> dict[str, Any]:
    """Return the colour, fill, shape and size of the symbol for each status of a configuration."""
    import altair as alt

    accent, caution = variable("accent"), variable("caution")

    def scale(values: list[Any]) -> Any:
        return alt.Scale(domain=list(_STATUS), range=values)

    return {
        "color": alt.Color("status:N", legend=None, scale=scale([accent, accent, caution])),
        "fill": alt.Fill("status:N", legend=None, scale=scale([accent, accent, variable("card")])),
        "shape": alt.Shape("status:N", legend=None, scale=scale(["circle", "circle", "diamond"])),
        "size": alt.Size("status:N", legend=None, scale=scale([170, 55, 70])),
    }


def _by_step(family: str, undefined: str) -> Any:
    """Return the colour of heat map cells: of a `family`, or `undefined` without a utility."""
    import altair as alt

    colours = [variable(f"{family}-{step}") for step in range(HEAT_STEPS)] + [variable(undefined)]
    scale = alt.Scale(domain=list(range(HEAT_STEPS + 1)), range=colours)
    return alt.Color("step:O", legend=None, scale=scale)


def heat_body(axis: Any, size: int) -> Any:
    """Return the tiles of a heat map with figures, below `axis`; `size` is in pixels."""
    import altair as alt

    base = alt.Chart(alt.NamedData("cells")).encode(
        x=alt.X(
            "column:O",
            title=None,
            scale=alt.Scale(paddingInner=0.06, paddingOuter=0),
            axis=axis,
        ),
        y=alt.Y(
            "row:O",
            title=None,
            scale=alt.Scale(paddingInner=0.08, paddingOuter=0),
            axis=row_axis(),
        ),
    )
    tiles = base.mark_rect().encode(color=_by_step("heat", "sunken"))
    figures = base.mark_text(fontSize=size).encode(
        text="text:N", color=_by_step("heat-text", "muted")
    )
    return (tiles + figures).resolve_scale(color="independent")


def _room(width: int) -> int:
    """Return the largest width for names to the left of a chart, in pixels."""
    return 104 if width == SMALL else 130 if width == HALF else 190


def fitted(names: Sequence[str], width: int) -> list[str]:
    """Return the names, cut if need be to the margin of a chart of this width."""
    return [fit(name, _room(width) - 14) for name in names]


def left_margin(names: Sequence[str]) -> int:
    """Return how many pixels wide the left margin of a chart must be for these names."""
    return int(max(map(text_width, names), default=0)) + 14


def row_axis() -> Any:
    """Return an axis of rows, whose labels are the entries of `row_names` by index."""
    import altair as alt

    return alt.Axis(labelExpr="row_names[datum.value]", labelLimit=0, labelColor=variable("ink"))


def _column_axis(upright: bool) -> Any:
    """Return the axis above the heat map, whose labels are the entries of `column_names`."""
    import altair as alt

    return alt.Axis(
        orient="top",
        labelExpr="column_names[datum.value]",
        labelAngle=-90 if upright else 0,
        labelLimit=0,
        labelFontSize=_COLUMN_SIZE,
        labelColor=variable("ink"),
    )


def grid(ticks: int, **more: Any) -> Any:
    """Return an axis with dashed grid lines and about `ticks` ticks."""
    import altair as alt

    return alt.Axis(tickCount=ticks, gridDash=[2, 3], **more)


def with_names(chart: Any, **lists: Sequence[str]) -> Any:
    """Return the chart with lists of names, such as `row_names`, from which axes take labels."""
    import altair as alt

    return chart.add_params(*[alt.param(name=n, value=list(v)) for n, v in lists.items()])


def _left_out_axis(points: Points, limit: float) -> Any:
    import altair as alt

    top = max([limit, *(p["left_out"] for p in points)])
    ticks = [tick for tick in (0, 0.1, 0.3, 1, 3, 10, 30, 100) if tick <= top * 1.3]
    return alt.Y(
        "left_out:Q",
        title="rows to suppress (% of all)",
        # Linear near 0, which a logarithm cannot show, and logarithmic above.
        scale=alt.Scale(
            type="symlog", constant=0.05, domain=[0, max(top * 1.2, 0.05)], nice=False, padding=10
        ),
        axis=alt.Axis(values=ticks, format="~r", gridDash=[2, 3]),
    )


def _class_axis(points: Points) -> Any:
    import altair as alt

    sizes = [p["smallest_class"] for p in points]
    log = min(sizes) > 0 and max(sizes) > 10 * min(sizes)
    return alt.Y(
        "smallest_class:Q",
        title="rows of the smallest class",
        scale=alt.Scale(type="log" if log else "linear", zero=False, padding=10),
        axis=grid(5),
    )


def _limit_line() -> list[Any]:
    import altair as alt

    base = alt.Chart(alt.NamedData("limit")).encode(y="limit:Q")
    caution = variable("caution")
    return [
        base.mark_rule(strokeDash=[6, 4], strokeWidth=1.5, color=caution),
        base.mark_text(
            align="left", baseline="bottom", dx=6, dy=-4, fontSize=12, color=caution
        ).encode(x=alt.value(0), text="text:N"),
    ]
