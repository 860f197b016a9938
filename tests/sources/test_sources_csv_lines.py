"""A CSV file whose lines differ in length is refused by the line, wherever that stands."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from aegis.errors import DataError
from aegis.sources import open_table
from aegis.sources.delimited.files import count_lines
from aegis.sources.dialect import TextDialect

ROWS = [f"{i % 5},{'pq'[i % 2]}" for i in range(60)]


@pytest.mark.parametrize("place", [0, 30, 60])
@pytest.mark.parametrize(("odd", "fields"), [("3,q,r", "3 fields"), ("3", "1 field,")])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_the_odd_line_is_named(
    tmp_path: Path, place: int, odd: str, fields: str, suffix: str
) -> None:
    file = tmp_path / f"t{suffix}"
    text = "\n".join(["a,y", *ROWS[:place], odd, *ROWS[place:], ""]).encode()
    file.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    with pytest.raises(DataError, match=f"Line {place + 2} of .* has {fields}.* has 2") as caught:
        open_table(file)
    assert "double quotes" in caught.value.hint


@pytest.mark.parametrize("quote", ['"', ""])
@pytest.mark.parametrize("rows", [2, 3, 60, 40_000])
def test_the_numbers_of_rows_as_r_writes_them_are_a_column(
    tmp_path: Path, rows: int, quote: str
) -> None:
    lines = [f"{quote}{i + 1}{quote},{ROWS[i % 60]}" for i in range(rows)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["a,y", *lines, ""]))
    source = open_table(file)
    assert source.table.columns == ("column1", "a", "y")
    assert source.collect(source.table).num_rows == rows
    first = source.collect(source.table.order_by("column1").limit(1)).to_pylist()
    assert first == [{"column1": 1, "a": 0, "y": "p"}]
    assert "column 1 has no name" in source.notes[0]


@pytest.mark.parametrize(
    "lines",
    [
        ["id,y", "1,0,p", "2,1,q", "3,2,p"],  # the last column lacks a name
        ["a,y", "1,0,p", "3,1,q"],
        ["a,y", "1,0,p"],  # one line says too little
        ["a,y", "Mazda,0,p", "Honda,1,q"],
        ["a,y", "1,0,p", "2,1,q", "3,1"],
    ],
)
def test_columns_are_not_named_by_guessing(tmp_path: Path, lines: list[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("\n".join([*lines, ""]))
    with pytest.raises(DataError, match="has 3 fields"):
        open_table(file)


def test_a_comma_at_the_end_of_each_line_moves_no_name(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,y\n1,p,\n2,q,\n")
    source = open_table(file)
    assert source.collect(source.table).to_pylist() == [{"a": 1, "y": "p"}, {"a": 2, "y": "q"}]


def test_even_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,y\n1,"x, y"\n\n2,"two\nlines"\n')
    assert open_table(file).table.columns == ("a", "y")
    file.write_text("# exported\n\na,y\n" + "\n".join(ROWS))
    assert set(open_table(file).table.columns) == {"a", "y"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_of_many_lines_and_with_separators_are_skipped(tmp_path: Path, end: str) -> None:
    file = tmp_path / "t.csv"
    comments = ["# Sources: A, B; C, D", "#", "", *(f"# line {i}" for i in range(300))]
    file.write_text(end.join([*comments, "a,y", "1,p", "2,q", ""]), newline="")
    source = open_table(file)
    assert source.collect(source.table).to_pylist() == [{"a": 1, "y": "p"}, {"a": 2, "y": "q"}]


def test_a_hash_mark_may_begin_a_name_or_a_value(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("#tag,n\n#a,1\n#b,2\nc,3\n")
    source = open_table(file)
    assert source.collect(source.table).column("#tag").to_pylist() == ["#a", "#b", "c"]


def test_quoted_separators_and_line_breaks_are_one_field() -> None:
    lines = ['a,"b, c"\n', '1,"x\n', ' y"\n', "\n", "2,z\n"]
    assert count_lines(lines, "t.csv", TextDialect(), 2) == 3
    titled = ["a title, with, commas\n", "\n", *lines]
    assert count_lines(titled, "t.csv", TextDialect(skip=2), 2) == 3
    assert count_lines(titled[:1] + lines, "t.csv", TextDialect(skip=1), 2) == 3
    with pytest.raises(DataError, match=r"Line 3 of t.csv has 1 field, but its first line has 2"):
        count_lines(["a;b\n", "1;2\n", "3,4\n"], "t.csv", TextDialect(";"), 2)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a,b\n1,2,3\n", "Line 2 of t.csv has 3 fields", "row.names=FALSE"),
        ('a,b\n1,"2\n3,4\n', "the record of line 2 of t.csv is never closed", "--quote none"),
        ('a,b\n\n1,"2"x\n', "Line 3 of t.csv has text behind the quote", "Double a quote"),
        ("a,b\n1,2\r3\n", "Line 2 of t.csv cannot be read", "Check the line"),
    ],
)
def test_a_line_that_is_not_explained_is_named(text: str, message: str, hint: str) -> None:
    lines = [f"{line}\n" for line in text.split("\n")[:-1]]
    with pytest.raises(DataError, match=message) as caught:
        count_lines(lines, "t.csv", TextDialect(), 2)
    assert hint in caught.value.hint
