"""Render the results of trained models as a section of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aegis.report.charts import (
    FULL,
    HEAT_STEPS,
    SYMBOL,
    Plot,
    Points,
    fit,
    fitted,
    grid,
    heat_body,
    left_margin,
    symbols,
    variable,
    with_names,
    with_status,
)
from aegis.report.context import TOP, is_relative, score_axis
from aegis.report.render import draw_twice, environment
from aegis.report.section import ReportSection
from aegis.report.svg import Drawing
from aegis.report.words import clean, count, measured

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.papers.figures import Agreement, Score

CORRELATION_BOUNDS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Rank correlations at which the next step of the heat map begins."""
FEWEST = 4
"""Fewest configurations for a rank correlation; three have the same order by chance once in 6."""

METRIC_WORDS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
"""Names of metrics in words, for readers of the report."""


class EvaluationResult(Protocol):
    """The figures of an evaluation that the section shows."""

    @property
    def metric(self) -> str:
        """The metric with which `agreement` compares measures."""

    @property
    def scores(self) -> Sequence[Score]:
        """The metrics of the trained models: one entry for each model, metric and configuration."""

    @property
    def agreement(self) -> Sequence[Agreement]:
        """How well the order of configurations by each measure agrees with their order by the
        metric of each trained model: one entry for each measure and model.
        """


def trained_section(evaluation: EvaluationResult, advice: Advice) -> ReportSection | None:
    """Return the section on trained models; None if no models were trained."""
    relative = is_relative(advice)
    figures = evaluation_section(evaluation, advice, TOP, relative=relative)
    if figures is None:
        return None
    context = {
        "evaluation": figures,
        "drawings": trained_drawings(figures, score_axis(advice)),
        "correlations": CORRELATION_BOUNDS,
    }
    templates = environment(Path(__file__).parent / "templates")
    html = templates.get_template("evaluation.html.j2").render(context)
    return ReportSection("evaluation", "Trained models", html)


def trained_drawings(evaluation: Mapping[str, Any], axis: str) -> dict[str, Drawing]:
    """Draw the charts of trained models. `evaluation` has the figures of the report's section; a
    chart without data is left out. `axis` is the title of the axis of scores.
    """
    drawings = {}
    ranks, metric = evaluation["ranks"], evaluation["metric"]
    if ranks["cells"]:
        drawings["agreement"] = draw_twice(
            "agreement",
            "How well measures rank, by model",
            "Spearman's rank correlation; the table below it holds the same figures.",
            lambda width: agreement_chart(
                ranks["measures"], ranks["models"], ranks["cells"], width
            ),
        )
    if evaluation["panels"]:
        drawings["trained"] = draw_twice(
            "trained",
            "Trained models against the score",
            f"One panel per model, one point per configuration: {metric} against {axis}.",
            lambda width: trained_chart(evaluation["panels"], axis, metric, width),
        )
    return drawings


def evaluation_section(
    evaluation: EvaluationResult, advice: Advice, top: int, *, relative: bool
) -> dict[str, Any] | None:
    """Return the figures of the report's section on trained models: their metrics on the first
    `top` configurations, and how well scores agree with these metrics. Return None if there are
    none. `relative` says whether scores are shown in percent of the unmasked table's score.
    """
    if not evaluation.scores and not evaluation.agreement:
        return None
    names = list(dict.fromkeys(score.configuration for score in evaluation.scores))
    releases = {ranked.name for ranked in advice.ranking if ranked.method is not None}
    enough = len(set(names) - releases) >= FEWEST
    top_names = set(names[:top])
    return {
        "metric": METRIC_WORDS.get(evaluation.metric, clean(evaluation.metric, limit=80)),
        "reached": _reached(evaluation, advice),
        "fewest": FEWEST,
        "ranks": _ranks(evaluation.agreement if enough else ()),
        "panels": _panels(evaluation, advice, relative=relative),
        "cut": len(names) > top,
        "shown": len(top_names),
        "total": count(len(names)),
        "scores": [
            {
                "model": clean(score.model, limit=80),
                "metric": clean(score.metric, limit=80),
                "configuration": clean(score.configuration, limit=120),
                "value": _with_deviation(score.value, score.deviation),
                "unmasked": measured(score.unmasked),
            }
            for score in evaluation.scores
            if score.configuration in top_names
        ],
        "agreement": [
            {
                "measure": clean(agreement_.measure, limit=80),
                "model": clean(agreement_.model, limit=80),
                "spearman": _correlation(agreement_.spearman if enough else None),
                "kendall": _correlation(agreement_.kendall if enough else None),
                "loss": measured(agreement_.loss),
            }
            for agreement_ in evaluation.agreement
        ],
    }


def _reached(evaluation: EvaluationResult, advice: Advice) -> list[dict[str, str]]:
    """Return each model's metrics for the recommended configuration and for the unmasked table."""
    best = advice.best
    return [
        {
            "model": clean(score.model, limit=80),
            "metric": METRIC_WORDS[score.metric],
            "masked": _with_deviation(score.value, score.deviation),
            "unmasked": measured(score.unmasked),
            "change": measured(None)
            if score.unmasked is None
            else f"{score.value - score.unmasked:+.4f}",
        }
        for score in evaluation.scores
        if best is not None and score.configuration == best.name and score.metric in METRIC_WORDS
    ]


def _ranks(agreement: Sequence[Agreement]) -> dict[str, Any]:
    """Return the rank correlations in `agreement` as cells of a heat map: rows are measures,
    columns are models.
    """
    measures = list(dict.fromkeys(agreement_.measure for agreement_ in agreement))
    models = list(dict.fromkeys(agreement_.model for agreement_ in agreement))
    return {
        "measures": [clean(name, limit=80) for name in measures],
        "models": [clean(name, limit=80) for name in models],
        "cells": [
            {
                "row": measures.index(agreement_.measure),
                "column": models.index(agreement_.model),
                "text": _correlation(agreement_.spearman),
                "step": HEAT_STEPS
                if agreement_.spearman is None
                else sum(agreement_.spearman >= bound for bound in CORRELATION_BOUNDS),
            }
            for agreement_ in agreement
        ],
    }


def _panels(
    evaluation: EvaluationResult, advice: Advice, *, relative: bool
) -> list[dict[str, Any]]:
    """Return, for each model, the points of a chart: for each configuration its score (or the
    utility kept, if `relative`) and the model's metric.
    """
    utility = {
        ranked.name: ranked.utility_kept if relative else ranked.score for ranked in advice.ranking
    }
    ranked = {ranked.name: ranked for ranked in advice.ranking if utility[ranked.name] is not None}
    models = dict.fromkeys(s.model for s in evaluation.scores if s.metric == evaluation.metric)
    panels = []
    for model in models:
        points = [
            {
                "utility": utility[s.configuration],
                "reached": s.value,
                "admissible": ranked[s.configuration].admissible,
                "recommended": ranked[s.configuration] is advice.best,
            }
            for s in evaluation.scores
            if (s.model, s.metric) == (model, evaluation.metric) and s.configuration in ranked
        ]
        if len({point["utility"] for point in points}) > 1:
            panels.append({"title": clean(model, limit=80), "points": points})
    return panels


def _correlation(value: float | None) -> str:
    return measured(None) if value is None else f"{value:.2f}"


def _with_deviation(value: float, deviation: float | None) -> str:
    return measured(value) if deviation is None else f"{value:.4f} ± {deviation:.4f}"


def agreement_chart(
    measures: Sequence[str], models: Sequence[str], cells: Points, width: int
) -> Plot:
    """Draw a heat map of Spearman's correlation: a row per measure, a column per model. `cells` has
    the correlations, and `width` is the width of the chart.
    """
    import altair as alt

    names = fitted(measures, width)
    step = min((width - left_margin(names) - 8) / max(len(models), 1), 72)
    titles = [fit(model, step - 4) for model in models]
    axis = alt.Axis(orient="top", labelExpr="column_names[datum.value]", labelAngle=0, labelLimit=0)
    body = heat_body(axis, 11)
    chart = body.properties(width=step * len(models), height=alt.Step(24))
    return Plot(with_names(chart, row_names=names, column_names=titles), {"cells": cells})


def trained_chart(models: Sequence[Mapping[str, Any]], score: str, metric: str, width: int) -> Plot:
    """Draw the metric of each model against the score, one panel for each model.

    Each entry of `models` has a `title` and `points` with `utility`, `reached`, `admissible` and
    `recommended`.
    """
    import altair as alt

    columns = 2 if width == FULL and len(models) > 1 else 1
    size = (width - 90 * columns) / columns
    panels, data = [], {}
    for number, model in enumerate(models):
        name = f"model_{number}"
        data[name] = [with_status(point) for point in model["points"]]
        panels.append(
            alt.Chart(alt.NamedData(name))
            .mark_point(**SYMBOL)
            .encode(
                x=alt.X(
                    "utility:Q",
                    title=score,
                    scale=alt.Scale(zero=False, nice=True, padding=12),
                    axis=grid(5),
                ),
                y=alt.Y(
                    "reached:Q",
                    title=metric,
                    scale=alt.Scale(zero=False, nice=True, padding=12),
                    axis=grid(5),
                ),
                **symbols(),
            )
            .properties(width=size, height=190, title=_titled(fit(str(model["title"]), size)))
        )
    return Plot(alt.concat(*panels, columns=columns), data)


def _titled(text: str) -> Any:
    import altair as alt

    return alt.TitleParams(text=text, color=variable("ink"), anchor="start", fontSize=12)
