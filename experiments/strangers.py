"""Strangers' tables: `init`, `advise`, `apply`, `audit`, unedited, on tables that nobody prepared.

    python experiments/strangers.py FOLDER [NAME ...] [--no-models]

FOLDER holds the tables as CSV files. For each one the four commands run as a user would type them;
their times are of whole processes. What the release promises is counted anew with pandas alone. A
boosted model is then trained on the released rows and tested on others of them, and so it is for up
to 20 random configurations that meet the rule, and for the unmasked table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import yaml
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import aegis
from common import RESULTS, write_json

TABLES = {
    "diabetes130": ("readmitted", ["encounter_id", "patient_nbr"]),
    "compas": ("two_year_recid", ["id", "name", "first", "last", "c_case_number", "r_case_number", "vr_case_number"]),
    "churn_modelling": ("Exited", ["RowNumber", "CustomerId", "Surname"]),
    "telco": ("Churn", ["customerID"]),
    "bank": ("y", []),
    "hr_attrition": ("Attrition", ["EmployeeNumber"]),
    "travel_insurance": ("Claim", []),
    "stroke": ("stroke", ["rownames", "pat_id"]),
    "prostate": ("status", ["rownames"]),
    "nhefs": ("qsmk", ["rownames", "seqn"]),
    "climbers": ("success", ["rownames", "member_id"]),
    "rwm5yr": ("outwork", ["rownames", "id"]),
    "arrests": (None, ["rownames"]),
}  # fmt: skip
"""Label (None: without one) and keys, named by hand."""
RANDOM = 20
DRAWN = 300
"""Configurations that are drawn to find so many that meet the rule."""
FOLDS = 3
MOST_ROWS = 10_000
"""Most rows that models are trained and tested on."""


def main(argv: list[str] | None = None) -> None:
    """Run the tables that are asked for and write what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*TABLES, []])
    parser.add_argument("--no-models", action="store_true", help="leave out what is trained")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="configurations that are drawn")
    parser.add_argument("--label", help="another column to predict")
    given = parser.parse_args(argv)
    results: list[dict[str, Any]] = []
    for name in given.names or TABLES:
        with tempfile.TemporaryDirectory() as work:
            table = given.folder / f"{name}.csv"
            drawn = 0 if given.no_models else given.drawn
            results.append(run(name, table, Path(work), drawn=drawn, label=given.label))
        print(results[-1], flush=True)
        keep(results[-1])


def keep(result: dict[str, Any]) -> None:
    """Write one table's figures beside those of the others."""
    path = RESULTS / "strangers.json"
    tables = json.loads(path.read_text())["tables"] if path.exists() else {}
    write_json("strangers", {"tables": {**tables, result["table"]: result}})


def run(name: str, table: Path, work: Path, *, drawn: int, label: str | None) -> dict[str, Any]:
    """Return what the four commands do to one table, and what models make of it.

    Models are trained where configurations are `drawn` to compare with; `label` is in place of the
    table's own.
    """
    named, keys = TABLES[name]
    label = label or named
    policy, best, release = work / "policy.yaml", work / "best.yaml", work / "release.csv"
    report, labelled = work / "report.html", () if label is None else ("--label", label)
    said: dict[str, Any] = {}
    times = {
        "init": command("init", table, *labelled, "-o", policy),
        "advise": command(
            "advise",
            table,
            "-p",
            policy,
            "-o",
            best,
            "--report",
            report,
            "--format",
            "json",
            says=said,
        ),
        "apply": command("apply", table, "-p", policy, "-c", best, "-o", release),
        "audit": command("audit", release, "-p", policy),
    }
    declared = yaml.safe_load(policy.read_text())
    masked = pd.read_csv(release, dtype=str, keep_default_na=False)
    return {
        "table": name,
        "rows": table.read_bytes().count(b"\n") - 1,
        "columns": len(declared["attributes"]) + (label is not None),
        "quasi_identifiers": len(roles(declared, "quasi-identifier")),
        "seconds": {step: round(wall, 1) for step, (wall, _) in times.items()},
        "cpu_seconds": {step: round(cpu, 1) for step, (_, cpu) in times.items()},
        "load": round(os.getloadavg()[0], 1),
        "utility_kept": said["ranking"][0]["utility_kept"],
        "proven": said["optimal"],
        "released_keys": [key for key in keys if key in masked],
        **recount(masked, declared),
        **(models(table, policy, release, label, drawn) if drawn and label is not None else {}),
    }


def command(*words: object, says: dict[str, Any] | None = None) -> tuple[float, float]:
    """Run one command; return its seconds on the clock and of the processor.

    `says` receives the JSON that it prints.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [str(Path(sys.executable).parent / "aegis"), *map(str, words), "--quiet"],
        check=True,
        stdout=subprocess.PIPE,
    )
    if says is not None:
        says.update(json.loads(done.stdout))
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def roles(declared: dict[str, Any], role: str) -> list[str]:
    """Return the columns that a policy gives a role."""
    return [name for name, entry in declared["attributes"].items() if entry["role"] == role]


def recount(masked: pd.DataFrame, declared: dict[str, Any]) -> dict[str, Any]:
    """Count the rule anew on the file that was written."""
    quasi = [name for name in roles(declared, "quasi-identifier") if name in masked]
    sizes = masked.groupby(quasi).size() if quasi else pd.Series([len(masked)])
    rule = declared["privacy"]
    met = bool(sizes.min() >= rule["k"])
    diversity = rule.get("l_diversity")
    if diversity is not None and quasi:
        met = met and bool(
            masked.groupby(quasi)[diversity["attribute"]].nunique().min() >= diversity["l"]
        )
    return {"released_rows": len(masked), "smallest_class": int(sizes.min()), "rule_met": met}


def models(table: Path, policy: Path, release: Path, label: str, drawn: int) -> dict[str, Any]:
    """Return the AUC of models on the release, on random admissible configurations, and unmasked."""
    study = aegis.Study(table, policy)
    advice = study.rank(generate_count=drawn, seed=1)
    random = [r.configuration for r in advice.ranking if r.admissible]
    picks = np.random.default_rng(2).permutation(len(random))[:RANDOM]
    least = yaml.safe_load(policy.read_text())["privacy"]["k"]
    attributes = study.summary.all_attributes
    source = study.source
    raw = source.collect(source.table.select(*(a.name for a in attributes), label))
    codes = {a.name: pc.index_in(raw[a.name], value_set=a.values).to_numpy() for a in attributes}
    classes = raw[label].to_pandas().astype(str)
    unmasked = auc(raw.to_pandas(), label)
    choice = auc(pd.read_csv(release), label)
    others = []
    for pick in picks:
        shown = {label: classes}
        for attribute in attributes:
            candidate = next(
                c for c in attribute.candidates if c.mask == random[pick].masks[attribute.name]
            )
            labels = np.array(candidate.labels, dtype=object)
            shown[attribute.name] = labels[candidate.groups[attribute.atoms[codes[attribute.name]]]]
        frame = pd.DataFrame(shown)
        quasi = [a.name for a in study.policy.quasi_identifiers]
        sizes = frame.groupby(quasi, dropna=False)[label].transform("size")
        others.append(auc(frame[sizes >= least], label)[0])
    return {
        "auc_unmasked": round(unmasked[0], 4),
        "auc_noise": round(unmasked[1], 4),
        "auc_choice": round(choice[0], 4),
        "random": len(others),
        "auc_best_random": round(max(others), 4) if others else None,
        "auc_median_random": round(float(np.median(others)), 4) if others else None,
    }


def auc(frame: pd.DataFrame, label: str) -> tuple[float, float]:
    """Return the mean AUC over folds of a boosted model, and the standard error of that mean."""
    frame = frame[frame[label].notna()]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    classes = frame[label].astype(str).to_numpy()
    features = encode(frame.drop(columns=label))
    scores = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(
        features, classes
    ):
        model = HistGradientBoostingClassifier(max_iter=40, random_state=0)
        model.fit(features[train], classes[train])
        chances = model.predict_proba(features[test])
        if len(model.classes_) == 2:
            scores.append(roc_auc_score(classes[test] == model.classes_[1], chances[:, 1]))
        else:
            scores.append(roc_auc_score(classes[test], chances, multi_class="ovr"))
    return float(np.mean(scores)), float(np.std(scores, ddof=1) / np.sqrt(FOLDS))


def encode(frame: pd.DataFrame) -> np.ndarray:
    """Return numbers: those of numeric columns, ranks of days, and ranks by size of all others."""
    columns = []
    for name in frame:
        column = frame[name]
        if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
            text = column.astype(str)
            # Intervals begin with their lower bound: by it they keep their order.
            bound = pd.to_numeric(text.str.extract(r"(-?\d+\.?\d*)")[0], errors="coerce").fillna(
                -1e18
            )
            order = pd.DataFrame({"bound": bound, "text": text}).drop_duplicates("text")
            ranks = order.sort_values(["bound", "text"])["text"].reset_index(drop=True)
            column = text.map({value: rank for rank, value in ranks.items()})
        columns.append(pd.to_numeric(column, errors="coerce").astype("float64").to_numpy())
    return np.column_stack(columns)


if __name__ == "__main__":
    main()
