"""Numbers as numbers: what the expected AUC states, and what models reach, on tables with measured numbers.

    python experiments/measured_numbers.py FOLDER [NAME ...] [--rows 3000] [--configurations 24]

FOLDER holds public tables as CSV files (`TABLES` says where they are found). Of each the expected AUC is
printed under the former coding (a name for each value counts two thirds, thresholds one third, the mean
over penalties) and as it is now, beside logistic regression and boosting over five held-out folds. On
random configurations both scores are ranked by the mean of the two models.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aegis
from aegis.advisor.scoring import Choice, Scorer
from aegis.measures import MEASURES
from aegis.measures.cooccurrence import Encoding
from aegis.measures.discriminant import out_of_fold
from aegis.measures.numerics import cumulative, quantile
from aegis.policy import load_policy
from common import write_csv

Floats = npt.NDArray[np.float64]
FORMER = (1.0, 10.0, 100.0)
"""Penalties of names; those of thresholds were a hundred times as strong."""
TABLES: dict[str, tuple[str, Any]] = {
    "Default": ("default", "Yes"),  # ISLP, as are the next three
    "Wage": ("wage", None),
    "OJ": ("Purchase", "MM"),
    "College": ("Private", "Yes"),
    "randhie": ("mdvis", 0),  # statsmodels
    "fair": ("affairs", 0.0),
    "breast_cancer": ("target", 1),  # scikit-learn
    "adult": ("income", ">50K"),  # UCI, as are the next two
    "air_quality": ("Air Quality", "Good"),
    "german": ("class", 1),
    "EIA": ("TOTREVENUE", None),  # CASC, by sdcMicro
    "hotel": ("is_booking", 1),  # Expedia
}
"""Label, and the value that makes the class; None: above the median. What derives from it is left out."""
LEFT_OUT = {
    "Wage": ["logwage", "region"],
    "EIA": ["UTILITYID", "UTILNAME", "TOTSALES", "RESREVENUE", "COMREVENUE", "INDREVENUE", "OTHREVENUE"],
    "hotel": ["serial", "user_id", "cnt"],
}  # fmt: skip
NUMERIC = [
    "identity",
    {"equal_width": {"count": 4}},
    {"equal_width": {"count": 16}},
    {"quantiles": {"count": 3}},
    {"quantiles": {"count": 8}},
    {"quantiles": {"count": 20}},
    "suppress",
]
TEXT = ["identity", {"keep_frequent": {"count": 2}}, {"keep_frequent": {"count": 5}}, "suppress"]


def read(folder: Path, name: str, rows: int, seed: int) -> pd.DataFrame:
    """Return a table whose label `y` is yes or no, with at most so many rows."""
    table = pd.read_csv(folder / f"{name}.csv")
    column, value = TABLES[name]
    told = table[column] > table[column].median() if value is None else table[column] == value
    table = table.drop(columns=[column, *LEFT_OUT.get(name, [])])
    table["y"] = np.where(told, "yes", "no")
    return sampled(table, rows, seed)


def sampled(table: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    """Return at most so many rows, with names of columns that a policy can hold."""
    table.columns = [str(c).replace(" ", "_").replace(".", "_") for c in table.columns]
    return table.sample(min(rows, len(table)), random_state=seed).reset_index(drop=True)


def studied(table: pd.DataFrame, label: Any = "y") -> aegis.Study:
    """Return the table under a policy that offers masks of every kind."""
    attributes = {
        name: {
            "role": "feature",
            "masks": NUMERIC if pd.api.types.is_numeric_dtype(own) else TEXT,
        }
        for name, own in table.drop(columns="y").items()
        if own.nunique() > 1
    }
    policy = load_policy({"version": 1, "label": label, "attributes": attributes})
    return aegis.Study(pa.Table.from_pandas(table, preserve_index=False), policy)


def drawn(scorer: Scorer, configurations: int, seed: int) -> Iterator[tuple[int, Choice]]:
    """Yield the unmasked table and random configurations that show something, with their numbers."""
    random, attributes = np.random.default_rng(seed), scorer.summary.attributes
    choices = [scorer.unmasked]
    choices += [
        {n: a.candidates[random.integers(len(a.candidates))] for n, a in attributes.items()}
        for _ in range(configurations)
    ]
    for place, choice in enumerate(choices):
        if any(candidate.size > 1 for candidate in choice.values()):
            yield place, choice


def former(scorer: Scorer, choice: Choice) -> float:
    """Return the expected AUC as it was: names of values two thirds, thresholds one third."""
    counts = scorer.cooccurrence(choice, MEASURES.get("held-out-auc").needs)
    names = out_of_fold(counts.by_fold(), FORMER)
    steps = out_of_fold(counts.by_fold(Encoding.THRESHOLDS), [100 * p for p in FORMER])
    areas = np.array([names.aucs[0].mean(), steps.aucs[0].mean()])
    if names.shape is not None:
        areas = cumulative(names.shape[0] * quantile(np.clip(areas, 0.5, 1 - 1e-16)))
    return max(float(areas @ [2 / 3, 1 / 3]), 0.5)


def columns(table: pd.DataFrame, scorer: Scorer, choice: Choice) -> tuple[Floats, Floats]:
    """Return what linear models and trees see: numbers that no mask touches as numbers, all else as names.

    Trees see the place of a range among the others in place of its name.
    """
    linear, trees = [], []
    for name, attribute in scorer.summary.attributes.items():
        place = pd.Index(attribute.values.to_pylist()).get_indexer(table[name].astype(object))
        place = np.where(place < 0, len(attribute.values) - 1, place)
        group = choice[name].groups[place]
        numbers = attribute.numbers
        if numbers is not None:
            own = numbers[place]
            mean = pd.Series(own).groupby(group).mean()
            trees.append(mean.reindex(group).to_numpy())
            if choice[name].size > 32:
                missing = np.isnan(own)
                linear += [np.where(missing, np.nanmean(own), own)]
                linear += [missing.astype(float)] if missing.any() else []
                continue
        shown = np.eye(choice[name].size)[group]
        linear += list(shown[:, np.argsort(-shown.sum(axis=0))[:64]].T)
        if numbers is None:
            trees += list(shown[:, np.argsort(-shown.sum(axis=0))[:64]].T)
    return np.stack(linear, axis=1), np.stack(trees, axis=1)


def trained(table: pd.DataFrame, scorer: Scorer, choice: Choice, seed: int) -> tuple[float, float]:
    """Return the AUC of logistic regression and of boosting over five held-out folds."""
    label = (table["y"] == "yes").to_numpy()
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    linear, trees = columns(table, scorer, choice)
    models = (
        (make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)), linear),
        (HistGradientBoostingClassifier(max_iter=80, random_state=seed), trees),
    )
    first, second = (
        float(roc_auc_score(label, cross_val_predict(m, x, label, cv=folds, method="predict_proba")[:, 1]))
        for m, x in models
    )  # fmt: skip
    return first, second


def compared(
    name: str, table: pd.DataFrame, configurations: int, seed: int
) -> list[dict[str, Any]]:
    """Return both scores and both models, of the unmasked table first."""
    scorer = Scorer(studied(table).summary)
    rows = []
    for place, choice in drawn(scorer, configurations, seed):
        lr, gbdt = trained(table, scorer, choice, seed)
        now, of_lr, of_trees = (
            scorer.value(choice, MEASURES.get(f"held-out-auc{models}"))
            for models in ("", "(lr)", "(gbdt)")
        )
        rows.append(
            {
                "data": name,
                "configuration": place,
                "former": former(scorer, choice),
                "now": now,
                "expected_lr": of_lr,
                "expected_gbdt": of_trees,
                "lr": lr,
                "gbdt": gbdt,
            }
        )
    return rows


def said(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line of the table: the unmasked figures, and how well masked ones are ranked."""
    first, masked = rows[0], rows[1:]
    best = max(first["lr"], first["gbdt"])
    line = f"{first['data']:14s} former {first['former']:.3f} now {first['now']:.3f} lr {first['lr']:.3f}"
    line += f" gbdt {first['gbdt']:.3f} off by {first['now'] - best:+.3f} (was {first['former'] - best:+.3f})"
    if len(masked) < 3:
        return line
    reached = [(row["lr"] + row["gbdt"]) / 2 for row in masked]
    ranks = [float(spearmanr([row[by] for row in masked], reached)[0]) for by in ("former", "now")]
    return f"{line}; Spearman of {len(masked)} masked: former {ranks[0]:.3f} now {ranks[1]:.3f}"


def parser_of(tables: Mapping[str, object], *, rows: int) -> argparse.ArgumentParser:
    """Return the arguments: the folder, the tables, and how many rows and configurations of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*tables, []])
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--configurations", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def asked(
    parser: argparse.ArgumentParser, argv: list[str] | None, tables: Mapping[str, object]
) -> argparse.Namespace:
    """Return the arguments; without names, all tables."""
    given = parser.parse_args(argv)
    given.names = given.names or list(tables)
    return given


def main(argv: list[str] | None = None) -> None:
    """Compare the scores on the tables that are asked for."""
    given = asked(parser_of(TABLES, rows=3_000), argv, TABLES)
    every: list[dict[str, Any]] = []
    for name in given.names:
        table = read(given.folder, name, given.rows, given.seed)
        rows = compared(name, table, given.configurations, given.seed)
        print(said(rows), flush=True)
        every += rows
    write_csv("measured_numbers", every)


if __name__ == "__main__":
    main()
