"""Files as people have them: proposed readings, workbooks, files of statistics programs, folders."""

from __future__ import annotations

import datetime as dt
import os
import struct
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pyreadstat
import pytest
import xlsxwriter

import aegis
from aegis.errors import DataError, EngineError
from aegis.policy.suggest import init_policy
from aegis.sources import Reading, office_files, open_proposing, open_table, proposing

GERMAN = "Name;Alter;Gehalt;Note;Ort;y\n" + "".join(
    f"Jörg{i};{20 + i};{1 + i % 3}.{100 + i},50;{'NA' if i % 7 == 0 else i % 5};{'?' if i % 9 == 0 else 'Köln'};{'ja' if i % 2 else 'nein'}\n"
    for i in range(60)
)


def rows(source: Any) -> list[dict[str, Any]]:
    opened = open_table(source)
    return opened.collect(opened.table).to_pylist()


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_wide_files_are_asked_some_columns_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """One query for all made `init` on 2,000 columns take minutes, which no signal ended."""
    file = tmp_path / "personal.csv"
    file.write_bytes(GERMAN.encode("cp1252"))
    whole = open_proposing(file)
    monkeypatch.setattr(proposing, "_AT_ONCE", at_once)
    some = open_proposing(file)
    assert (some.reading, some.notes) == (whole.reading, whole.notes)


def test_init_proposes_how_a_file_is_read_and_advice_repeats_it(tmp_path: Path) -> None:
    file = tmp_path / "personal.csv"
    file.write_bytes(GERMAN.encode("cp1252"))
    source = open_proposing(file)
    assert source.reading == Reading(
        encoding="cp1252", delimiter=";", decimal=",", thousands=".", null=("NA", "?")
    )
    first = rows(source)[0]
    assert first == {
        "Name": "Jörg0",
        "Alter": 20,
        "Gehalt": 1100.5,
        "Note": None,
        "Ort": None,
        "y": "nein",
    }
    assert len(source.notes) >= 2
    proposed = init_policy(file, label="y", path=tmp_path / "p.yaml")
    (tmp_path / "p.yaml").write_text(proposed.yaml)
    policy = aegis.load_policy(tmp_path / "p.yaml")
    assert policy.reading == source.reading
    assert policy == proposed.policy
    study = aegis.Study(file, policy)
    assert study.source is not None
    assert study.source.table.schema()["Gehalt"].is_floating()


def test_plain_files_need_nothing_said(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,x\n2,y\n")
    assert open_proposing(file).reading is None


@pytest.mark.parametrize("absent", ["k. A.", "k.A.", "n.a.", "N.A."])
def test_abbreviations_among_numbers_are_proposed_as_null(absent: str, tmp_path: Path) -> None:
    """German tables write "k. A." (not stated) where a number is missing."""
    file = tmp_path / "weights.csv"
    file.write_text(f"kg;place\n71,5;Bern\n{absent};{absent}\n80,25;Bern\n", encoding="utf-8")
    source = open_proposing(file)
    assert source.reading is not None
    assert source.reading.null == (absent,)
    assert [row["kg"] for row in source.collect(source.table).to_pylist()] == [71.5, None, 80.25]


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"})
    for name, cells in sheets.items():
        sheet = book.add_worksheet(name)
        for place, row in enumerate(cells):
            sheet.write_row(place, 0, row)
    book.close()
    return path


def test_workbooks(tmp_path: Path) -> None:
    cells = [
        ["zip", "age", "wage", "day", "mixed"],
        ["01234", 39, 1.5, dt.date(2024, 1, 31), 1],
        ["99999", None, 2, dt.date(2024, 2, 1), "x"],
    ]
    source = open_table(workbook(tmp_path / "t.xlsx", {"People": cells, "Empty": []}))
    assert rows(source) == [
        {"zip": "01234", "age": 39, "wage": 1.5, "day": dt.date(2024, 1, 31), "mixed": "1"},
        {"zip": "99999", "age": None, "wage": 2.0, "day": dt.date(2024, 2, 1), "mixed": "x"},
    ]
    assert source.notes == ("mixed: cells of several types are read as text.",)
    assert len(source.digest()) == 64


def test_a_workbook_says_that_long_numbers_were_rounded(tmp_path: Path) -> None:
    cells = [["patient", "age"], *[[9_000_000_000_000_000_000 + i, 30 + i] for i in range(4)]]
    source = open_table(workbook(tmp_path / "t.xlsx", {"People": cells}))
    assert len({row["patient"] for row in rows(source)}) == 1
    (note,) = source.notes
    assert note.startswith("patient: a workbook rounds numbers of more than 15 digits")


ERRORS = ("#N/A", "#DIV/0!", "#REF!", "#NUM!", "#NAME?")


def test_a_workbook_without_the_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workbook(tmp_path / "t.xlsx", {"People": [["a"], [1]]})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(EngineError, match="needs a library that is not installed") as caught:
        open_table(file)
    assert caught.value.hint == "Install it: pip install 'aegis-advisor[excel]'."


def test_error_cells_of_a_workbook_are_null_and_named(tmp_path: Path) -> None:
    """Other sheets may have errors, too; a text that looks like an error is a text."""
    book = xlsxwriter.Workbook(str(tmp_path / "t.xlsx"))
    for name in ("Draft", "Data & more"):
        sheet = book.add_worksheet(name)
        sheet.write_row(1, 1, ["a", "b"])
        for place, error in enumerate(ERRORS):
            sheet.write_blank(place + 2, 0, None, book.add_format({"bold": True}))
            sheet.write_formula(place + 2, 1, "=1/0", None, error)
            sheet.write_string(place + 2, 2, error)
        sheet.write_row(9, 1, [1, "x"])
    book.get_worksheet_by_name("Draft").write_formula("A1", "=1/0", None, "#VALUE!")
    book.close()
    source = open_table(tmp_path / "t.xlsx", reading=Reading(sheet="Data & more"))
    assert rows(source) == [*({"a": None, "b": error} for error in ERRORS), {"a": 1, "b": "x"}]
    assert source.notes == (
        "5 cells of the sheet hold an error and are read as null: #N/A in B3, #DIV/0! in B4, "
        "#REF! in B5 and 2 more.",
    )


def test_a_workbook_without_errors_says_nothing_of_them(tmp_path: Path) -> None:
    cells = [["a", "b"], ['t="e"', 1], ["#N/A", 2]]
    source = open_table(workbook(tmp_path / "t.xlsx", {"People": cells}))
    assert source.notes == ()
    assert [row["a"] for row in rows(source)] == ['t="e"', "#N/A"]


def test_a_workbook_of_several_sheets_asks_for_one(tmp_path: Path) -> None:
    file = workbook(tmp_path / "t.xlsx", {"A": [["a"], ["x"]], "B": [["b"], [2]]})
    with pytest.raises(DataError, match="2 sheets with rows: 'A', 'B'") as caught:
        open_table(file)
    assert "--sheet 'A'" in caught.value.hint
    assert rows(open_table(file, reading=Reading(sheet="B"))) == [{"b": 2}]
    with pytest.raises(DataError, match="no sheet 'C'"):
        open_table(file, reading=Reading(sheet="C"))


def test_files_that_are_no_workbooks(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    file.write_bytes(b"PK not really")
    with pytest.raises(DataError, match="Cannot read"):
        open_table(file)
    file = workbook(tmp_path / "rows.xlsx", {"A": [[5, 2], [3, 4]]})
    with pytest.raises(DataError, match="looks like data"):
        open_table(file)


@pytest.mark.parametrize(("row", "column"), [(1_048_575, 16_383), (1_048_575, 700)])
def test_a_cell_far_from_the_table_does_not_fill_the_memory(
    tmp_path: Path, row: int, column: int
) -> None:
    """The process ended: the library asked for 550 GB, one entry for each cell between."""
    file = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        sheet = book.add_worksheet("People")
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_row(1, 0, [1, "x"])
        sheet.write(row, column, "x")
    with pytest.raises(DataError, match=r"1,048,576 rows and .* columns apart") as caught:
        open_table(file)
    assert "Delete the cells far from the table" in caught.value.hint


def record(kind: int, data: bytes = b"") -> bytes:
    """Return a record of a binary workbook: its type, its length, and its data."""
    header = b""
    for number in (kind, len(data)):
        while number > 127:
            header += bytes([number & 127 | 128])
            number >>= 7
        header += bytes([number])
    return header + data


def wide(text: str) -> bytes:
    """Return a text as a binary workbook stores it."""
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def binary_workbook(file: Path, cells: dict[tuple[int, int], str | float | None]) -> Path:
    """Write an .xlsb file with the sheet *People*. None is a cell that has only a format."""
    sheet, at = record(129) + record(148, bytes(16)) + record(145), -1
    for (row, column), value in sorted(cells.items()):
        if row != at:
            sheet, at = sheet + record(0, struct.pack("<I", row) + bytes(13)), row
        place = struct.pack("<II", column, 0)
        if value is None:
            sheet += record(1, place)
        elif isinstance(value, str):
            sheet += record(6, place + wide(value))
        else:
            sheet += record(5, place + struct.pack("<d", value))
    listed = record(156, struct.pack("<II", 0, 1) + wide("rId1") + wide("People"))
    rels = "http://schemas.openxmlformats.org/package/2006/relationships"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.bin", record(143) + listed + record(144) + record(132))
        archive.writestr(
            "xl/_rels/workbook.bin.rels",
            f'<Relationships xmlns="{rels}"><Relationship Id="rId1" Type="{kind}" '
            'Target="worksheets/sheet1.bin"/></Relationships>',
        )
        archive.writestr("xl/worksheets/sheet1.bin", sheet + record(146) + record(130))
    return file


BINARY_CELLS = {(0, 0): "a", (0, 1): "b" * 200, (1, 0): 1.0, (1, 1): "x"}


@pytest.mark.parametrize("far", [None, (1_048_575, 16_383)])
def test_a_binary_workbook_is_read(tmp_path: Path, far: tuple[int, int] | None) -> None:
    cells = BINARY_CELLS if far is None else {**BINARY_CELLS, far: None}
    assert rows(binary_workbook(tmp_path / "t.xlsb", cells)) == [{"a": 1, "b" * 200: "x"}]


def test_a_cell_far_from_the_table_of_a_binary_workbook(tmp_path: Path) -> None:
    """The process ended: the library asked for 550 GB, one entry for each cell between."""
    cells = {**BINARY_CELLS, (1_048_575, 700): "x"}
    with pytest.raises(DataError, match="1,048,576 rows and 701 columns apart") as caught:
        open_table(binary_workbook(tmp_path / "t.xlsb", cells))
    assert "Delete the cells far from the table" in caught.value.hint


def test_the_cells_of_a_cut_sheet_are_measured_as_far_as_it_goes() -> None:
    place = struct.pack("<II", 9, 0)
    whole = record(0, struct.pack("<I", 3) + bytes(13)) + record(5, place + bytes(8))
    whole += record(0, struct.pack("<I", 7) + bytes(13)) + record(2, bytes(12))
    assert office_files._binary_extent(whole) == (5, 10)
    for size in range(len(whole)):
        assert office_files._binary_extent(whole[:size]) <= (5, 10)


def test_a_formatted_cell_far_from_the_table_is_no_matter(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        sheet = book.add_worksheet("People")
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_row(1, 0, [1, "x"])
        sheet.write_blank(1_048_575, 16_383, None, book.add_format({"bold": True}))
    assert rows(open_table(file)) == [{"a": 1, "b": "x"}]


def test_a_part_that_grows_a_thousandfold_is_not_read(tmp_path: Path) -> None:
    file = workbook(tmp_path / "t.xlsx", {"People": [["a"], [1]]})
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/other.xml", b" " * (101 << 20))
    with pytest.raises(DataError, match=r"xl/other.xml has 105,906,176 bytes, 1,0\d\d times"):
        open_table(file)


def test_a_day_that_the_library_panics_at_is_an_error_of_the_data(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(file)) as book:
        sheet = book.add_worksheet("People")
        sheet.write_row(0, 0, ["a", "day"])
        sheet.write_number(1, 1, -1e300, book.add_format({"num_format": "yyyy-mm-dd"}))
    with pytest.raises(DataError, match="out of bounds"):
        open_table(file)


def test_the_cells_of_a_sheet_are_measured_however_it_is_cut() -> None:
    xml = (
        b'<x:sheetData><x:row r="7"><x:c r="AB7" s="1"><v>5</v></x:c><c r=\'C9\' t="s"><v>1</v></c>'
        b'<c r="XFD99999" s="2"/></x:row></x:sheetData>'
    )
    for size in range(1, len(xml) + 1):
        parts = [xml[place : place + size] for place in range(0, len(xml), size)]
        assert office_files._extent(parts) == (3, 26)
    assert office_files._extent([b"no cells", b""]) == (0, 0)


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_files_of_statistics_programs(tmp_path: Path, suffix: str) -> None:
    import pandas as pd

    frame = pd.DataFrame({"age": [39.0, None, 41.0], "town": ["Köln", "x", "y"], "w": [1.5, 2, 3]})
    file = tmp_path / f"t{suffix}"
    write = {
        ".sav": pyreadstat.write_sav,
        ".dta": pyreadstat.write_dta,
        ".xpt": pyreadstat.write_xport,
    }[suffix]
    write(frame, str(file))
    assert rows(open_table(file)) == [
        {"age": 39, "town": "Köln", "w": 1.5},
        {"age": None, "town": "x", "w": 2.0},
        {"age": 41, "town": "y", "w": 3.0},
    ]
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(DataError, match="Cannot read"):
        open_table(file)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_a_day_that_python_does_not_know_is_an_error_of_the_data(
    tmp_path: Path, suffix: str
) -> None:
    """It was called a bug."""
    file = tmp_path / f"t{suffix}"
    days = pd.DataFrame({"a": [1, 2], "day": [1e300, -1e300]})
    write, form = {".sav": ("write_sav", "DATE11"), ".dta": ("write_dta", "%td")}[suffix]
    getattr(pyreadstat, write)(days, str(file), variable_format={"day": form})
    with pytest.raises(DataError, match="Cannot read"):
        open_table(file)


def test_folders_of_several_formats_are_said(tmp_path: Path) -> None:
    import pyarrow as pa

    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("a\nx\n")
    with pytest.raises(DataError, match=r"mixes formats: \.csv, \.parquet"):
        open_table(tmp_path)
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "c.csv").write_text("a\ny\n")
    assert [row["a"] for row in rows(tmp_path)] == ["x", "y"]
    (tmp_path / "c.csv").write_text("b\ny\n")
    with pytest.raises(DataError, match="different columns"):
        open_table(tmp_path)
    (tmp_path / "c.csv").unlink()
    (tmp_path / "README.md").write_text("about")
    assert len(rows(tmp_path)) == 1


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("a,b\n1,x\n2,y\n"))
    writer.start()
    source = open_table(pipe)
    writer.join()
    assert rows(source) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert len(source.digest()) == 64


def test_mixed_decimal_marks_are_said(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(
        "comma;point;both;code\n"
        + "".join(f"{i},5;{i}.25;{i}{',.'[i % 2]}5;E{i}.{i}\n" for i in range(20))
    )
    source = open_proposing(file)
    assert source.reading is not None
    assert source.reading.decimal == ","
    types = {name: str(dtype) for name, dtype in source.table.schema().items()}
    assert types["comma"] != "string"
    assert types["point"] == types["both"] == types["code"] == "string"
    point, both = (
        next(note for note in source.notes if note.startswith(f"{name}:"))
        for name in ("point", "both")
    )
    assert "--decimal . reads it as numbers" in point
    assert "Write them one way" in both
    assert not any(note.startswith(("comma:", "code:")) for note in source.notes)


@pytest.mark.parametrize(
    ("delimiter", "written", "reading"),
    [
        (",", ["914", "1,234.50", "78,914.86"], Reading(thousands=",")),
        (",", ["1,234,567", "12"], Reading(thousands=",")),
        (",", ["$914", "$1,234.50", "$78,914.86"], Reading(thousands=",", units=("$",))),
        (",", ["-€914", "€7"], Reading(units=("€",))),
        (",", ["45%", "n/a", "7.5 %"], Reading(units=("%",), null=("n/a",))),
        (
            ";",
            ["914 €", "1.234,50 €"],
            Reading(delimiter=";", decimal=",", thousands=".", units=("€",)),
        ),
        (",", ["$914", "12"], None),
        (",", ["$914", "£12"], None),
        (",", ["914", "1,234"], None),  # of a German file, where the comma is decimal
        (",", ["78 914,86", "12,5"], None),
        (";", ["78'914.86", "12"], Reading(thousands="'", delimiter=";")),
        (
            ";",
            ["78\u202f914,86", "n/a"],
            Reading(thousands="\u202f", decimal=",", delimiter=";", null=("n/a",)),
        ),
        (";", ["1 234", "12,5", "3.5"], Reading(delimiter=";")),
        (";", ["030 123 456", "030 123 457"], Reading(delimiter=";")),
    ],
)
def test_what_stands_between_thousands_and_at_numbers_is_proposed_where_it_is_certain(
    tmp_path: Path, delimiter: str, written: list[str], reading: Reading | None
) -> None:
    file = tmp_path / "t.csv"
    quoted = [f'"{text}"' if delimiter in text else text for text in written]
    lines = [f"{text}{delimiter}{n}\n" for n, text in enumerate(quoted)]
    file.write_text(f"amount{delimiter}n\n{''.join(lines)}", encoding="utf-8")
    source = open_proposing(file)
    assert source.reading == reading
    is_number = source.table.schema()["amount"].is_numeric()
    known = reading is not None and bool(reading.thousands or reading.units)
    assert is_number == known
