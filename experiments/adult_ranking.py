"""Does the ranking agree with trained models? Adult, sets of 50 generated configurations.

For each seed: 50 configurations of policies/adult.yaml, a model trained and tested on each
(seeded, stratified 70/30 splits), and the rank correlation of every measure's score with the
mean test accuracy; the loss is what the measure's choice gives away against the best of the 50.

    python experiments/adult_ranking.py [--models lr] [--seeds 1,2,3,4] [--splits 2] [--store FILE]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from aegis import evaluate
from aegis.advisor import Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation import Evaluation
from aegis.policy import load_policy
from aegis.summary import summarize
from common import ADULT, ROOT, save_chart, write_csv, write_json

NAME = "adult_ranking"
COUNT = 50
"""Configurations of each set."""
POLICY = ROOT / "experiments" / "policies" / "adult.yaml"


def rows_of(seed: int, found: Evaluation) -> list[dict[str, Any]]:
    """Return one row per metric, model and measure."""
    return [
        {
            "seed": seed,
            "metric": metric,
            "model": one.model,
            "measure": one.measure,
            "spearman": one.spearman,
            "kendall": one.kendall,
            "points_lost": one.points,
            "reliability": found.reliability[one.model] if metric == found.metric else None,
        }
        for metric in ("accuracy", "roc_auc")
        for one in found.agreement_by(metric)
    ]


def mean_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over seeds, best measure first."""
    found = []
    for key in dict.fromkeys((r["metric"], r["model"], r["measure"]) for r in rows):
        own = [r for r in rows if (r["metric"], r["model"], r["measure"]) == key]
        correlations = [r["spearman"] for r in own if r["spearman"] is not None]
        found.append(
            {
                "metric": key[0],
                "model": key[1],
                "measure": key[2],
                "spearman": float(np.mean(correlations)) if correlations else None,
                "lowest": min(correlations, default=None),
                "points_lost": float(np.mean([r["points_lost"] for r in own])),
                "seeds": len(own),
            }
        )
    return sorted(found, key=lambda r: (r["metric"], r["model"], -(r["spearman"] or -1)))


def points_of(seed: int, found: Evaluation, measure: str) -> list[dict[str, Any]]:
    """Return the score and the mean accuracy of every configuration, for the plot."""
    scores = next(one.scores for one in found.judged if one.name == measure)
    return [
        {"seed": seed, "model": model, "score": scores[name], "accuracy": value}
        for model in found.models
        for name, value in found.means(model).items()
    ]


def main(argv: list[str] | None = None) -> None:
    """Train, compare, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="lr")
    parser.add_argument("--seeds", default="1,2,3,4")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--store")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args(argv)
    policy = load_policy(POLICY)
    rows: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    for seed in map(int, arguments.seeds.split(",")):
        found = evaluate(
            ADULT,
            policy,
            generate_count=COUNT,
            models=arguments.models.split(","),
            splits=arguments.splits,
            unmasked=False,
            seed=seed,
            store=arguments.store,
            jobs=arguments.jobs,
        )
        rows += rows_of(seed, found)
        points += points_of(seed, found, policy.measure)
        print(seed, found, found.unconverged, found.timings, flush=True)
    means = mean_of(rows)
    for row in means:
        print(row)
    name = NAME if arguments.models == "lr" else f"{NAME}_models"
    unmasked = Scorer(summarize(ADULT, policy))
    write_csv(name, rows)
    write_json(
        name,
        {
            "policy": "experiments/policies/adult.yaml",
            "models": arguments.models.split(","),
            "splits": arguments.splits,
            "unmasked_pillai": unmasked.value(unmasked.unmasked, MEASURES.get("adjusted-pillai")),
            "means": means,
        },
    )
    draw(name, points)


def draw(name: str, points: list[dict[str, Any]]) -> None:
    """Draw accuracy against the score."""
    import altair

    chart = (
        altair.Chart(altair.Data(values=points))
        .mark_point(filled=True, opacity=0.7)
        .encode(
            x=altair.X("score:Q", title="Pillai's trace, adjusted", scale=altair.Scale(zero=False)),
            y=altair.Y("accuracy:Q", title="Test accuracy", scale=altair.Scale(zero=False)),
            color=altair.Color("seed:N", title="Set"),
        )
        .properties(width=320, height=240)
        .facet(column=altair.Column("model:N", title=None))
    )
    save_chart(name, chart)


if __name__ == "__main__":
    main()
