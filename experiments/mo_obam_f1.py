"""MO-OBAM's Tables VII and VIII, its setting n_C = 4 with lambda = 1, and the grid of Figure 2.

- Trained models by k = 5, 10, 15, 20: F1 after MO-OBAM (n_C = 30 and 100 with lambda = 1e-4; n_C = 4
  with lambda = 1), microaggregation (k-anonymity) and (k,l)-member, on features as plain numbers,
  which is the coding that comes near the published figures of the original (`mo_obam_coding.py`).
  German: F1 of the commoner class, Adult: of the rarer one.
- Risk and loss at n_C = 4 with lambda = 1, whose tables (IV(b), V(b)) the text has lost.
- German, k = 5: loss, records at risk above .05 and homogeneous records over n_C and lambda.

Finished trainings are kept in the result file: a run goes on where it was stopped.

    python experiments/mo_obam_f1.py [--part grid,German,Adult] [--models dt,lr] [--splits 40] [--slow-splits 10]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from aegis.anonymizers import ANONYMIZERS, build_release, encode_for, information_loss
from common import RESULTS, add_csv, write_json
from mo_obam import LABEL
from mo_obam_coding import models, numbered
from records import ROLES, adult, german, policy_of, released_classes, risks

NAME = "mo_obam_f1"
KS = (5, 10, 15, 20)
SLOW = {"German": ("rf", "nn"), "Adult": ("rf", "svm", "nn")}
"""Models that take seconds to a minute a fit on plain numbers."""
GRID_CLUSTERS, GRID_WEIGHTS = (4, 10, 20, 30), (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "German": {
        "MO-OBAM, 30": {"method": "mo-obam", "clusters": 30, "weight": 1e-4},
        "MO-OBAM, 4": {"method": "mo-obam", "clusters": 4, "weight": 1.0},
        "k-anonymity": {"method": "mdav"},
        "(k,l)-member": {"method": "kl-member", "l": 2},
    },
    "Adult": {
        "MO-OBAM, 100": {"method": "mo-obam", "clusters": 100, "weight": 1e-4},
        "MO-OBAM, 4": {"method": "mo-obam", "clusters": 4, "weight": 1.0},
    },
}
MODELS = ("dt", "lr", "nb", "nn", "rf", "svm")


def grouped(table: pa.Table, name: str, given: dict[str, Any], k: int) -> tuple[Any, Any]:
    """Return the records and the groups of one setting."""
    records = encode_for(table, policy_of(name, table, LABEL[name]))
    options = {key: value for key, value in given.items() if key != "method"}
    if given["method"] == "mo-obam":
        options |= {"scaled": False, "starts": 1}
    anonymizer = ANONYMIZERS.get(given["method"])
    return records, anonymizer.group(records, anonymizer.configure(k=k, **options))


def figures(table: pa.Table, name: str, records: Any, found: Any, k: int) -> dict[str, Any]:
    """Return loss and risk as the paper counts them: classes of equal released values."""
    loss = information_loss(records, found.groups, k, rounded=True).unscaled
    return {
        "il": loss,
        **risks(released_classes(records, found.groups), table, ROLES[name][1]),
    }


def grid(table: pa.Table, clusters: int) -> list[dict[str, Any]]:
    """Return the row of Figure 2 for one number of clusters, on German."""
    rows = []
    for weight in GRID_WEIGHTS:
        given = {"method": "mo-obam", "clusters": clusters, "weight": weight}
        records, found = grouped(table, "German", given, 5)
        rows.append({"n_c": clusters, "lambda": weight})
        rows[-1] |= figures(table, "German", records, found, 5)
        print(rows[-1], flush=True)
    return rows


def f1(name: str, table: pa.Table, model: str, splits: int, rows: int | None) -> list[float]:
    """Return the F1 of the class that is published, by split; of a seeded sample where rows say so."""
    from sklearn.metrics import f1_score
    from sklearn.model_selection import train_test_split

    if rows is not None and rows < table.num_rows:
        drawn = np.random.default_rng(1).choice(table.num_rows, rows, replace=False)
        table = table.take(np.sort(drawn))
    features, target = numbered(table, LABEL[name])
    scores = []
    for seed in range(splits):
        train, test, known, truth = train_test_split(
            features, target, test_size=0.3, random_state=seed, stratify=target
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what stops before it converges is told by the coding
            said = models()[model](seed).fit(train, known).predict(test)
        scores.append(float(f1_score(truth, said, pos_label=1 if name == "Adult" else 0)))
    return scores


def trained(
    name: str, table: pa.Table, splits: dict[str, int], rows: int | None, done: dict[str, Any]
) -> None:
    """Train on the original and on every release; add what is missing to `done`, and write it."""
    releases: list[tuple[str, int, dict[str, Any] | None]] = [("original", 1, None)]
    releases += [(title, k, given) for title, given in SETTINGS[name].items() for k in KS]
    for title, k, given in releases:
        entry = done.setdefault(f"{name}, {title}, k = {k}", {"f1": {}})
        missing = [m for m in splits if len(entry["f1"].get(m, ())) < splits[m]]
        if not missing:
            continue
        released = table
        if given is not None:
            records, found = grouped(table, name, given, k)
            released = build_release(table, records, found)
            entry |= figures(table, name, records, found, k)
        for model in missing:
            entry["f1"][model] = f1(name, released, model, splits[model], rows)
            entry.setdefault("rows", {})[model] = min(rows or table.num_rows, table.num_rows)
        print(name, title, k, {m: round(float(np.mean(v)), 4) for m, v in entry["f1"].items()})
        write_json(NAME, {"releases": done, "means": means(done)})


def means(done: dict[str, Any]) -> list[dict[str, Any]]:
    """Return mean F1 by release and model, with p of the Mann-Whitney U test against the original."""
    rows = []
    for key, entry in done.items():
        original = done[f"{key.split(', ')[0]}, original, k = 1"]["f1"]
        for model, scores in entry["f1"].items():
            test = stats.mannwhitneyu(scores, original[model])
            rows.append(
                {
                    "release": key,
                    "model": model,
                    "f1": float(np.mean(scores)),
                    "p": float(test.pvalue),
                    "splits": len(scores),
                }
            )
    return rows


def main(argv: list[str] | None = None) -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="grid,German,Adult")
    parser.add_argument("--clusters", default=",".join(map(str, GRID_CLUSTERS)))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--slow-splits", type=int, default=10)
    parser.add_argument("--rows", type=int, help="train on a sample of each release")
    given = parser.parse_args(argv)
    path = RESULTS / f"{NAME}.json"
    done = json.loads(path.read_text())["releases"] if path.exists() else {}
    started = time.process_time()
    for part in given.part.split(","):
        if part == "grid":
            for clusters in map(int, given.clusters.split(",")):
                add_csv("mo_obam_figure_2", grid(german(), clusters), key="n_c")
            continue
        table = german() if part == "German" else adult()
        splits = {
            model: given.slow_splits if model in SLOW[part] else given.splits
            for model in given.models.split(",")
        }
        trained(part, table, splits, given.rows, done)
    print(f"{time.process_time() - started:.0f} processor seconds")


if __name__ == "__main__":
    main()
