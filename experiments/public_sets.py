"""Public tables that took no part in choosing any measure, as the Rdatasets collection holds them.

The files are those of https://github.com/vincentarelbundock/Rdatasets, `csv/PACKAGE/ITEM.csv`; the
folder with `csv` in it is named by `AEGIS_RDATASETS`. `FURTHER` are single files of other
collections, in the folder `AEGIS_FURTHER`: https://github.com/PedroB6/datasets (bank marketing),
https://github.com/propublica/compas-analysis (court records) and the test part of the KDD census income
data (UCI, CC BY 4.0; `data/census-income.test.gz` of https://github.com/rzskhr/census-income-classification).
All calls of the bank, 12 % of them with success, are `bank-full.csv` of
https://github.com/tule2236/SupervisedML_on_Bank_Marketing, in a folder of that name under `AEGIS_FURTHER`.
The tables were chosen by size and by kind of label
(yes or no, rare or not, several classes) before anything was trained on them. `RESERVE` was trained
on only once the score and the rule that was to be confirmed were settled.
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
    folder
        The environment variable that names the folder of the file.
    delimiter
        What separates its columns.
    names
        Its columns, where the file has no line of names.
    """

    path: str
    label: str
    left_out: tuple[str, ...] = ()
    folder: str = "AEGIS_RDATASETS"
    delimiter: str = ","
    names: tuple[str, ...] = ()

    def open(self, rows: int = MOST_ROWS) -> pa.Table:
        """Return the table, of at most `rows` rows drawn with a fixed seed."""
        folder = os.environ.get(self.folder)
        path = Path(folder or ".", self.path)
        if folder is None or not path.exists():
            raise SystemExit(f"{path} is missing; set {self.folder} to the folder that holds it.")
        options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
        parsing = pyarrow.csv.ParseOptions(delimiter=self.delimiter)
        reading = pyarrow.csv.ReadOptions(column_names=list(self.names) or None)
        table: Any = pyarrow.csv.read_csv(
            path, read_options=reading, convert_options=options, parse_options=parsing
        )
        left_out = {"rownames", *self.left_out}
        names = table.column_names  # a file may name a column twice: the first one counts
        shown = [i for i, n in enumerate(names) if names.index(n) == i and n not in left_out]
        table = table.select(shown)
        if table.num_rows > rows:
            drawn = np.random.default_rng(19).choice(table.num_rows, rows, replace=False)
            table = table.take(pa.array(np.sort(drawn)))
        return table


CONFIRMATION = {
    "attrition": PublicSet("csv/modeldata/attrition.csv", "Attrition"),
    "chile": PublicSet("csv/carData/Chile.csv", "vote"),
    "churn": PublicSet("csv/modeldata/mlc_churn.csv", "churn"),
    "crashes": PublicSet("csv/DAAG/nassCDS.csv", "dead", ("caseid", "injSeverity", "weight")),
    "credit": PublicSet("csv/modeldata/credit_data.csv", "Status"),
    "insurance": PublicSet("csv/AER/HealthInsurance.csv", "insurance"),
    "lending": PublicSet("csv/modeldata/lending_club.csv", "Class"),
    "mortgage": PublicSet("csv/AER/HMDA.csv", "deny"),
    "remote": PublicSet("csv/modeldata/stackoverflow.csv", "Remote"),
    "stroke": PublicSet("csv/MLDataR/stroke_classification.csv", "stroke", ("pat_id",)),
}
"""Sets that decide whether a score becomes the default."""
RESERVE = {
    "bank-calls": PublicSet(
        "SupervisedML_on_Bank_Marketing/bank-full.csv", "y", ("duration",), "AEGIS_FURTHER"
    ),
    "telco": PublicSet("csv/modeldata/wa_churn.csv", "churn"),
    "thyroid": PublicSet("csv/MLDataR/thyroid_disease.csv", "ThryroidClass"),
    "election": PublicSet("csv/carData/BEPS.csv", "vote"),
    "smokers": PublicSet(
        "csv/MedDataSets/smoking_tbl_df.csv", "smoke", ("amt_weekends", "amt_weekdays", "type")
    ),
    "tumours": PublicSet("csv/survival/nwtco.csv", "rel", ("seqno", "edrel", "in.subcohort")),
    "juice": PublicSet("csv/ISLR/OJ.csv", "Purchase"),
    "rain": PublicSet("csv/bayesrules/weather_perth.csv", "raintomorrow", ("risk_mm",)),
    "bans": PublicSet("csv/AER/SmokeBan.csv", "smoker"),
    "prison": PublicSet("csv/wooldridge/recid.csv", "cens", ("durat", "ldurat", "follow")),
    "pension": PublicSet("csv/wooldridge/k401ksubs.csv", "e401k", ("p401k", "incsq", "agesq")),
    "disability": PublicSet("csv/openintro/acs12.csv", "disability"),
    "suicide": PublicSet("csv/Stat2Data/SuicideChina.csv", "Died", ("Person_ID",)),
    "chains": PublicSet("csv/survival/flchain.csv", "death", ("futime", "chapter")),
    "cancelled": PublicSet(
        "csv/bayesrules/hotel_bookings.csv",
        "is_canceled",
        ("reservation_status", "reservation_status_date"),
    ),
    "breast": PublicSet("csv/survival/rotterdam.csv", "death", ("pid", "rtime", "recur", "dtime")),
    "parks": PublicSet("csv/Ecdat/Kakadu.csv", "answer", ("lower", "upper")),
    "cats": PublicSet("csv/modeldata/cat_adoption.csv", "event", ("time",)),
    "benefits": PublicSet("csv/Ecdat/Benefits.csv", "ui"),
    "email": PublicSet("csv/openintro/email.csv", "spam", ("time",)),
    "resumes": PublicSet("csv/AER/ResumeNames.csv", "call"),
}
"""Sets that took no part in any choice, in the order in which they are trained on: three that were named
before, the others by their cells, few first."""
CENSUS = (
    "AAGE",
    "ACLSWKR",
    "ADTIND",
    "ADTOCC",
    "AHGA",
    "AHRSPAY",
    "AHSCOL",
    "AMARITL",
    "AMJIND",
    "AMJOCC",
    "ARACE",
    "AREORGN",
    "ASEX",
    "AUNMEM",
    "AUNTYPE",
    "AWKSTAT",
    "CAPGAIN",
    "CAPLOSS",
    "DIVVAL",
    "FILESTAT",
    "GRINREG",
    "GRINST",
    "HHDFMX",
    "HHDREL",
    "MARSUPWT",
    "MIGMTR1",
    "MIGMTR3",
    "MIGMTR4",
    "MIGSAME",
    "MIGSUN",
    "NOEMP",
    "PARENT",
    "PEFNTVTY",
    "PEMNTVTY",
    "PENATVTY",
    "PRCITSHP",
    "SEOTR",
    "VETQVA",
    "VETYN",
    "WKSWORK",
    "YEAR",
    "INCOME",
)
"""Columns of the KDD census income data by the codes of the Census Bureau."""
FURTHER = {
    "bank": PublicSet("bank-full.csv", "y", ("duration",), "AEGIS_FURTHER", ";"),
    "court": PublicSet(
        "compas-scores-two-years.csv",
        "two_year_recid",
        (
            "id",
            "name",
            "first",
            "last",
            "is_recid",
            "is_violent_recid",
            "violent_recid",
            "r_case_number",
            "r_charge_degree",
            "r_days_from_arrest",
            "r_offense_date",
            "r_charge_desc",
            "r_jail_in",
            "r_jail_out",
            "vr_case_number",
            "vr_charge_degree",
            "vr_offense_date",
            "vr_charge_desc",
            "event",
            "start",
            "end",
            "in_custody",
            "out_custody",
            "c_case_number",
            "type_of_assessment",
            "v_type_of_assessment",
            "c_jail_in",
            "c_jail_out",
            "dob",
        ),
        "AEGIS_FURTHER",
    ),
    "census": PublicSet(
        "census-income.test.gz", "INCOME", ("MARSUPWT",), "AEGIS_FURTHER", names=CENSUS
    ),
}
"""Bank marketing (46 % of this file say yes), court records with their near-keys, and a rare income (6 %)."""
