"""Figure 6b: the choice among k-anonymous configurations only.

Configurations are drawn as in the paper until 50 of them are k-anonymous over the
quasi-identifiers of the data set (see `paper_sets.py`) with at most 2 % of the rows suppressed;
only those are ranked and trained, and the unmasked table as the reference. Models are those of
Figure 5d-f but for naive Bayes; the paper's are `--models sgd,rf`.

    python experiments/figure_6b_k_anonymous.py [--k 5] [--data AQ,IN,HCI] [--models sgd,rf] [--suffix _forest]
"""

from __future__ import annotations

import argparse
from typing import Any

import aegis
from aegis import evaluate
from aegis.policy import Configuration
from common import save_chart, write_csv, write_json
from paper_sets import SETS, Prepared, averaged, outcomes, prepare, reached_chart

NAME = "figure_6b_k_anonymous"
MODELS = "lr,svm,sgd,gbdt"
DRAWN, BATCH = 5000, 100
SUPPRESSION = 0.02


def admissible(prepared: Prepared, count: int, seed: int) -> tuple[list[Configuration], int]:
    """Return up to `count` configurations that meet the rule, and how many were drawn for it."""
    drawn = prepared.configurations(DRAWN, seed=seed)
    found: list[Configuration] = []
    for start in range(0, len(drawn), BATCH):
        batch = drawn[start : start + BATCH]
        # A cheap measure: only the rule is asked for here.
        advice = aegis.advise(prepared.summary, prepared.policy, configurations=batch, measure="g3")
        met = {one.name for one in advice.ranking if one.admissible}
        for number, one in enumerate(batch, start=start + 1):
            if one.name in met:
                found.append(one)
                if len(found) == count:
                    return found, number
    return found, len(drawn)


def main(argv: list[str] | None = None) -> None:
    """Draw, train, choose, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,IN,HCI")
    parser.add_argument("--models", default=MODELS, help="rf is the paper's forest")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--store", help="finished trainings; the run goes on where it was stopped")
    parser.add_argument("--suffix", default="", help="appended to the names of what is written")
    given = parser.parse_args(argv)
    output = NAME + given.suffix
    rows: list[dict[str, Any]] = []
    drawn_for: dict[str, dict[str, int]] = {}
    for name in given.data.split(","):
        rule = {"k": given.k, "suppression": SUPPRESSION}
        prepared = prepare(name, privacy=rule)
        for seed in map(int, given.seeds.split(",")):
            listed, drawn = admissible(prepared, given.count, seed)
            drawn_for[f"{name}, seed {seed}"] = {"k_anonymous": len(listed), "drawn": drawn}
            print(name, seed, len(listed), "of", drawn, flush=True)
            found = evaluate(
                prepared.table,
                prepared.policy,
                configurations=listed,
                models=given.models.split(","),
                metric=SETS[name].metric,
                unmasked=True,
                seed=seed,
                store=given.store,
            )
            rows += outcomes(found, data=name, seed=seed)
            print(name, seed, found, found.timings, flush=True)
    means = averaged(rows, "data", "model", "score")
    write_csv(output, rows)
    write_json(
        output,
        {
            "k": given.k,
            "suppression": SUPPRESSION,
            "quasi_identifiers": {
                name: SETS[name].quasi_identifiers for name in given.data.split(",")
            },
            "drawn": drawn_for,
            "means": means,
        },
    )
    save_chart(output, reached_chart(means))


if __name__ == "__main__":
    main()
