"""Is the searched optimum better than what chance finds? Adult, k = 5, 2 % suppressed.

Scores 5,000 random configurations of policies/adult.yaml, keeps the admissible ones, and compares
the best of them by Pillai's trace with the searched optimum: by the trace itself, and by a
logistic regression and a random forest trained on each.

    python experiments/search_vs_random.py [--random 5000] [--best 10] [--splits 5] [--store FILE]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from aegis import advise, evaluate, search
from aegis.papers.evaluation import Evaluation
from aegis.policy import load_policy
from aegis.sources import open_table
from common import ADULT, ROOT, paired, save_chart, write_json

NAME = "search_vs_random"
POLICY = ROOT / "experiments" / "policies" / "adult.yaml"
TEST_SHARE = 0.3


def by_split(found: Evaluation, model: str, configuration: str, metric: str) -> list[float]:
    """Return a figure per split, in points."""
    return [
        100 * (one.metrics[metric] or 0.0)
        for one in found.trainings
        if (one.model, one.configuration) == (model, configuration)
    ]


def main(argv: list[str] | None = None) -> None:
    """Draw, search, train, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=5000)
    parser.add_argument("--best", type=int, default=10)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--store")
    arguments = parser.parse_args(argv)
    policy = load_policy(POLICY)
    source = open_table(ADULT)
    drawn = advise(source, policy, generate_count=arguments.random, seed=1)
    admissible = [one for one in drawn.ranking if one.admissible]
    searched = search(
        source, policy, objective="adjusted-pillai", explain_best=False, time_limit=300
    )
    best = searched.require_best()
    print(len(admissible), "admissible; best", admissible[0].score, "searched", best.score)
    compared = {one.name: one.configuration for one in admissible[: arguments.best]}
    compared["searched"] = replace(best.configuration, name="searched")
    models = ("lr", "rf")
    found = evaluate(
        source,
        policy,
        configurations=compared,
        models=models,
        splits=arguments.splits,
        test_share=TEST_SHARE,
        unmasked=False,
        comparators=(),
        seed=1,
        store=arguments.store,
    )
    trained: list[dict[str, Any]] = []
    for metric in ("accuracy", "roc_auc"):
        for model in models:
            ours = by_split(found, model, "searched", metric)
            for name in compared:
                theirs = by_split(found, model, name, metric)
                trained.append(
                    {
                        "metric": metric,
                        "model": model,
                        "configuration": name,
                        "value": sum(theirs) / len(theirs),
                        "searched_minus_it": paired(
                            (a - b for a, b in zip(ours, theirs, strict=True)),
                            test_share=TEST_SHARE,
                        ),
                    }
                )
    scores = [one.score for one in admissible]
    write_json(
        NAME,
        {
            "policy": "experiments/policies/adult.yaml",
            "random": arguments.random,
            "admissible": len(admissible),
            "best_random_pillai": scores[:10],
            "searched_pillai": best.score,
            "searched": best.mask_texts,
            "search": searched.to_dict()["search"],
            "at_least_all": best.score >= max(scores),
            "splits": arguments.splits,
            "trained": trained,
        },
    )
    draw(scores, best.score)
    for row in trained:
        print(row)


def draw(scores: list[float], searched: float) -> None:
    """Draw the admissible random configurations and the searched one."""
    import altair

    bars = (
        altair.Chart(altair.Data(values=[{"score": s} for s in scores]))
        .mark_bar()
        .encode(
            x=altair.X("score:Q", bin=altair.Bin(maxbins=40), title="Pillai's trace, adjusted"),
            y=altair.Y("count()", title="Admissible random configurations"),
        )
    )
    line = (
        altair.Chart(altair.Data(values=[{"score": searched}]))
        .mark_rule(color="crimson", strokeWidth=2)
        .encode(x="score:Q")
    )
    save_chart(NAME, (bars + line).properties(width=480, height=240))


if __name__ == "__main__":
    main()
