"""Figures 5d-f and 8b-d: what the chosen configuration reaches, by model.

AQ, IN and HCI (AQ and HCI also as the paper had them), 50 configurations of the paper's generator
for each seed. Every model is trained on every configuration (one split of 70/30 rows, stratified);
for each score the figure is what the configuration that it likes best reaches, beside the best and
the mean of the 50.

    python experiments/figure_5_accuracy.py [--data AQ,IN,HCI] [--seeds 1,2,3] [--store FILE]
    python experiments/figure_5_accuracy.py --data AQ-paper,HCI-paper --suffix _paper

Random forests are trained on Air Quality only: on ten thousand indicator columns they take minutes each.
"""

from __future__ import annotations

import argparse
from typing import Any

from aegis import evaluate
from common import save_chart, write_csv, write_json
from paper_sets import SETS, averaged, outcomes, prepare, reached_chart

NAME = "figure_5_accuracy"
MODELS = "lr,svm,sgd,nb,gbdt"
FOREST = {"AQ", "AQ-paper"}


def main(argv: list[str] | None = None) -> None:
    """Train, choose, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="AQ,IN,HCI")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--count", type=int, default=50, help="configurations of a set")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--store", help="finished trainings; the run goes on where it was stopped")
    parser.add_argument("--suffix", default="", help="appended to the names of what is written")
    given = parser.parse_args(argv)
    output = NAME + given.suffix
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        prepared = prepare(name)
        for seed in map(int, given.seeds.split(",")):
            found = evaluate(
                prepared.table,
                prepared.policy,
                configurations=prepared.configurations(given.count, seed=seed),
                models=(*given.models.split(","), *(("rf",) if name in FOREST else ())),
                metric=SETS[name].metric,
                splits=given.splits,
                seed=seed,
                store=given.store,
            )
            rows += outcomes(found, data=name, seed=seed)
            print(name, seed, found, found.timings, flush=True)
    means = averaged(rows, "data", "model", "score")
    write_csv(output, rows)
    write_json(output, {"count": given.count, "splits": given.splits, "means": means})
    save_chart(output, reached_chart(means))


if __name__ == "__main__":
    main()
