"""How often the stated standard error covers what models trained on a sample reach on fresh rows.

    python experiments/stated_errors.py FOLDER [NAME ...] [--rows 300 500 1000 2000] [--draws 8]

FOLDER holds public tables as CSV files (`TABLES` names label and keys). A sample is drawn from each table,
its unmasked expected AUC and standard error are stated as `advise` states them, and logistic regression
and boosting are trained on the same sample. Their better one is tested on rows that were not drawn. Printed
are the mean difference, and in how many draws it is within one and two standard errors: of the stated AUC
alone, and together with that of the AUC on the fresh rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aegis
from aegis.advisor.confidence import sampling_error
from aegis.advisor.scoring import Scorer
from aegis.measures import MEASURES
from aegis.measures.merits import area_error
from aegis.policy import load_policy
from common import write_csv

TABLES: dict[str, tuple[str, Any, list[str]]] = {
    "adult": ("income", ">50K", []),  # UCI
    "Default": ("default", "Yes", []),  # ISLR, as by Rdatasets; so are the next ones
    "DoctorVisits": ("visits", 0, []),
    "HealthInsurance": ("insurance", "yes", []),
    "NMES1988": ("visits", None, ["nvisits", "ovisits", "novisits"]),
    "rwm5yr": ("outwork", 1, ["id"]),
    "nassCDS": ("dead", "dead", ["caseid", "injSeverity", "weight"]),
    "HI": ("whi", "yes", ["wght"]),
    "Males": ("union", "yes", ["nr"]),
    "Computers": ("premium", "no", []),
    "nafld1": ("status", 1, ["id", "case.id"]),
    "flchain": ("death", 1, ["chapter", "futime"]),
    "diamonds": ("price", None, []),
    "SLID": ("wages", None, []),
}
"""Label, and the value that makes the class (None: above the median); columns that are left out."""
FRESH = 5000
COLUMNS = ("table", "rows", "draw", "stated", "error", "reached", "fresh_error")


def read(folder: Path, name: str) -> pd.DataFrame:
    """Return a table with the label `y`, yes or no."""
    column, value, left_out = TABLES[name]
    table = pd.read_csv(folder / f"{name}.csv").dropna(subset=[column])
    told = table[column] > table[column].median() if value is None else table[column] == value
    table = table.drop(columns=[column, *left_out], errors="ignore")
    table = table.drop(columns="rownames", errors="ignore")
    return table.assign(y=np.where(told, "yes", "no"))


def stated(sample: pd.DataFrame) -> tuple[float, float]:
    """Return the expected AUC of an unmasked sample and its standard error."""
    attributes = {name: {"role": "feature"} for name in sample if name != "y"}
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    scorer = Scorer(aegis.summarize(pa.Table.from_pandas(sample, preserve_index=False), policy))
    measure = MEASURES.get("held-out-auc")
    value = scorer.value(scorer.unmasked, measure)
    return value, sampling_error(scorer, measure, value, float("nan"))


def shown_to_models(
    sample: pd.DataFrame, fresh: pd.DataFrame
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the columns of a linear model and those of trees, for sample and fresh rows together."""
    both = pd.concat([sample, fresh]).drop(columns="y")
    numeric = both.select_dtypes("number").columns
    texts = [name for name in both if name not in numeric]
    shown = pd.get_dummies(both.astype(dict.fromkeys(texts, str)), columns=texts, dtype=float)
    shown = shown.drop(columns=numeric)
    own = both[numeric].astype(float)
    linear = pd.concat([own.fillna(own.mean()), own.isna().astype(float), shown], axis=1)
    trees = pd.concat([own, shown], axis=1)
    return linear.to_numpy(), trees.to_numpy()


def reached(sample: pd.DataFrame, fresh: pd.DataFrame) -> float:
    """Return the AUC on fresh rows of the better one of two models that are trained on a sample."""
    linear, trees = shown_to_models(sample, fresh)
    train, test = (frame["y"] == "yes" for frame in (sample, fresh))
    found = []
    for model, values in (
        (make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)), linear),
        (HistGradientBoostingClassifier(max_iter=60, random_state=0), trees),
    ):
        model.fit(values[: len(sample)], train)
        found.append(roc_auc_score(test, model.predict_proba(values[len(sample) :])[:, 1]))
    return max(found)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each table and size, and write all draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 500, 1000, 2000])
    parser.add_argument("--draws", type=int, default=8)
    given = parser.parse_args(argv)
    draws = []
    for name in given.names or TABLES:
        table = read(given.folder, name)
        for rows in given.rows:
            for draw in range(given.draws):
                mixed = table.sample(frac=1, random_state=draw)
                sample, fresh = mixed[:rows], mixed[rows : rows + FRESH]
                if sample["y"].nunique() < 2 or sample["y"].value_counts().min() < 5:
                    continue
                value, error = stated(sample)
                auc = reached(sample, fresh)
                own = area_error(auc, fresh["y"].value_counts().to_numpy(dtype=float))
                draws.append((name, rows, draw, value, error, auc, own))
        print_covered([d for d in draws if d[0] == name], name)
    print_covered(draws, "all")
    write_csv("stated_errors", [dict(zip(COLUMNS, draw, strict=True)) for draw in draws])


def print_covered(draws: Sequence[tuple[Any, ...]], name: str) -> None:
    """Print how far off and how often covered the draws of each size are."""
    for rows in sorted({d[1] for d in draws}):
        value, error, auc, own = np.array([d[3:] for d in draws if d[1] == rows]).T
        away = value - auc
        within = [np.mean(np.abs(away) <= n * error) for n in (1, 2)]
        both = [np.mean(np.abs(away) <= n * np.hypot(error, own)) for n in (1, 2)]
        print(
            f"{name:16} {rows:6} draws {len(away):3} stated {value.mean():.3f} reached {auc.mean():.3f} "
            f"difference {away.mean():+.3f} error {error.mean():.3f} "
            f"within 1, 2: {within[0]:.0%} {within[1]:.0%} with fresh: {both[0]:.0%} {both[1]:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
