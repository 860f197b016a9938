"""Which penalty predicts which model? Held-out traces at one penalty against trained models.

Reads what `selection_quality.py` wrote of every configuration, so that nothing is trained: for each
data set, model and ridge penalty the rank correlation of the held-out trace at that penalty with
what the model reached, mean over the sets of 50 configurations. `pooled` is the trace at a penalty
of one row, charged for the values that share the last level, too: what each of them says of its
other rows, one row left out at a time, where that is a loss.

    python experiments/penalties.py [--data AQ,IN,HCI,German] [--suffix _confirmed]
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.evaluation import paper_configurations
from aegis.evaluation.agreement import spearman
from aegis.measures import held_out_traces
from aegis.summary import AttributeSummary, Candidate, Summary, summarize
from common import RESULTS, write_csv
from selection_quality import NAME, SETS, prepared

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def charge(attribute: AttributeSummary, candidate: Candidate, penalty: float = 1.0) -> float:
    """Return what unpooling the last level adds to the trace, one row left out; at most 0."""
    if candidate.size <= candidate.n_levels:
        return 0.0
    level = np.zeros(candidate.size, dtype=np.int64)
    level[candidate.groups] = candidate.levels[attribute.atoms]
    counts = np.zeros((candidate.size, attribute.joint.shape[1]))
    np.add.at(counts, candidate.groups, attribute.joint)
    pooled = counts[(level == candidate.n_levels - 1) & counts.any(axis=1)]
    share, rows = pooled.sum(axis=0) / pooled.sum(), pooled.sum(axis=1, keepdims=True)
    gain = np.zeros(len(share))
    for own in range(len(share)):
        unit = np.arange(len(share)) == own
        shift = (pooled - unit - (rows - 1) * share) / (rows - 1 + penalty)
        gain += (pooled[:, [own]] * shift * (2 * (unit - share) - shift)).sum(axis=0)
    return min(0.0, float((gain / attribute.joint.sum(axis=0)).sum()))


def scores(summary: Summary, seed: int) -> dict[str, Any]:
    """Return the scores of each of the 50 configurations of one seed, by name."""
    scorer = Scorer(summary)
    found = {}
    for configuration in paper_configurations(summary, 50, seed=seed):
        choice = scorer.choose(configuration)
        counts = scorer.cooccurrence(choice)
        traces = held_out_traces(
            counts.total, counts.joint, counts.class_totals, counts.n, PENALTIES
        )
        charges = sum(charge(a, choice[a.name]) for a in summary.attributes.values())
        found[configuration.name] = [*traces, traces[0] + charges]
    return found


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="AQ,IN,German,HCI")
    parser.add_argument("--suffix", default="")
    arguments = parser.parse_args()
    columns = [*(f"{penalty:g}" for penalty in PENALTIES), "pooled"]
    rows = []
    for name in arguments.data.split(","):
        path = RESULTS / f"{NAME}_{name}{arguments.suffix}_configurations.csv"
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
