"""The benchmark next to ARX: it reads answers, compares them, and asks both programs the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.arx import task
from benchmarks.arx.cases import CASES, Case
from benchmarks.arx.turns import Answer, Turns
from benchmarks.tasks import Settings, run_task

from aegis.policy import load_policy

OURS = "35000000 141 407289.53889253 1 2 proven"
THEIRS = "70000000 181 407289.5388925293 1 2"


def test_an_answer_is_read_with_and_without_a_proof():
    ours, theirs = Answer.parse(OURS), Answer.parse(THEIRS)
    assert ours == Answer(0.035, 141, 407289.53889253, (1, 2), proven=True)
    assert theirs == Answer(0.07, 181, 407289.5388925293, (1, 2), proven=False)
    assert not Answer.parse(OURS.replace("proven", "open")).proven
    with pytest.raises(ValueError, match="invalid literal"):
        Answer.parse("35000000 141 0.5 1 two")


@pytest.mark.parametrize(
    ("ours", "agree"),
    [
        (OURS, True),
        (OURS.replace("proven", "open"), False),
        (OURS.replace("1 2", "1 1"), False),
        (OURS.replace(".53889253", ".5398"), False),
    ],
)
def test_a_target_is_met_only_with_a_proof_and_the_result_of_arx(ours: str, agree: bool):
    answers = [Answer.parse(ours)] * 3
    figure = task._compared(CASES[0], Turns(answers, [Answer.parse(THEIRS)] * 3))
    assert figure.value == pytest.approx(0.5)
    assert figure.met is agree
    assert ("NOT the same result" in figure.note) is not agree


def test_the_first_search_is_left_out_of_the_median():
    words = OURS.split(maxsplit=1)[1]
    ours = [Answer.parse(f"{t}000000 {words}") for t in (900, 20, 30, 40)]
    arx = [Answer.parse(f"{t}000000 {words}") for t in (300, 60, 60, 60)]
    turns = Turns(ours, arx)
    assert turns.medians == (0.03, 0.06)
    assert turns.first == pytest.approx(3)


def test_thirty_different_cases_are_measured():
    assert len({case.name for case in CASES}) == len(CASES) == 30


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.usefixtures("shared_data")
def test_both_programs_are_asked_the_same(case: Case):
    policy = load_policy(case.rules())
    words = dict(word.split("=", 1) for word in case.arguments())
    quasi = [name.removeprefix("qi:") for name in words if name.startswith("qi:")]
    assert [a.name for a in policy.quasi_identifiers] == quasi
    assert all(Path(words[f"qi:{name}"]).exists() for name in quasi)
    assert int(words["k"]) == policy.privacy.to_mapping()["k"]
    assert float(words["suppression"]) == policy.privacy.suppression
    assert Path(words["table"]).exists()
    if case.model is not None:
        assert words["sensitive"] == case.model.column not in quasi


def test_without_arx_one_line_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.delenv(task.CLASSES, raising=False)
    settings = Settings(tmp_path, 1)
    assert not [*run_task("arx", settings, {}), *run_task("arx_process", settings, {})]
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert all("Set AEGIS_ARX" in line for line in printed)


def test_without_data_one_line_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.setenv(task.CLASSES, "anything")
    monkeypatch.setattr(task, "ADULT", replace(task.ADULT, folder=tmp_path))
    assert not run_task("arx", Settings(tmp_path, 1), {})
    assert "Set AEGIS_DATA" in capsys.readouterr().out
