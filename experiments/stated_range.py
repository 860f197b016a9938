"""How often a trained model is within the range that `advise` states, on public tables drawn at random.

    python experiments/stated_range.py FOLDER [--tables 80] [--seed 1] [--not RESULT.csv]

FOLDER holds CSV files, such as those of Rdatasets. Of the tables in random order, those count that have
300 rows, 4 to 60 columns, and a column of two values with 30 rows each, which becomes the label. `init`
proposes the policy for 70 % of the rows, `advise` states the AUC of the unmasked table, and the better one
of logistic regression and boosting, trained on these rows, is tested on the other 30 %. Tables of an earlier
RESULT do not take part.
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

from aegis.advisor.utility import MODELS_DIFFER
from aegis.measures.merits import area_error
from common import write_csv
from stated_errors import COLUMNS, print_covered, reached

LARGEST = 20_000_000
MOST_ROWS = 15_000
FEWEST_ROWS = 300
FEWEST_OF_CLASS = 30
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
    given = parser.parse_args(argv)
    earlier = set()
    if given.earlier is not None:
        with given.earlier.open() as file:
            earlier = {line["table"] for line in csv.DictReader(file)}
    draws = []
    for name, label, table in drawn(given.folder, given.seed, earlier):
        if len(draws) == given.tables:
            break
        cut = int(0.7 * len(table))
        stated = of_advise(table[:cut], label)
        if stated is None:
            continue
        columns, value = stated
        counts = table[label][:cut].astype(str).value_counts()
        told = merged(table[columns]).assign(
            y=np.where(table[label].astype(str) == counts.index[-1], "yes", "no")
        )
        sample, fresh = told[:cut], told[cut:]
        auc = reached(sample, fresh)
        own = area_error(auc, fresh["y"].value_counts().to_numpy(dtype=float))
        error = float(np.hypot(area_error(value, counts.to_numpy(dtype=float)), MODELS_DIFFER))
        draws.append((name, cut, given.seed, value, error, auc, own))
        print(*draws[-1], flush=True)
    print_covered([(name, 0, *rest) for name, _, *rest in draws], "all sizes")
    write_csv("stated_range", [dict(zip(COLUMNS, draw, strict=True)) for draw in draws])


def drawn(folder: Path, seed: int, earlier: set[str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
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
            if table[column].nunique() == 2
            and table[column].notna().sum() >= FEWEST_ROWS
            and table[column].value_counts().min() >= FEWEST_OF_CLASS
        ]
        if labels:
            label = chance.choice(labels)
            yield name, label, table[table[label].notna()].sample(frac=1, random_state=seed)


def of_advise(sample: pd.DataFrame, label: str) -> tuple[list[str], float] | None:
    """Return the scored columns and the AUC that `advise` states of an unmasked sample.

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
    if advice["measure"] != "held-out-auc":
        return None
    columns = [a for a, entry in roles.items() if entry["role"] in ROLES and a != label]
    return columns, advice["unmasked"]


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
