"""Which merit, which model? Expected AUC, accuracy and log loss against what models reached.

The tables, configurations and trainings of `selection_public.py`, and bank marketing. Reported by
table, figure of merit, model and measure: rank correlation, and how far the expected figure is from
the trained one.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/merits.py --stores FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation.result import spearman
from common import write_csv
from public_sets import CONFIRMATION
from selection_public import UNMASKED, metrics_of, prepared

NAME = "merits"
MERITS = {"auc": "roc_auc", "accuracy": "accuracy", "log-loss": "log_loss"}
LEARNERS = {"lr": "lr", "nb": "nb", "gbdt-60": "gbdt", "rf-50": "gbdt"}
BESIDE = ("held-out-pillai", "adjusted-pillai")


def reached(name: str, path: Path) -> tuple[Any, Mapping[str, Any], dict[str, Any]]:
    """Return summary, choices and the metrics by model and configuration, one entry per split."""
    summary, rows, choices = prepared(name)
    return summary, choices, metrics_of(rows, choices, path)


def compared(name: str, path: Path) -> list[dict[str, Any]]:
    """Return one row per merit, model and measure."""
    summary, choices, found = reached(name, path)
    scorer = Scorer(summary)
    rows = []
    for merit, metric in MERITS.items():
        for model, learner in LEARNERS.items():
            trained = {
                one: float(np.mean([split[metric] for split in splits]))
                for one, splits in found[model].items()
            }
            for said in (f"held-out-{merit}", f"held-out-{merit}({learner})", *BESIDE):
                measure = MEASURES.get(said)
                expected = {one: scorer.value(choices[one], measure) for one in trained}
                names = [one for one in trained if one != UNMASKED]
                signs = measure.direction.sign, -1 if merit == "log-loss" else 1
                apart = np.array([expected[one] - trained[one] for one in trained])
                own_unit = measure.constant is not None
                rows.append(
                    {
                        "data": name,
                        "merit": merit,
                        "model": model,
                        "measure": said,
                        "spearman": spearman(
                            signs[0] * np.array([expected[one] for one in names]),
                            signs[1] * np.array([trained[one] for one in names]),
                        ),
                        "median_apart": float(np.median(np.abs(apart))) if own_unit else None,
                        "largest_apart": float(np.abs(apart).max()) if own_unit else None,
                    }
                )
    return rows


def main(argv: list[str] | None = None) -> None:
    """Compare and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join([*CONFIRMATION, "bank"]))
    parser.add_argument("--stores", type=Path, required=True, help="folder of trainings")
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        rows += compared(name, given.stores / f"store_{name}.jsonl")
        print(name, flush=True)
        write_csv(NAME, rows)


if __name__ == "__main__":
    main()
