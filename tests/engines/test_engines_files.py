"""Commands on a table of PostgreSQL: every one takes --table, and releases go into files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

POLICY = """version: 1
label: label
privacy: {k: 2}
attributes:
  zip: {role: quasi-identifier, masks: [identity, {blur: {keep: 1}}]}
  age: {role: feature}
configurations: {plain: {zip: {blur: {keep: 1}}, age: identity}}
"""


def aegis(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from aegis.cli.main import main; main()", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


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
    people: str, tmp_path: Path, suffix: str
) -> None:
    words = ("--table", "files_people", "-p", "policy.yaml", "-c", "policy.yaml")
    (tmp_path / "c.yaml").write_text("{zip: {blur: {keep: 1}}, age: identity}\n")
    done = aegis(tmp_path, "apply", people, *words[:4], "-c", "c.yaml", "-o", f"out{suffix}")
    assert done.returncode == 0, done.stderr
    audit = aegis(tmp_path, "audit", f"out{suffix}", "-p", "policy.yaml", "-f", "json")
    assert audit.returncode == 0, audit.stderr
    assert '"rows": 80' in audit.stdout


def test_every_command_takes_a_table_of_a_database(people: str, tmp_path: Path) -> None:
    table = (people, "--table", "files_people")
    for words in (
        ("init", *table, "--label", "label", "-o", "proposed.yaml"),
        ("report", *table, "-p", "policy.yaml", "-o", "report.html"),
        ("evaluate", *table, "-p", "policy.yaml", "--models", "lr", "--splits", "2"),
        ("anonymize", *table, "-p", "policy.yaml", "--method", "mondrian", "-o", "grouped.csv"),
        ("reconstruct", *table, "-p", "policy.yaml", "--attribute", "zip"),
    ):
        done = aegis(tmp_path, *words)
        assert done.returncode == 0, (words, done.stderr)
        assert "pa:ss" not in done.stdout + done.stderr
    text = (tmp_path / "proposed.yaml").read_text()
    assert "pa%3Ass" not in text
    assert "pa:ss" not in text


def test_a_table_of_a_database_is_named(people: str, tmp_path: Path) -> None:
    done = aegis(tmp_path, "init", people, "--label", "label")
    assert done.returncode == 2
    assert "--table" in done.stderr
    assert "pa%3Ass" not in done.stderr
