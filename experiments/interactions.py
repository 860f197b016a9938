"""Do interactions of pairs help to rank and to expect what boosting reaches?

The tables, configurations and trainings of `selection_public.py`: boosting of sixty trees and a forest of
fifty on four splits. Reported by table: rank correlation of `held-out-auc(gbdt)` and of
`held-out-auc(pairs)` with what was trained, points lost free of luck, how far expected and trained AUC of
boosting are apart (unmasked table included), and the processor time of what pairs add.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/interactions.py --stores FOLDER
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import MEASURES
from common import add_csv
from public_sets import CONFIRMATION, FURTHER, RESERVE
from selection_public import RUNS, UNMASKED, judged, metrics_of, prepared

NAME = "interactions"
MODELS = ("gbdt", "pairs")
TREES = RUNS[1:]


def compared(name: str, stores: Path) -> dict[str, Any]:
    """Return the figures of one table."""
    summary, coded, choices = prepared(name)
    metrics = metrics_of(coded, choices, stores / f"store_{name}.jsonl", TREES)
    trained = {
        model: {key: [float(split["roc_auc"]) for split in splits] for key, splits in found.items()}
        for model, found in metrics.items()
        if model in TREES[0][0]
    }
    scorer = Scorer(summary)
    scores: dict[str, Mapping[str, float]] = {}
    seconds = {}
    for model in MODELS:
        measure = MEASURES.get(f"held-out-auc({model})")
        started = time.process_time()
        scores[model] = {key: scorer.value(choice, measure) for key, choice in choices.items()}
        seconds[model] = time.process_time() - started
    row: dict[str, Any] = {
        "data": name,
        "role": "reserve" if name in RESERVE else "in the choice",
        "attributes": len(summary.attributes),
    }
    for said in judged(name, scores, trained):
        row[f"spearman {said['chooser']} {said['model']}"] = said["spearman"]
        row[f"points_lost {said['chooser']} {said['model']}"] = said["points_lost"]
        row[f"ceiling {said['model']}"] = said["ceiling"]
    for model in MODELS:
        apart = np.array(
            [scores[model][key] - np.mean(auc) for key, auc in trained[TREES[0][0][0]].items()]
        )
        row[f"mean_apart {model}"] = float(apart.mean())
        row[f"median_apart {model}"] = float(np.median(np.abs(apart)))
        row[f"largest_apart {model}"] = float(np.abs(apart).max())
        row[f"seconds {model}"] = round(seconds[model], 2)  # of pairs: beside what gbdt took
    assert UNMASKED in choices
    return row


def main(argv: list[str] | None = None) -> None:
    """Compare, write and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join([*CONFIRMATION, *FURTHER]))
    parser.add_argument("--stores", type=Path, required=True, help="folder of trainings")
    given = parser.parse_args(argv)
    rows: list[dict[str, str]] = []
    for name in given.data.split(","):
        rows = add_csv(NAME, [compared(name, given.stores)])
        print(name, flush=True)
    for role in dict.fromkeys(row["role"] for row in rows):
        own = [row for row in rows if row["role"] == role]
        for column in list(own[0])[3:]:
            print(role, column, round(float(np.mean([float(row[column]) for row in own])), 4))


if __name__ == "__main__":
    main()
