"""CSV is read as it is written: every row, every text, every digit, or one clear error."""

from __future__ import annotations

import csv
import gc
import io
import json
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.release.writing import write_table
from aegis.sources import Reading, open_table
from aegis.sources.dialect import marked_encoding
from aegis.sources.embedded import embedded
from aegis.sources.records import Counter, count_records


def read(file: Path, **said: Any) -> list[dict[str, Any]]:
    source = open_table(file, reading=Reading(**said))
    return source.collect(source.table).to_pylist()


def column(folder: Path, *texts: str, **said: Any) -> list[Any]:
    """Return what a column of these texts is read as."""
    file = folder / "t.csv"
    file.write_text("n,x\n" + "".join(f"r,{text}\n" for text in texts))
    return [row["x"] for row in read(file, **said)]


def test_apostrophes_swallow_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    lines = [f"p{i},city{i % 3},{20 + i % 5}" for i in range(120)]
    lines[40:40] = ["secret1,'s-Gravenhage,30", "secret2,Den Haag,31", "secret3,the boys',32"]
    file.write_text("id,town,age\n" + "\n".join(lines) + "\n")
    rows = read(file)
    assert len(rows) == 123
    assert [row["town"] for row in rows[40:43]] == ["'s-Gravenhage", "Den Haag", "the boys'"]
    assert not any("secret" in row["town"] for row in rows)


def test_quotes_within_fields_that_are_not_quoted_are_text(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,b\n1,5" pipe\n2,x\n3,6" pipe\n')
    assert [row["b"] for row in read(file)] == ['5" pipe', "x", '6" pipe']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,b\n1,2\n3,"x\n5,6\n', "record of line 3 .* never closed"),
        ('a,b\n1,2\n3,"x"y\n5,6\n', "Line 3 .* text behind the quote"),
        ("a,b\n1,2\n3\n5,6\n", "Line 3 .* has 1 field,"),
        ("a,b\n1,2\n3,4,5\n5,6\n", "Line 3 .* has 3 fields"),
    ],
)
def test_lines_that_the_dialect_cannot_explain(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        open_table(file)
    assert caught.value.hint


def test_mixed_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b'a,b\r\n1,"x\r\ny"\n2,z\r\n3,\n')
    assert [row["b"] for row in read(file)] == ["x\r\ny", "z", None]


@pytest.mark.parametrize(
    "texts",
    [
        ("12345678901234567890", "12345678901234567891"),  # beyond 64 bits
        ("9223372036854775808", "9223372036854775809", "1"),
        ("1.0", "1"),
        ("5.10", "5.1", "2.25"),
        ("01", "1"),
        ("1.5", "01.5"),
        ("+49123", "49123"),
        ("1_000", "1000"),
        ("0x10", "16"),
        ("1e3", "1000", "1E3"),
        ("0.12345678901234567891", "0.12345678901234567892"),
        ("12345678901234567.1", "12345678901234567.2"),
        ("1e400", "1e401"),
        ("True", "true"),
        ("yes", "no"),
        ("t", "f"),
        ("inf", "Infinity"),
    ],
)
def test_distinct_texts_never_become_one_value(tmp_path: Path, texts: tuple[str, ...]) -> None:
    assert column(tmp_path, *texts) == list(texts)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (("1", "-7", " 30"), [1, -7, 30]),
        (("1.5", "2.0", "-0.25"), [1.5, 2.0, -0.25]),
        (("1", "2.5"), [1.0, 2.5]),
        (("1.50", "2.25", "10.00"), [1.5, 2.25, 10.0]),
        (("1e-05", "0.5"), [1e-05, 0.5]),
        (("1.500000000000000000e+00", "2.500000000000000000e+00"), [1.5, 2.5]),
        (("-0.0", "0.5", "0.0"), [-0.0, 0.5, 0.0]),
        (("True", "False"), [True, False]),
    ],
)
def test_numbers_of_one_spelling_are_numbers(
    tmp_path: Path, texts: tuple[str, ...], values: list[Any]
) -> None:
    found = column(tmp_path, *texts)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("texts", "units", "values"),
    [
        (("$5", "$7.50"), ("$",), [5.0, 7.5]),
        (("-$5", "$ 30", " $7 "), ("$",), [-5, 30, 7]),
        (("$-5", "$30"), ("$",), [-5, 30]),
        (("5 €", "7€"), ("€",), [5, 7]),
        (("45%", "7.5%"), ("$", "%"), [45.0, 7.5]),
        (("80 kg", "7 kg"), ("kg",), [80, 7]),
        (("5", "7"), ("$",), [5, 7]),
        # One text is not of the column's unit, or two would become one value.
        (("$5", "7"), ("$",), ["$5", "7"]),
        (("$5", "5 $"), ("$",), ["$5", "5 $"]),
        (("$5", "$5.0"), ("$",), ["$5", "$5.0"]),
        (("$5", "€7"), ("$", "€"), ["$5", "€7"]),
        (("$05", "$7"), ("$",), ["$05", "$7"]),
        (("$$5", "$7"), ("$",), ["$$5", "$7"]),
        (("$5", "$7"), (), ["$5", "$7"]),
    ],
)
def test_units_at_all_numbers_of_a_column_are_no_part_of_them(
    tmp_path: Path, texts: tuple[str, ...], units: tuple[str, ...], values: list[Any]
) -> None:
    found = column(tmp_path, *texts, units=units)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_a_unit_that_is_lacking_late_counts(tmp_path: Path) -> None:
    texts = [*(f"${i}" for i in range(30_000)), "5"]
    assert column(tmp_path, *texts, units=("$",)) == texts


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.one_of(st.integers(-(10**6), 10**6), st.none()), min_size=1, max_size=20),
    st.sampled_from(["$", "€", "%", "kg", "*"]),
    st.booleans(),
)
def test_numbers_with_units_are_the_numbers(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int | None], unit: str, before: bool
) -> None:
    texts = [
        "" if n is None else f"{'-' * (n < 0)}{unit}{abs(n)}" if before else f"{n}{unit}"
        for n in numbers
    ]
    found = column(tmp_path_factory.mktemp("units"), *texts, units=(unit,))
    assert found == numbers


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (("2024-01-31", "2023-12-1"), [date(2024, 1, 31), date(2023, 12, 1)]),
        (
            ("2024-01-31 10:30", "2024-01-31T10:30:05.25"),
            [datetime(2024, 1, 31, 10, 30), datetime(2024, 1, 31, 10, 30, 5, 250_000)],
        ),
        (
            ("2024-01-31 10:30:00Z", "2024-01-31 08:30:00+00:00"),
            [datetime(2024, 1, 31, 10, 30, tzinfo=UTC), datetime(2024, 1, 31, 8, 30, tzinfo=UTC)],
        ),
        (
            ("2024-01-31 10:30:00+01:00", "2024-07-31 10:30:00+02:00"),
            [datetime(2024, 1, 31, 10, 30), datetime(2024, 7, 31, 10, 30)],
        ),
        (("10:30", "23:59:58.5"), [time(10, 30), time(23, 59, 58, 500_000)]),
        (("10:30", "2024-01-31"), ["10:30", "2024-01-31"]),
    ],
)
def test_dates_and_times_of_iso_8601_are_those(
    tmp_path: Path, texts: tuple[str, ...], values: list[Any]
) -> None:
    assert column(tmp_path, *texts) == values


def test_a_spelling_that_comes_late_counts(tmp_path: Path) -> None:
    many = 30_000  # more than the first rows
    found = column(tmp_path, *["1"] * many, "1.0")
    assert set(found) == {"1", "1.0"}
    found = column(tmp_path, *["1"] * many, "2.5")
    assert set(found) == {1.0, 2.5}
    found = column(tmp_path, *[""] * many, "2024-01-31")
    assert str(found[-1]) == "2024-01-31"


def test_columns_are_read_as_the_user_says(tmp_path: Path) -> None:
    assert column(tmp_path, "1", "1.0", numbers=("x",)) == [1.0, 1.0]
    assert column(tmp_path, "1", "2", text=("x",)) == ["1", "2"]
    assert column(tmp_path, "1", "NA", '"NA"', null=("NA",)) == ["1", None, "NA"]
    assert column(tmp_path, "1", "?", null=("?",)) == [1, None]
    with pytest.raises(DataError, match="No column 'y'"):
        column(tmp_path, "1", text=("y",))


def test_what_was_decided_is_told(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a;x\n1;1.0\n2;1\n")
    source = open_table(file)
    assert source.dialect is not None
    assert source.dialect.delimiter == ";"
    assert len(source.notes) == 1
    assert "x: numbers in several spellings" in source.notes[0]
    file.write_text("a;x;y\n1;1.0;2\n2;1;2.0\n")
    [note] = open_table(file).notes
    assert note.startswith("x and y: numbers in several spellings")


@pytest.mark.parametrize(
    ("texts", "said", "expected"),
    [
        (("31/01/2024", "01/02/2024"), {}, ["2024-01-31", "2024-02-01"]),
        (("01/31/2024", "02/01/2024"), {}, ["2024-01-31", "2024-02-01"]),
        (("31.01.2024", "01.02.2024"), {}, ["2024-01-31", "2024-02-01"]),
        (("01.02.2024",), {}, ["2024-02-01"]),
        (("01/02/2024",), {}, ["01/02/2024"]),
        (("01/02/2024",), {"dates": "day-first"}, ["2024-02-01"]),
        (("01/02/2024",), {"dates": "month-first"}, ["2024-01-02"]),
        (("13/02/2024", "02/13/2024"), {}, ["13/02/2024", "02/13/2024"]),
        (("2024/02/01", "2024/02/28"), {}, ["2024-02-01", "2024-02-28"]),
        (("2024-02-30",), {}, ["2024-02-30"]),
        (
            ("31/01/2024 10:05", "01/02/2024 11:00"),
            {},
            ["2024-01-31 10:05:00", "2024-02-01 11:00:00"],
        ),
    ],
)
def test_dates_of_several_orders(
    tmp_path: Path, texts: tuple[str, ...], said: dict[str, Any], expected: list[str]
) -> None:
    assert [str(value) for value in column(tmp_path, *texts, **said)] == expected


def test_decimal_commas_and_points_between_thousands(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a;x\nr;1.234,50\ns;2,25\nt;12\n")
    said = {"decimal": ",", "thousands": "."}
    assert [row["x"] for row in read(file, **said)] == [1234.5, 2.25, 12.0]
    assert [row["x"] for row in read(file)] == ["1.234,50", "2,25", "12"]
    file.write_text("a;x\nr;1.23,50\ns;2,25\n")
    assert [row["x"] for row in read(file, **said)] == ["1.23,50", "2,25"]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "cp1250"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes("name,n\nZoë,1\nRené,2\n".encode(encoding))
    assert [row["name"] for row in read(file, encoding=encoding)] == ["Zoë", "René"]


def test_a_file_of_another_encoding_says_which(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes("name,n\nAnn,1\nRené,2\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"line 3 is not text in UTF-8 \(byte 0xE9\)") as caught:
        open_table(file)
    assert "--encoding cp1252" in caught.value.hint
    file.write_bytes(b"name,n\n" + b"Ann,1\n" * 300_000 + "René,2\n".encode("cp1252"))
    with pytest.raises(DataError, match="line 300,002 is not text"):
        open_table(file)


def test_utf16_with_its_mark_needs_no_word(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes("name;n\nZoë;1\n".encode("utf-16"))
    assert read(file) == [{"name": "Zoë", "n": 1}]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("names", [("Ann", "Bob"), ("Zoë", "Łukasz"), ("東京", "大阪")])
def test_wide_encodings_without_their_mark_are_read(
    tmp_path: Path, encoding: str, names: tuple[str, str]
) -> None:
    """ASCII in them is UTF-8, too, with NUL between the letters."""
    file = tmp_path / "t.csv"
    file.write_bytes("".join(["name;n\n", *(f"{n};1\n" for n in names)]).encode(encoding))
    assert read(file) == [{"name": name, "n": 1} for name in names]
    dialect = open_table(file).dialect
    assert dialect is not None
    assert dialect.encoding == encoding


def test_a_wide_file_of_more_than_a_sample_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(("a,b\n" + "x,1\n" * 400_000).encode("utf-16-le"))
    assert open_table(file).rows == 400_000


def test_text_with_a_nul_is_not_taken_for_a_wide_encoding(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"name,n\n" + b"Ann,1\n" * 20 + b"B\0b,2\n")
    assert marked_encoding(file.read_bytes()) == "utf-8"


@pytest.mark.parametrize(
    "reading",
    [
        {"encoding": "klingon"},
        {"delimiter": ";;"},
        {"delimiter": '"', "quote": '"'},
        {"decimal": ",", "thousands": ","},
        {"decimal": "'"},
        {"dates": "year-last"},
        {"units": ("5",)},
        {"units": (" ",)},
        {"units": ("-",)},
        {"units": ("kilogrammes",)},
        {"text": ("a",), "numbers": ("a",)},
    ],
)
def test_what_cannot_be_said(reading: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        Reading(**reading)


def test_lines_before_the_header(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("sep=;\na;b\n1;x,y\n")
    assert read(file) == [{"a": 1, "b": "x,y"}]
    file.write_text("\n\na,b\n1,2\n")
    assert read(file) == [{"a": 1, "b": 2}]
    file.write_text("Export of May\n\na,b\n1,2\n3,4\n")
    assert len(read(file)) == 2
    file.write_text("Export of May\n\na,b\n1,2\n")
    assert read(file) == [{"a": 1, "b": 2}]


def test_files_without_header_are_said(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("39,m,50\n40,f,60\n41,m,70\n")
    with pytest.raises(DataError, match="looks like data") as caught:
        open_table(file)
    assert "--no-header" in caught.value.hint
    assert read(file, header=False)[0] == {"c1": 39, "c2": "m", "c3": 50}
    assert list(read(file, header=True)[0]) == ["39", "m", "50"]
    for columns, shown in ((4, "m, a, a, a Give"), (5, r"m, a, a, a, \.\.\. Give")):
        lines = [",".join([sex, *["a"] * (columns - 1)]) for sex in "mfmm"]
        file.write_text("\n".join([*lines, ""]))
        with pytest.raises(DataError, match=f"looks like data, .*: {shown}"):
            open_table(file)
    file.write_text("m,a\nf,a\nm,b\nm,a\n")
    with pytest.raises(DataError, match="looks like data"):
        open_table(file)
    file.write_text("id,2019,2020\n1,5,6\n2,7,8\n")
    assert len(read(file)) == 2
    for names in ("0,1,2", "1,2,3"):
        file.write_text(f"{names}\n7,5,6\n8,7,8\n")
        assert ",".join(read(file)[0]) == names
    file.write_text("2,3,4\n7,5,6\n8,7,8\n")
    with pytest.raises(DataError, match="looks like data"):
        open_table(file)


def test_a_file_that_was_read_is_stored_once(tmp_path: Path) -> None:
    def stored() -> set[str]:
        listed = embedded().con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return {name for (name,) in listed}

    file = tmp_path / "t.csv"
    file.write_text("a\n1\n2\n")
    before = stored()
    source = open_table(file)
    assert stored() - before == {source.table.get_name()}


def test_a_column_without_a_name(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(",a\nx,1\ny,2\n")
    source = open_table(file)
    assert source.columns == ("column1", "a")
    assert "column 1 has no name" in source.notes[0]


@pytest.mark.parametrize(
    "name", ["a[1].csv", "a\\b.csv", "a\nb.csv", "a\tb.csv", "a?.csv", "a*.csv", "{a,b}.csv"]
)
def test_names_of_files_are_taken_as_they_are(tmp_path: Path, name: str) -> None:
    (tmp_path / "ab.csv").write_text("a,b\n9,9\n")
    (tmp_path / name).write_text("a,b\n1,2\n")
    assert read(tmp_path / name) == [{"a": 1, "b": 2}]


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from("'\",;\t|\n\r #=+-@\\0123456789.eE")
)
names = st.lists(texts.filter(bool), min_size=2, max_size=4, unique_by=lambda name: name.lower())


@settings(max_examples=12, deadline=None)
@given(data=st.data(), columns=names)
def test_what_is_written_is_read_again(
    data: st.DataObject, columns: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Hostile texts through our own writer and back: no row lost, no text changed or merged."""
    row = st.lists(st.none() | texts, min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    table = pa.table(
        {name: pa.array([r[i] for r in rows], pa.string()) for i, name in enumerate(columns)}
    )
    file = tmp_path_factory.mktemp("round") / "t.csv"
    source = open_table(table)
    write_table(source, source.table, file)
    found = open_table(file, reading=Reading(header=True, delimiter=",", text=tuple(columns)))
    assert found.collect(found.table).to_pylist() == table.to_pylist()
    # Types may be recognised, but no two texts become one value.
    typed = open_table(file, reading=Reading(header=True, delimiter=","))
    assert typed.rows == len(rows)
    for name in columns:
        before = [row[name] for row in table.to_pylist()]
        after = [row[name] for row in typed.collect(typed.table).to_pylist()]
        seen: dict[Any, str] = {}
        for old, new in zip(before, after, strict=True):
            if old is not None and new is not None:
                assert seen.setdefault(repr(new), old.strip(" ")).strip(" ") == old.strip(" ")


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=8),
    chunk=st.integers(1, 9),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_records_are_counted_as_a_reader_counts_them(
    rows: list[list[str]], chunk: int, end: str
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(rows)
    content = text.getvalue().encode()
    whole = count_records(io.BytesIO(content), '"', '"')
    assert (whole.number, whole.empty, whole.open) == (len(rows), 0, False)
    counter = Counter('"', '"')
    for place in range(0, len(content), chunk):
        counter.add(content[place : place + chunk])
    assert counter.result().number == len(rows)
    assert counter.result().longest == whole.longest


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=8),
    chunk=st.integers(1, 9),
)
def test_records_with_escapes(rows: list[list[str]], chunk: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(
        text, quoting=csv.QUOTE_ALL, lineterminator="\n", doublequote=False, escapechar="\\"
    ).writerows(rows)
    content = text.getvalue().encode()
    counter = Counter('"', "\\")
    for place in range(0, len(content), chunk):
        counter.add(content[place : place + chunk])
    assert counter.result().number == len(rows)


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    other=st.sampled_from(["\n", "\r\n"]),
)
def test_files_of_other_writers_are_read_as_they_are(
    rows: list[list[str]], end: str, other: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerows([["a", "b"], *rows])
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=other).writerow(["x", "y"])
    file = tmp_path_factory.mktemp("round") / "t.csv"
    file.write_bytes(text.getvalue().encode())
    said = {"header": True, "delimiter": ",", "text": ("a", "b")}
    assert [[row["a"], row["b"]] for row in read(file, **said)] == [*rows, ["x", "y"]]


def stored() -> int:
    """Return how many tables the engine of this process stores."""
    gc.collect()
    return int(embedded().con.execute("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0])


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "nested.json", "large.json"])
def test_the_rows_of_a_file_go_when_nobody_can_ask_for_them(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"people.{kind}"
    records = [{"age": i, "name": f"p{i}"} for i in range(50)]
    if kind == "large.json":  # whole numbers beyond 64 bits have the document read once more
        records = [record | {"number": 2**70 + record["age"]} for record in records]
    lines = [json.dumps(record) for record in records]
    path.write_text(
        {
            "csv": "age,name\n" + "".join(f"{i},p{i}\n" for i in range(50)),
            "jsonl": "\n".join(lines),
            "nested.json": json.dumps({"made": "today", "rows": records}),
        }.get(kind, f"[{', '.join(lines)}]")
    )
    before = stored()
    gc.freeze()  # what is held by now is not looked through again
    source = open_table(path)
    older = source.table.filter(source.table.age >= 40)
    del source
    assert stored() == before + 1
    assert older.count().to_pyarrow().as_py() == 10
    del older
    assert stored() == before
