"""Every format and every object opens as the table that it holds; what cannot be read says why."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError, ResourceError
from aegis.policy import load_policy
from aegis.sources import Source, open_table

ROWS = [
    {"zip": "01234", "age": 39, "name": "Zoë", "label": True},
    {"zip": "99999", "age": None, "name": "a, b", "label": False},
    {"zip": "00001", "age": 7, "name": None, "label": True},
]
COLUMNS = ("zip", "age", "name", "label")


def rows(table: Any) -> list[dict[str, Any]]:
    source = open_table(table)
    return source.collect(source.table).to_pylist()


def as_csv(separator: str = ",", *, bom: bool = False) -> bytes:
    lines = [
        separator.join(COLUMNS),
        separator.join(["01234", "39", "Zoë", "true"]),
        separator.join(["99999", "", '"a, b"', "false"]),
        separator.join(["00001", "7", "", "true"]),
    ]
    return ("\ufeff" if bom else "").encode() + ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("bom", [False, True])
def test_csv_of_any_separator_and_mark(tmp_path: Path, separator: str, bom: bool) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(as_csv(separator, bom=bom))
    assert rows(file) == ROWS
    assert rows(str(file)) == ROWS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("yes", "no"), ["yes", "no", None]),
        (("Yes", "No"), ["Yes", "No", None]),
        (("T", "F"), ["T", "F", None]),
        (("t", "true"), ["t", "true", None]),
        (("true", "false"), [True, False, None]),
        (("True", "False"), [True, False, None]),
        (("1", "0"), [1, 0, None]),
    ],
)
def test_truth_values_keep_their_spelling(
    tmp_path: Path, words: tuple[str, str], expected: list[Any]
) -> None:
    file = tmp_path / "truth.csv"
    file.write_text("id,answer\n" + "".join(f"{i},{w}\n" for i, w in enumerate([*words, ""])))
    assert [row["answer"] for row in rows(file)] == expected


def test_one_late_spelling_makes_a_column_text(tmp_path: Path) -> None:
    file = tmp_path / "truth.csv"
    count = 30_000  # more than the engine samples
    file.write_text("id,answer\n" + "".join(f"{i},true\n" for i in range(count)) + "x,yes\n")
    assert {row["answer"] for row in rows(file)} == {"true", "yes"}


def test_compressed_csv(tmp_path: Path) -> None:
    file = tmp_path / "people.csv.gz"
    file.write_bytes(gzip.compress(as_csv()))
    assert rows(file) == ROWS


def test_one_column_and_quoted_names(tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text('"hours, per week"\n40\n35\n')
    assert rows(file) == [{"hours, per week": 40}, {"hours, per week": 35}]


def test_windows_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(as_csv().replace(b"\n", b"\r\n"))
    assert rows(file) == ROWS


@given(codes=st.lists(st.from_regex(r"[0-9]{1,6}", fullmatch=True), min_size=1, max_size=20))
def test_codes_keep_their_leading_zeros(
    codes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("codes") / "codes.csv"
    file.write_text("row,code\n" + "".join(f"{i + 1},{code}\n" for i, code in enumerate(codes)))
    found = [row["code"] for row in rows(file)]
    padded = any(len(code) > 1 and code.startswith("0") for code in codes)
    assert found == (codes if padded else [int(code) for code in codes])


def test_zeros_and_types_that_come_late(tmp_path: Path) -> None:
    file = tmp_path / "late.csv"
    many = 150_000
    file.write_text("n,code\n" + "1,2\n" * many + "1,02\nx,3\n")
    source = open_table(file)
    schema = source.table.schema()
    assert schema["n"].is_string()
    assert schema["code"].is_string()
    table = source.table
    found = source.collect(table.group_by("n", "code").aggregate(rows=table.count()))
    assert {(r["n"], r["code"]): r["rows"] for r in found.to_pylist()} == {
        ("1", "2"): many,
        ("1", "02"): 1,
        ("x", "3"): 1,
    }


def arrow() -> pa.Table:
    return pa.Table.from_pylist(ROWS)


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(arrow(), tmp_path / "people.parquet")
    assert rows(tmp_path / "people.parquet") == ROWS


@pytest.mark.parametrize("extension", ["arrow", "feather", "ipc"])
def test_arrow_files(tmp_path: Path, extension: str) -> None:
    file = tmp_path / f"people.{extension}"
    pyarrow.feather.write_feather(arrow(), file, compression="uncompressed")
    assert rows(file) == ROWS


@pytest.mark.parametrize("extension", ["jsonl", "ndjson"])
def test_json_lines(tmp_path: Path, extension: str) -> None:
    file = tmp_path / f"people.{extension}"
    pd.DataFrame(ROWS).astype({"age": "Int64"}).to_json(file, orient="records", lines=True)
    assert rows(file) == ROWS


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["people.json", "people.json.gz"])
def test_json_documents(tmp_path: Path, name: str, indent: int | None) -> None:
    people = pd.DataFrame(ROWS).astype({"age": "Int64"})
    people.to_json(tmp_path / name, orient="records", indent=indent)
    assert rows(tmp_path / name) == ROWS


def test_a_document_beside_the_parts_of_a_folder_is_none_of_them(tmp_path: Path) -> None:
    pq.write_table(arrow(), tmp_path / "people.parquet")
    (tmp_path / "schema.json").write_text('{"fields": []}')
    assert rows(tmp_path) == ROWS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"age": 41}, {"age": 4', "is cut off"),
        ('[{"age": 41},', "is cut off"),
        ('[{"age": 41}, {"age": 42}', "is cut off"),
        ('{"age": {"0": 41, "1": 42}, "sex": {"0": "m", "1": "f"}}', "holds one object"),
        ("41", "holds no records"),
        (" \n", "holds no records"),
    ],
)
def test_documents_that_are_no_table(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "people.json"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        open_table(file)


def test_globs_and_folders(tmp_path: Path) -> None:
    for part in ("b", "a"):
        pq.write_table(pa.table({"part": [part], "n": [1]}), tmp_path / f"{part}.parquet")
    assert [row["part"] for row in rows(str(tmp_path / "*.parquet"))] == ["a", "b"]
    assert [row["part"] for row in rows(tmp_path)] == ["a", "b"]
    assert open_table(tmp_path).files == (tmp_path / "a.parquet", tmp_path / "b.parquet")


def test_partitioned_folders_give_their_keys_as_columns(tmp_path: Path) -> None:
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        pq.write_table(pa.table({"n": [year % 100]}), folder / "part.parquet")
    found = sorted((row["year"], row["n"]) for row in rows(tmp_path))
    assert found == [(2023, 23), (2024, 24)]


def test_a_quote_in_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "o'brien"
    folder.mkdir()
    for part in ("a", "b"):
        pq.write_table(arrow(), folder / f"{part}.parquet")
    source = open_table(folder)
    assert source.rows == 6
    assert source.collect(source.sample(3, seed=0)).num_rows <= 6


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "category": pd.Categorical(["x", "y", None]),
            "number": [1.5, np.nan, 2.0],
            "when": pd.to_datetime(["2024-01-31", None, "2024-02-01"]),
            "mixed": ["a", None, "b"],
            "whole": pd.array([1, None, 3], dtype="Int64"),
        },
        index=[7, 8, 9],
    )
    found = rows(frame)
    assert [row["category"] for row in found] == ["x", "y", None]
    # In pandas NaN is how a missing number is written.
    assert [row["number"] for row in found] == [1.5, None, 2.0]
    assert [row["when"] for row in found] == [datetime(2024, 1, 31), None, datetime(2024, 2, 1)]
    assert [row["mixed"] for row in found] == ["a", None, "b"]
    assert [row["whole"] for row in found] == [1, None, 3]
    assert set(found[0]) == set(frame.columns)


def test_pandas_of_mixed_types() -> None:
    with pytest.raises(DataError, match="has mixed types"):
        open_table(pd.DataFrame({"a": [1, "x", object()]}))


def test_polars() -> None:
    frame = pl.DataFrame(ROWS).with_columns(pl.col("zip").cast(pl.Categorical))
    assert rows(frame) == ROWS
    assert rows(frame.lazy()) == ROWS
    assert open_table(frame.lazy()).origin == "Polars LazyFrame"


def test_a_table_of_ibis_on_polars_is_copied() -> None:
    table = ibis.polars.connect().create_table("t", pl.DataFrame(ROWS))
    source = open_table(table.filter(table.age.notnull()))
    assert source.engine.in_process
    assert source.collect(source.table).to_pylist() == [r for r in ROWS if r["age"] is not None]


MOMENTS = pa.table(
    {
        "t": pa.array(
            [datetime(2023, 12, 31, 23, 30, tzinfo=UTC), datetime(2024, 6, 30, 22, tzinfo=UTC)],
            pa.timestamp("us", "Europe/Berlin"),
        ),
        "n": [1, 2],
    }
)
LOCAL = [{"t": datetime(2024, 1, 1, 0, 30), "n": 1}, {"t": datetime(2024, 7, 1), "n": 2}]


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "ibis", "parquet", "feather"])
def test_times_with_a_zone_are_local_times(kind: str, tmp_path: Path) -> None:
    pq.write_table(MOMENTS, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(MOMENTS, tmp_path / "t.feather")
    table = {
        "arrow": MOMENTS,
        "pandas": MOMENTS.to_pandas(),
        "polars": pl.from_arrow(MOMENTS),
        "ibis": ibis.memtable(MOMENTS),
        "parquet": tmp_path / "t.parquet",
        "feather": tmp_path / "t.feather",
    }[kind]
    source = open_table(table)
    assert rows(table) == LOCAL
    assert source.notes == ("t: times are read as local times of Europe/Berlin.",)
    assert source.collect(source.sample(1, seed=1)).schema == source.table.schema().to_pyarrow()


def test_times_with_a_fixed_offset_are_local_times() -> None:
    moment = datetime(2024, 1, 1, 0, 30, tzinfo=timezone(-timedelta(hours=3, minutes=30)))
    assert rows(pa.table({"t": [moment]})) == [{"t": datetime(2024, 1, 1, 0, 30)}]


def test_times_in_utc_keep_their_type() -> None:
    utc = MOMENTS.set_column(0, "t", MOMENTS["t"].cast(pa.timestamp("us", "UTC")))
    assert rows(utc)[0]["t"] == datetime(2023, 12, 31, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_times_written_with_an_offset_are_read_as_written(ending: str, tmp_path: Path) -> None:
    texts = ("2024-01-01T00:30:00+01:00", "2024-07-01T00:00:00+02:00")
    file = tmp_path / f"t.{ending}"
    lines = (
        ["t,n", *(f"{t},{n}" for n, t in enumerate(texts, 1))]
        if ending == "csv"
        else [json.dumps({"t": t, "n": n}) for n, t in enumerate(texts, 1)]
    )
    file.write_text("\n".join(lines), encoding="utf-8")
    assert rows(file) == LOCAL


def test_offsets_that_begin_late_are_read_as_written(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    winter = ["2024-01-01 00:30:00+00:00"] * 30_000
    file.write_text("\n".join(["t", *winter, "2024-07-01 00:30:00+01:00"]), encoding="utf-8")
    assert rows(file)[-1] == {"t": datetime(2024, 7, 1, 0, 30)}


def test_pyarrow() -> None:
    encoded = arrow().set_column(0, "zip", arrow()["zip"].dictionary_encode())
    assert rows(encoded) == ROWS
    assert rows(arrow()) == ROWS
    assert rows(arrow().slice(1)) == ROWS[1:]
    types = pa.table(
        {
            "day": pa.array([date(2024, 1, 31), None]),
            "price": pa.array([Decimal("1.10"), None], pa.decimal128(9, 2)),
            "large": pa.array(["a", None], pa.large_string()),
            "small": pa.array([1, None], pa.int8()),
        }
    )
    assert rows(types) == types.to_pylist()


def test_duckdb_relation() -> None:
    relation = duckdb.connect().sql("SELECT 1 AS a, 'x' AS b UNION ALL SELECT NULL, 'y' ORDER BY b")
    assert rows(relation) == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]


def test_ibis_table_stays_in_its_engine() -> None:
    connection = ibis.duckdb.connect()
    table = connection.create_table("people", arrow())
    source = open_table(table)
    assert source.table is table
    assert source.backend is connection
    assert sorted(rows(table), key=str) == sorted(ROWS, key=str)
    assert rows(ibis.memtable(arrow())) == ROWS


def test_a_source_is_returned_as_it_is() -> None:
    source = open_table(arrow())
    assert isinstance(source, Source)
    assert open_table(source) is source


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("É", "é")])
def test_repeated_columns(tmp_path: Path, names: tuple[str, str]) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=list(names))
    pq.write_table(table, tmp_path / "a.parquet")
    frame = pd.DataFrame([[1, 2]], columns=list(names))
    for given_table in (table, frame, tmp_path / "a.parquet"):
        with pytest.raises(DataError, match="two columns named") as caught:
            open_table(given_table)
        assert repr(names[1]) in str(caught.value)


def test_repeated_names_of_a_text_file_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,Age,x,age_2,age,x\n1,2,3,4,5,6\n")
    source = open_table(tmp_path / "a.csv")
    assert list(source.table.columns) == ["age", "Age_3", "x", "age_2", "age_4", "x_2"]
    assert rows(source.table)[0] == {
        **{"age": 1, "Age_3": 2, "x": 3, "age_2": 4, "age_4": 5, "x_2": 6},
    }
    assert source.notes == (
        f"{tmp_path / 'a.csv'}: 3 columns are named as columns before them, and are called Age_3, age_4 "
        "and x_2.",
    )
    (tmp_path / "b.csv").write_text("age,x,age\n1,2,3\n")
    assert open_table(tmp_path / "b.csv").notes == (
        f"{tmp_path / 'b.csv'}: column 3 is named 'age' as column 1 is, and is called age_2.",
    )


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match="No such file"):
        open_table(str(tmp_path / "*.parquet"))
    (tmp_path / "empty.csv").touch()
    with pytest.raises(DataError, match="No such file") as caught:
        open_table(tmp_path / "empti.csv")
    assert f"Did you mean {str(tmp_path / 'empty.csv')!r}? " in str(caught.value)
    with pytest.raises(PolicyError, match="proposes a policy"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(DataError, match=r"empty \(0 bytes\)"):
        open_table(tmp_path / "empty.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="no files of tables"):
        open_table(tmp_path / "folder")


def test_unknown_formats_and_objects(tmp_path: Path) -> None:
    (tmp_path / "people.docx").write_bytes(b"PK")
    with pytest.raises(DataError, match="Unknown file format") as caught:
        open_table(tmp_path / "people.docx")
    assert ".parquet" in caught.value.hint
    for thing in (7, None, {"a": [1]}, pd.Series([1]), pl.Series([1])):
        with pytest.raises(DataError, match="Cannot read a table from"):
            open_table(thing)


def test_no_columns() -> None:
    with pytest.raises(DataError, match="no columns"):
        open_table(pa.table({}))


def test_mixed_formats_and_schemas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="mixes formats"):
        open_table(str(tmp_path / "a.*"))
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="different columns or types") as caught:
        open_table(str(tmp_path / "*.parquet"))
    assert "b.parquet" in str(caught.value)


def test_csv_files_with_different_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a,c\n1,2\n")
    with pytest.raises(DataError, match="different columns"):
        open_table(str(tmp_path / "*.csv"))


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "latin.csv"
    file.write_bytes("name,n\nZoë,1\nRené,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="Cannot read") as caught:
        open_table(file)
    assert "UTF-8" in caught.value.hint


def test_truncated_files(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-50])
    with pytest.raises(DataError, match="Cannot read"):
        open_table(cut)
    broken = tmp_path / "broken.arrow"
    broken.write_bytes(b"ARROW1\x00\x00not really")
    with pytest.raises(DataError, match="Cannot read"):
        open_table(broken)
    zipped = tmp_path / "cut.csv.gz"
    zipped.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:40])
    with pytest.raises(DataError, match="Cannot read"):
        open_table(zipped)


def test_json_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(DataError, match="Cannot read"):
        open_table(file)


def test_rows_that_are_too_long(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("a,b\n" + "1,2\n" * 100 + "1,2,3\n" + "1,2\n" * 100)
    with pytest.raises(DataError, match=r"Line 102 of .* has 3 fields"):
        open_table(file)


def test_an_unknown_column_suggests_the_nearest() -> None:
    with pytest.raises(DataError, match="Did you mean 'age'"):
        open_table(arrow()).require("aeg")


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
def test_of_many_files_the_unreadable_one_is_named(tmp_path: Path, extension: str) -> None:
    write = pa.parquet.write_table if extension == "parquet" else pa.feather.write_feather
    for name in ("a", "b", "c"):
        write(pa.table({"a": list(range(1000))}), tmp_path / f"{name}.{extension}")
    whole = (tmp_path / f"b.{extension}").read_bytes()
    (tmp_path / f"b.{extension}").write_bytes(whole[: len(whole) // 2])
    given = tmp_path if extension == "parquet" else tmp_path / "*.arrow"
    with pytest.raises(DataError, match=rf"Cannot read \S*b\.{extension}: "):
        open_table(given)


@pytest.mark.parametrize(
    ("why", "error"),
    [
        (duckdb.OutOfMemoryException("Failed to allocate block of 4096 bytes"), ResourceError),
        (duckdb.IOException("No space left on device"), ResourceError),
        (MemoryError("malloc of size 64 failed"), MemoryError),
        (pa.ArrowMemoryError("malloc of size 64 failed"), ResourceError),
        (duckdb.InvalidInputException("not CSV"), DataError),
    ],
)
def test_a_file_is_not_blamed_where_the_machine_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: Exception, error: type[Exception]
) -> None:
    def fails(*_: Any) -> Any:
        raise why

    (tmp_path / "table.csv").write_bytes(as_csv())
    monkeypatch.setattr("aegis.sources.open.read_delimited", fails)
    with pytest.raises(error):
        open_table(tmp_path / "table.csv")


@pytest.mark.parametrize("name", ["people.jsonl", "people.json", "people.json.gz"])
def test_json_integers_beyond_64_bits_stay_apart(tmp_path: Path, name: str) -> None:
    numbers = [2**64 + i for i in range(21)]
    records = [{"id": n, "half": n if i else 0.5, "age": i} for i, n in enumerate(numbers)]
    lines = "\n".join(map(json.dumps, records))
    text = lines if name.endswith("l") else json.dumps(records)
    data = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    (tmp_path / name).write_bytes(data)
    read = rows(tmp_path / name)
    assert [row["id"] for row in read] == list(map(str, numbers))
    assert [row["half"] for row in read] == ["0.5", *map(str, numbers[1:])]
    assert [row["age"] for row in read] == list(range(21))


def test_json_doubles_that_are_exact_stay_numbers(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text('{"a": 1e30, "b": 18446744073709551616}\n{"a": 2.5}\n')
    assert rows(tmp_path / "n.jsonl") == [{"a": 1e30, "b": 2.0**64}, {"a": 2.5, "b": None}]


def test_nested_json_integers_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text('{"p": {"id": 18446744073709551617}, "a": 1}\n')
    with pytest.raises(DataError, match="nested column 'p' holds whole numbers beyond 64 bits"):
        open_table(tmp_path / "n.jsonl")


def collected(table: Any) -> pa.Table:
    """Return the rows of a table as Aegis reads them."""
    source = open_table(table)
    return source.collect(source.table)


def test_intervals_and_periods_of_pandas_are_texts() -> None:
    """`pandas.cut` returns intervals: their frame ended in an error of Arrow, a period's in a KeyError."""
    ages = pd.Series([20, 40, None, 60])
    frame = pd.DataFrame(
        {
            "cut": pd.cut(ages, [0, 30, 90]),
            7: pd.interval_range(0, 4),
            "month": pd.period_range("2026-01", periods=4, freq="M"),
        }
    )
    rows = collected(frame)
    assert rows["cut"].to_pylist() == ["(0, 30]", "(30, 90]", None, "(30, 90]"]
    assert rows["7"].to_pylist() == ["(0, 1]", "(1, 2]", "(2, 3]", "(3, 4]"]
    assert rows["month"].to_pylist() == ["2026-01", "2026-02", "2026-03", "2026-04"]
    assert str(frame["cut"].dtype) == "category"


def test_durations_come_back() -> None:
    """The engine has intervals of months, days and seconds, which Arrow casts to no duration."""
    spans = pd.Series(pd.to_timedelta([0, 36, 24 * 400, None], unit="h"))
    for table in (pd.DataFrame({"a": spans}), pa.table({"a": pa.array(spans)})):
        back = collected(table)["a"].cast(pa.duration("ns"))
        assert back.to_pandas().equals(spans.astype("timedelta64[ns]"))


def test_what_no_column_can_hold_is_an_error_of_the_data() -> None:
    with pytest.raises(DataError, match="too large"):
        open_table(pd.DataFrame({"a": [2**70, 1]}))
    with pytest.raises(DataError, match="Column number 2 of the table has no name"):
        open_table(pd.DataFrame({"a": [1], "": [2]}))


class Frame(pd.DataFrame):
    """A frame of another library that builds on pandas, as geopandas has one."""


@pytest.mark.parametrize(
    "table",
    [
        Frame(ROWS),
        arrow().to_batches()[0],
        arrow().to_reader(),
        pa.table(pl.DataFrame(ROWS).with_columns(pl.col("zip").cast(pl.Categorical))),
    ],
    ids=["subclass", "batch", "reader", "categories-of-views"],
)
def test_every_table_that_arrow_can_read_is_a_table(table: Any) -> None:
    assert rows(table) == ROWS


def test_small_floats_and_wide_decimals_are_read() -> None:
    table = pa.table(
        {
            "half": pa.array([0.5, None], pa.float16()),
            "wide": pa.array([Decimal("1.10"), None], pa.decimal256(50, 2)),
        }
    )
    assert rows(table) == [{"half": 0.5, "wide": Decimal("1.10")}, {"half": None, "wide": None}]


def test_sparse_columns_and_attributes_of_pandas() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 1])})
    frame.attrs["made by"] = object()
    assert rows(frame) == [{"a": 0}, {"a": 0}, {"a": 1}]
    assert "made by" in frame.attrs


def test_what_is_no_table_says_why() -> None:
    with pytest.raises(DataError, match="Column number 2 of the table has no name"):
        open_table(pd.DataFrame({"a": [1], None: [2]}))
    with pytest.raises(DataError, match="'utf-8' codec can't encode"):
        open_table(pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)}))
    with pytest.raises(DataError, match="'Series': Cannot import schema"):
        open_table(pl.Series([1]))
    with pytest.raises(DataError, match="'DataFrame': Invalid or unsupported format"):
        open_table(pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}))
    with pytest.raises(DataError, match="type 'DuckDBPyConnection'"):
        open_table(duckdb.connect())


class Named:
    """A path of another library."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


def test_paths_of_other_libraries(tmp_path: Path) -> None:
    pq.write_table(arrow(), tmp_path / "people.parquet")
    assert rows(Named(tmp_path / "people.parquet")) == ROWS
    [entry] = os.scandir(os.fsencode(tmp_path))  # its path is bytes
    assert rows(entry) == ROWS
