"""Turn Statlog German Credit, as UCI distributes it, into a table with column names.

`german.data` (Hofmann 1994, doi 10.24432/C5NC77, CC BY 4.0) has no header and is separated by
spaces. The names below follow its codebook, `german.doc`; codes such as A11 stay as they are.

    python prepare.py FOLDER_OF_GERMAN_DATA OUTPUT_FOLDER

writes `german_credit.parquet` and `german_credit.csv` into the output folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

COLUMNS = (
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
"""The twenty attributes of the codebook, in its order, and the class: 1 good, 2 bad."""


def read_german_credit(path: Path) -> pa.Table:
    """Return `german.data` as a table; whole numbers are read as such."""
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=list(COLUMNS)),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" "),
    )


def prepare(source: Path, target: Path) -> None:
    """Write the table of `source`/german.data into the folder `target`, made where it is missing."""
    table = read_german_credit(source / "german.data")
    target.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, target / "german_credit.parquet")
    pyarrow.csv.write_csv(table, target / "german_credit.csv")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python prepare.py FOLDER_OF_GERMAN_DATA OUTPUT_FOLDER")
    prepare(Path(sys.argv[1]), Path(sys.argv[2]))
