"""How often a trained model is within the range that `advise` states, on public tables drawn at random.

    python experiments/stated_range.py FOLDER [--tables 80] [--seed 1] [--not RESULT.csv] [--numbers]

FOLDER holds CSV files, such as those of Rdatasets. Of the tables in random order, those count that have
300 rows, 4 to 60 columns, and a column of two values with 30 rows each, which becomes the label. `init`
proposes the policy for 70 % of the rows, `advise` states the AUC of the unmasked table, and the better one
of logistic regression and boosting, trained on these rows, is tested on the other 30 %. Tables of an earlier
RESULT do not take part. With --numbers, the label is a column of more than 20 numbers, the metric is R2, and
ridge regression replaces logistic regression.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aegis.advisor.utility import MODELS_DIFFER
from aegis.measures.merits import area_error
from common import write_csv
from stated_errors import COLUMNS, print_covered, reached, shown_to_models

LARGEST = 20_000_000
MOST_ROWS = 15_000
FEWEST_ROWS = 300
FEWEST_OF_CLASS = 30
MOST_CLASSES = 20
MEASURE = {False: "held-out-auc", True: "held-out-r2"}
"""The measure of a label with classes, and of a number to predict."""
SHOWN = 60
"""Most values of a text that models tell apart; rarer ones are merged."""
ROLES = ("quasi-identifier", "feature", "sensitive")


def main(argv: Sequence[str] | None = None) -> None:
    """Print how many models are within one and two deviations, and write all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--not", dest="earlier", type=Path)
    parser.add_argument("--numbers", action="store_true")
    given = parser.parse_args(argv)
    earlier = set()
    if given.earlier is not None:
        with given.earlier.open() as file:
            earlier = {line["table"] for line in csv.DictReader(file)}
    draws = []
    compared = of_number if given.numbers else of_class
    for name, label, table in drawn(given.folder, given.seed, earlier, given.numbers):
        if len(draws) == given.tables:
            break
        cut = int(0.7 * len(table))
        stated = of_advise(table[:cut], label, MEASURE[given.numbers])
        if stated is None:
            continue
        columns, value, stderr = stated
        features = merged(table[columns])
        error, metric, own = compared(features, table[label], cut, value, stderr)
        draws.append((name, cut, given.seed, value, error, metric, own))
        print(*draws[-1], flush=True)
    print_covered([(name, 0, *rest) for name, _, *rest in draws], "all sizes")
    result = "stated_range_r2" if given.numbers else "stated_range"
    write_csv(result, [dict(zip(COLUMNS, draw, strict=True)) for draw in draws])


def of_class(
    features: pd.DataFrame, label: pd.Series, cut: int, value: float, _: float
) -> tuple[float, float, float]:
    """Return the stated error of an AUC, the AUC on fresh rows, and the error of this AUC."""
    counts = label[:cut].astype(str).value_counts()
    told = features.assign(y=np.where(label.astype(str) == counts.index[-1], "yes", "no"))
    sample, fresh = told[:cut], told[cut:]
    auc = reached(sample, fresh)
    own = area_error(auc, fresh["y"].value_counts().to_numpy(dtype=float))
    error = np.hypot(area_error(value, counts.to_numpy(dtype=float)), MODELS_DIFFER)
    return float(error), auc, own


def of_number(
    features: pd.DataFrame, label: pd.Series, cut: int, _: float, stderr: float
) -> tuple[float, float, float]:
    """Return the stated error of an R2, the R2 on fresh rows of the better of two models, and 0."""
    told = features.assign(y=label)
    linear, trees = shown_to_models(told[:cut], told[cut:])
    y = label.to_numpy(dtype=float)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11)))
    boosting = HistGradientBoostingRegressor(max_iter=80, random_state=0)
    fits = [(ridge.fit(linear[:cut], y[:cut]), linear), (boosting.fit(trees[:cut], y[:cut]), trees)]
    best = max(r2_score(y[cut:], model.predict(values[cut:])) for model, values in fits)
    return float(np.hypot(stderr, MODELS_DIFFER)), float(best), 0.0


def drawn(
    folder: Path, seed: int, earlier: set[str], numbers: bool
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield name, label and mixed rows of tables in random order."""
    chance = random.Random(seed)
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.csv"))
    names = [name for name in names if name not in earlier]
    chance.shuffle(names)
    for name in names:
        file = folder / name
        if file.stat().st_size > LARGEST:
            continue
        try:
            table = pd.read_csv(file, low_memory=False)
        except (ValueError, pd.errors.ParserError):
            print(name, "cannot be read")
            continue
        if len(table) < FEWEST_ROWS or not 4 <= table.shape[1] <= SHOWN:
            continue
        if len(table) > MOST_ROWS:
            table = table.sample(MOST_ROWS, random_state=1)
        labels = [
            column
            for column in table.columns[1:]
            if table[column].notna().sum() >= FEWEST_ROWS and may_be_label(table[column], numbers)
        ]
        if labels:
            label = chance.choice(labels)
            yield name, label, table[table[label].notna()].sample(frac=1, random_state=seed)


def may_be_label(column: pd.Series, numbers: bool) -> bool:
    """Return whether a column has two classes of enough rows, or more than 20 finite numbers."""
    if not numbers:
        return column.nunique() == 2 and column.value_counts().min() >= FEWEST_OF_CLASS
    finite = column.dtype.kind in "if" and np.isfinite(column.dropna()).all()
    return bool(finite and column.nunique() > MOST_CLASSES)


def of_advise(
    sample: pd.DataFrame, label: str, measure: str
) -> tuple[list[str], float, float] | None:
    """Return the scored columns, the metric that `advise` states of an unmasked sample, and the
    standard error that it states of the first configuration.

    None if `init` refuses the table, no configuration meets its rule, or another measure is the default.
    """
    with tempfile.TemporaryDirectory() as folder:
        table, policy = Path(folder, "table.csv"), Path(folder, "policy.yaml")
        sample.to_csv(table, index=False)
        aegis = [str(Path(sys.executable).parent / "aegis")]
        init = [*aegis, "init", str(table), "--label", label, "-o", str(policy), "--quiet"]
        if subprocess.run(init, capture_output=True, check=False).returncode:
            return None
        advise = [*aegis, "advise", str(table), "-p", str(policy), "--format", "json", "--quiet"]
        said = subprocess.run(advise, capture_output=True, check=False)
        roles = yaml.safe_load(policy.read_text())["attributes"]
    if said.returncode:
        return None
    advice = json.loads(said.stdout)
    if advice["measure"] != measure:
        return None
    columns = [a for a, entry in roles.items() if entry["role"] in ROLES and a != label]
    return columns, advice["unmasked"], advice["ranking"][0]["stderr"]


def merged(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts have at most `SHOWN` values and one more."""
    texts = [name for name in table if table[name].dtype.kind not in "iufb"]
    shown = {}
    for name in texts:
        frequent = table[name].value_counts().index[:SHOWN]
        if table[name].nunique() > SHOWN:
            shown[name] = table[name].where(table[name].isin(frequent), "other")
    return table.assign(**shown)


if __name__ == "__main__":
    main()
