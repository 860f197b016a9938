"""A CSV file whose lines differ in length is refused by the line, wherever that stands."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from aegis.errors import DataError
from aegis.sources import open_table
from aegis.sources.delimited.lines import count_lines
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


def test_even_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,y\n1,"x, y"\n\n2,"two\nlines"\n')
    assert open_table(file).table.columns == ("a", "y")
    file.write_text("# exported\n\na,y\n" + "\n".join(ROWS))
    assert set(open_table(file).table.columns) == {"a", "y"}


def test_quoted_separators_and_line_breaks_are_one_field() -> None:
    lines = ['a,"b, c"\n', '1,"x\n', ' y"\n', "\n", "2,z\n"]
    assert count_lines(lines, "t.csv", TextDialect(), 2) == 3
    with pytest.raises(DataError, match=r"Line 3 of t.csv has 1 field, but its first line has 2"):
        count_lines(["a;b\n", "1;2\n", "3,4\n"], "t.csv", TextDialect(";"), 2)
