"""Draw charts of trained models: rank correlations of measures, and metrics against scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aegis.report.charts import (
    FULL,
    SYMBOL,
    Plot,
    Points,
    fitted,
    grid,
    heat_body,
    left,
    symbols,
    with_names,
    with_status,
)
from aegis.report.labels import fit
from aegis.report.palette import variable


def agreement_chart(
    measures: Sequence[str], models: Sequence[str], cells: Points, width: int
) -> Plot:
    """Draw a heat map of Spearman's correlation: a row per measure, a column per model."""
    import altair as alt

    names = fitted(measures, width)
    step = min((width - left(names) - 8) / max(len(models), 1), 72)
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
