"""Read workbooks and files of SPSS, SAS and Stata through the libraries for them.

The library for workbooks reads cells that contain an error such as #N/A as empty, so this module
finds them.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa

from aegis.errors import DataError, EngineError
from aegis.sources.delimited.files import refuse_rows_as_names, with_names
from aegis.sources.dialect import Reading
from aegis.words import counted

_CELL = re.compile(rb"<(?:\w+:)?c\s([^>]*)(?<!/)>(.*?)</(?:\w+:)?c>", re.DOTALL)
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]*)<")
_TAG = {
    name: re.compile(rf"<(?:\w+:)?{name}\s[^>]*>".encode()) for name in ("sheet", "Relationship")
}
_FILLED_CELL = re.compile(
    rb"""<(?:\w+:)?c\s[^>]{0,500}?\br\s*=\s*["']([A-Za-z]{1,7})(\d{1,20})["'][^>]{0,500}(?<!/)>"""
)
"""A cell of a sheet that is not empty, with its column and row."""
_BINARY_ROW, _BINARY_CELLS, _BINARY_END = 0, range(2, 12), 146
"""Types of records in a sheet of an .xlsb file: a row, cells that are not empty, and the end."""
_CHUNK = 1 << 22
"""Number of bytes of a sheet that are examined at once."""
_LONGEST_TAG = 1 << 12
_LARGE, _MOST_TIMES = 100 << 20, 100
"""A part of a workbook may have so many bytes, or be so many times as large as in the file."""
_MOST_CELLS = 100_000_000
"""Largest number of cells between the first and the last one of a sheet; the library has this limit
for .ods files.
"""
_NAMED = 3
"""Largest number of cells that a note lists."""


def error_notes(file: Path, sheet: str) -> list[str]:
    """Return messages on cells with an error such as #N/A; other formats than .xlsx show them as
    empty.
    """
    if not zipfile.is_zipfile(file):
        return []
    with zipfile.ZipFile(file) as archive:
        part = _part(archive, sheet)
        cells = [] if part is None else list(_errors(archive.read(part)))
    if not cells:
        return []
    more = f" and {len(cells) - _NAMED:,} more" if len(cells) > _NAMED else ""
    verb = counted(len(cells), "cell of the sheet holds", "cells of the sheet hold")
    read = "is" if len(cells) == 1 else "are"
    return [f"{verb} an error and {read} read as null: {', '.join(cells[:_NAMED])}{more}."]


def _part(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """Return the file inside the workbook that stores a sheet; None if it cannot be determined."""
    names = set(archive.namelist())
    book, links = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if not {book, links} <= names:
        return None
    listed = [_attributes(tag) for tag in _TAG["sheet"].findall(archive.read(book))]
    link = next((entry.get("id") for entry in listed if entry.get("name") == sheet), None)
    targets = [_attributes(tag) for tag in _TAG["Relationship"].findall(archive.read(links))]
    target = next((entry.get("Target", "") for entry in targets if entry.get("Id") == link), "")
    part = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
    return part if part in names else None


def _attributes(tag: bytes) -> dict[str, str]:
    """Return the attributes of an XML tag, by their names without a namespace prefix."""
    pairs = re.findall(
        r"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", tag.decode("utf-8", "replace")
    )
    return {name.rpartition(":")[2]: unescape(double or single) for name, double, single in pairs}


def _errors(content: bytes) -> Iterator[str]:
    """Yield a text such as "#N/A in B3" for each error in the XML of a sheet."""
    if b't="e"' not in content and b"t='e'" not in content:  # most sheets: no cell is looked at
        return
    for match in _CELL.finditer(content):
        attributes = _attributes(match[1])
        value = _VALUE.search(match[2])
        if attributes.get("t") == "e":
            text = "an error" if value is None else unescape(value[1].decode("utf-8", "replace"))
            yield f"{text} in {attributes['r']}" if "r" in attributes else text


WORKBOOKS = frozenset({".xlsx", ".xls", ".xlsb", ".ods"})
STATISTICS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""The formats of SPSS, Stata and SAS, and the functions that read them."""
_EXACT = 1 << 53
"""Whole numbers below this are exact as doubles."""


def read_workbook(file: Path, reading: Reading) -> tuple[pa.Table, list[str]]:
    """Read the rows of a sheet in a workbook. Also return messages to the user about how they were
    read.

    Raises
    ------
    EngineError
        The library is not installed.
    DataError
        The file is not a workbook, it has several sheets with rows and the user names none, or the
        first row looks like data.
    """
    sheets = _sheets(file)
    name = _sheet(file, sheets, reading)
    rows = [row for row in sheets[name] if any(cell != "" for cell in row)]
    table, notes = _from_rows(str(file), rows, reading)
    return table, [*notes, *error_notes(file, name)]


def filled_sheets(file: Path) -> list[str]:
    """Return the sheets of a workbook that have rows; raises as `read_workbook` does."""
    return [name for name, rows in _sheets(file).items() if rows]


def _sheets(file: Path) -> dict[str, list[list[Any]]]:
    try:
        import python_calamine as calamine
    except ImportError as error:
        raise _missing(file, "excel", error) from error
    try:
        _require_bounds(file)
        book = calamine.load_workbook(str(file))
        return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    except BaseException as error:
        # The library stops at some values, such as a date in the year 1e300, with a `PanicException`.
        expected = isinstance(error, (calamine.CalamineError, *_OF_ZIP))
        if not expected and type(error).__name__ != "PanicException":
            raise
        raise DataError(
            f"Cannot read {file}: {str(error).rstrip('.')}.",
            hint="Check that it is a workbook, complete and without a password.",
        ) from error


_OF_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""Exceptions of `zipfile` for an archive that is damaged or encrypted."""


def _require_bounds(file: Path) -> None:
    """Raise `DataError` if a workbook would fill the memory: if a part of it is much larger than it
    is in the file, or if the cells of a sheet lie far apart.

    The library stores all cells between the first and the last one of a sheet. If there is no
    memory for them, the whole process ends.
    """
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        for part in archive.infolist():
            if part.file_size > max(_LARGE, _MOST_TIMES * part.compress_size):
                raise DataError(
                    f"{file} cannot be a usual workbook: {part.filename} has {part.file_size:,} bytes, "
                    f"{part.file_size // max(part.compress_size, 1):,} times as many as are stored.",
                    hint="Save the sheet as CSV, and give that file.",
                )
            if not part.filename.startswith("xl/worksheets/"):
                continue
            with archive.open(part) as stream:
                if part.filename.endswith(".bin"):
                    rows, columns = _binary_extent(stream.read())
                else:
                    rows, columns = _extent(iter(lambda: stream.read(_CHUNK), b""))
            if rows * columns > _MOST_CELLS:
                raise DataError(
                    f"A sheet of {file} ({part.filename}) has cells that lie {rows:,} rows and "
                    f"{columns:,} columns apart.",
                    hint=f"At most {_MOST_CELLS:,} cells can be read. Delete the cells far from the "
                    "table, or save the table as CSV.",
                )


def _extent(chunks: Iterable[bytes]) -> tuple[int, int]:
    """Return how many rows and columns lie between the first and the last filled cell of a sheet."""
    rows: list[int] = []
    columns: list[int] = []
    rest = b""
    for chunk in itertools.chain(chunks, [b"<"]):
        text = rest + chunk
        end = text.rfind(b"<")
        places = _FILLED_CELL.findall(text, 0, max(end, 0))
        rest = text[end : end + _LONGEST_TAG] if end >= 0 else b""
        numbers = [*rows, *{int(row) for _, row in places}]
        rows = [min(numbers), max(numbers)] if numbers else []
        numbers = [*columns, *map(_number, {letters for letters, _ in places})]
        columns = [min(numbers), max(numbers)] if numbers else []
    return (rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1) if rows else (0, 0)


def _binary_extent(content: bytes) -> tuple[int, int]:
    """Return how many rows and columns lie between the first and the last filled cell of a sheet of
    an .xlsb file.

    The `content` is a list of records. Each has its type, its length, and its data. The data of a
    row starts with the row's number, and the data of a cell with the number of its column, in four
    bytes.
    """
    rows, columns, row, at = set(), set(), b"", 0
    with suppress(IndexError):  # the file is cut: the library that reads it says so
        while at < len(content):
            kind, length = content[at], content[at + 1]
            at += 2
            if (kind | length) & 0x80:  # a number of several bytes, which few records have
                kind, at = _binary_number(content, at - 2, 2)
                length, at = _binary_number(content, at, 4)
            if kind in _BINARY_CELLS:
                rows.add(row)
                columns.add(content[at : at + 4])
            elif kind == _BINARY_ROW:
                row = content[at : at + 4]
            elif kind == _BINARY_END:
                break
            at += length
    return _span(rows), _span(columns)


def _binary_number(content: bytes, at: int, most_bytes: int) -> tuple[int, int]:
    """Return the number that starts at the byte `at`, and where the next one starts. The last seven
    bits come first, and the highest bit of a byte says that another byte follows.
    """
    number = 0
    for index in range(most_bytes):
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    return number, at


def _span(numbers: Iterable[bytes]) -> int:
    """Return how many numbers lie between the smallest and the largest one, both included."""
    integers = [int.from_bytes(number, "little") for number in numbers]
    return max(integers) - min(integers) + 1 if integers else 0


def _number(letters: bytes) -> int:
    """Return the number of the column that has these letters: 1 for A, 27 for AA."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def read_statistics(file: Path, reading: Reading) -> pa.Table:
    """Read the rows of an SPSS, SAS or Stata file. Labelled values are read as codes, not as
    labels.

    Raises
    ------
    EngineError
        The library is not installed.
    DataError
        The file does not have the format that its extension states.
    """
    try:
        import pyreadstat
    except ImportError as error:
        raise _missing(file, "statistics", error) from error
    read = getattr(pyreadstat, STATISTICS[file.suffix.lower()])
    options = {} if reading.encoding is None else {"encoding": reading.encoding}
    try:
        columns, _ = read(str(file), output_format="dict", **options)
    except Exception as error:
        of_file = isinstance(error, OSError | ValueError | OverflowError)  # the last: of a day
        if not of_file and "readstat" not in type(error).__module__:
            raise
        raise DataError(
            f"Cannot read {file}: {str(error).rstrip('.')}.",
            hint="Check that it is complete and of the format that its name says; texts of another "
            "encoding need --encoding.",
        ) from error
    arrays = {name: _array(list(values), name in reading.text) for name, values in columns.items()}
    return pa.table({name: array for name, (array, _) in arrays.items()})


def _sheet(file: Path, sheets: Mapping[str, list[list[Any]]], reading: Reading) -> str:
    """Return the name of the sheet to read: the named one, or the only one with rows."""
    filled = [name for name, rows in sheets.items() if rows]
    listed = ", ".join(map(repr, sheets))
    if reading.sheet is not None:
        if reading.sheet not in sheets:
            raise DataError(
                f"{file} has no sheet {reading.sheet!r}.", hint=f"It has the sheets {listed}."
            )
        return reading.sheet
    if len(filled) > 1:
        raise DataError(
            f"{file} has {len(filled)} sheets with rows: {', '.join(map(repr, filled))}.",
            hint=f"Name one: --sheet {max(filled, key=lambda name: len(sheets[name]))!r}.",
        )
    if not filled:
        raise DataError(f"{file} has no rows.", hint="Give a workbook with a header and rows.")
    return filled[0]


def _from_rows(
    name: str, rows: Sequence[Sequence[Any]], reading: Reading
) -> tuple[pa.Table, list[str]]:
    if not rows:
        raise DataError(f"{name} has no rows.", hint="Give a sheet with a header and rows.")
    width = max(map(len, rows))
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    first = [_text(cell) for cell in padded[0]]
    notes: list[str]
    if reading.header is False:
        names, notes, body = [f"c{i}" for i in range(1, width + 1)], [], padded
    else:
        body = padded[1:]
        if reading.header is None:
            refuse_rows_as_names(first, [[_text(cell) for cell in row] for row in body], name)
        names, notes = with_names(first, name)
    arrays = []
    for index, column in enumerate(names):
        cells = [row[index] for row in body]
        null = {"", *reading.null}
        values = [None if isinstance(cell, str) and cell in null else cell for cell in cells]
        array, mixed = _array(values, column in reading.text)
        arrays.append(array)
        if mixed:
            notes.append(f"{column}: cells of several types are read as text.")
        elif _rounded(values):
            notes.append(
                f"{column}: a workbook rounds numbers of more than 15 digits, so different ones may have "
                "become equal. Store them as texts, or give a CSV file."
            )
    return pa.Table.from_arrays(arrays, names=names), notes


def _array(values: list[Any], as_text: bool) -> tuple[pa.Array, bool]:
    """Return a column (of texts if `as_text`), and whether mixed types of values made it text.

    Numbers without fractions become integers; dates mixed with times become times.
    """
    kinds = {type(value) for value in values if value is not None}
    if not as_text:
        if kinds <= {int, float} and kinds:
            return pa.array(_numbers(values)), False
        if kinds <= {dt.date, dt.datetime} and len(kinds) == 2:
            midnight = dt.time()
            values = [dt.datetime.combine(v, midnight) if type(v) is dt.date else v for v in values]
            kinds = {dt.datetime}
        if len(kinds) == 1 and kinds <= {str, bool, dt.date, dt.datetime, dt.time}:
            return pa.array(values), False
    texts = [None if value is None else _text(value) for value in values]
    return pa.array(texts, pa.string()), not as_text and bool(kinds)


def _numbers(values: list[Any]) -> list[Any]:
    """Convert numbers to integers if none has a fraction and doubles can represent them all."""
    present = [value for value in values if value is not None]
    if all(float(value).is_integer() and abs(value) < _EXACT for value in present):
        return [None if value is None else int(value) for value in values]
    return [None if value is None else float(value) for value in values]


def _rounded(values: list[Any]) -> bool:
    """Return whether some numbers are whole and so large that a workbook has rounded them."""
    numbers = (value for value in values if isinstance(value, int | float))
    return any(abs(value) >= _EXACT and float(value).is_integer() for value in numbers)


def _text(value: Any) -> str:
    """Return the text that a spreadsheet shows for a cell."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return str(value)


def _missing(file: Path, extra: str, error: ImportError) -> EngineError:
    return EngineError(
        f"{file} needs a library that is not installed: {error.name}.",
        hint=f"Install it: pip install 'aegis-advisor[{extra}]'.",
    )
