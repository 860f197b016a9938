"""Tables and policies that the experiments on record-level methods share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import aegis
from aegis.anonymizers.groups import RecordGroups, centroid
from aegis.anonymizers.records import Records
from aegis.policy import Policy, load_policy
from common import data

ADULT = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
GERMAN = (
    "checking_status",
    "duration_months",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment_since",
    "installment_rate",
    "personal_status",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_plans",
    "housing",
    "existing_credits",
    "job",
    "people_liable",
    "telephone",
    "foreign_worker",
    "class",
)
ROLES = {
    "Adult": (("age", "race", "sex", "marital-status"), ("occupation",)),
    "German": (("age", "personal_status", "job"), ("checking_status", "savings")),
}
"""Quasi-identifiers and sensitive attributes of MO-OBAM's experiments."""


def adult() -> pa.Table:
    """Return training and test part of Adult without missing values: 45,222 rows."""
    parts = [
        pyarrow.csv.read_csv(
            data("adult", name),
            read_options=pyarrow.csv.ReadOptions(column_names=list(ADULT), skip_rows=skipped),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(ADULT, pa.string())
            ),
        )
        for name, skipped in (("adult.data", 0), ("adult.test", 1))
    ]
    joined = pa.concat_tables(parts)
    columns = {
        name: [text.strip().rstrip(".") for text in joined.column(name).to_pylist()]
        for name in ADULT
    }
    complete = [
        row for row, values in enumerate(zip(*columns.values(), strict=True)) if "?" not in values
    ]
    kept = {name: [values[row] for row in complete] for name, values in columns.items()}
    return pa.table(kept | {name: [int(text) for text in kept[name]] for name in NUMBERS})


def german() -> pa.Table:
    """Return Statlog German Credit: 1,000 rows."""
    return pyarrow.csv.read_csv(
        data("german_credit", "german.data"),
        read_options=pyarrow.csv.ReadOptions(column_names=list(GERMAN)),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" "),
    )


def policy_of(name: str, table: pa.Table, label: str, **rule: Any) -> Policy:
    """Return the policy of MO-OBAM's experiments: all other columns are released as they are."""
    quasi, sensitive = ROLES[name]
    attributes: dict[str, Any] = {
        column: {"role": "feature"} for column in table.column_names if column != label
    }
    attributes |= {column: {"role": "quasi-identifier"} for column in quasi}
    attributes |= {column: {"role": "sensitive"} for column in sensitive}
    return load_policy({"version": 1, "label": label, "privacy": rule, "attributes": attributes})


def released_classes(records: Records, groups: RecordGroups) -> np.ndarray:
    """Return the class of each record, shape (n,): equal where whole-number centroids are.

    A release shows values, not clusters: two clusters with the same centroid are one class. The
    figures of MO-OBAM's comparators count these.
    """
    shown = []
    for attribute in records.attributes:
        middle = centroid(attribute, groups, rounded=True)
        shown.append(np.round(middle)[groups.of])
    return np.unique(np.column_stack(shown), axis=0, return_inverse=True)[1].ravel()


def risks(groups: np.ndarray, table: pa.Table, sensitive: Sequence[str]) -> dict[str, int]:
    """Return clusters, records at risk above each threshold and homogeneous records."""
    columns = {"cluster": pa.array(groups)} | {name: table[name] for name in sensitive}
    found = aegis.audit(
        pa.table(columns), quasi_identifiers=["cluster"], sensitive=list(sensitive)
    ).report
    return {
        "clusters": found.classes,
        **{f"at_risk_{tau}": found.at_risk[tau] for tau in ("0.05", "0.075", "0.1")},
        "homogeneous": found.to_dict()["homogeneous_rows_any"],
    }
