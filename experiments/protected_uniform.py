"""How well does a protected summary rank configurations that somebody else draws?

`generate` draws configurations of every amount of masking, so that a ranking of them is easy. Here each
mask is drawn uniformly from its candidates, as a stranger would. Spearman's correlation with the default
measure and with the measure that the summary estimates, both of exact counts; what the choice loses in
percent of the best.

    python experiments/protected_uniform.py --draws 4 --sets adult
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import DEFAULT_MEASURE, get
from aegis.policy import Configuration
from aegis.safe.protect import ProtectedScorer
from aegis.summary import Summary
from common import write_csv
from protected_summaries import EPSILONS, HELD_OUT, SETS, compared, prepared, protected_by

SAMPLES = 3
"""Sets of configurations that are drawn."""


def uniform(summary: Summary, count: int, seed: int) -> list[Configuration]:
    """Return so many different configurations, each mask drawn uniformly from its candidates."""
    random = np.random.default_rng(seed)
    drawn: dict[tuple[int, ...], Configuration] = {}
    attributes = summary.all_attributes
    while len(drawn) < count:
        key = tuple(int(random.integers(len(a.candidates))) for a in attributes)
        masks = {a.name: a.candidates[i].mask for a, i in zip(attributes, key, strict=True)}
        drawn[key] = Configuration(f"c{len(drawn)}", masks)
    return list(drawn.values())


def measured(name: str, draws: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each epsilon, draw of the noise, set of configurations and exact measure."""
    own = prepared(name)
    scorer = Scorer(own.summary)
    listed = [uniform(own.summary, count, seed) for seed in range(SAMPLES)]
    exact = {
        measure: [
            np.array([scorer.value(scorer.choose(c), get(measure)) for c in configurations])
            for configurations in listed
        ]
        for measure in (DEFAULT_MEASURE, HELD_OUT)
    }
    for draw in range(draws):
        for epsilon in EPSILONS:
            protected = protected_by(own, f"noise {epsilon:g}", "rule", draw)
            scores = ProtectedScorer(protected)
            for sample, configurations in enumerate(listed):
                estimated = np.array([scores.score(protected.choose(c)) for c in configurations])
                for measure, values in exact.items():
                    rank, loss = compared(values[sample], estimated)
                    yield {
                        "data": name,
                        "epsilon": epsilon,
                        "draw": draw,
                        "sample": sample,
                        "count": count,
                        "estimator": scores.estimator,
                        "measure": measure,
                        "spearman": round(rank, 4),
                        "loss_percent": round(loss, 4),
                    }


def main() -> None:
    """Measure the sets that are asked for, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="adult", help=f"of {', '.join(SETS)}")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--count", type=int, default=50)
    asked = parser.parse_args()
    rows = [
        row for name in asked.sets.split(",") for row in measured(name, asked.draws, asked.count)
    ]
    write_csv("protected_uniform", rows)
    for epsilon in EPSILONS:
        for measure in (DEFAULT_MEASURE, HELD_OUT):
            some = [r for r in rows if (r["epsilon"], r["measure"]) == (epsilon, measure)]
            ranks = [r["spearman"] for r in some]
            losses = [r["loss_percent"] for r in some]
            print(
                f"epsilon {epsilon:g}, {measure}: Spearman {np.mean(ranks):.3f} "
                f"({min(ranks):.3f} to {max(ranks):.3f}); loses {np.mean(losses):.2f} % "
                f"(at most {max(losses):.2f} %)"
            )


if __name__ == "__main__":
    main()
