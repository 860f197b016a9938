"""Open a path, a glob or an object in memory as a `Source`; read the columns of a Parquet file as
they are stored, with texts as dictionary codes.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from ibis.expr.operations import DatabaseTable

from aegis.errors import DataError, EngineError, PolicyError, ResourceError, is_of_memory
from aegis.files import nearest, temporary_folder
from aegis.sources.database import SCHEMES, open_database
from aegis.sources.delimited.files import read_delimited
from aegis.sources.dialect import Reading
from aegis.sources.embedded import embedded, engine_errors, limits, literal, stored, turn
from aegis.sources.engines import is_of_spark
from aegis.sources.functions import engine_function
from aegis.sources.json_files import read_records, records_within, require_records
from aegis.sources.office_files import (
    STATISTICS,
    WORKBOOKS,
    filled_sheets,
    read_statistics,
    read_workbook,
)
from aegis.sources.source import FILE, ROW_NUMBER, Source, refuse_duplicates
from aegis.sources.spark import connect, open_frame, open_spark
from aegis.sources.sqlite_files import SQLITE, read_sqlite, sqlite_tables

_PARQUET = {".parquet", ".pq"}
_ARROW = {".arrow", ".feather", ".ipc"}
_CSV = {".csv", ".tsv", ".tab", ".txt", ".data"}
_DOCUMENT = ".json"
_JSON = {_DOCUMENT, ".jsonl", ".ndjson"}
_OFFICE = {*WORKBOOKS, *STATISTICS}
_SUFFIXES = _PARQUET | _ARROW | _CSV | _JSON | _OFFICE | SQLITE
_COPIED = "polars"
"""Name of the Ibis backend that lacks operations. Its tables are copied into the embedded engine."""
_FILE_ROW = "file_row_number"
_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00", "-00:00"}
_in_zone = engine_function("timezone", ("string", "timestamp('UTC')"), "timestamp(6)")
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")
FORMATS = "CSV (.csv .tsv .tab .txt .data, also .gz), Parquet (.parquet .pq), Arrow (.arrow .feather .ipc), JSON (.json .jsonl .ndjson), workbooks (.xlsx .xls .xlsb .ods), SQLite (.sqlite .sqlite3 .db), SPSS (.sav .zsav .por), Stata (.dta), SAS (.sas7bdat .xpt)"


def open_table(
    table: Any,
    *,
    name: str | None = None,
    engine: Any = None,
    master: str | None = None,
    reading: Reading | None = None,
) -> Source:
    """Open a table for reading: files, a database, or an object such as a data frame.

    Parameters
    ----------
    table
        A path, a glob or a folder of CSV, Parquet, Arrow/Feather or JSON files; the URL of a
        database (see `aegis.sources.database.open_database`); a pandas or Polars DataFrame, a
        Polars LazyFrame, a PyArrow table, a DuckDB relation, an Ibis table or a Spark DataFrame; or
        a `Source`, which is returned unchanged.
    name
        The table or view of a database (table or schema.table), or the table of an SQLite file.
    engine
        The engine that reads a path: "duckdb", the embedded engine (the default), "spark", a
        SparkSession, or an Ibis backend for Spark. With Spark, `table` may also be a table of its
        catalog.
    master
        Master URL of "spark": local[4], spark://host:7077, yarn, ...
    reading
        The format of text files. Aegis determines everything that is not stated here.

    Raises
    ------
    DataError
        The file is missing, unreadable or of an unknown format; the object is not a table; two
        columns share a name; or the table has no columns.

    Notes
    -----
    A column of a CSV file gets a type that all its values have. It stays text if two different
    texts would become one value, as in codes such as 01234, in 1.0 next to 1, or in integers of
    more than 64 bits. Only true and false, in a single spelling, are Booleans.

    A time with a time zone other than UTC is read as the local time in this zone, without the zone.
    Times of a database and of Spark are read in UTC, because these do not store the zone.
    """
    if isinstance(table, Source):
        return table
    if isinstance(table, os.PathLike):
        table = Path(os.fsdecode(table))
    if is_of_spark(table, "DataFrame"):  # also one of pandas on Spark
        return open_frame(table)
    if engine not in (None, "duckdb"):
        return _open_on_spark(table, name, engine, master)
    if master is not None:
        raise PolicyError(
            f"A master ({master!r}) works only with the engine spark.", hint="Add --engine spark."
        )
    if isinstance(table, str) and table.lower().startswith(SCHEMES):
        return open_database(table, name)
    return _open_here(table, name, reading or Reading())


def _open_here(table: Any, name: str | None, reading: Reading) -> Source:
    """Open a file or an object in the embedded engine."""
    is_path = isinstance(table, str | Path)
    if name is not None and not (is_path and _suffix(Path(table)) in SQLITE):
        raise PolicyError(
            f"You named the table {name!r}, but the source is not a database.",
            hint=f"Give a URL ({', '.join(SCHEMES)}) or a SQLite file, or leave the name out.",
        )
    if is_path:
        source = _open_path(str(table), reading, name)
    elif isinstance(table, ir.Table):
        source = _open_ibis(Source(table, "Ibis table"))
    else:
        source = _copied(*_to_arrow(table))
    _require_columns(source.table.columns, source.origin)
    return source


def _open_ibis(source: Source) -> Source:
    if source.engine.name == _COPIED:
        return _copied(source.collect(source.table), source.origin)
    if source.engine.in_process:
        return _in_local_time(source, source.table.schema().to_pyarrow())
    return source


def _copied(arrow: pa.Table, origin: str) -> Source:
    return _in_local_time(Source(_register(arrow, origin), origin), arrow.schema)


def _in_local_time(source: Source, schema: pa.Schema) -> Source:
    """Return the source with local times, which persons know, in columns whose type names a time
    zone other than UTC. The embedded engine stores a moment without its zone, and computes its day
    in UTC: 00:30 on the first of January in Berlin would fall on the last of December.

    Parameters
    ----------
    source
        A table of the embedded engine.
    schema
        The Arrow types of the columns, which name the zones; the engine's types do not.
    """
    zones = {
        field.name: field.type.tz
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, *_UTC)
    }
    if not zones:
        return source

    def local(table: ir.Table) -> ir.Table:
        return table.mutate(**{name: _local(table[name], zone) for name, zone in zones.items()})

    numbered = None if source.numbered is None else local(source.numbered)
    notes = (f"{n}: times are read as local times of {z}." for n, z in zones.items())
    return replace(
        source, table=local(source.table), numbered=numbered, notes=(*source.notes, *notes)
    )


def _local(column: ir.Column, zone: str) -> ir.Value:
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return _in_zone(zone, column)
    sign, hours, minutes = offset.groups()
    return _in_zone("UTC", column) + ibis.interval(
        minutes=int(f"{sign}1") * (60 * int(hours) + int(minutes))
    )


def _require_columns(names: Sequence[str], origin: str) -> None:
    if not names:
        raise DataError(f"{origin} has no columns.", hint="Give a table with a header.")


def parts_of(file: Path) -> list[str]:
    """Return the names of the tables in an SQLite file, or of the sheets in a workbook that have
    rows; empty for other files.

    Raises
    ------
    EngineError
        The library that reads workbooks is not installed.
    DataError
        The file cannot be read.
    """
    suffix = _suffix(file)
    if suffix in SQLITE:
        return sqlite_tables(file)
    return filled_sheets(file) if suffix in WORKBOOKS else []


def open_part(file: Path, part: str | None) -> Source:
    """Open the sheet or table `part` of a file, as of `parts_of`; None if it has at most one."""
    if part is None or _suffix(file) in SQLITE:
        return open_table(file, name=part)
    return open_table(file, reading=Reading(sheet=part))


def _open_on_spark(table: Any, name: str | None, engine: Any, master: str | None) -> Source:
    if not isinstance(table, str | Path):
        raise PolicyError(
            f"An engine is named, but the table is an object of type {type(table).__qualname__!r}.",
            hint="Give a path or the name of a table, or leave the engine out.",
        )
    if name is not None or str(table).lower().startswith(SCHEMES):
        raise PolicyError(
            f"{'A table ' + repr(name) if name else 'A database'} is named, but the engine is Spark.",
            hint="Give a path that Spark reads, or the name of a table of its catalog, in place "
            "of TABLE.",
        )
    return open_spark(str(table), connect(engine, master))


def _to_arrow(table: Any) -> tuple[pa.Table, str]:
    """Return an in-memory table as Arrow; libraries are recognised without importing them."""
    kinds = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(table).__mro__}
    if isinstance(table, pa.Table):
        return table, "PyArrow table"
    if ("pandas", "DataFrame") in kinds:  # or a subclass, such as a GeoDataFrame
        return _from_pandas(table), "pandas DataFrame"
    kind = type(table).__name__
    origin = f"{_LIBRARIES.get(type(table).__module__.split('.')[0], 'object')} {kind}"
    if ("polars", "LazyFrame") in kinds:
        table = table.collect()
    if not hasattr(table, "__arrow_c_stream__"):
        raise _not_a_table(table)
    try:
        return pa.table(table), "DuckDB relation" if kind == "DuckDBPyRelation" else origin
    except pa.ArrowException as error:  # a single column, or a type that Arrow does not have
        raise _not_a_table(table, f": {error}") from error


_LIBRARIES = {"polars": "Polars", "pyarrow": "PyArrow", "duckdb": "DuckDB", "_duckdb": "DuckDB"}


def _not_a_table(table: Any, reason: str = "") -> DataError:
    return DataError(
        f"Cannot read a table from an object of type {type(table).__qualname__!r}{reason}.",
        hint="Pass a path, a pandas or Polars frame, a PyArrow table, a DuckDB relation or an Ibis table.",
    )


def _from_pandas(frame: Any) -> pa.Table:
    refuse_duplicates([str(name) for name in frame.columns], "pandas DataFrame")
    try:
        return pa.Table.from_pandas(_readable(frame), preserve_index=False)
    except UnicodeEncodeError as error:
        raise DataError(
            f"A text of the pandas DataFrame is not valid Unicode: {error}.",
            hint="Replace such characters: text.encode('utf-8', 'replace').decode().",
        ) from error
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise DataError(
            f"A column of the pandas DataFrame has mixed types or a type that Aegis does not support: "
            f"{', '.join(map(str, error.args)) or error}.",
            hint="Convert it to one type of numbers, texts, dates or Booleans.",
        ) from error


def _readable(frame: Any) -> Any:
    """Return a pandas frame in a form that Arrow can read: intervals and periods as texts, as in a
    CSV file of the frame, and sparse columns as dense ones.

    `pandas.cut` returns intervals. No engine has columns of these types.
    """
    changed = frame.copy(deep=False)
    changed.attrs = {}  # Arrow would store them, and warns if they are not JSON values
    for name, kind in frame.dtypes.items():
        values = kind.categories.dtype if hasattr(kind, "categories") else kind
        if type(values).__name__ in ("IntervalDtype", "PeriodDtype"):
            texts = frame[name].astype(object).map(str, na_action="ignore")
            changed[name] = texts.astype("string")
        elif type(values).__name__ == "SparseDtype":
            changed[name] = frame[name].sparse.to_dense()
    nameless = frame.columns.isna() if frame.columns.nlevels == 1 else [False] * frame.shape[1]
    changed.columns = [
        "" if missing else str(name) for name, missing in zip(frame.columns, nameless, strict=True)
    ]
    return changed


def _engine_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with which the embedded engine reads values of an Arrow type."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, 38), kind.scale)
    return kind


def _register(arrow: pa.Table, origin: str) -> ir.Table:
    """Copy an Arrow table into the embedded engine, which decodes dictionary columns."""
    _require_columns(arrow.column_names, origin)
    refuse_duplicates(arrow.column_names, origin)
    if "" in arrow.column_names:
        raise DataError(
            f"Column number {arrow.column_names.index('') + 1} of the table has no name.",
            hint="Give each column a name.",
        )
    with engine_errors(origin):
        fields = [pa.field(f.name, _engine_type(f.type)) for f in arrow.schema]
        return stored("SELECT * FROM rows", rows=arrow.cast(pa.schema(fields)))


def _open_path(location: str, reading: Reading, name: str | None) -> Source:
    if Path(location).is_fifo():
        return _open_pipe(location, reading)
    files = _files(location)
    suffixes = {_suffix(file) for file in files}
    if len(suffixes) > 1:
        raise DataError(
            f"{location} mixes formats: {', '.join(sorted(suffixes))}.",
            hint="Give files of one format.",
        )
    suffix = suffixes.pop()
    try:
        if suffix in _PARQUET:
            return _open_parquet(location, files)
        if suffix in _ARROW:
            arrow = pa.concat_tables(_of_file(_read_arrow, file) for file in files)
            source = Source(_register(arrow, location), location, files)
            return _in_local_time(source, arrow.schema)
        if suffix in SQLITE:
            _require_one(location, files)
            arrow, notes = read_sqlite(files[0], name)
            return Source(_register(arrow, location), location, files, notes=tuple(notes))
        if suffix in _OFFICE:
            return _open_office(location, files, reading)
        with engine_errors(location):
            if suffix in _JSON:
                return _open_json(location, files)
            return read_delimited(location, files, reading)
    except (EngineError, pa.ArrowException, OSError, EOFError, zlib.error) as error:
        if (
            isinstance(error, ResourceError)
            or is_of_memory(error)
            or isinstance(error.__cause__, ImportError)
        ):
            raise  # which says nothing of the file, or says what to install
        cause = error.__cause__ if isinstance(error, EngineError) else error
        raise _unreadable(location, cause or error) from error


def _open_pipe(location: str, reading: Reading) -> Source:
    """Open text that comes through a pipe; it is copied first, because a pipe can be read only once."""
    with temporary_folder("read", limits().folder.parent) as folder:
        copy = folder / "pipe.csv"
        with Path(location).open("rb") as pipe, copy.open("wb") as target:
            shutil.copyfileobj(pipe, target)
        if copy.stat().st_size == 0:
            raise DataError(f"{location} is empty (0 bytes).", hint="Send a header and rows.")
        with engine_errors(location):
            source = read_delimited(location, (copy,), reading)
    return replace(source, files=())


def _open_json(location: str, files: tuple[Path, ...]) -> Source:
    documents = _suffix(files[0]) == _DOCUMENT
    for file in files if documents else ():
        require_records(file)
    with turn():
        table = read_records(files, location)
        nested = documents and any(kind.is_nested() for kind in table.schema().types)
        if nested and len(files) == 1 and table.count().to_pyarrow().as_py() == 1:
            table = stored(embedded().compile(records_within(table, location)))
    return Source(table, location, files)


def _require_one(location: str, files: tuple[Path, ...]) -> None:
    if len(files) > 1:
        raise DataError(
            f"{location} names {len(files)} files of the format {_suffix(files[0])}.",
            hint="Give one file, or convert them to Parquet or CSV.",
        )


def _open_office(location: str, files: tuple[Path, ...], reading: Reading) -> Source:
    """Open one workbook, or one file of SPSS, SAS or Stata."""
    _require_one(location, files)
    if _suffix(files[0]) in WORKBOOKS:
        arrow, notes = read_workbook(files[0], reading)
    else:
        arrow, notes = read_statistics(files[0], reading), []
    return Source(
        _register(arrow, location), location, files, notes=tuple(notes), reading=reading.or_none()
    )


def _unreadable(location: str, cause: BaseException) -> DataError:
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0].rstrip(".")
    return DataError(
        f"Cannot read {location}: {reason}.",
        hint="Check that the file is complete, is of the format that its name says, and is encoded in UTF-8.",
    )


def _of_file(read: Callable[[Path], Any], file: Path) -> Any:
    """Apply `read` to a file; if that fails, raise an error that names the file."""
    try:
        return read(file)
    except (pa.ArrowException, OSError) as error:
        if is_of_memory(error):
            raise
        raise _unreadable(str(file), error) from error


def _read_arrow(file: Path) -> pa.Table:
    return pa.feather.read_table(str(file), memory_map=True)


def _files(location: str) -> tuple[Path, ...]:
    """Return the existing files for a path, folder or glob, with absolute paths: a program may change
    its folder after it has opened a table.
    """
    path = Path(location).expanduser()
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if _is_part(p, path))
        if not files:
            raise DataError(
                f"Folder {location} holds no files of tables.",
                hint=f"Give a file or a glob. Allowed: {FORMATS}.",
            )
    elif path.is_file():
        files = [path]
    else:
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 - absolute or relative
        files = sorted(Path(match) for match in matches if Path(match).is_file())
    if not files:
        raise DataError(
            f"No such file: {location}.",
            hint=f"{nearest(path)}Check the path; a glob must match at least one file.",
        )
    if not is_table_file(files[0]):
        raise DataError(f"Unknown file format: {location}.", hint=f"Allowed: {FORMATS}.")
    empty = [str(file) for file in files if file.stat().st_size == 0]
    if empty:
        raise DataError(
            f"{empty[0]} is empty (0 bytes).", hint="Give a file with a header and rows."
        )
    return tuple(file.absolute() for file in files)


def _is_part(path: Path, folder: Path) -> bool:
    """Return whether a file in a folder has rows of the table.

    JSON documents next to data files have none, nor have files whose names begin with . or _.
    """
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not hidden and path.is_file() and _suffix(path) in _SUFFIXES - {_DOCUMENT}


def is_table_file(path: Path) -> bool:
    """Return whether a file has the extension of a format that Aegis reads."""
    return _suffix(path) in _SUFFIXES


def _suffix(path: Path) -> str:
    """Return the lower-case extension that names the format; `.gz` is ignored."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _open_parquet(location: str, files: tuple[Path, ...]) -> Source:
    schemas = {file: _of_file(pa.parquet.read_schema, file) for file in files}
    first = schemas[files[0]]
    refuse_duplicates(first.names, location)
    for file, schema in schemas.items():
        if not schema.equals(first, check_metadata=False):
            raise DataError(
                f"{file} and {files[0]} have different columns or types.",
                hint="Files of one glob must share one schema.",
            )
    names = [str(file) for file in files]
    connection = embedded()
    with engine_errors(location), turn():
        table = connection.read_parquet(names, hive_partitioning=True)
        if _FILE_ROW in table.columns:  # the engine would refuse a second one
            return _in_local_time(Source(table, location, files), first)
        numbered = _numbered(names, table.schema())
        return _in_local_time(Source(table, location, files, numbered), first)


def _numbered(names: list[str], schema: ibis.Schema) -> ir.Table:
    """Return the rows of Parquet files with unique row numbers.

    The engine numbers the rows of each file from 0, so the index of the file is added.
    """
    listed = ", ".join(map(literal, names))
    query = (
        f"SELECT * EXCLUDE ({_FILE_ROW}), "
        f"{_FILE_ROW} + CAST(file_index AS BIGINT) * {FILE} AS {ROW_NUMBER} "
        f"FROM read_parquet([{listed}], hive_partitioning = true, file_row_number = true)"
    )
    return embedded().sql(query, schema=ibis.schema({**schema, ROW_NUMBER: "int64"}))


def stored_batches(
    source: Source, names: Sequence[str], *, rows: int
) -> Iterator[pa.RecordBatch] | None:
    """Return the values of some columns in batches, in the order of the rows; None if only the
    engine can read them.

    The engine would return each text separately, which takes five times as long. Here, texts are
    returned as dictionaries, which may have entries that do not occur. Other values are returned
    unchanged.

    Parameters
    ----------
    source
        The table.
    names
        The columns.
    rows
        Largest number of rows of a batch.

    Raises
    ------
    pyarrow.ArrowException, OSError
        A file cannot be read, or a text in it is not UTF-8. The error is raised while batches are
        read.

    Examples
    --------
    >>> from aegis.sources import open_table
    >>> source = open_table("data/adult.parquet")
    >>> first = next(stored_batches(source, ["sex"], rows=5))
    >>> first.column(0).indices.to_pylist(), first.column(0).dictionary.to_pylist()
    ([0, 0, 0, 0, 1], ['Male', 'Female'])
    """
    is_whole_table = isinstance(source.table.op(), DatabaseTable) and source.backend is embedded()
    # The engine takes a part `column=value` of a path for a column.
    if not (source.is_parquet and is_whole_table) or any("=" in str(file) for file in source.files):
        return None
    schema = pyarrow.parquet.read_schema(source.files[0])
    promised = source.table.schema().to_pyarrow()
    if any(n not in schema.names or schema.field(n).type != promised.field(n).type for n in names):
        return None
    return _batches(source, names, schema, rows)


def _batches(
    source: Source, names: Sequence[str], schema: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    texts = [name for name in names if pa.types.is_string(schema.field(name).type)]
    for path in source.files:
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(rows, columns=list(names)):
                for name in texts:
                    batch.column(name).dictionary.validate(full=True)
                yield batch.select(list(names))
