"""Releases in CSV of values and names that other readers trip over."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import aegis

HOSTILE = ["'", '"', "a,b", " x", "1", "1.0", "01", "=1+1", "two\nlines", "'s", "s'", ""]


@pytest.mark.parametrize("name", ["x ", "'", "39", 'a"b', "=x"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_hostile_values_and_names_are_released_as_they_are(
    tmp_path: Path, name: str, suffix: str
) -> None:
    values = [value for value in HOSTILE for _ in range(4)]
    labels = ["yes", "no"] * (len(values) // 2)
    table = pa.table({name: values, "label": labels})
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "label",
            "privacy": {"k": 4},
            "attributes": {name: {"role": "quasi-identifier", "masks": ["identity"]}},
            "configurations": {"plain": {name: "identity"}},
        }
    )
    output = tmp_path / f"out{suffix}"
    release = aegis.apply(table, policy, policy.configurations["plain"], output=output)
    assert release.released_rows == len(values)
    assert release.audit.passed
    assert sorted(release.to_arrow()[name].to_pylist()) == sorted(values)


def test_the_certificate_says_how_a_text_file_was_read(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("sep=;\nzip;label\n" + "01;yes\n02;no\n" * 10)
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "label",
            "privacy": {"k": 2},
            "attributes": {"zip": {"role": "quasi-identifier", "masks": ["identity"]}},
            "configurations": {"plain": {"zip": "identity"}},
        }
    )
    certificate = tmp_path / "c.json"
    aegis.apply(
        file,
        policy,
        policy.configurations["plain"],
        output=tmp_path / "out.parquet",
        certificate=certificate,
    )
    dialect = json.loads(certificate.read_text())["input"]["dialect"]
    assert dialect["delimiter"] == ";"
    assert dialect["skip"] == 1
    assert dialect["quote"] == '"'
    assert dialect["encoding"] == "utf-8"
