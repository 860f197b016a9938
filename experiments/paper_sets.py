"""What the figures of the AEGIS paper share: its data sets, its configurations, what scores choose.

Air Quality (AQ), Income (IN: Adult), customer-hotel interactions (HCI); German credit is ours.
AQ and HCI come twice: as their files are, and as the domain sizes of the paper's Table 2 say that
the paper had them (`AQ-paper`: numbers rounded to whole ones; `HCI-paper`: ten categories).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from aegis.measures import FALLBACK_MEASURE
from aegis.papers.evaluation import METRICS, Evaluation
from aegis.policy import Configuration, Policy, load_policy
from aegis.sources import open_table
from aegis.summary import Summary, summarize
from common import ADULT, data, german
from paper_masks import paper_configurations, paper_policy

ESTIMATORS = ("aegis+1d", "aegis-1d", "sampling")
PUBLISHED_MEASURES = ("mi", "chi2", "g3")
TITLES = {
    FALLBACK_MEASURE: "Aegis (two codings)",
    "held-out-pillai-values": "held-out trace, values only",
    "adjusted-pillai": "Pillai's trace, adjusted",
    "aegis+1d:mi": "published, histogram, MI",
    "aegis+1d:chi2": "published, histogram, chi-square",
    "aegis+1d:g3": "published, histogram, g3",
    "aegis-1d:mi": "published, nothing known, MI",
    "aegis-1d:chi2": "published, nothing known, chi-square",
    "aegis-1d:g3": "published, nothing known, g3",
    "sampling:mi": "SAMPLING, MI",
    "sampling:chi2": "SAMPLING, chi-square",
    "sampling:g3": "SAMPLING, g3",
    "mascara": "MASCARA",
}
"""Scores that the figures compare, and what the plots call them."""


@dataclass(frozen=True)
class PaperSet:
    """A data set: how to read it, its label, what is no feature, how it is judged."""

    read: Callable[[], pa.Table]
    label: str
    metric: str
    identifiers: tuple[str, ...] = ()
    quasi_identifiers: tuple[str, ...] = ()


def _csv(*parts: str) -> pa.Table:
    return pyarrow.csv.read_csv(data(*parts))


def _air_quality() -> pa.Table:
    return _csv("air_quality", "updated_pollution_dataset.csv")


def _rounded_air_quality() -> pa.Table:
    table = _air_quality()
    columns = {
        name: pc.cast(pc.round(table[name]), pa.int64())
        if pa.types.is_floating(table[name].type)
        else table[name]
        for name in table.column_names
    }
    return pa.table(columns)


def _hotel() -> pa.Table:
    return _csv("hotel", "hotel_interactions.csv")


HOTEL_CATEGORIES = (
    "is_mobile",
    "is_package",
    "channel",
    "posa_continent",
    "hotel_country",
    "user_location_country",
    "user_location_region",
    "user_location_city",
    "srch_destination_id",
)
"""With the label the ten columns whose domain sizes are those of Table 2: 2 to 3,245, mean 657."""


def _hotel_with_categories() -> pa.Table:
    table = _hotel()
    columns = {
        name: pc.cast(table[name], pa.string()) if name in HOTEL_CATEGORIES else table[name]
        for name in table.column_names
    }
    return pa.table(columns)


AIR = (
    "Temperature",
    "Humidity",
    "PM2.5",
    "PM10",
    "NO2",
    "SO2",
    "CO",
    "Proximity_to_Industrial_Areas",
    "Population_Density",
)
GUEST = (
    "user_location_country",
    "user_location_region",
    "user_location_city",
    "srch_adults_cnt",
    "srch_children_cnt",
    "srch_rm_cnt",
    "channel",
    "site_name",
)
SETS = {
    "AQ": PaperSet(_air_quality, "Air Quality", "accuracy", (), AIR),
    "AQ-paper": PaperSet(_rounded_air_quality, "Air Quality", "accuracy", (), AIR),
    "IN": PaperSet(
        lambda: pyarrow.parquet.read_table(ADULT),
        "income",
        "accuracy",
        (),
        ("age", "education", "marital-status", "occupation", "race", "sex", "native-country"),
    ),
    "HCI": PaperSet(_hotel, "is_booking", "roc_auc", ("serial", "user_id"), GUEST),
    "HCI-paper": PaperSet(
        _hotel_with_categories, "is_booking", "roc_auc", ("serial", "user_id"), GUEST
    ),
    "German": PaperSet(german, "class", "roc_auc", (), ("attribute_09", "attribute_13")),
}
"""By the names of the paper; the metric is ROC AUC where one class has 92 % of the rows or the
table is small, accuracy elsewhere."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table with the paper's candidate masks, summarised."""

    name: str
    table: pa.Table
    policy: Policy
    summary: Summary

    def configurations(self, count: int, *, seed: int) -> list[Configuration]:
        """Draw configurations as the paper does."""
        return paper_configurations(self.summary, count, seed=seed)


def declare(name: str, columns: Iterable[str], *, privacy: Mapping[str, Any] | None = None) -> Any:
    """Return the policy of a data set before it gets the paper's masks, as a mapping."""
    chosen = SETS[name]
    role = {
        column: "quasi-identifier" if privacy and column in chosen.quasi_identifiers else "feature"
        for column in columns
        if column not in (chosen.label, *chosen.identifiers)
    }
    return {
        "version": 1,
        "label": chosen.label,
        "privacy": dict(privacy or {}),
        "attributes": {column: {"role": own} for column, own in role.items()},
    }


def prepare(
    name: str, *, rows: int | None = None, seed: int = 1, privacy: Mapping[str, Any] | None = None
) -> Prepared:
    """Read a data set, or a seeded sample of `rows`, and summarise it under the paper's masks."""
    table = SETS[name].read()
    if rows is not None and rows < table.num_rows:
        drawn = np.random.default_rng(seed).choice(table.num_rows, rows, replace=False)
        table = table.take(np.sort(drawn))
    source = open_table(table)
    policy = paper_policy(source, load_policy(declare(name, source.columns, privacy=privacy)))
    return Prepared(name, table, policy, summarize(source, policy, seed=seed))


def favourites(found: Evaluation, names: Sequence[str] = tuple(TITLES)) -> dict[str, str]:
    """Return the configuration that each score likes best; the first one among equals."""
    chosen = {}
    for one in found.judged:
        if one.name in names:
            chosen[one.name] = max(one.scores, key=lambda key: one.sign * one.scores[key])
    return chosen


def outcomes(found: Evaluation, **facts: Any) -> list[dict[str, Any]]:
    """Return one row per model and score: what its favourite reaches, and what the best reaches."""
    sign = METRICS.get(found.metric).sign
    unmasked = {s.model: s.unmasked for s in found.scores if s.metric == found.metric}
    rows = []
    for model in found.models:
        means = found.means(model)
        best = max(means, key=lambda key: sign * means[key])
        shared = {
            **facts,
            "metric": found.metric,
            "model": model,
            "best_of_all": means[best],
            "mean_of_all": float(np.mean(list(means.values()))),
            "unmasked": unmasked.get(model),
        }
        for score, name in favourites(found).items():
            rows.append(shared | {"score": score, "configuration": name, "reached": means[name]})
    return rows


def averaged(rows: Sequence[Mapping[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return the means of the figures of `outcomes` over seeds, one row per value of `keys`."""
    figures = ("reached", "best_of_all", "mean_of_all", "unmasked")
    found = []
    for key in dict.fromkeys(tuple(row[k] for k in keys) for row in rows):
        own = [row for row in rows if tuple(row[k] for k in keys) == key]
        means = {}
        for figure in figures:
            known = [row[figure] for row in own if row[figure] is not None]
            means[figure] = float(np.mean(known)) if known else None
        lost = 100 * (means["best_of_all"] - means["reached"])
        found.append(
            {
                **dict(zip(keys, key, strict=True)),
                **means,
                "points_lost": lost,
                "metric": own[0]["metric"],
                "runs": len(own),
            }
        )
    return found


KINDS = {"favourite of the score": "#0b4a75", "best of all": "#c8102e", "mean of all": "#8a8a8a"}
"""What the charts of `reached_chart` show, and the colour of each."""


def reached_chart(means: Sequence[Mapping[str, Any]], *, width: int = 170) -> Any:
    """Return the chart of what each score's favourite reaches, by data set and model."""
    import altair

    points = [
        {
            "data": f"{row['data']}, {str(row['metric']).replace('roc_auc', 'ROC AUC')}",
            "model": str(row["model"]).upper(),
            "score": TITLES[str(row["score"])],
            "reached": row["reached"],
            "best": row["best_of_all"],
            "mean": row["mean_of_all"],
            **{f"kind_{place}": kind for place, kind in enumerate(KINDS)},
        }
        for row in means
    ]
    colours = altair.Scale(domain=list(KINDS), range=list(KINDS.values()))
    legend = altair.Legend(orient="bottom", labelLimit=260)

    def colour(place: int) -> Any:
        return altair.Color(f"kind_{place}:N", title=None, scale=colours, legend=legend)

    def across(figure: str) -> Any:
        return altair.X(f"{figure}:Q", title=None, scale=altair.Scale(zero=False))

    charts = []
    for name in dict.fromkeys(point["data"] for point in points):
        own = [point for point in points if point["data"] == name]
        base = altair.Chart()
        score = altair.Y("score:N", title=None, sort=list(TITLES.values()))
        layers = altair.layer(
            base.mark_rule().encode(x=across("mean"), color=colour(2)),
            base.mark_rule().encode(x=across("best"), color=colour(1)),
            base.mark_point(filled=True, size=45, opacity=1).encode(
                x=across("reached"), y=score, color=colour(0)
            ),
            data=altair.Data(values=own),
        )
        charts.append(
            layers.properties(width=width, height=170)
            .facet(column=altair.Column("model:N", title=name, sort=None))
            .resolve_scale(x="independent")
        )
    return altair.vconcat(*charts)
