"""Commands on a table of PostgreSQL: every one takes --table, and releases go into files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from aegis.cli.main import run

Aegis = Callable[..., tuple[int, str, str]]
POLICY = """version: 1
label: label
privacy: {k: 2}
attributes:
  zip: {role: quasi-identifier, masks: [identity, {blur: {keep: 1}}]}
  age: {role: feature}
configurations: {plain: {zip: {blur: {keep: 1}}, age: identity}}
"""


@pytest.fixture
def aegis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Aegis:
    """Run `aegis` with these words in the folder of the test; return its code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(words)
        out, error = capsys.readouterr()
        return code, out, error

    return ran


@pytest.fixture
def people(postgres: Any, tmp_path: Path) -> Any:
    connection = ibis.connect(postgres.url)
    rows = pa.table(
        {
            "zip": ["01", "02", "11", "12"] * 20,
            "age": [20 + i % 7 for i in range(80)],
            "label": ["yes", "no"] * 40,
        }
    )
    connection.create_table("files_people", rows, overwrite=True)
    (tmp_path / "policy.yaml").write_text(POLICY)
    yield postgres.url
    connection.drop_table("files_people")
    connection.disconnect()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".xlsx"])
def test_a_release_from_a_database_goes_into_a_file(
    people: str, tmp_path: Path, aegis: Aegis, suffix: str
) -> None:
    words = ("--table", "files_people", "-p", "policy.yaml", "-c", "policy.yaml")
    (tmp_path / "c.yaml").write_text("{zip: {blur: {keep: 1}}, age: identity}\n")
    code, _, error = aegis("apply", people, *words[:4], "-c", "c.yaml", "-o", f"out{suffix}")
    assert code == 0, error
    code, out, error = aegis("audit", f"out{suffix}", "-p", "policy.yaml", "-f", "json")
    assert code == 0, error
    assert '"rows": 80' in out


def test_every_command_takes_a_table_of_a_database(
    people: str, tmp_path: Path, aegis: Aegis
) -> None:
    table = (people, "--table", "files_people")
    for words in (
        ("init", *table, "--label", "label", "-o", "proposed.yaml"),
        ("report", *table, "-p", "policy.yaml", "-o", "report.html"),
        ("evaluate", *table, "-p", "policy.yaml", "--models", "lr", "--splits", "2"),
        ("anonymize", *table, "-p", "policy.yaml", "--method", "mondrian", "-o", "grouped.csv"),
        ("reconstruct", *table, "-p", "policy.yaml", "--attribute", "zip"),
    ):
        code, out, error = aegis(*words)
        assert code == 0, (words, error)
        assert "pa:ss" not in out + error
    text = (tmp_path / "proposed.yaml").read_text()
    assert "pa%3Ass" not in text
    assert "pa:ss" not in text


def test_a_table_of_a_database_is_named(people: str, aegis: Aegis) -> None:
    code, _, error = aegis("init", people, "--label", "label")
    assert code == 2
    assert "--table" in error
    assert "pa%3Ass" not in error
