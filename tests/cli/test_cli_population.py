"""`--population`: advice, release and check of a certificate beside a table that this one is of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.cli.main import run
from aegis.policy import dump_policy

PEOPLE = [(a, c, y) for a in (11, 12, 23, 24) for c in ("Oslo", "Rome") for y in ("no", "yes")] * 3
POLICY = {
    "version": 1,
    "label": "y",
    "privacy": {"k_map": 10},
    "attributes": {
        "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 20}}]},
        "city": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
    },
}


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    names = ("age", "city", "y")
    people = pa.table({n: [p[i] for p in PEOPLE] for i, n in enumerate(names)})
    pq.write_table(people.take(list(range(0, len(people), 5))), "table.parquet")
    pq.write_table(people.drop(["y"]), "people.parquet")
    Path("policy.yaml").write_text(dump_policy(aegis.load_policy(POLICY)))
    return tmp_path


def test_commands_hold_the_rule_against_the_population(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table.parquet", "-p", "policy.yaml"]
    assert run(["advise", *words]) == 2
    assert "population" in capsys.readouterr().err
    people = ["--population", "people.parquet"]
    assert run(["advise", *words, *people, "-o", "best.yaml"]) == 0
    assert "--population people.parquet" in capsys.readouterr().out.replace("\\\n    ", "")
    masked = ["-c", "best.yaml", "-o", "masked.parquet", "--certificate", "c.json"]
    assert run(["apply", *words, *people, *masked]) == 0
    assert run(["apply", *words, "-c", "best.yaml", "-o", "other.parquet"]) == 2
    assert not Path("other.parquet").exists()
    policy = aegis.load_policy("policy.yaml").drawn_from("people.parquet")
    check = aegis.check_certificate("masked.parquet", "c.json", policy=policy)
    assert check.passed, check.mismatches
    unsure = aegis.check_certificate("masked.parquet", "c.json")
    assert any("a population" in sentence for sentence in unsure.unchecked)
    assert unsure.passed, unsure.mismatches


def test_a_class_of_one_row_is_no_promise(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under k-map a row may be alone in its class: "in a class of at least 1" says nothing."""
    Path("six.yaml").write_text(dump_policy(aegis.load_policy({**POLICY, "privacy": {"k_map": 6}})))
    words = ["advise", "table.parquet", "-p", "six.yaml", "--population", "people.parquet"]
    assert run(words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "It releases 10 of 10 rows." in screen
    assert "in a class of" not in screen


@pytest.mark.parametrize("command", ["advise", "apply"])
def test_a_population_that_the_rule_does_not_need_is_refused(
    tables: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    plain = {**POLICY, "privacy": {"k": 2, "suppression": 0.5}}
    Path("plain.yaml").write_text(dump_policy(aegis.load_policy(plain)))
    more = ["-c", "plain.yaml", "-o", "masked.parquet"] if command == "apply" else []
    words = [command, "table.parquet", "-p", "plain.yaml", *more]
    assert run([*words, "--population", "people.parquet"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "compares no class with a population, so people.parquet has no effect" in said
    assert not Path("masked.parquet").exists()
