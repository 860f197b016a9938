"""Ties: what models reach on fresh rows with the highest score, and with the least masking of the ties.

    AEGIS_RDATASETS=FOLDER python experiments/ties.py [NAME ...]

Half of each public table is advised on, under the policy that `init` proposes, at k = 5 and k = 10. One
search recommends the highest expected AUC, others the configuration that masks least of those within a
margin of it. Logistic regression and boosting are trained on the released rows, and tested on the
other half under the same masks, from which no row is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parent))

import aegis
from aegis.masking import masked_table
from aegis.policy.suggest import init_policy
from aegis.privacy import PrivacyRule
from aegis.sources import open_table
from common import write_csv
from public_sets import CONFIRMATION, RESERVE

TABLES = (
    "attrition",
    "churn",
    "crashes",
    "credit",
    "insurance",
    "mortgage",
    "stroke",
    "tumours",
    "juice",
    "bans",
    "prison",
    "pension",
    "suicide",
    "email",
)
"""Tables of two classes and few columns."""
ROWS = 3_000
MARGINS = (0.0, 0.002)
"""How far below the highest AUC a score counts as equal; with 0 the highest score is recommended."""
KS = (5, 10)
SECONDS = 10.0


def main() -> None:
    """Run the tables that are named, or all."""
    rows = []
    for name in sys.argv[1:] or TABLES:
        table = {**CONFIRMATION, **RESERVE}[name]
        rows += compared(name, table.open(ROWS), table.label)
        write_csv("ties", rows)
        print(*(" ".join(f"{k}={v}" for k, v in row.items()) for row in rows[-4:]), sep="\n")


def compared(
    name: str,
    table: pa.Table,
    label: str,
    *,
    margins: Sequence[float] = MARGINS,
    ks: Sequence[int] = KS,
    seconds: float = SECONDS,
) -> list[dict[str, Any]]:
    """Return what models reach with each margin, one row for each k and margin."""
    table = table.filter(table[label].is_valid())
    drawn = np.random.default_rng(5).permutation(table.num_rows)
    half = table.num_rows // 2
    known, fresh = table.take(pa.array(drawn[:half])), table.take(pa.array(drawn[half:]))
    proposal = init_policy(known, label=label).policy
    rows = []
    for k in ks:
        rule = PrivacyRule.parse({"k": k, "suppression": 0.02})
        study = aegis.Study(known, replace(proposal, privacy=rule))
        for margin in margins:
            with patch("aegis.advisor.confidence.AUC_MARGIN", margin):
                advice = study.search(
                    top=1, time_limit=seconds, explain_best=False, measure="held-out-auc"
                )
            best = advice.best
            if best is None:
                continue
            masks = study.policy.with_label(dict(best.configuration.masks))
            masked = masked_table(open_table(fresh), masks).to_pyarrow()
            features = [n for n in best.attributes if n != label]
            reached = trained(study.apply(best).to_arrow(), masked, features, label)
            rows.append(
                {
                    "table": name,
                    "k": k,
                    "margin": margin,
                    "score": round(best.score, 4),
                    "masking": round(best.masking or 0.0, 4),
                    **{model: round(value, 4) for model, value in reached.items()},
                }
            )
    return rows


def trained(
    released: pa.Table, fresh: pa.Table, features: Sequence[str], label: str
) -> Mapping[str, float]:
    """Return the AUC of each model on fresh rows."""
    x, test = (frame(table, features) for table in (released, fresh))
    y, truth = (table[label].cast(pa.string()).to_pandas() for table in (released, fresh))
    numeric = make_column_selector(dtype_include=np.number)
    texts = make_column_selector(dtype_exclude=np.number)
    rare = OneHotEncoder(handle_unknown="ignore", min_frequency=2)
    scaled = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    ordered = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    models = {
        "lr": make_pipeline(
            make_column_transformer((scaled, numeric), (rare, texts)),
            LogisticRegression(max_iter=500),
        ),
        "gbdt": make_pipeline(
            make_column_transformer(("passthrough", numeric), (ordered, texts)),
            HistGradientBoostingClassifier(max_iter=100, random_state=0),
        ),
    }
    positive = sorted(truth.unique())[-1]
    return {
        name: float(roc_auc_score(truth == positive, _odds(model.fit(x, y == positive), test)))
        for name, model in models.items()
    }


def _odds(model: Any, rows: pd.DataFrame) -> np.ndarray:
    return model.predict_proba(rows)[:, 1]


def frame(table: pa.Table, features: Sequence[str]) -> pd.DataFrame:
    """Return the columns that models see: numbers as they are, all else as texts."""
    columns = {}
    for name in features:
        if name not in table.column_names:  # a suppressed column that the release leaves out
            columns[name] = pd.Series(["*"] * table.num_rows)
        elif pa.types.is_integer(table[name].type) or pa.types.is_floating(table[name].type):
            columns[name] = table[name].cast(pa.float64()).to_pandas()
        else:
            columns[name] = table[name].cast(pa.string()).to_pandas().fillna("null")
    return pd.DataFrame(columns)


if __name__ == "__main__":
    main()
