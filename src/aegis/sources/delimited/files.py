"""Read text files without changing values, and compare the number of rows with a separate count.

If the two differ, a second reader of CSV, which is slower, names the line that does not match the
dialect.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import ibis.expr.types as ir

from aegis.errors import DataError
from aegis.files import temporary_folder
from aegis.sources.delimited.column_types import (
    OTHER_SPELLING,
    SAMPLE,
    CsvColumn,
    batched,
    types_of,
)
from aegis.sources.dialect import Reading, TextDialect, csv_options, decide, decoded, records_of
from aegis.sources.embedded import embedded, fresh_name, limits, literal, quoted, stored
from aegis.sources.records import count_records, opened, rewrite, text_of, unify_line_ends
from aegis.sources.source import Source
from aegis.words import cut, joined

_COUNTING = frozenset(
    ("id", "no", "no.", "nr", "nr.", "number", "index", "row", "#", "obs", "case")
)
"""Names of columns that number the rows."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def names_of(
    start: bytes, complete: bool, dialect: TextDialect, reading: Reading, name: str
) -> tuple[list[str], list[str]]:
    """Return the names of a text file's columns, and messages to the user about these names.

    `start` is the first bytes of the file, or all of them if `complete`.

    Raises
    ------
    DataError
        The file has no rows at all, or its first line looks like data.
    """
    lines = decoded(start, dialect.encoding, name).splitlines(keepends=True)[dialect.skip :]
    _refuse_json(lines, name)
    records = records_of("".join(lines), dialect)
    if not records:
        raise DataError(f"{name} has no lines.", hint="Give a file with a header and rows.")
    first = records[0]
    if not dialect.header:
        return [f"c{i}" for i in range(1, len(first) + 1)], []
    if _numbers_rows(first, records[1:] if complete else records[1:-1]):
        first = ["", *first]
    # What is cut off, or of another length, is not a sample of the columns.
    rows = [record for record in records[1:] if len(record) == len(first)]
    if reading.header is None:
        refuse_rows_as_names(first, rows if complete else rows[:-1], name)
    return with_names(first, name)


def _refuse_json(lines: Sequence[str], name: str) -> None:
    """Refuse a file of text that holds JSON: an object in its first line, or a list of objects."""
    first = lines[0].strip() if lines else ""
    try:
        is_record = first.startswith("{") and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):  # of lists within lists within lists
        is_record = False
    if is_record or re.match(r"\[\s*\{\s*\"", "".join(lines[:3])):
        ending = ".jsonl" if is_record else ".json"
        raise DataError(
            f"{name} holds JSON, not text with one row per line.",
            hint=f"Give the file a name that ends with {ending}.",
        )


def _numbers_rows(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether each line begins with its row number, for which the header has no name.

    R writes tables in this way (`write.table`). If the first column is named as a counter, or the last
    column is empty, another name is missing.
    """
    filled = [row for row in rows if row]
    return (
        len(filled) > 1
        and first[0].strip().lower() not in _COUNTING
        and all(len(row) == len(first) + 1 for row in filled)
        and any(row[-1] for row in filled)
        and [row[0] for row in filled] == [str(i) for i in range(1, len(filled) + 1)]
    )


def refuse_rows_as_names(first: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> None:
    """Refuse a first line that seems to contain data, and not the names of columns."""
    if _is_row(first, rows):
        texts = ", ".join(first[:4]) + (", ..." if len(first) > 4 else "")
        raise DataError(
            f"The first line of {name} looks like data, not like names of columns: {texts}",
            hint="Give --no-header, and the columns are called c1, c2, ...; or --header, if these "
            "are their names.",
        )


def with_names(header: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Return a unique name for each column of the header, and notes on names that were changed.

    A column without a name gets one from its position. If a name occurs again (ignoring case), a number
    is added: the second `age` becomes `age_2`.
    """
    used = {text.lower() for text in header}
    names, unnamed, again = [], [], []
    first_positions: dict[str, int] = {}
    for position, text in enumerate(header, start=1):
        unique = text
        if not text:
            unique = _free((f"column{position}" + "_" * i for i in count()), used)
            unnamed.append((position, unique))
        elif text.lower() in first_positions:
            unique = _free((f"{text}_{i}" for i in count(2)), used)
            again.append((text, position, first_positions[text.lower()], unique))
        first_positions.setdefault(text.lower(), position)
        used.add(unique.lower())
        names.append(unique)
    notes = (_note_on_unnamed(unnamed, name), _note_on_repeated(again, name))
    return names, [note for note in notes if note]


def _note_on_unnamed(unnamed: Sequence[tuple[int, str]], name: str) -> str:
    """Return one message on columns without a name in the header; empty if there are none."""
    if not unnamed:
        return ""
    if len(unnamed) == 1:
        position, new_name = unnamed[0]
        return f"{name}: column {position} has no name in the header, and is called {new_name}."
    names = joined((new_name for _, new_name in unnamed), 3)
    return f"{name}: {len(unnamed):,} columns have no name in the header, and are called {names}."


def _note_on_repeated(again: Sequence[tuple[str, int, int, str]], name: str) -> str:
    """Return one message on columns named as an earlier one; empty if there are none."""
    if not again:
        return ""
    if len(again) == 1:
        text, position, first, new_name = again[0]
        return f"{name}: column {position} is named {cut(text)!r} as column {first} is, and is called {cut(new_name)}."
    names = joined((cut(new_name) for *_, new_name in again), 3)
    return (
        f"{name}: {len(again):,} columns are named as columns before them, and are called {names}."
    )


def _free(names: Iterable[str], used: Collection[str]) -> str:
    """Return the first of `names` that no column has; `used` are the names of the columns."""
    return next(name for name in names if name.lower() not in used)


def _is_row(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line looks like the rows below it.

    It does if each column of numbers begins with a number. If there are no such columns, each
    column must begin with one of its later values. A line 1, 2, 3, ... numbers the columns, so it is a header.
    """
    if not rows or [text.strip() for text in first] in (
        [str(i) for i in range(len(first))],
        [str(i) for i in range(1, len(first) + 1)],
    ):
        return False
    columns = [[row[i] for row in rows] for i in range(len(first))]
    numeric = [
        text
        for text, values in zip(first, columns, strict=True)
        if any(values) and all(not v or _NUMBER.fullmatch(v.strip()) for v in values)
    ]
    if numeric:
        return all(_NUMBER.fullmatch(text.strip()) for text in numeric)
    return all(text in values for text, values in zip(first, columns, strict=True))


def count_lines(lines: Iterable[str], name: str, dialect: TextDialect, columns: int) -> int:
    """Return how many records a text has, with its header; raise an error at the first malformed one.

    The text, of the file `name`, includes the lines before the table, which the dialect skips. Each
    record has `columns` fields; the header may have one field fewer.

    Raises
    ------
    DataError
        A record has more or fewer fields than the header, a quoted field continues after its
        closing quote, or a quote is never closed.
    """
    options = csv_options(dialect.delimiter, dialect.quote, dialect.escape)
    reader = csv.reader(lines, strict=True, skipinitialspace=bool(dialect.quote), **options)
    records = 0
    begin = 0
    try:
        for fields in reader:
            if begin >= dialect.skip and (fields or columns == 1):
                records += 1
                # R gives the names of rows no name in the header.
                named = records == 1 and dialect.header and len(fields) == columns - 1
                if len(fields) not in (0, columns) and not named:
                    raise _uneven(reader.line_num, name, len(fields), columns, dialect)
            begin = reader.line_num
    except csv.Error as error:
        raise _unexplained(str(error), begin + 1, name, dialect) from error
    return records


def _uneven(line: int, name: str, fields: int, columns: int, dialect: TextDialect) -> DataError:
    rows_named = " Of R, write it with row.names=FALSE." if fields == columns + 1 else ""
    return DataError(
        f"Line {line:,} of {name} has {fields} field{'s' * (fields != 1)}, but its first line has "
        f"{columns}.",
        hint="Each line needs as many fields as the first, which names the columns: delete a title above "
        f"it, and put a field that holds {dialect.delimiter!r} or a line break in double quotes."
        f"{rows_named}",
    )


def _unexplained(reason: str, line: int, name: str, dialect: TextDialect) -> DataError:
    quote = dialect.quote or '"'
    if "unexpected end" in reason:
        return DataError(
            f"The quote {quote} that opens a field in the record of line {line:,} of {name} is "
            "never closed.",
            hint="Close it, or give --quote none if quotes have no special meaning.",
        )
    if "expected after" in reason:
        return DataError(
            f"Line {line:,} of {name} has text behind the quote {quote} that closes a field.",
            hint=f"Double a quote within a quoted field ({quote}{quote}), or say how the file is "
            'written: --quote none, --quote "\'", --escape \\.',
        )
    return DataError(
        f"Line {line:,} of {name} cannot be read: {reason}.", hint="Check the line, or --delimiter."
    )


_START = 1 << 20
"""Number of bytes from which the dialect is determined."""
_FIRST_ROWS = 100
_SAMPLE_CELLS = 4_000_000
"""Largest number of cells in the first rows that determine the possible types."""
_AT_ONCE = 100
"""Number of aggregates in a query; ten times as many if the query reads files."""
_LONGEST = 1 << 21
"""Largest record in bytes that the engine accepts by default."""
_MISLEADING = frozenset("*?[]{}\\\n\r\t")
"""Characters of file names that the engine would interpret."""


@dataclass(frozen=True)
class _CsvPart:
    """One file of a table, in the form that the engine reads: UTF-8, with a single kind of line
    end.

    Attributes
    ----------
    file
        The file that was given.
    path
        The file that the engine reads, which may be a rewritten copy.
    rows
        Number of records without the header.
    longest
        Length of the longest record in bytes.
    line_end
        Line end of the records.
    returns
        Number of further CR characters.
    """

    file: Path
    path: Path
    rows: int
    longest: int
    line_end: str
    returns: int


def read_delimited(location: str, files: tuple[Path, ...], reading: Reading) -> Source:
    """Read the text files of one table, plain or compressed with gzip, into the embedded engine.

    Raises
    ------
    DataError
        A line does not match the dialect and the header, the files have different columns, or the
        number of records that the engine reads differs from the separate count.
    """
    with opened(files[0]) as file:
        start = file.read(_START)
    complete = len(start) < _START
    dialect = decide(start, complete, reading, str(files[0]))
    names, notes = names_of(start, complete, dialect, reading, str(files[0]))
    _require(reading, names, location)
    _check_alike(files, dialect, names)
    with temporary_folder("read", limits().folder.parent) as folder:
        parts = [
            _prepared(file, dialect, folder / str(i), len(names)) for i, file in enumerate(files)
        ]
        try:
            table, columns = _read(parts, names, dialect, reading)
        except (duckdb.InvalidInputException, duckdb.ConversionException):
            _count_lines(parts, dialect, len(names))  # names the line that is wrong
            _refuse_mixed(parts)
            raise
    columns_by_note: dict[str, list[str]] = {}
    for column in columns:
        columns_by_note.setdefault(column.note, []).append(column.name)
    columns_by_note.pop("", None)
    by_context = tuple(column.name for column in columns if column.by_context)
    return Source(
        table,
        location,
        files,
        dialect=dialect,
        notes=(*notes, *(f"{joined(those, 4)}: {note}" for note, those in columns_by_note.items())),
        reading=reading.or_none(),
        by_context=by_context,
    )


def _read(
    parts: Sequence[_CsvPart], names: Sequence[str], dialect: TextDialect, reading: Reading
) -> tuple[ir.Table, list[CsvColumn]]:
    """Return the rows with typed columns, and how each column was read."""
    scan = _scan(parts, names, dialect)
    counted = sum(part.rows for part in parts)
    with _first_rows(scan, len(names), counted) as (sample, rows, limit):
        # Of a short file the first rows are all, and the file is read but once.
        complete = rows == counted and rows < limit
        all_rows = sample if complete else scan

        def ask(aggregates: Sequence[str], first_rows: bool) -> list[Any]:
            if first_rows or complete:
                return answers(aggregates, sample, _AT_ONCE)
            return answers(aggregates, scan, 10 * _AT_ONCE)

        values = _texts(sample, names)
        # Without rows all columns are text: of twenty thousand none need be asked about.
        overrides = {"text": reading.text if rows else names, "numbers": reading.numbers}
        columns = types_of(values, dialect, ask, guarded=True, **overrides)
        if complete:
            columns = [replace(column, guard="") for column in columns]
        try:
            table = _typed(all_rows, columns)
        except duckdb.InvalidInputException as error:
            if OTHER_SPELLING not in str(error):
                raise
            columns = types_of(values, dialect, ask, guarded=False, **overrides)
            table = _typed(all_rows, columns)
    read = _rows(table)
    if read != counted:  # or quotes are within fields that are not quoted
        counted = _count_lines(parts, dialect, len(names))
    if read != counted:
        raise DataError(
            f"{parts[0].file} has {counted:,} records, of which the engine reads {read:,}.",
            hint="Check its quotes and line ends, or give --delimiter and --quote.",
        )
    return table, columns


@contextmanager
def _first_rows(scan: str, columns: int, counted: int) -> Iterator[tuple[str, int, int]]:
    """Yield a temporary table with the first rows of `scan` as texts, its number of rows, and the largest
    that it could have.
    """
    limit = max(_FIRST_ROWS, min(SAMPLE, _SAMPLE_CELLS // columns))
    if counted <= 2 * limit:  # to read half of the rows twice takes longer than to read all once
        limit = 2 * limit + 1
    name = f"memory.main.{quoted(fresh_name())}"
    connection = embedded().con
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} AS SELECT * FROM {scan} LIMIT {limit}")
        try:
            rows = cursor.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            yield name, int(rows), limit
        finally:
            cursor.execute(f"DROP TABLE {name}")


def answers(aggregates: Sequence[str], rows: str, at_once: int) -> list[Any]:
    """Compute SQL aggregates over `rows`, at most `at_once` per query, because the engine compares
    each aggregate of a query with all others.
    """
    computed: list[Any] = []
    with embedded().con.cursor() as cursor:
        for batch in batched(aggregates, at_once):
            answer = cursor.execute(f"SELECT {', '.join(batch)} FROM {rows}").fetchone()
            computed += answer or ()
    return computed


def _texts(sample: str, names: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the texts of the first rows of `sample` by column name."""
    with embedded().con.cursor() as cursor:
        first = cursor.execute(f"SELECT * FROM {sample} LIMIT {_FIRST_ROWS}").fetchall()
    return {name: [row[i] for row in first] for i, name in enumerate(names)}


def _scan(parts: Sequence[_CsvPart], names: Sequence[str], dialect: TextDialect) -> str:
    """Return the SQL that reads the files as texts."""
    longest = max(_LONGEST, *(part.longest + 2 for part in parts))
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    options = {
        "columns": f"{{{columns}}}",
        "auto_detect": "false",
        "strict_mode": "true",
        "header": str(dialect.header).lower(),
        "delim": literal(dialect.delimiter),
        "quote": literal(dialect.quote),
        "escape": literal(dialect.escape),
        "nullstr": f"[{', '.join(map(literal, dialect.null))}]",
        "allow_quoted_nulls": "false",
        "max_line_size": str(longest),
    }
    ends = {part.line_end for part in parts}
    if ends == {"\n"}:  # or the engine takes the first that it sees, within quotes as well
        options["new_line"] = "'\\n'"
    listed = ", ".join(literal(str(part.path)) for part in parts)
    arguments = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"read_csv([{listed}], {arguments})"


def _typed(scan: str, columns: Sequence[CsvColumn]) -> ir.Table:
    """Store the rows that the SQL `scan` reads in a table of the engine, with these types."""
    return stored(f"SELECT {', '.join(column.select() for column in columns)} FROM {scan}")


def _rows(table: ir.Table) -> int:
    """Count the rows of a stored table; `to_pyarrow` of Ibis would import pandas for that."""
    with embedded().con.cursor() as cursor:
        counted = cursor.execute(f"SELECT count(*) FROM memory.main.{quoted(table.get_name())}")
        return int(counted.fetchall()[0][0])


def _prepared(file: Path, dialect: TextDialect, target: Path, columns: int) -> _CsvPart:
    """Return a file as the engine reads it (UTF-8, one kind of line end), copied if needed."""
    path = file
    if dialect.encoding != "utf-8" or dialect.skip:
        path = target.with_suffix(".csv")
        rewrite(file, path, dialect)
    with opened(path) as bytes_read:
        records = count_records(bytes_read, dialect.quote, dialect.escape)
    if records.mixed:
        unified = target.with_suffix(".lf.csv")
        unify_line_ends(path, unified, dialect)
        path = unified
    elif path is file and not _MISLEADING.isdisjoint(str(file)):
        path = target.with_suffix(".csv.gz" if file.suffix.lower() == ".gz" else ".csv")
        path.symlink_to(file.resolve())
    # An empty line of a single column is a row whose value is null.
    rows = records.number + (records.empty if columns == 1 else 0) - dialect.header
    line_end = "\n" if records.mixed else records.line_end
    returns = 0 if records.old else records.returns
    return _CsvPart(file, path, rows, records.longest, line_end, returns)


def _refuse_mixed(parts: Sequence[_CsvPart]) -> None:
    """Raise an error if a file has lines that end in CR alone next to other line ends."""
    for part in parts:
        if part.returns:
            raise DataError(
                f"{part.file} ends lines in more than one way: in CR alone as well as in LF or CR LF.",
                hint="Save it with line ends of one kind, or put fields that hold them in quotes.",
            )


def _count_lines(parts: Sequence[_CsvPart], dialect: TextDialect, columns: int) -> int:
    """Count the rows with Python's own CSV reader; raise an error for a line that it cannot read."""
    rows = 0
    for part in parts:
        with text_of(part.file, dialect) as text:
            rows += count_lines(text, str(part.file), dialect, columns) - dialect.header
    return rows


def _check_alike(files: Sequence[Path], dialect: TextDialect, names: Sequence[str]) -> None:
    """Raise an error if a file has other columns than the first file."""
    for file in files[1:] if dialect.header else ():
        with opened(file) as bytes_read:
            start = bytes_read.read(_START)
        other, _ = names_of(start, len(start) < _START, dialect, Reading(header=True), str(file))
        if other != names:
            raise DataError(
                f"{file} and {files[0]} have different columns.",
                hint="Files of one table must share one header.",
            )


def _require(reading: Reading, names: Sequence[str], location: str) -> None:
    for name in (*reading.text, *reading.numbers):
        if name not in names:
            raise DataError.unknown_column(name, names, where=f"{location}, to be read as it says")
