"""Defaults of options from files, and what a run says of itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aegis.cli.main import run

POLICY = """version: 1
label: y
privacy: {k: 2, suppression: 0.2}
attributes:
  age: {role: quasi-identifier, masks: [identity, suppress]}
  pay: {role: feature}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [f"{20 + i % 4},{i * 7 % 5},{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["age,pay,y", *rows]) + "\n")
    (tmp_path / "p.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEGIS_CONFIG", "user.toml")
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run(words) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_nearest_file_goes_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "user.toml").write_text('format = "json"\npolicy = "nowhere.yaml"\ngenerate = 1\n')
    (folder / "pyproject.toml").write_text(
        '[tool.aegis]\npolicy = "p.yaml"\n[tool.aegis.advise]\nmeasure = "mi"\ntop = 2\n'
    )
    found = shown(capsys, "advise", "t.csv")
    assert found["measure"] == "mi"
    assert len(found["ranking"]) == 1
    (folder / "aegis.toml").write_text('[advise]\nmeasure = "g3"\n')
    assert shown(capsys, "advise", "t.csv")["measure"] == "g3"
    assert shown(capsys, "advise", "t.csv", "--measure", "adjusted-mi")["measure"] == "adjusted-mi"
    assert "measures" not in shown(capsys, "audit", "t.csv")  # its policy is from the file, too


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("top = 3 4", "is not TOML"),
        ("topp = 3", "no command has an option 'topp'.*Did you mean 'top'"),
        ("[advice]\ntop = 3", "there is no command 'advice'.*Did you mean 'advise'"),
        ("[advise]\nforces = true", r"aegis.toml \[advise\]: no command has an option 'forces'"),
        ('[advise]\ntop = "many"', r"top is 'many'"),
        ('[advise]\nforce = "yes"', r"force is 'yes'.*true or false"),
        ('[advise]\nmeasure = ["mi"]', r"measure is \['mi'\].*one value"),
        ('[audit]\nsensitive = "a"', r"sensitive is 'a'.*a list"),
        ('[advise]\nformat = "xml"', r"format is 'xml'"),
    ],
)
def test_mistakes_name_their_file(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (folder / "aegis.toml").write_text(text)
    assert run(["measures"]) == 2
    assert re.search(f"aegis.toml.*{said}" if "aegis" not in said else said, _one_line(capsys))


def _one_line(capsys: pytest.CaptureFixture[str]) -> str:
    return re.sub(r"\s+", " ", capsys.readouterr().err)


def test_a_run_is_logged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", "t.csv", "-p", "p.yaml", "--log-file", "run.log", "--format", "json", "-v"]
    assert run(words) == 0
    written = (folder / "run.log").read_text()
    for line in written.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING) ", line)
    assert "advise t.csv -p p.yaml" in written
    assert re.search(r"Counting values by class: \d+\.\d\d s", written)
    assert written.rstrip().endswith("exit code 0")
    assert written in capsys.readouterr().err
    assert run(["advise", "none.csv", "-p", "p.yaml", "--log-file=run.log"]) == 2
    after = (folder / "run.log").read_text().removeprefix(written)
    assert "ERROR" in after
    assert "none.csv" in after
    assert after.rstrip().endswith("exit code 2")
    assert run(["measures"]) == 0
    assert (folder / "run.log").read_text() == written + after


def test_passwords_are_not_logged(folder: Path) -> None:
    words = ["audit", "postgres://me:secret@localhost:1/x", "--table", "t", "--k", "2"]
    assert run([*words, "--log-file", "run.log"]) == 2
    assert "secret" not in (folder / "run.log").read_text()


def test_a_log_that_cannot_be_written_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--log-file", "none/run.log", "measures"]) == 2
    # A long path is broken wherever the line ends.
    assert "none/run.log" in _one_line(capsys).replace(" ", "")
