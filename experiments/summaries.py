"""Write the small tables that the documentation states, from the raw results of the experiments.

Each experiment writes all its figures to `experiments/results`, which git ignores. This script keeps of
them what the docs state: `experiments/summaries/NAME.csv` or `.json`, read by the scripts `*_tables.py`,
and the pictures that the docs show, with rounded coordinates.

    python experiments/summaries.py [NAME ...]
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from statistics import mean, median
from typing import Any

from common import RESULTS, ROOT, SUMMARIES

PICTURES = ROOT / "docs" / "images" / "experiments"
DIGITS = 7
SERIES = 10
"""A list of so many numbers in a JSON result is raw: one value a split, say."""
CHOOSERS = ("data", "chooser", "model", "spearman", "points_lost", "ceiling")
AT_RISK = ("at_risk_0.05", "at_risk_0.075", "at_risk_0.1")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "confirmation": (*CHOOSERS, "rarest", "classes"),
    "confirmation_again": CHOOSERS,
    "shape_of_scores_choosers": CHOOSERS,
    "selection_quality_*_nb_configurations": ("seed", "model", "accuracy", "roc_auc"),
    "selection_quality_*_confirmed_configurations": (),
    "selection_quality_German_configurations": (),
    "selection_quality_*_configurations": ("seed", "model", "accuracy", "roc_auc"),
    "selection_quality_*_nb": (),
    "selection_quality_*": (
        *("seed", "splits", "model", "measure", "spearman", "points_lost", "ceiling"),
    ),
    "protected_summaries_*": (
        *("protection", "asked", "estimator", "configurations", "measure"),
        *("spearman", "loss_percent", "derivable_cells"),
    ),
    "mo_obam_members": (
        *("data", "k", "l", "unit", "near", "seeds", "diverse", "groups", "classes", "il"),
        *AT_RISK,
    ),
    "optima_public": ("data", "rule", "release", "model", "auc"),
    "optima_public_releases": ("data", "rule", "release", "proven", "suppressed_rows"),
    "calibration_errors": (
        *("data", "held-out-auc", "held-out-auc(lr)", "trained"),
        *("error_of_trained", "error_of_difference"),
    ),
    "shape_of_scores": ("data", "held-out-auc", "held-out-auc(lr)", "trained"),
    "*_calibration": ("data", "expected", "trained"),
    "merits": ("data", "merit", "model", "measure", "spearman", "median_apart"),
}
"""What is kept of a table, by the first pattern that its name matches; by default all columns."""
AVERAGED = {
    "optima_public": ("data", "rule", "release", "model"),
    "calibration_errors": ("data",),
    "shape_of_scores": ("data",),
    "*_calibration": ("data",),
    "merits": ("merit", "model", "measure"),
}
"""Tables of which one row a group is kept: means over splits, else medians."""
MEANS = ("optima_public",)
EXACT = ("arx_cases",)
"""Results with figures that the docs state with many digits."""
WITH_CSV = ("confirmation", "figure_5_time_paper", "mo_obam_members")
INSTEAD_OF_JSON = ("selection_quality_*", "confirmation_again")
DROPPED = {
    "confirmation": ("points_lost_more", "points_lost_less", "tables"),
    "arx_cases": (
        *("expected_levels", "levels", "proven", "checked", "combinations"),
        *("theirs_by_our_loss", "theirs_admissible", "theirs_suppressed", "suppressible"),
    ),
    "records_or_masks": ("options", "violations", "scores", "masks"),
    "mo_obam_models_*": ("deviation", "importance_shift", "label_measure", "unmasked"),
    "figure_5_accuracy*": ("points_lost", "runs", "metric"),
    "arx_optima": ("wide_low", "wide_high"),
}
"""Keys of JSON results that the docs do not state, at any depth."""


def _matching(rules: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...] | None:
    return next((kept for pattern, kept in rules.items() if fnmatch(name, pattern)), None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rounded(text: str) -> str:
    """Return a number with few digits; other texts and whole numbers as they are."""
    value = _number(text)
    if value is None or text.lstrip("-").isdigit():
        return text
    return f"{value:.{DIGITS}g}"


def table(name: str, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return what is kept of a table."""
    columns = _matching(COLUMNS, name)
    if columns is not None:
        rows = [{c: row[c] for c in columns if c in row} for row in rows]
    by = _matching(AVERAGED, name)
    if by is not None:
        rows = list(_averaged(rows, by, mean if name in MEANS else median))
    return [{key: _rounded(value) for key, value in row.items()} for row in rows]


def _averaged(
    rows: list[dict[str, str]], by: tuple[str, ...], average: Callable[[list[float]], float]
) -> Iterable[dict[str, str]]:
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    for key, members in groups.items():
        figures = [name for name in members[0] if name not in by]
        row = dict(zip(by, key, strict=True))
        for name in figures:
            values = [v for m in members if (v := _number(m[name])) is not None]
            row[name] = str(average(values)) if values else ""
        yield {**row, "rows": str(len(members))}


def document(name: str, content: Any) -> Any:
    """Return what is kept of a JSON result."""
    dropped = _matching(DROPPED, name) or ()
    if isinstance(content, dict):
        return {
            key: document(name, value)
            for key, value in content.items()
            if key not in dropped and not _series(value)
        }
    if isinstance(content, list):
        return [document(name, value) for value in content]
    rounds = isinstance(content, float) and name not in EXACT
    return float(f"{content:.{DIGITS}g}") if rounds else content


def _series(value: Any) -> bool:
    """Whether a value is a list of raw figures, or a record of such lists."""
    if isinstance(value, dict) and value:
        return all(map(_series, value.values()))
    numbers = isinstance(value, list) and all(isinstance(v, int | float) for v in value)
    return numbers and len(value) >= SERIES


def _lines(content: Any) -> str:
    """Return JSON with one line for each record of the two uppermost levels."""
    if not isinstance(content, dict):
        return json.dumps(content)
    parts = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(json.dumps(v) for v in value) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


def picture(text: str) -> str:
    """Return an SVG without what an embedded picture cannot show: long decimals, labels of marks."""
    text = re.sub(r' (aria-label|role|aria-roledescription|aria-hidden)="[^"]*"', "", text)
    return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), text)


def summarise(path: Path) -> None:
    """Write the summary of one result."""
    name, kind = path.stem, path.suffix
    if kind == ".svg":
        (PICTURES / path.name).write_text(picture(path.read_text(encoding="utf-8")), "utf-8")
        return
    instead = any(fnmatch(name, pattern) for pattern in INSTEAD_OF_JSON)
    if kind == ".json" and not instead:
        kept = _lines(document(name, json.loads(path.read_text(encoding="utf-8"))))
        (SUMMARIES / path.name).write_text(kept + "\n", "utf-8")
    stated = name in WITH_CSV or instead or not path.with_suffix(".json").exists()
    if kind == ".csv" and stated and _matching(COLUMNS, name) != ():
        with path.open(newline="") as file:
            rows = table(name, list(csv.DictReader(file)))
        with (SUMMARIES / path.name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def main(argv: list[str] | None = None) -> None:
    """Summarise the results that are named, or all."""
    names = sys.argv[1:] if argv is None else argv
    pages = "".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    SUMMARIES.mkdir(exist_ok=True)
    PICTURES.mkdir(exist_ok=True)
    for path in sorted(RESULTS.iterdir()):
        stated = path.suffix != ".svg" or f"images/experiments/{path.name}" in pages
        if stated and (not names or path.stem in names):
            summarise(path)


if __name__ == "__main__":
    main()
