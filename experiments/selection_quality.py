"""How well do measures choose? Four data sets, the paper's configurations, trained models.

Air Quality (AQ), Income (IN: Adult), hotel bookings (HCI) and German credit: for each seed 50
configurations drawn as in the AEGIS paper, models trained on each, rank correlation of every
measure and comparator with the mean over splits (accuracy on AQ and IN, ROC AUC on HCI and German
credit), and what its choice loses against the best of the 50. The correlation of two halves of
the splits is the ceiling of what can be seen.

    python experiments/selection_quality.py [--data AQ,IN,HCI,German] [--seeds 1,2,3] [--store FILE]

Every column but the row number and the user of HCI is scored. Random forests are left out where
one-hot features are too many for a run of minutes (see `FOREST`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from aegis.evaluation import Evaluation, evaluate, paper_configurations, paper_policy
from aegis.policy import load_policy
from aegis.sources import open_table
from aegis.summary import summarize
from common import ADULT, RESULTS, data, save_chart, write_csv, write_json

NAME = "selection_quality"
LINEAR = ("lr", "svm", "sgd")
FOREST = {"AQ", "German"}


@dataclass(frozen=True)
class DataSet:
    """One data set: how to open it, its label, what is left out, how it is judged."""

    open: Callable[[], Any]
    label: str
    metric: str
    splits: int
    identifiers: tuple[str, ...] = ()


def german() -> pa.Table:
    """Return Statlog German Credit with numbered columns, label `class`."""
    names = [f"attribute_{number:02d}" for number in range(1, 21)]
    return pyarrow.csv.read_csv(
        data("german_credit", "german.data"),
        read_options=pyarrow.csv.ReadOptions(column_names=[*names, "class"]),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" "),
    )


SETS = {
    "AQ": DataSet(
        lambda: str(data("air_quality", "updated_pollution_dataset.csv")),
        "Air Quality",
        "accuracy",
        2,
    ),
    "German": DataSet(german, "class", "roc_auc", 4),
    "HCI": DataSet(
        lambda: str(data("hotel", "hotel_interactions.csv")),
        "is_booking",
        "roc_auc",
        2,
        ("serial", "user_id"),
    ),
    "IN": DataSet(lambda: str(ADULT), "income", "accuracy", 1),
}


def evaluated(name: str, seed: int, store: str | None) -> Evaluation:
    """Train on the configurations of one seed."""
    chosen = SETS[name]
    source = open_table(chosen.open())
    scored = [c for c in source.columns if c not in (chosen.label, *chosen.identifiers)]
    declared = load_policy(
        {
            "version": 1,
            "label": chosen.label,
            "privacy": {},
            "attributes": {column: {"role": "feature"} for column in scored},
        }
    )
    policy = paper_policy(source, declared)
    summary = summarize(source, policy)
    return evaluate(
        source,
        policy,
        configurations=paper_configurations(summary, 50, seed=seed),
        models=(*LINEAR, "gbdt", *(("rf",) if name in FOREST else ())),
        metric=chosen.metric,
        splits=chosen.splits,
        unmasked=False,
        seed=seed,
        store=store,
    )


def rows_of(name: str, seed: int, found: Evaluation) -> list[dict[str, Any]]:
    """Return one row per model and measure."""
    return [
        {
            "data": name,
            "seed": seed,
            "metric": found.metric,
            "model": one.model,
            "measure": one.measure,
            "spearman": one.spearman,
            "kendall": one.kendall,
            "points_lost": one.points,
            "ceiling": found.reliability[one.model],
            "unconverged": found.unconverged.get(one.model, 0),
        }
        for one in found.agreement
    ]


def mean_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over seeds."""
    found = []
    for key in dict.fromkeys((r["data"], r["model"], r["measure"]) for r in rows):
        own = [r for r in rows if (r["data"], r["model"], r["measure"]) == key]
        found.append(
            {
                **dict(zip(("data", "model", "measure"), key, strict=True)),
                "metric": own[0]["metric"],
                "seeds": len(own),
                **{
                    column: _mean([r[column] for r in own])
                    for column in ("spearman", "kendall", "points_lost", "ceiling")
                },
            }
        )
    return found


def _mean(values: list[float | None]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return float(np.mean(known)) if known else None


def main() -> None:
    """Train, compare, and write figures and plot; data sets run before are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="German,AQ,HCI,IN")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--store")
    arguments = parser.parse_args()
    for name in arguments.data.split(","):
        rows: list[dict[str, Any]] = []
        for seed in map(int, arguments.seeds.split(",")):
            found = evaluated(name, seed, arguments.store)
            rows += rows_of(name, seed, found)
            print(name, seed, found, found.timings, found.notes, flush=True)
        write_csv(f"{NAME}_{name}", rows)
        write_json(f"{NAME}_{name}", {"splits": SETS[name].splits, "means": mean_of(rows)})
        for row in mean_of(rows):
            if row["measure"] in ("pillai", "cmim", "mi-corrected", "aegis-1d:mi", "mascara"):
                print(row, flush=True)
    draw()


def draw() -> None:
    """Draw the mean correlations of all data sets that were run."""
    import altair

    rows = []
    for name in SETS:
        path = RESULTS / f"{NAME}_{name}.json"
        if path.exists():
            rows += json.loads(path.read_text())["means"]
    chart = (
        altair.Chart(altair.Data(values=[r for r in rows if r["spearman"] is not None]))
        .mark_point(filled=True, size=40)
        .encode(
            x=altair.X("spearman:Q", title="Spearman, mean over seeds"),
            y=altair.Y("measure:N", title=None, sort=None),
            color=altair.Color("model:N", title="Model"),
        )
        .properties(width=180, height=380)
        .facet(column=altair.Column("data:N", title=None))
    )
    save_chart(NAME, chart)


if __name__ == "__main__":
    main()
