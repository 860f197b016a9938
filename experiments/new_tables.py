"""Tables that took no part before: the AUC that is stated under the policy of `init`, and what models reach.

    python experiments/new_tables.py FOLDER [NAME ...] [--rows 3000] [--configurations 30]

FOLDER holds public tables as CSV files (`TABLES` says where they are found). `init` proposes the policy, and
Aegis draws random configurations from it. In each of four random splits, Aegis states the AUC of each
configuration for 70 % of the rows. Logistic regression and boosting are trained on these rows as the
configuration masks them, and tested on the other 30 %. Two splits and the other two show how well trained models agree with themselves.
`numbers_tables.py` prints the table of docs/experiments.md from the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aegis
from aegis.advisor.utility import MODELS_DIFFER
from aegis.measures.merits import area_error
from aegis.policy import Configuration, Policy
from aegis.policy.suggest import init_policy
from common import add_csv
from measured_numbers import asked, parser_of, sampled
from numbers_to_predict import shown

MODELS = ("lr", "gbdt")
SPLITS = 4
TESTED = 0.3
UNMASKED = "unmasked"
TABLES: dict[str, tuple[str, list[str]]] = {
    "crimOffenders_df": ("two_year_recid", []),  # Rdatasets, as are all but the last
    "cps91": ("inlf", ["hours", "hrwage", "lwage", "earns", "union"]),
    "yrbss": ("gender", []),
    "adult_services": ("unsafe", []),
    "ESS9GB": ("female", []),
    "acs_patients_df": ("HBP", []),
    "alcohol": ("employ", ["inwf", "status"]),
    "mgus2": ("death", ["ptime", "futime", "pstat"]),
    "gpa2": ("athlete", []),
    "TravelInsurancePrediction": ("TravelInsurance", []),  # amankharwal/Website-data
}
"""Label, and columns that reveal it. All were chosen before any AUC of them was known."""


def read(folder: Path, name: str, rows: int, seed: int) -> pd.DataFrame:
    """Return a table with the label `y`, with at most so many rows; whole numbers stay whole beside nulls."""
    label, left_out = TABLES[name]
    table = pd.read_csv(folder / f"{name}.csv")
    whole = [c for c in table.select_dtypes("float") if (table[c].dropna() % 1 == 0).all()]
    table = table.astype(dict.fromkeys(whole, "Int64"))
    table = table[table[label].notna()].drop(columns=[*left_out, "rownames"], errors="ignore")
    table = table.rename(columns={label: "y"})
    return sampled(table.assign(y=table["y"].astype(str)), rows, seed)


def drawn(policy: Policy, configurations: int, seed: int) -> list[Configuration]:
    """Return different random configurations from the masks of a policy, at most so many."""
    random = np.random.default_rng(seed)
    masks = {name: own.masks for name, own in policy.attributes.items() if own.masks}
    found: dict[str, Configuration] = {}
    for _ in range(50 * configurations):
        choice = {name: own[random.integers(len(own))] for name, own in masks.items()}
        found.setdefault(str(choice), Configuration(f"c{len(found) + 1}", choice))
        if len(found) == configurations:
            break
    return list(found.values())


def compared(table: pd.DataFrame, configurations: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the stated and the trained AUC of each configuration and split, unmasked first."""
    policy = init_policy(pa.Table.from_pandas(table, preserve_index=False), label="y").policy
    listed = drawn(policy, configurations, seed)
    columns = list(listed[0].masks)
    for split in range(SPLITS):
        train, test = train_test_split(
            table, test_size=TESTED, random_state=split, stratify=table["y"]
        )
        study = aegis.Study(pa.Table.from_pandas(train, preserve_index=False), policy)
        advice = study.rank(listed)
        stated = {ranked.name: ranked.score for ranked in advice.ranking}
        classes, both = train["y"].value_counts().to_numpy(dtype=float), pd.concat([train, test])
        for configuration in (None, *listed):
            name, value, masked = UNMASKED, advice.unmasked, both[columns]
            if configuration is not None:
                masks = aegis.MaskingTransformer(configuration, policy).fit(train)
                name, masked = configuration.name, masks.transform(both)
                value = stated[name]
            yield {
                "split": split,
                "configuration": name,
                "rows": len(train),
                "stated": value,
                "error": float(np.hypot(area_error(value, classes), MODELS_DIFFER)),
                **trained(masked.assign(y=both["y"].to_numpy()), len(train), seed),
            }


def trained(both: pd.DataFrame, cut: int, seed: int) -> dict[str, float]:
    """Return the AUC of models that learn from the first rows, on the other rows."""
    numbers = both.select_dtypes("number").columns
    linear, trees = shown(both.astype(dict.fromkeys(numbers, float)))
    label = (both["y"] == both["y"].value_counts().index[-1]).to_numpy()
    models = (
        (make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)), linear),
        (HistGradientBoostingClassifier(max_iter=60, random_state=seed), trees),
    )
    return {
        name: float(
            roc_auc_score(label[cut:], model.fit(x[:cut], label[:cut]).predict_proba(x[cut:])[:, 1])
        )
        for name, (model, x) in zip(MODELS, models, strict=True)
    }


def main(argv: list[str] | None = None) -> None:
    """Compare stated and trained AUC on the tables that are asked for."""
    given = asked(parser_of(TABLES, rows=3_000), argv, TABLES)
    for name in given.names:
        table = read(given.folder, name, given.rows, given.seed)
        rows = [{"data": name, **row} for row in compared(table, given.configurations, given.seed)]
        add_csv("new_tables", rows)
        print(name, len(rows), flush=True)


if __name__ == "__main__":
    main()
