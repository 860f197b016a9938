"""Releases in CSV of values and names that other readers trip over."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import aegis
from aegis.errors import PolicyError

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


def plain(name: str, values: list[object]) -> tuple[pa.Table, aegis.Policy]:
    """Return a table of one attribute that is released as it is, and its policy."""
    table = pa.table({name: values, "label": ["yes", "no"] * (len(values) // 2)})
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "label",
            "privacy": {"k": 2},
            "attributes": {name: {"role": "quasi-identifier", "masks": ["identity"]}},
            "configurations": {"plain": {name: "identity"}},
        }
    )
    return table, policy


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv.gz", ".xlsx", ".parquet", ".arrow"])
def test_every_format_holds_what_is_released(tmp_path: Path, suffix: str) -> None:
    values: list[object] = ["=1+1", "01", "1.0", None, "x,y", "Zoë"] * 4
    table, policy = plain("v", values)
    output = tmp_path / f"out{suffix}"
    release = aegis.apply(table, policy, policy.configurations["plain"], output=output)
    found = release.to_arrow()["v"].to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, values))
    if suffix.endswith(".gz"):
        assert output.read_bytes()[:2] == b"\x1f\x8b"


def test_numbers_and_dates_keep_their_types_in_a_workbook(tmp_path: Path) -> None:
    import datetime as dt

    days: list[object] = [dt.date(2024, 1, 31), dt.date(2024, 2, 1)] * 4
    table, policy = plain("day", days)
    release = aegis.apply(
        table, policy, policy.configurations["plain"], output=tmp_path / "out.xlsx"
    )
    assert sorted(release.to_arrow()["day"].to_pylist()) == sorted(days)
    numbers: list[object] = [1, 2, 2**60, 3] * 4
    table, policy = plain("n", numbers)
    release = aegis.apply(table, policy, policy.configurations["plain"], output=tmp_path / "n.xlsx")
    # A workbook's numbers are doubles: whole numbers that these merge are written as texts.
    assert sorted(release.to_arrow()["n"].to_pylist()) == sorted(map(str, numbers))
    large: list[object] = [9e18, 1.5e300, 2.5, -9e18] * 4
    table, policy = plain("x", large)
    release = aegis.apply(table, policy, policy.configurations["plain"], output=tmp_path / "x.xlsx")
    assert sorted(release.to_arrow()["x"].to_pylist()) == sorted(large)


def test_formulas_are_warned_of_and_written_safely_on_request(tmp_path: Path) -> None:
    values: list[object] = ["=HYPERLINK(1)", "+1", "-x", "@y", "'=1", "fine"] * 4
    table, policy = plain("v", values)
    chosen = policy.configurations["plain"]
    release = aegis.apply(table, policy, chosen, output=tmp_path / "plain.csv")
    assert release.formulas == ("v",)
    assert "--safe-csv" in release.warnings[0]
    release = aegis.apply(table, policy, chosen, output=tmp_path / "safe.csv", safe_csv=True)
    assert release.warnings == ()
    found = set(release.to_arrow()["v"].to_pylist())
    assert found == {"'=HYPERLINK(1)", "'+1", "'-x", "'@y", "''=1", "fine"}
    table, policy = plain("v", ["-", "+", "=", "fine"] * 4)  # a lone sign stands for "none"
    assert aegis.apply(table, policy, chosen, output=tmp_path / "lone.csv").warnings == ()
    with pytest.raises(PolicyError, match="not CSV"):
        aegis.apply(table, policy, chosen, output=tmp_path / "safe.parquet", safe_csv=True)


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "a\tb", "a'b", "a[1]", "a*", "Zoë", "a;b"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_hostile_names_of_files_leave_nothing_behind(
    tmp_path: Path, name: str, suffix: str
) -> None:
    table, policy = plain("v", ["x", "y"] * 4)
    folder = tmp_path / name
    folder.mkdir()
    output = folder / f"{name}{suffix}"
    release = aegis.apply(table, policy, policy.configurations["plain"], output=output)
    assert release.released_rows == 8
    assert [path.name for path in folder.iterdir()] == [output.name]


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz"])
def test_codes_that_look_like_numbers_in_the_release_are_checked_as_texts(
    tmp_path: Path, suffix: str
) -> None:
    """Only suppressed rows have a code with a hyphen, so the released codes look like numbers."""
    zips = [str(10000 + 7 * i) for i in range(90) for _ in range(4)] + ["10115-4820"]
    labels = ["yes" if i + 97 * i % 211 > 250 else "no" for i in range(len(zips))]
    table = pa.table({"zip": zips, "label": labels})
    policy = {
        "version": 1,
        "label": "label",
        "privacy": {"k": 3, "suppression": 0.1},
        "attributes": {"zip": {"role": "quasi-identifier", "masks": ["identity"]}},
    }
    output, certificate = tmp_path / f"out{suffix}", tmp_path / "c.json"
    study = aegis.Study(table, policy)
    release = study.apply(study.advise(), output, certificate=certificate)
    assert release.suppressed_rows == 1
    check = aegis.check_certificate(output, certificate)
    assert check.passed, list(map(str, check.mismatches))
    assert json.loads(certificate.read_text())["output"]["text"] == ["zip", "label"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_rows_of_a_text_file_have_the_types_of_the_release(tmp_path: Path, suffix: str) -> None:
    rows = 40
    table = pa.table(
        {
            "postcode": ["10115", "20095"] * (rows // 2),
            "code": pa.array(["7", "08", None, "9"] * (rows // 4)),
            "number": [1.0, 2.0] * (rows // 2),
            "whole": [1, 2] * (rows // 2),
            "flag": [True, False] * (rows // 2),
            "answer": ["true", "false"] * (rows // 2),
            "day": pa.array(["2020-01-02", "2020-01-03"] * (rows // 2)),
            "label": ["yes", "no"] * (rows // 2),
        }
    )
    policy = {
        "version": 1,
        "label": "label",
        "privacy": {"k": 2},
        "attributes": {
            name: {"role": "quasi-identifier", "masks": ["identity"]}
            for name in table.column_names
            if name != "label"
        },
        "configurations": {"plain": {"postcode": "identity"}},
    }
    study = aegis.Study(table, policy)
    chosen = study.policy.configurations["plain"]
    release = study.apply(chosen, tmp_path / f"out{suffix}")
    stored = study.apply(chosen, tmp_path / "out.parquet")
    assert release.to_arrow().schema.types == stored.to_arrow().schema.types
    assert set(release.to_pandas()["postcode"]) == {"10115", "20095"}
    assert set(release.to_pandas()["code"].dropna()) == {"7", "08", "9"}
