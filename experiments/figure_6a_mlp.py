"""Figure 6a: the choice for a multilayer perceptron.

As Figure 5d-f, with the network of the paper (two hidden layers of 100, Adam, up to 200 epochs)
beside logistic regression. Of a table with more than `--rows` rows a seeded sample is taken, for
the scores as for the models.

    python experiments/figure_6a_mlp.py [--data AQ,IN,HCI] [--rows 10000] [--seeds 1] [--store FILE]
"""

from __future__ import annotations

import argparse
from typing import Any

from aegis import evaluate
from common import save_chart, write_csv, write_json
from paper_sets import SETS, averaged, outcomes, prepare, reached_chart

NAME = "figure_6a_mlp"


def main(argv: list[str] | None = None) -> None:
    """Train, choose, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="AQ,IN,HCI")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of a sample")
    parser.add_argument("--count", type=int, default=50, help="configurations of a set")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--store", help="finished trainings; the run goes on where it was stopped")
    parser.add_argument("--suffix", default="", help="appended to the names of what is written")
    given = parser.parse_args(argv)
    output = NAME + given.suffix
    rows: list[dict[str, Any]] = []
    seconds: dict[str, dict[str, float]] = {}
    for name in given.data.split(","):
        prepared = prepare(name, rows=given.rows)
        for seed in map(int, given.seeds.split(",")):
            found = evaluate(
                prepared.table,
                prepared.policy,
                configurations=prepared.configurations(given.count, seed=seed),
                models=("mlp", "lr"),
                metric=SETS[name].metric,
                unmasked=False,
                seed=seed,
                store=given.store,
            )
            rows += outcomes(found, data=name, seed=seed)
            spent = {
                model: sum(one.seconds for one in found.trainings if one.model == model)
                for model in found.models
            }
            seconds[f"{name}, seed {seed}"] = {**spent, "scoring": found.timings["scoring"]}
            print(name, seed, found, found.unconverged, spent, flush=True)
    means = averaged(rows, "data", "model", "score")
    write_csv(output, rows)
    write_json(
        output, {"count": given.count, "rows": given.rows, "seconds": seconds, "means": means}
    )
    save_chart(output, reached_chart(means))


if __name__ == "__main__":
    main()
