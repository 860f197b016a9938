"""Write a query's result as a file: Parquet, CSV, Arrow or a workbook."""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet

from aegis.errors import AegisError, EngineError
from aegis.files import format_of, temporary_folder
from aegis.sources.dialect import Reading
from aegis.sources.embedded import (
    embedded,
    engine_errors,
    fresh_name,
    is_locked,
    literal,
    quoted,
    turn,
)
from aegis.sources.source import Source

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""If a text in a CSV file begins with one of these characters and has more, spreadsheets consider
it a formula.
"""
_MOST_ROWS = 1_048_576
"""Largest number of rows of a sheet, including the header."""
_EXACT = 1 << 53


def write_table(source: Source, table: ir.Table, path: Path) -> None:
    """Write the result of a query to the file `path`.

    Parameters
    ----------
    source
        A table of the engine that runs the query.
    table
        The query.
    path
        The file. Its extension is one of `aegis.files.TABLE_FORMATS`.

    Raises
    ------
    EngineError
        The engine failed while it computed or wrote the rows, or a library is missing.
    """
    kind = format_of(path)
    with engine_errors(source.origin, source.files):
        if kind == ".xlsx":
            _write_workbook(source, table, path)
        elif kind in (".arrow", ".feather"):
            _write_arrow(source, table, path)
        elif kind in (".csv", ".tsv"):
            _copy(source, table, path, _csv_options(kind))
        elif kind in (".csv.gz", ".tsv.gz"):
            _copy(source, table, path, f"{_csv_options(kind)}, COMPRESSION gzip")
        else:
            _copy(source, table, path, "FORMAT parquet, COMPRESSION zstd")


def write_parquet(
    source: Source, types: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path
) -> None:
    """Write batches of rows, each as a row group, to a Parquet file with these `types`.

    Texts may come as dictionaries; readers get texts. The file does not state the smallest and the
    largest text, because to find them would take a third of the time. `source` is for messages.
    """
    text = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        field.with_type(text) if pa.types.is_string(field.type) else field for field in types
    )
    not_text = [field.name for field in schema if field.type != text]
    with (
        engine_errors(source.origin, source.files),
        pyarrow.parquet.ParquetWriter(
            path, schema, compression="zstd", store_schema=False, write_statistics=not_text or False
        ) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def reading_of(table: ir.Table, path: Path) -> Reading:
    """Return the options with which texts that `write_table` wrote are read as texts again."""
    types = table.schema().items()
    return Reading(
        header=True,
        delimiter="\t" if format_of(path).startswith(".tsv") else ",",
        text=tuple(name for name, dtype in types if dtype.is_string()),
        numbers=tuple(name for name, dtype in types if dtype.is_floating()),
    )


def with_settled_floats(table: ir.Table) -> ir.Table:
    """Return the table with 0.0 for -0.0 and one NaN: engines treat them as equal, but their texts
    differ.
    """
    settled = {}
    for name, dtype in table.schema().items():
        if dtype.is_floating():
            column, zero, nan = table[name], ibis.literal(0.0), ibis.literal(float("nan"))
            settled[name] = ibis.cases(
                (column == 0, zero.cast(dtype)), (column.isnan(), nan.cast(dtype)), else_=column
            )
    return table.mutate(settled) if settled else table


def without_formulas(table: ir.Table) -> ir.Table:
    """Return the table without texts that a spreadsheet would interpret as formulas.

    These, and texts with an apostrophe, get an apostrophe in front, so that different texts stay
    different.
    """
    cleaned = {}
    for name, dtype in table.schema().items():
        if dtype.is_string():
            column = table[name]
            doubtful = _is_formula(column) | column.startswith("'")
            cleaned[name] = ibis.ifelse(doubtful, ibis.literal("'") + column, column)
    return table.mutate(cleaned) if cleaned else table


def _is_formula(column: ir.Column) -> ir.Column:
    """Return whether texts begin like a formula; a lone sign, which may mean "none", does not
    count.
    """
    return column.substr(0, 1).isin(FORMULA) & (column.length() > 1)


def formulas_in(output: Source) -> list[str]:
    """Return the columns with a name or text that a spreadsheet would take for a formula."""
    table = output.table
    texts = [name for name, dtype in table.schema().items() if dtype.is_string()]
    named = [name for name in table.columns if name.startswith(FORMULA) and len(name) > 1]
    if texts:
        aggregates = {str(i): _is_formula(table[name]).any() for i, name in enumerate(texts)}
        row = output.collect(table.aggregate(**aggregates)).to_pylist()[0]
        named += [name for i, name in enumerate(texts) if row[str(i)]]
    return list(dict.fromkeys(named))


def _csv_options(kind: str) -> str:
    delimiter = "\t" if kind.startswith(".tsv") else ","
    # Quoted where a reader could take it for something else: DuckDB sees to quotes and line ends.
    return f"FORMAT csv, HEADER, DELIMITER {literal(delimiter)}, QUOTE '\"', ESCAPE '\"'"


def _copy(source: Source, table: ir.Table, path: Path, options: str) -> None:
    """Write the result of a query with DuckDB's COPY, from its connection or a stream of rows."""
    target = literal(str(path))
    in_process = source.engine.in_process
    if in_process and (source.backend is embedded() or not is_locked(source.backend)):
        with turn():
            source.backend._run_pre_execute_hooks(table)
            query = source.backend.compile(table)
            source.backend.con.execute(f"COPY ({query}) TO {target} ({options})")
        return
    schema = table.schema().to_pyarrow()
    failures: list[AegisError] = []
    stream = pa.RecordBatchReader.from_batches(
        schema, _noting_failures(source.batches(table), failures)
    )
    name = fresh_name()
    with embedded().con.cursor() as cursor:
        cursor.register(name, stream)
        try:
            cursor.execute(f"COPY (SELECT * FROM {quoted(name)}) TO {target} ({options})")
        except duckdb.Error as error:
            if failures:  # what the embedded engine says of it is only that its input failed
                raise failures[0] from error
            raise


def _noting_failures(
    batches: Iterator[pa.RecordBatch], failures: list[AegisError]
) -> Iterator[pa.RecordBatch]:
    """Yield batches; add the error that ends them to `failures`: engines pass on only its text."""
    try:
        yield from batches
    except AegisError as error:
        failures.append(error)
        raise


def _write_arrow(source: Source, table: ir.Table, path: Path) -> None:
    schema = table.schema().to_pyarrow()
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in source.batches(table):
                writer.write_batch(batch.cast(schema))
    except pa.ArrowException as error:
        raise EngineError(f"Cannot write {path}: {error}") from error


def _write_workbook(source: Source, table: ir.Table, path: Path) -> None:
    """Write a sheet in which texts stay texts; integers too large for doubles become texts."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise EngineError(
            f"{path.name} needs a library that is not installed: {error.name}.",
            hint="Install it: pip install 'aegis-advisor[excel]'.",
        ) from error
    # The library leaves its own temporary files where it fails.
    with (
        temporary_folder("write") as folder,
        _FailingOnce(path) as sink,
    ):
        book = xlsxwriter.Workbook(sink, {"constant_memory": True, "tmpdir": str(folder)})
        book.use_zip64()
        _fill_sheet(source, table, book)
        try:
            book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise error.args[0] from error  # an `OSError`, which callers know


class _FailingOnce:
    """A file that reports only once that it cannot be written, because archives retry when closed."""

    def __init__(self, path: Path) -> None:
        self._file: io.IOBase | None = path.open("wb")
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __getattr__(self, name: str) -> Any:
        # Nothing becomes of what is written after a failure; sizes computed from `tell` stay positive.
        if self._file is None:
            return lambda *_: self._end
        return partial(self._tried, name)

    def _tried(self, name: str, *arguments: Any) -> Any:
        try:
            result = getattr(self._file, name)(*arguments)
            self._end = max(self._end, result) if name == "tell" else self._end
            return result
        except OSError:
            with suppress(OSError):
                self.__exit__()
            raise


def _fill_sheet(source: Source, table: ir.Table, book: Any) -> None:
    sheet = book.add_worksheet("release")
    for column, name in enumerate(table.columns):
        sheet.write_string(0, column, name)
    writers = _cell_writers(book, sheet)
    for row, values in enumerate(_rows(source, table), start=1):
        if row == _MOST_ROWS:
            raise EngineError(
                f"The table has more rows than a sheet can hold ({_MOST_ROWS - 1:,}).",
                hint="Write Parquet or CSV.",
            )
        for column, value in enumerate(values):
            if value is not None:
                writers[type(value)](row, column, value)


def _rows(source: Source, table: ir.Table) -> Iterator[tuple[Any, ...]]:
    for batch in source.batches(table):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class _ByType(dict[type, Callable[[int, int, Any], Any]]):
    """Writers of cells by the type of the value; all other types are written as text."""

    def __missing__(self, kind: type) -> Callable[[int, int, Any], Any]:
        text = self[str]
        return lambda row, column, value: text(row, column, str(value))


def _cell_writers(book: Any, sheet: Any) -> _ByType:
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})

    def number(row: int, column: int, value: float) -> None:
        if math.isfinite(value):
            sheet.write_number(row, column, value)
        else:
            sheet.write_string(row, column, str(value))

    def integer(row: int, column: int, value: int) -> None:
        # A cell holds a double, which would round a larger integer.
        write = sheet.write_number if abs(value) < _EXACT else sheet.write_string
        write(row, column, value if abs(value) < _EXACT else str(value))

    def time(row: int, column: int, value: dt.datetime) -> None:
        sheet.write_datetime(row, column, value.replace(tzinfo=None), moment)

    return _ByType(
        {
            str: sheet.write_string,
            bool: sheet.write_boolean,
            int: integer,
            float: number,
            dt.date: lambda row, column, value: sheet.write_datetime(row, column, value, day),
            dt.datetime: time,
        }
    )
