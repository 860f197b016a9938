"""What the experiments share: where data is, how results are written and compared."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

ROOT = Path(__file__).parents[1]
RESULTS = Path(os.environ.get("AEGIS_RESULTS", ROOT / "experiments" / "results"))
"""All figures of each experiment; git ignores them. What the docs state of them is in `SUMMARIES`."""
SUMMARIES = ROOT / "experiments" / "summaries"
RAW_COMMIT = "e1fc980"
"""The last commit that holds the raw results; docs/experiments.md says how to get them."""
DATA = Path(os.environ.get("AEGIS_DATA", ROOT.parent / "shared" / "data"))
ADULT = ROOT / "data" / "adult.parquet"
Rows = list[dict[str, str]]


def data(*parts: str) -> Path:
    """Return a file of the data folder; say how to name the folder where it is not found."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise SystemExit(f"{path} is missing; set AEGIS_DATA to the folder of the data sets.")
    return path


def result(file: str) -> Path:
    """Return a raw result of an earlier experiment; say how to get it where it is not there."""
    path = RESULTS / file
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: run the experiment that writes it, or take the figures of the docs by "
            f"`git archive {RAW_COMMIT} experiments/results | tar -x`."
        )
    return path


def german() -> pa.Table:
    """Return Statlog German Credit with numbered columns, label `class`."""
    names = [f"attribute_{number:02d}" for number in range(1, 21)]
    return pyarrow.csv.read_csv(
        data("german_credit", "german.data"),
        read_options=pyarrow.csv.ReadOptions(column_names=[*names, "class"]),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" "),
    )


def versions() -> dict[str, str]:
    """Return the versions behind a result."""
    names = ("aegis-advisor", "scikit-learn", "numpy", "scipy", "duckdb")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def write_json(name: str, content: Mapping[str, Any]) -> None:
    """Write a result as JSON."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**content, "versions": versions()}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def write_csv(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a result as CSV, one row per figure."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def add_csv(name: str, rows: Sequence[Mapping[str, Any]], *, key: str = "data") -> Rows:
    """Write rows as CSV in place of earlier ones with the same keys; return all, as text.

    An experiment that goes through its data sets one by one keeps what it has, when it is stopped.
    """
    path = RESULTS / f"{name}.csv"
    anew = {str(row[key]) for row in rows}
    earlier: Rows = []
    if path.exists():
        with path.open(newline="") as file:
            earlier = [row for row in csv.DictReader(file) if row[key] not in anew]
    write_csv(name, [*earlier, *rows])
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def save_chart(name: str, chart: Any) -> None:
    """Write an Altair chart as SVG."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    chart.save(RESULTS / f"{name}.svg")


def paired(differences: Iterable[float], *, test_share: float) -> dict[str, float]:
    """Return the mean difference over splits with two 95 % intervals.

    `low`, `high`: the paired t interval over the splits. `wide_low`, `wide_high`: the same with
    the variance of Nadeau and Bengio (2003), which allows for training sets that overlap: the
    plain interval is too narrow for repeated splits of one table.
    """
    from scipy import stats

    values = np.array(list(differences), dtype=np.float64)
    count = len(values)
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    t = float(stats.t.ppf(0.975, count - 1))
    plain = t * (variance / count) ** 0.5
    wide = t * (variance * (1 / count + test_share / (1 - test_share))) ** 0.5
    return {
        "mean": mean,
        "low": mean - plain,
        "high": mean + plain,
        "wide_low": mean - wide,
        "wide_high": mean + wide,
    }
