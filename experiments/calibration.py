"""How far is the expected AUC from the trained one, once the luck of few splits is out of it?

The public tables and configurations of `selection_public.py`; logistic regression alone, on many splits of
the rows in place of six, so that the mean of what it reached is known to a few thousandths. With
p splits whose results have standard deviation s, of which each tests 30 % of the rows, the error
that splitting leaves is s sqrt(1 / p): what it says of other rows of the same kind is not in it.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/calibration.py --stores FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import MEASURES
from common import write_csv
from public_sets import CONFIRMATION
from selection_public import metrics_of, prepared

NAME = "calibration"
SPLITS = 60
FEW = 6
MEASURES_SHOWN = ("held-out-auc", "held-out-auc(lr)")


def calibrated(name: str, stores: Path) -> list[dict[str, Any]]:
    """Return one row per configuration: what was expected, and reached on few and on many splits."""
    summary, coded, choices = prepared(name)
    found = metrics_of(coded, choices, stores / f"calibration_{name}.jsonl", ((("lr",), SPLITS),))
    scorer = Scorer(summary)
    rows = []
    for configuration, splits in found["lr"].items():
        reached = np.array([split["roc_auc"] for split in splits], dtype=float)
        expected = {
            m: scorer.value(choices[configuration], MEASURES.get(m)) for m in MEASURES_SHOWN
        }
        rows.append(
            {
                "data": name,
                "configuration": configuration,
                **expected,
                "few_splits": float(reached[:FEW].mean()),
                "many_splits": float(reached.mean()),
                "error_of_many": float(reached.std(ddof=1) / np.sqrt(len(reached))),
            }
        )
    return rows


def main(argv: list[str] | None = None) -> None:
    """Train, compare, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join([*CONFIRMATION, "bank"]))
    parser.add_argument("--stores", type=Path, required=True, help="folder of trainings")
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        rows += calibrated(name, given.stores)
        write_csv(NAME, rows)
        print(summed_up(name, [row for row in rows if row["data"] == name]), flush=True)
    print(summed_up("all", rows))


def summed_up(name: str, rows: list[dict[str, Any]]) -> str:
    """Return median and largest distance on few and on many splits, as a line of a table."""
    cells = [name]
    for reached in ("few_splits", "many_splits"):
        for measure in MEASURES_SHOWN:
            apart = np.abs([row[measure] - row[reached] for row in rows])
            cells.append(f"{np.median(apart):.3f} / {apart.max():.3f}")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
