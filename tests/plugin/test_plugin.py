"""A package outside Aegis: its mask, measure, model and anonymiser work wherever Aegis's own do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent / "package"
POLICY = """\
version: 1
label: bought
measure: errors-saved
privacy: {crowd: {rows: 4}, suppression: 0.1}
attributes:
  town: {role: quasi-identifier, masks: [identity, initial, suppress]}
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, suppress]}
"""
COMMANDS = {
    "masks": ("masks", "--format", "json"),
    "measures": ("measures", "--format", "json"),
    "models": ("privacy-models", "--format", "json"),
    "anonymizers": ("anonymizers", "--format", "json"),
    "search": (
        "advise",
        "t.csv",
        "-p",
        "p.yaml",
        "-f",
        "json",
        "-o",
        "b.yaml",
        "--report",
        "r.html",
        "--front",
        "rows=2..5",
    ),
    "rank": (
        "advise",
        "t.csv",
        "-p",
        "p.yaml",
        "--generate",
        "6",
        "--with",
        "blocks",
        "-f",
        "json",
    ),
    "apply": ("apply", "t.csv", "-p", "p.yaml", "-c", "b.yaml", "-o", "m.csv", "-f", "json"),
    "audit": ("audit", "m.csv", "-p", "p.yaml", "-f", "json"),
    "objective": (
        *("advise", "t.csv", "-p", "p.yaml", "--objective", "values-lost"),
        *("--top", "3", "-f", "json"),
    ),
    "estimate": (
        *("advise", "t.csv", "-p", "p.yaml", "--generate", "4", "--estimate", "by-groups"),
        *("-f", "json"),
    ),
    "towns": ("count-towns", "t.csv"),
    "tally": ("advise", "t.tally", "-p", "p.yaml", "--top", "3", "-f", "json"),
    "joint": ("reconstruct", "t.tally", "-a", "town"),
    "records": ("anonymize", "t.csv", "-p", "p.yaml", "-m", "blocks", "-o", "a.csv", "-f", "json"),
}
SCRIPT = """
import contextlib, io, json, sys
from aegis.cli.main import run

told = {}
for name, words in json.load(sys.stdin).items():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run(words)
    assert code == 0, (name, code, out.getvalue())
    told[name] = json.loads(out.getvalue())
json.dump(told, sys.stdout)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the commands print where the package is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    towns = ["Ash", "Alm", "Bor", "Bex"]
    rows = [f"{towns[i % 4]},{20 + i % 30},{int(i % 4 < 2) ^ int(i % 9 == 0)}" for i in range(160)]
    (folder / "t.csv").write_text("\n".join(["town,age,bought", *rows]) + "\n")
    (folder / "p.yaml").write_text(POLICY)
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(COMMANDS),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(source)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "report": (folder / "r.html").read_text()}


@pytest.mark.parametrize(
    ("listing", "name"),
    [
        ("masks", "initial"),
        ("measures", "errors-saved"),
        ("models", "crowd"),
        ("anonymizers", "blocks"),
    ],
)
def test_each_is_listed(told: dict[str, Any], listing: str, name: str) -> None:
    assert name in [entry["name"] for entry in told[listing]["entries"]]


def test_the_search_is_by_the_measure_and_under_the_model(told: dict[str, Any]) -> None:
    search = told["search"]
    assert search["measure"] == search["search"]["objective"] == "errors-saved"
    assert search["optimal"]
    assert search["ranking"][0]["smallest_class"] >= 4
    assert [point["value"] for point in search["front"]["points"]] == [2, 3, 4, 5]
    assert told["rank"]["measure"] == "errors-saved"
    assert "blocks" in [entry["name"] for entry in told["rank"]["ranking"]]


def test_an_objective_is_searched_by_the_strategy_of_the_package(told: dict[str, Any]) -> None:
    search = told["objective"]["search"]
    assert (search["objective"], search["optimal"], search["nodes"]) == ("values-lost", True, -1)
    values = [entry["objective"] for entry in told["objective"]["ranking"]]
    assert values == sorted(values)
    assert told["search"]["search"]["nodes"] >= 0  # by its own measure, boxes are split


def test_a_ranking_goes_by_the_estimate_of_the_package(told: dict[str, Any]) -> None:
    ranking = told["estimate"]["ranking"]
    assert {entry["estimate"]["case"] for entry in ranking} == {"by-groups"}
    deviations = [entry["estimate"]["pud"] for entry in ranking if entry["admissible"]]
    assert deviations == sorted(deviations)
    assert "the estimates of towns are a jest" in told["estimate"]["warnings"]


def test_masks_are_applied_and_the_rule_is_held_against_the_file(told: dict[str, Any]) -> None:
    shown = {entry["masks"]["town"] for entry in told["search"]["ranking"]}
    assert "initial" in shown
    assert told["apply"]["privacy"]["passed"]
    assert told["apply"]["privacy"]["k"] >= 4
    assert told["audit"]["rule"]["crowd"] == 4


def test_the_anonymiser_groups_records(told: dict[str, Any]) -> None:
    assert told["records"]["anonymizer"]["method"] == "blocks"
    assert told["records"]["privacy"]["passed"]


def test_the_report_names_the_measure_and_the_model(told: dict[str, Any]) -> None:
    assert "Goodman and Kruskal" in told["report"]
    assert "crowd" in told["report"]


def test_commands_and_formats_of_the_package_are_run(told: dict[str, Any]) -> None:
    assert told["towns"] == dict.fromkeys(["Ash", "Alm", "Bor", "Bex"], 40)
    assert told["tally"]["search"]["objective"]
    assert len(told["tally"]["ranking"]) == 3
    assert told["joint"]["attribute"] == "town"


def test_the_report_has_the_section_of_the_package(told: dict[str, Any]) -> None:
    assert '<section id="towns">160 rows &amp; ' in told["report"]
    assert "<summary>Towns</summary>" in told["report"]
    assert 'id="leak"' in told["report"]


EACH = """
import contextlib, io, json, sys
from aegis.cli.main import run

told = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(words)
    told.append((code, out.getvalue(), said.getvalue()))
import aegis
from aegis.study import ask
print(json.dumps([told, ask("count_people", aegis.Study("t.csv", "p.yaml"), "ab")]))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[int, str, str]], int]:
    """What four commands say in one process where the package is installed, and the answer of a study."""
    folder = tmp_path_factory.mktemp("alone")
    rows = [f"{'Ash' if i % 2 else 'Alm'},{20 + i % 3},{i % 2}" for i in range(60)]
    (folder / "t.csv").write_text("\n".join(["town,age,bought", *rows]) + "\n")
    (folder / "p.yaml").write_text(POLICY)
    words = (
        ("--help",),
        ("count-rivers",),
        ("advise", "t.csv", "-p", "p.yaml"),
        ("audit", "t.tally"),
    )
    path = os.pathsep.join([str(PACKAGE), str(Path(__file__).parents[2] / "src")])
    done = subprocess.run(
        [sys.executable, "-c", EACH],
        input=json.dumps(words),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, people = json.loads(done.stdout)
    return said, people


def test_a_command_that_cannot_be_loaded_is_named_and_the_rest_is_listed(alone) -> None:
    (code, out, said), (refused_code, _, refused), *_ = alone[0]
    assert code == 0
    assert "count-towns" in out
    assert "count-rivers" not in out
    assert said.count("'aegis-example' adds a command") == 1
    assert refused_code == 2
    assert "'aegis-example' adds a command (aegis_lacks_this)" in " ".join(refused.split())


def test_a_strategy_that_cannot_be_loaded_is_named_and_the_search_is_made(alone) -> None:
    code, _, said = alone[0][2]
    assert code == 0, said
    assert said.count("'aegis-example' adds a search strategy (aegis_lacks_this") == 1


def test_a_question_of_the_package_is_answered(alone) -> None:
    assert alone[1] == 120


def test_a_file_of_the_package_is_no_table(alone) -> None:
    code, _, said = alone[0][3]
    assert code == 2
    assert "is a tally" in said
    assert "aegis advise takes a tally" in " ".join(said.split())
