"""Draw the charts of the workbench as SVG on the server, so that pages need no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from aegis.words import percent

if TYPE_CHECKING:
    from aegis.advisor.figures import Front
    from aegis.safe.protect import ProtectedPoint

_WIDTH, _HEIGHT = 460, 240
_LEFT, _BOTTOM, _TOP, _RIGHT = 64, 44, 16, 32


def front_chart(front: Front) -> Markup:
    """Return the chart of the best configuration's utility for each strength of the rule."""
    points = [(f"{p.value:g}", p.utility_kept) for p in front.points]
    drawn = [(name, value) for name, value in points if value is not None]
    if not drawn:
        return Markup("<p>No strength of the rule has an admissible configuration.</p>")
    axis = f"{front.parameter}: stricter to the right"
    without = [name for name, value in points if value is None]
    return _chart(drawn, front.parameter, axis, without)


def protected_front_chart(points: Sequence[ProtectedPoint]) -> Markup:
    """Return the chart of utility against the estimated size of equivalence classes."""
    drawn = [
        (f"{p.alike:,.0f}" if p.alike >= 10 else f"{p.alike:.1f}", p.utility_kept)
        for p in points
        if p.utility_kept is not None
    ]
    if not drawn:
        return Markup("<p>Nothing of the label shows in this summary.</p>")
    axis = "rows that look alike, estimated: more private to the right"
    return _chart(drawn, "rows alike", axis, ())


def _chart(
    points: Sequence[tuple[str, float]], parameter: str, axis: str, without: Sequence[str]
) -> Markup:
    """Return a line through points, each with a name and a percentage."""
    low = max(0.0, min(value for _, value in points) - 5)
    high = min(100.0, max(value for _, value in points) + 5)
    span = max(high - low, 1e-9)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(points) - 1, 1)

    def height(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (value - low) / span)

    places = [(_LEFT + i * step, height(value)) for i, (_, value) in enumerate(points)]
    ticks = Markup("").join(
        Markup('<text x="{x}" y="{y:.1f}" text-anchor="end">{value:.0f} %</text>').format(
            x=_LEFT - 8, y=height(value) + 4, value=value
        )
        for value in (low, (low + high) / 2, high)
    )
    drawn = Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{said}">'
        '<line class="axis" x1="{l}" y1="{b}" x2="{r}" y2="{b}"/>{ticks}'
        '<polyline class="line" points="{line}"/>{marks}'
        '<text x="{mid}" y="{h2}" text-anchor="middle">{axis}</text></svg>'
    ).format(
        w=_WIDTH,
        h=_HEIGHT,
        said="; ".join(f"{parameter} = {name}: {percent(value)}" for name, value in points),
        l=_LEFT,
        r=_WIDTH - _RIGHT,
        b=_HEIGHT - _BOTTOM,
        ticks=ticks,
        line=" ".join(f"{x:.1f},{y:.1f}" for x, y in places),
        marks=_marks(places, points, parameter),
        mid=_WIDTH / 2,
        h2=_HEIGHT - 4,
        axis=axis,
    )
    if not without:
        return drawn
    note = Markup('<p class="small quiet">None is admissible for {p} = {v}.</p>').format(
        p=parameter, v=", ".join(without)
    )
    return drawn + note


def _marks(
    places: Sequence[tuple[float, float]], points: Sequence[tuple[str, float]], parameter: str
) -> Markup:
    """Return a dot for each point, with its name below the chart and its percentage as a title."""
    return Markup("").join(
        Markup(
            '<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{title}</title></circle>'
            '<text x="{x:.1f}" y="{below}" text-anchor="middle">{name}</text>'
        ).format(
            x=x,
            y=y,
            below=_HEIGHT - _BOTTOM + 18,
            name=name,
            title=f"{parameter} = {name}: {percent(value)} kept",
        )
        for (x, y), (name, value) in zip(places, points, strict=True)
    )
