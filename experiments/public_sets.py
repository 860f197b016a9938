"""Public tables that took no part in choosing any measure, as the Rdatasets collection holds them.

The files are those of https://github.com/vincentarelbundock/Rdatasets, `csv/PACKAGE/ITEM.csv`; the
folder with `csv` in it is named by `AEGIS_RDATASETS`. They were chosen by size and by kind of label
(yes or no, rare or not, several classes) before anything was trained on them. `RESERVE` was trained
on only once the score was settled.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

MOST_ROWS = 3_000
"""Larger tables are drawn from, so that all models can be trained on all configurations."""


@dataclass(frozen=True)
class PublicSet:
    """One public table.

    Attributes
    ----------
    path
        Where it is under the folder of the collection.
    label
        Its label column.
    left_out
        Columns that number rows, weigh them, or state the label in other words.
    """

    path: str
    label: str
    left_out: tuple[str, ...] = ()

    def open(self) -> pa.Table:
        """Return the table, of at most `MOST_ROWS` rows drawn with a fixed seed."""
        folder = os.environ.get("AEGIS_RDATASETS")
        path = Path(folder or ".", "csv", self.path)
        if folder is None or not path.exists():
            raise SystemExit(f"{path} is missing; set AEGIS_RDATASETS to the folder with csv/.")
        options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
        table: Any = pyarrow.csv.read_csv(path, convert_options=options)
        table = table.drop_columns(["rownames", *self.left_out])
        if table.num_rows > MOST_ROWS:
            drawn = np.random.default_rng(19).choice(table.num_rows, MOST_ROWS, replace=False)
            table = table.take(pa.array(np.sort(drawn)))
        return table


CONFIRMATION = {
    "attrition": PublicSet("modeldata/attrition.csv", "Attrition"),
    "chile": PublicSet("carData/Chile.csv", "vote"),
    "churn": PublicSet("modeldata/mlc_churn.csv", "churn"),
    "crashes": PublicSet("DAAG/nassCDS.csv", "dead", ("caseid", "injSeverity", "weight")),
    "credit": PublicSet("modeldata/credit_data.csv", "Status"),
    "insurance": PublicSet("AER/HealthInsurance.csv", "insurance"),
    "lending": PublicSet("modeldata/lending_club.csv", "Class"),
    "mortgage": PublicSet("AER/HMDA.csv", "deny"),
    "remote": PublicSet("modeldata/stackoverflow.csv", "Remote"),
    "stroke": PublicSet("MLDataR/stroke_classification.csv", "stroke", ("pat_id",)),
}
"""Sets that decide whether a score becomes the default."""
RESERVE = {
    "telco": PublicSet("modeldata/wa_churn.csv", "churn"),
    "thyroid": PublicSet("MLDataR/thyroid_disease.csv", "ThryroidClass"),
}
"""Sets that are trained on when the choice is made."""
