"""Which penalty predicts which model? Held-out traces at one penalty against trained models.

Reads what `selection_quality.py` wrote of every configuration, so that nothing is trained: for each
data set, model and ridge penalty the rank correlation of the held-out trace at that penalty with
what the model reached, mean over the sets of 50 configurations. `pooled` is the trace at a penalty
of one row, charged for the values that share the last level, too (`pooled_losses`).

    python experiments/penalties.py [--data AQ,IN,HCI,German] [--suffix _confirmed]
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import held_out_traces
from aegis.papers.evaluation.result import spearman
from aegis.summary import Summary, summarize
from common import result, write_csv
from paper_masks import paper_configurations
from selection_quality import COUNT, NAME, SETS, prepared

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def scores(summary: Summary, seed: int) -> dict[str, Any]:
    """Return the scores of each of the 50 configurations of one seed, by name."""
    scorer = Scorer(summary)
    found = {}
    for configuration in paper_configurations(summary, COUNT, seed=seed):
        choice = scorer.choose(configuration)
        counts = scorer.cooccurrence(choice)
        traces = held_out_traces(
            counts.total, counts.joint, counts.class_totals, counts.n, PENALTIES
        )
        found[configuration.name] = [*traces, traces[0] + counts.losses[0]]
    return found


def main(argv: list[str] | None = None) -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="AQ,IN,German,HCI")
    parser.add_argument("--suffix", default="")
    arguments = parser.parse_args(argv)
    columns = [*(f"{penalty:g}" for penalty in PENALTIES), "pooled"]
    rows = []
    for name in arguments.data.split(","):
        path = result(f"{NAME}_{name}{arguments.suffix}_configurations.csv")
        reached: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                value = float(row[SETS[name].metric])
                reached[row["model"]][int(row["seed"])][row["configuration"]] = value
        summary = summarize(*prepared(name))
        seeds = sorted({seed for of in reached.values() for seed in of})
        scored = {seed: scores(summary, seed) for seed in seeds}
        for model, by_seed in reached.items():
            found = [
                [
                    spearman([scored[seed][one][place] for one in of], list(of.values())) or 0.0
                    for place in range(len(columns))
                ]
                for seed, of in by_seed.items()
            ]
            means = np.mean(found, axis=0).tolist()
            by_column = dict(zip(columns, means, strict=True))
            rows.append({"data": name, "model": model, "sets": len(by_seed), **by_column})
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()})
    write_csv(f"penalties{arguments.suffix}", rows)


if __name__ == "__main__":
    main()
