"""The script that runs ARX's cases reads them from Java, and finds their optima, on a generated table."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from experiment_modules import FOLDER, experiment

K = 2
SUPPRESSION = 0.2
AGES = {"21": ["2*", "*"], "25": ["2*", "*"], "34": ["3*", "*"], "38": ["3*", "*"]}
TOWNS = {"bern": ["alps", "*"], "sion": ["alps", "*"], "kiel": ["sea", "*"]}
HIERARCHIES = {"age": AGES, "town": TOWNS}
ROWS = [
    ("21", "bern"),
    ("21", "bern"),
    ("25", "bern"),
    ("25", "sion"),
    ("34", "sion"),
    ("34", "bern"),
    ("38", "kiel"),
    ("38", "kiel"),
    ("34", "kiel"),
    ("21", "kiel"),
]
CASE = """
            new ARXAnonymizationTestCase(ARXConfiguration.create({suppression}d, {metric})
                                             .addPrivacyModel({model}),
                                         "./data/{table}.csv", {figure}d, new int[] {levels}, false),
"""


def optimum() -> tuple[float, tuple[int, ...]]:
    """Return the least discernibility of an admissible pair of levels, and the levels."""
    found = []
    for levels in product(range(3), repeat=2):
        shown = Counter(
            tuple(
                [value, *HIERARCHIES[name][value]][level]
                for name, value, level in zip(HIERARCHIES, row, levels, strict=True)
            )
            for row in ROWS
        )
        left_out = sum(size for size in shown.values() if size < K)
        if left_out <= SUPPRESSION * len(ROWS):
            squares = sum(size**2 for size in shown.values() if size >= K)
            found.append((float(squares + left_out * len(ROWS)), levels))
    return min(found)


def write_tables(folder: Path) -> None:
    """Write the table and its hierarchies as ARX names them."""
    columns = list(HIERARCHIES)
    contents = {"tiny.csv": [columns, *ROWS]} | {
        f"tiny_hierarchy_{name}.csv": [[value, *above] for value, above in levels.items()]
        for name, levels in HIERARCHIES.items()
    }
    for name, lines in contents.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=";", lineterminator="\n").writerows(lines)


@pytest.fixture
def verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[dict[str, object]]]:
    """A function that writes cases as a Java class, runs the script on them and returns its results."""
    monkeypatch.syspath_prepend(FOLDER)
    cases = experiment("arx_cases")
    write_tables(tmp_path)

    def run(*written: str) -> list[dict[str, object]]:
        source = "public class TestTiny {\n" + "".join(written) + "}\n"
        (tmp_path / "TestTiny.java").write_text(source, encoding="utf-8")
        folder = str(tmp_path)
        cases.main(["--tests", folder, "--data", folder, "--results", folder])
        read: dict[str, dict[str, object]] = json.loads((tmp_path / "arx_cases.json").read_text())
        return list(read.values())

    return run


def case(
    figure: float,
    levels: tuple[int, ...],
    table: str = "tiny",
    model: str = f"new KAnonymity({K})",
    metric: str = "Metric.createDiscernabilityMetric()",
) -> str:
    """Return a case as ARX's tests write it."""
    braces = "{" + ", ".join(map(str, levels)) + "}"
    return CASE.format(
        suppression=SUPPRESSION,
        metric=metric,
        model=model,
        table=table,
        figure=figure,
        levels=braces,
    )


def test_the_optimum_of_a_case_is_found(
    verdicts: Callable[..., list[dict[str, object]]],
) -> None:
    figure, levels = optimum()
    assert 0 < sum(levels) < 4
    (result,) = verdicts(case(figure, levels))
    assert result["verdict"] == "agrees"
    assert result["ours"] == figure
    assert result["levels"] == list(levels)
    assert result["proven"]


def test_cases_that_differ_or_cannot_run_have_their_verdicts(
    verdicts: Callable[..., list[dict[str, object]]],
) -> None:
    figure, levels = optimum()
    worse = float(len(ROWS) ** 2)  # all rows in one class
    results = verdicts(
        case(worse, (2, 2)),
        case(figure, (0, 0)),
        case(figure, levels, table="elsewhere"),
        case(figure, levels, metric="Metric.createAmbiguityMetric()"),
    )
    assert [result["verdict"] for result in results] == [
        "better",
        "agrees",
        "no data",
        "not expressible",
    ]
    assert not results[1]["theirs_admissible"]
