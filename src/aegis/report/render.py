"""Write the report on an advice, as one HTML file without external resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis._version import __version__
from aegis.advisor.owner_preview import ReleaseValues
from aegis.options import checks_types
from aegis.present import mask_shown, value_shown
from aegis.report import charts
from aegis.report.charts import DARK, HEAT_BOUNDS, LIGHT, heat_step
from aegis.report.context import build_context
from aegis.report.section import Reported, ReportSection, advice_of
from aegis.report.sections import changed_masks, listed_masks, options_text
from aegis.report.svg import FONT, Drawing, draw
from aegis.report.words import clean, count, measured, part, percent, prose

if TYPE_CHECKING:
    import jinja2

    from aegis.advisor.advice import Advice
    from aegis.advisor.figures import Front

DEFAULT_TITLE = "Masking advice"
"""The report's heading if the caller gives none."""
_FILTERS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        changed_masks,
        clean,
        count,
        heat_step,
        listed_masks,
        mask_shown,
        measured,
        options_text,
        part,
        percent,
        prose,
        value_shown,
    )
}
"""Functions with which templates write figures, and text from the data; all other text is escaped only."""


@checks_types
def render_report(
    given: Advice | Reported,
    *,
    title: str | None = None,
    shown: ReleaseValues | None = None,
    sections: Sequence[ReportSection] = (),
) -> str:
    """Return the report on an advice, or on an object with an advice, as one HTML document.

    The document is for offline reading. It loads no script, font or image, and its content security
    policy forbids loading any. It contains no date, so that the same advice gives the same bytes.

    Parameters
    ----------
    given
        The result of `advise`, `search`, `evaluate` or a method of `Study`.
    title
        The report's heading as plain text.
    shown
        Values of the release, as `Study.report` makes them. If None, the report shows no values.
    sections
        Sections of installed packages, as `Study.report` collects them.

    Examples
    --------
    >>> import aegis
    >>> advice = aegis.advise("data/adult.parquet", "examples/adult/policy.yaml", generate_count=5)
    >>> aegis.render_report(advice).startswith("<!doctype html>")
    True
    """
    if isinstance(given, Reported):
        sections = (*given.report_sections(), *sections)
    context = build_context(advice_of(given), title=title or DEFAULT_TITLE, owner_preview=shown)
    context["sections"] = sections
    context["drawings"] = _drawings(context)
    return environment().get_template("report.html.j2").render(context)


@cache
def environment(*folders: Path) -> jinja2.Environment:
    """Return an autoescaping Jinja environment for `folders` and the report's templates."""
    import jinja2

    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent / "templates"]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters.update(_FILTERS)
    jinja.globals["style"] = {"light": LIGHT, "dark": DARK, "font": FONT, "bounds": HEAT_BOUNDS}
    jinja.globals["version"] = __version__
    return jinja


def _drawings(context: dict[str, Any]) -> dict[str, Drawing]:
    """Return the charts of the report by name; those without data are left out."""
    drawings: dict[str, Drawing] = {}
    ranking, front = context["ranking"], context["front"]
    if ranking["points"]:
        drawings["ranking"] = draw_twice(
            "ranking",
            "Ranking of configurations",
            _ranking_words(ranking["points"]),
            lambda width: charts.ranking_chart(ranking["points"], ranking["axis"], width),
            charts.HALF,
        )
        if ranking["scattered"]:
            limit = None if ranking["by_class"] else context["rule"]["limit"]
            drawings["scatter"] = _scatter_drawing(ranking, limit)
        drawings["heat"] = draw_twice(
            "heat",
            "Utility kept per attribute and configuration",
            "A heat map; the table below it holds the same figures.",
            lambda width: charts.heat_chart(
                ranking["heat_names"],
                *_columns(ranking, ranking["small"] if width == charts.SMALL else None),
                width,
            ),
        )
    if context["privacy"] is not None:
        drawings["histogram"] = histogram_drawing(context["privacy"])
    if front and any(point.utility_kept is not None for point in front.visible_points):
        drawings["front"] = _front_drawing(front)
    return drawings


def _scatter_drawing(ranking: Mapping[str, Any], limit: Any) -> Drawing:
    """Return the chart of utility against suppressed rows, or the smallest class without a limit."""
    against = "the size of its smallest class" if limit is None else "the rows it suppresses"
    return draw_twice(
        "scatter",
        "Privacy against utility",
        f"One point per configuration: utility kept against {against}.",
        lambda width: charts.scatter_chart(ranking["scatter"], ranking["axis"], width, limit=limit),
        charts.HALF,
    )


def _front_drawing(front: Front) -> Drawing:
    """Return the chart of a front: the utility kept at each point that has a utility."""
    parameter = clean(front.parameter, limit=80)
    points = [
        {"value": point.value, "kept": point.utility_kept, "knee": point.value == front.knee}
        for point in front.visible_points
        if point.utility_kept is not None
    ]
    return draw_twice(
        "front",
        "Pareto front of privacy against utility",
        f"Utility kept by {parameter}; the table below it holds the same figures.",
        lambda width: charts.front_chart(points, parameter, width),
    )


def histogram_drawing(privacy: Mapping[str, Any]) -> Drawing:
    """Return the histogram of class sizes for the section on privacy."""
    histogram = privacy["histogram"]
    return draw_twice(
        "histogram",
        f"{histogram['unit'].capitalize()} by the size of their class",
        "Bars per class size; the table below them holds the same figures.",
        lambda width: charts.histogram_chart(
            histogram["points"], histogram["sizes"], histogram["series"], width, histogram["unit"]
        ),
    )


def _columns(ranking: Mapping[str, Any], limit: int | None) -> tuple[charts.Points, Any]:
    """Return the first `limit` configurations as columns of the heat map (None: all), and the cells
    of each column.
    """
    return ranking["points"][:limit], ranking["heat"][:limit]


def _ranking_words(points: Sequence[Mapping[str, Any]]) -> str:
    """Return a text that describes the chart of the ranking for readers who cannot see it."""
    entries = [
        f"{p['name']} {p['text']}, {'meets the rule' if p['admissible'] else 'does not meet the rule'}"
        for p in points[:5]
    ]
    return f"Utility kept, best first: {'; '.join(entries)}."


def draw_twice(
    name: str,
    title: str,
    description: str,
    chart: Callable[[int], charts.Plot],
    width: int = charts.FULL,
) -> Drawing:
    """Draw a chart in two widths: `width` pixels for wide screens, and fewer pixels for small
    screens.

    Parameters
    ----------
    name
        An identifier of the chart that is unique in the page.
    title, description
        Texts for screen readers.
    chart
        Function that returns the chart for a width in pixels.
    width
        The larger width.
    """
    return Drawing(
        wide=draw(chart(width), name=f"{name}-wide", title=title, description=description),
        narrow=draw(
            chart(charts.SMALL), name=f"{name}-narrow", title=title, description=description
        ),
    )
