"""A number to predict: the R2 that is stated, and what ridge regression, boosting and a forest reach.

    python experiments/numbers_to_predict.py FOLDER [NAME ...] [--rows 1000] [--configurations 24] [--known FILE]

FOLDER holds public tables as CSV files (`TABLES` says where they are found). Of each, the stated R2 is
printed next to three models over five held-out folds: unmasked, in the release that is advised under the
policy of `init`, and by rank over random configurations. Each model is trained under two random divisions
of the rows into five folds, and on each of two halves of the rows. A score can hardly rank better than
two divisions agree. With --known, no model is trained whose R2 is in FILE, the result of an earlier run.
`numbers_tables.py` prints the tables of docs/experiments.md from the result.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aegis
from aegis.advisor.scoring import Choice, Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import CodedTable, code_table
from aegis.policy.suggest import init_policy
from aegis.summary.codes import natural_order
from common import add_csv
from measured_numbers import asked, columns, drawn, parser_of, sampled, studied

Floats = npt.NDArray[np.float64]
MODELS = ("ridge", "boosting", "forest")
HALVES = 2
"""Random divisions of the rows into folds, and halves of the rows."""
TRAINED = [
    f"{model} {of} {n}" for of in ("folds", "rows") for n in range(HALVES) for model in MODELS
]
"""Names of the figures of trained models."""
Known = dict[tuple[str, str], dict[str, float]]
"""R2 of trained models by table and configuration."""
TABLES: dict[str, tuple[str, list[str]]] = {
    "Wage": ("logwage", ["wage", "region"]),  # ISLP, as are the next five
    "Bikeshare": ("bikers", ["casual", "registered", "day"]),
    "Carseats": ("Sales", []),
    "Credit": ("Balance", ["ID"]),
    "Hitters": ("Salary", []),
    "Boston": ("medv", []),
    "diabetes": ("target", []),  # scikit-learn
    "adult": ("hours-per-week", ["fnlwgt"]),  # UCI
    "SLID": ("wages", []),  # Rdatasets; these five were chosen before any of them was looked at
    "Star": ("tmathssk", []),
    "Wages": ("lwage", []),
    "births14": ("weight", ["lowbirthweight"]),
    "CPSSW8": ("earnings", []),
    "College": ("Apps", []),  # ISLP; long tails, as are all that follow
    "Caschool": ("enrltot", ["distcod", "district", "county"]),  # Rdatasets
    "LAhomes": ("price", []),
    "SaratogaHouses": ("price", []),
    "k401ksubs": ("nettfa", ["incsq", "agesq"]),
    "GrinnellHouses": (
        "SalePrice",
        ["Address"],
    ),  # nearly determined by other columns, as are the next three
    "card": ("wage", ["id", "weight"]),
    "driving": ("totfatpvm", []),
    "dengue": ("temp", []),
}
"""Number to predict, and columns that derive from it or number the rows."""
NEW_TABLES: dict[str, tuple[str, list[str]]] = {
    "acs12": ("income", []),  # Rdatasets, as are all but the last two
    "airbnb": ("price", []),
    "airfare": ("fare", ["lfare", "id"]),
    "bdf": ("langPOST", ["pupilNR", "IQ.ver.cen", "avg.IQ.ver.cen", "grpSiz.cen"]),
    "bwght2": ("bwght", ["lbw", "vlbw", "lbwght", "omaps", "fmaps"]),
    "CollegeDistance": ("score", []),
    "concrete": ("compressive_strength", []),
    "flchain": ("kappa", ["flc.grp"]),
    "Gestation": ("wt", ["id"]),
    "htv": ("wage", ["lwage"]),
    "lending_club": ("int_rate", ["sub_grade"]),
    "MathAchieve": ("MathAch", []),
    "MedExp": ("med", []),
    "stackoverflow": ("Salary", []),
    "storms": ("pressure", ["name", "category"]),
    "TenMileRace": ("net", ["time"]),
    "wage2": ("wage", ["lwage"]),
    "abalone": ("Rings", []),  # jbrownlee/Datasets
    "whitewines": ("quality", []),  # stedy/Machine-Learning-with-R-datasets
}
"""Tables that took no part when the score was designed; they are compared only if they are named."""


def read(folder: Path, name: str, rows: int, seed: int) -> pd.DataFrame:
    """Return a table whose number to predict is `y`, with at most so many rows."""
    table = pd.read_csv(folder / f"{name}.csv")
    label, left_out = {**TABLES, **NEW_TABLES}[name]
    table = table[table[label].notna()].drop(columns=[c for c in left_out if c in table])
    table = table.drop(columns=[c for c in table if c.startswith("Unnamed") or c == "rownames"])
    return sampled(table.rename(columns={label: "y"}), rows, seed)


def trained(y: Floats, linear: Floats, trees: Floats, seed: int) -> dict[str, float]:
    """Return R2 of each model over five held-out folds."""
    folds = KFold(5, shuffle=True, random_state=seed)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11)))
    boosting = HistGradientBoostingRegressor(max_iter=80, random_state=seed)
    forest = RandomForestRegressor(40, min_samples_leaf=5, max_features=1 / 3, random_state=seed)
    models = ((ridge, linear), (boosting, trees), (forest, np.nan_to_num(trees, nan=-1.0)))
    return {
        name: float(r2_score(y, cross_val_predict(model, x, y, cv=folds)))
        for name, (model, x) in zip(MODELS, models, strict=True)
    }


def shown(table: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return what linear models and trees see of a release: ranges by name, and by their order."""
    linear, trees = [], []
    features = table.drop(columns="y")
    for own in (features[name] for name in features):
        if pd.api.types.is_numeric_dtype(own):
            linear.append(own.fillna(own.mean()).to_numpy(dtype=float))
            trees.append(own.to_numpy(dtype=float))
            continue
        codes, labels = pd.factorize(own.astype(str))
        rank = np.argsort(natural_order(list(labels)))
        trees.append(rank[codes].astype(float))
        linear += list(np.eye(len(labels))[codes][:, :64].T)
    return np.stack(linear, axis=1), np.stack(trees, axis=1)


def released(table: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return what is stated of the advised release, and what models reach on its rows."""
    rows = pa.Table.from_pandas(table, preserve_index=False)
    policy = init_policy(rows, label="y").policy
    if not policy.label.is_number:
        return {}
    study = aegis.Study(rows, policy)
    advice = study.advise(time_limit=60)
    if advice.best is None or advice.utility is None:
        return {}
    data = study.apply(advice).data.to_pandas()
    reached = trained(data["y"].to_numpy(dtype=float), *shown(data), seed)
    return {"stated": advice.utility.value, "of": advice.utility.reference, **reached}


def reached(
    table: pd.DataFrame, scorer: Scorer, rows: CodedTable, choice: Choice, seed: int
) -> dict[str, float]:
    """Return R2 of each model under two random divisions into folds, and on each of two halves of the rows.

    Ridge regression sees what that of `aegis evaluate` sees.
    """
    y, (_, trees) = table["y"].to_numpy(dtype=float), columns(table, scorer, choice)
    linear = rows.design(choice).linear(np.arange(len(y)))
    own = {
        f"{model} folds {n}": r2
        for n in range(HALVES)
        for model, r2 in trained(y, linear, trees, seed + 1000 * n).items()
    }
    half = np.random.default_rng(seed).permutation(len(y)) % HALVES
    for n in range(HALVES):
        r2s = trained(y[half == n], linear[half == n], trees[half == n], seed)
        own |= {f"{model} rows {n}": r2 for model, r2 in r2s.items()}
    return own


def compared(
    name: str, table: pd.DataFrame, configurations: int, seed: int, known: Known
) -> list[dict[str, Any]]:
    """Return the stated R2 and the models', unmasked first, then of random configurations.

    Models are not trained where `known` has their R2, by table and configuration.
    """
    study = studied(table, {"column": "y", "kind": "number"})
    scorer = Scorer(study.summary)
    coded, rows = code_table(study.source, study.summary, study.policy), []
    for place, choice in drawn(scorer, configurations, seed):
        own = known.get((name, str(place))) or reached(table, scorer, coded, choice, seed)
        own |= {m: float(np.mean([own[f"{m} folds {n}"] for n in range(HALVES)])) for m in MODELS}
        stated = {
            by or "stated": scorer.value(choice, MEASURES.get(f"held-out-r2{by}"))
            for by in ("", "(lr)", "(gbdt)")
        }
        row = {"data": name, "rows": len(table), "configuration": place, "of": None}
        rows.append({**row, **stated, **own})
    return rows


def said(rows: Sequence[dict[str, Any]], release: dict[str, float]) -> str:
    """Return one line: unmasked, released, and how well random configurations are ranked."""
    first, masked = rows[0], rows[1:]
    line = f"{first['data']:10s} {first['rows']:5d} unmasked {first['stated']:.3f}: "
    line += " ".join(f"{name} {first[name]:.3f}" for name in MODELS)
    if release:
        line += f"; released {release['stated']:.3f} of {release['of']:.3f}: "
        line += " ".join(f"{name} {release[name]:.3f}" for name in MODELS)
    if len(masked) < 3:
        return line
    stated = [row["stated"] for row in masked]
    ranks = [float(spearmanr(stated, [row[m] for row in masked])[0]) for m in MODELS]
    return f"{line}; Spearman of {len(masked)}: " + " ".join(f"{rank:.2f}" for rank in ranks)


def main(argv: list[str] | None = None) -> None:
    """Compare stated and trained R2 on the tables that are asked for."""
    parser = parser_of({**TABLES, **NEW_TABLES}, rows=1_000)
    parser.add_argument("--known", type=Path)
    given = asked(parser, argv, TABLES)
    known: Known = {}
    if given.known is not None:
        with given.known.open(newline="") as file:
            known = {
                (row["data"], row["configuration"]): {m: float(row[m]) for m in TRAINED}
                for row in csv.DictReader(file)
                if row["configuration"] != "released"
            }
    for name in given.names:
        table = read(given.folder, name, given.rows, given.seed)
        rows = compared(name, table, given.configurations, given.seed, known)
        release = released(table, given.seed)
        print(said(rows, release), flush=True)
        if release:
            release = dict.fromkeys(rows[0]) | {"data": name, "rows": len(table)} | release
            rows.append({**release, "configuration": "released"})
        add_csv("numbers_to_predict", rows)


if __name__ == "__main__":
    main()
