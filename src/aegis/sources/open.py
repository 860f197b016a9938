"""Open a path, a glob or an object in memory as a `Source`."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from aegis.errors import DataError, EngineError, PolicyError
from aegis.sources.csv_lines import refuse_uneven
from aegis.sources.database import SCHEMES, open_database
from aegis.sources.embedded import embedded
from aegis.sources.failures import engine_errors
from aegis.sources.names import refuse_duplicates
from aegis.sources.source import ROW_NUMBER, Source
from aegis.sources.spark_session import connect, is_frame, open_frame, open_spark

_PARQUET = {".parquet", ".pq"}
_ARROW = {".arrow", ".feather", ".ipc"}
_CSV = {".csv", ".tsv", ".txt"}
_JSON = {".jsonl", ".ndjson"}
_FILE_ROW = "file_row_number"
_FILE = 1 << 40
"""More rows than one file has."""
FORMATS = "CSV (.csv .tsv .txt, also .gz), Parquet (.parquet .pq), Arrow (.arrow .feather .ipc), JSON lines (.jsonl .ndjson)"


def open_table(
    table: Any, *, name: str | None = None, engine: Any = None, master: str | None = None
) -> Source:
    """Open anything tabular.

    Parameters
    ----------
    table
        A path, a glob or a folder of CSV, Parquet, Arrow/Feather or JSON-lines files; a pandas or
        Polars DataFrame, a Polars LazyFrame, a PyArrow table, a DuckDB relation, an Ibis table;
        a Spark DataFrame; or a `Source`, which is returned as it is. Or the URL of a database: see
        `aegis.sources.database.open_database`.
    name
        The table in the database, where a URL is given: table or schema.table.
    engine
        Who reads a path: "duckdb", the embedded engine (the default); or "spark", a SparkSession
        or an Ibis backend for Spark, where `table` may also be a table of its catalog.
    master
        Where "spark" runs: local[4], spark://host:7077, yarn, ...

    Raises
    ------
    DataError
        The file is missing, unreadable or of an unknown format; the object is not a table; two
        columns share a name; or the table has no columns.

    Notes
    -----
    Columns of CSV files are read with the type that all their values have. Where that would spell
    values in another way they stay text: codes such as 01234, and yes and no, or t and f. Only
    true and false, in any case of letters, are Booleans.
    """
    if isinstance(table, Source):
        return table
    if is_frame(table):
        return open_frame(table)
    if engine not in (None, "duckdb"):
        return _open_on_spark(table, name, engine, master)
    if master is not None:
        raise PolicyError(
            f"The master {master!r} goes with the engine spark.", hint="Add --engine spark."
        )
    if isinstance(table, str) and table.lower().startswith(SCHEMES):
        return open_database(table, name)
    if name is not None:
        raise PolicyError(
            f"A table {name!r} is named, but what is opened is no database.",
            hint=f"Give a URL ({', '.join(SCHEMES)}), or leave the name out.",
        )
    if isinstance(table, str | Path):
        source = _open_path(str(table))
    elif isinstance(table, ir.Table):
        source = Source(table, "Ibis table")
    else:
        arrow, origin = _to_arrow(table)
        refuse_duplicates(arrow.column_names, origin)
        source = Source(_register(arrow), origin)
    if not source.table.columns:
        raise DataError(f"{source.origin} has no columns.", hint="Give a table with a header.")
    return source


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
    library = type(table).__module__.split(".")[0]
    kind = type(table).__name__
    if isinstance(table, pa.Table):
        return table, "PyArrow table"
    if library == "pandas" and kind == "DataFrame":
        duplicates = table.columns[table.columns.duplicated()]
        refuse_duplicates([str(c) for c in table.columns], "pandas DataFrame")
        if len(duplicates) == 0:
            return _from_pandas(table), "pandas DataFrame"
    if library == "polars" and kind in ("DataFrame", "LazyFrame"):
        frame = table.collect() if kind == "LazyFrame" else table
        return frame.to_arrow(), f"Polars {kind}"
    if library in ("duckdb", "_duckdb") and hasattr(table, "to_arrow_table"):
        return table.to_arrow_table(), "DuckDB relation"
    raise DataError(
        f"Cannot read a table from an object of type {type(table).__qualname__!r}.",
        hint="Pass a path, a pandas or Polars frame, a PyArrow table, a DuckDB relation or an Ibis table.",
    )


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(
            f"A column of the pandas DataFrame mixes types: {str(error).splitlines()[0]}",
            hint="Convert it to one type first, for example with astype(str).",
        ) from error


def _register(arrow: pa.Table) -> ir.Table:
    """Hand an Arrow table to the embedded engine, dictionary columns decoded."""
    fields = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in arrow.schema
    ]
    return ibis.memtable(arrow.cast(pa.schema(fields)))


def _open_path(given: str) -> Source:
    files = _files(given)
    suffixes = {_suffix(file) for file in files}
    if len(suffixes) > 1:
        raise DataError(
            f"{given} mixes formats: {', '.join(sorted(suffixes))}.",
            hint="Give files of one format.",
        )
    suffix = suffixes.pop()
    names = [str(file) for file in files]
    try:
        if suffix in _PARQUET:
            return _open_parquet(given, files)
        if suffix in _ARROW:
            arrow = pa.concat_tables(_of_file(_read_arrow, file) for file in files)
            refuse_duplicates(arrow.column_names, given)
            return Source(_register(arrow), given, files)
        with engine_errors(given):
            if suffix in _JSON:
                return Source(_materialise(embedded().read_json(names)), given, files)
            return Source(_read_csv(given, files), given, files)
    except (EngineError, pa.ArrowException, OSError, EOFError, zlib.error, csv.Error) as error:
        cause = error.__cause__ if isinstance(error, EngineError) else error
        raise _unreadable(given, cause or error) from error


def _unreadable(given: str, cause: BaseException) -> DataError:
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0].rstrip(".")
    return DataError(
        f"Cannot read {given}: {reason}.",
        hint="Check that the file is complete, is of the format that its name says, and is encoded in UTF-8.",
    )


def _of_file(read: Callable[[Path], Any], file: Path) -> Any:
    """Return what `read` makes of a file; of many, the one that cannot be read is named."""
    try:
        return read(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(str(file), error) from error


def _read_arrow(file: Path) -> pa.Table:
    return pa.feather.read_table(str(file), memory_map=True)


def _files(given: str) -> tuple[Path, ...]:
    """Return the existing files that a path, folder or glob stands for."""
    path = Path(given).expanduser()
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if _is_part(p, path))
        if not found:
            raise DataError(
                f"Folder {given} holds no Parquet files.", hint="Give a file or a glob."
            )
        return tuple(found)
    if path.is_file():
        found = [path]
    else:
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 - absolute or relative
        found = sorted(Path(match) for match in matches if Path(match).is_file())
    if not found:
        raise DataError(
            f"No such file: {given}.", hint="Check the path; a glob must match at least one file."
        )
    if _suffix(found[0]) not in _PARQUET | _ARROW | _CSV | _JSON:
        raise DataError(f"Unknown file format: {given}.", hint=f"Allowed: {FORMATS}.")
    empty = [str(file) for file in found if file.stat().st_size == 0]
    if empty:
        raise DataError(
            f"{empty[0]} is empty (0 bytes).", hint="Give a file with a header and rows."
        )
    return tuple(found)


def _is_part(path: Path, folder: Path) -> bool:
    """Return whether a file holds rows of a folder; names that start with . or _ are by-products."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not hidden and path.is_file() and _suffix(path) in _PARQUET


def _suffix(path: Path) -> str:
    """Return the lower-case extension that names the format, `.gz` looked through."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _open_parquet(given: str, files: tuple[Path, ...]) -> Source:
    schemas = {file: _of_file(pa.parquet.read_schema, file) for file in files}
    first = schemas[files[0]]
    refuse_duplicates(first.names, given)
    for file, schema in schemas.items():
        if not schema.equals(first, check_metadata=False):
            raise DataError(
                f"{file} and {files[0]} have different columns or types.",
                hint="Files of one glob must share one schema.",
            )
    names = [str(file) for file in files]
    connection = embedded()
    with engine_errors(given):
        table = connection.read_parquet(names, hive_partitioning=True)
        if _FILE_ROW in table.columns:  # the engine would refuse a second one
            return Source(table, given, files)
        return Source(table, given, files, _numbered(names, table.schema()))


def _numbered(names: list[str], schema: ibis.Schema) -> ir.Table:
    """Return the rows of Parquet files with a number that no two of them share.

    The engine numbers the rows of each file from 0; the index of the file makes them differ.
    """
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
    query = (
        f"SELECT * EXCLUDE ({_FILE_ROW}), "
        f"{_FILE_ROW} + CAST(file_index AS BIGINT) * {_FILE} AS {ROW_NUMBER} "
        f"FROM read_parquet([{listed}], hive_partitioning = true, file_row_number = true)"
    )
    return embedded().sql(query, schema=ibis.schema({**schema, ROW_NUMBER: "int64"}))


def _materialise(view: ir.Table) -> ir.Table:
    """Parse a text file once: a view would parse it again in every query."""
    return embedded().create_table(ibis.util.gen_name("aegis"), view, temp=True)


def _read_csv(given: str, files: tuple[Path, ...]) -> ir.Table:
    for file in files:
        _check_complete(file)
    header, separator = _header(files[0])
    refuse_duplicates(header, given)
    # The engine, left to itself, takes another separator where rows differ in length, and then
    # reads each row as one text.
    options = {"header": True} | ({"delim": separator} if len(header) > 1 else {})
    names = [str(file) for file in files]
    try:
        read = _any_csv(names, options)
    except duckdb.InvalidInputException:
        _check_lines(files, len(header), separator)
        raise
    if set(header).isdisjoint(read.columns):
        _check_lines(files, len(header), separator)
    return read


def _check_lines(files: tuple[Path, ...], columns: int, separator: str) -> None:
    """Raise for a line with more or fewer fields than the header has."""
    if columns > 1:  # or the first line may be none of the table
        for file in files:
            with _opened(file) as handle:
                text = io.TextIOWrapper(handle, encoding="utf-8-sig", errors="replace", newline="")
                refuse_uneven(text, str(file), columns, separator)


def _any_csv(names: list[str], options: dict[str, Any]) -> ir.Table:
    try:
        return _typed_csv(names, options)
    except duckdb.ConversionException:
        # The first rows suggested a type that a later one does not have: look at all of them.
        return _typed_csv(names, {**options, "sample_size": -1})


def _typed_csv(names: list[str], options: dict[str, Any]) -> ir.Table:
    # Loaded with the engine, which files of other formats may not need yet.
    from ibis.backends.sql.datatypes import DuckDBType

    texts = _columns_spelt_otherwise(names, options)
    types = {"types": dict.fromkeys(texts, "VARCHAR")} if texts else {}
    guessed = embedded().read_csv(names, **options, **types)
    columns = {name: DuckDBType.to_string(dtype) for name, dtype in guessed.schema().items()}
    exact = {"types": columns, "allow_quoted_nulls": False}
    try:
        # A quoted empty text is a value, and not null, which is written without quotes.
        return _materialise(embedded().read_csv(names, **options, **exact))
    except duckdb.ConversionException:
        # Some number is an empty text in quotes: whoever wrote this means null by it.
        return _materialise(guessed)


def _columns_spelt_otherwise(names: list[str], options: dict[str, Any]) -> list[str]:
    """Return the columns whose guessed type would spell their values in another way.

    Codes such as 01234 would be integers and lose the zeros, and with them the prefix that a mask
    keeps; yes and no, or t and f, would be Booleans and be released as true and false. All rows
    are looked at: sorted codes may have their zeros at the end.
    """
    connection = embedded()
    guessed = connection.read_csv(names, **options).schema()
    doubtful = [
        column for column, dtype in guessed.items() if dtype.is_integer() or dtype.is_boolean()
    ]
    if not doubtful:
        return []
    text = connection.read_csv(names, **options, all_varchar=True)
    found = text.aggregate(
        **{
            str(i): _spelt_otherwise(text[column], guessed[column]).any()
            for i, column in enumerate(doubtful)
        }
    )
    row = connection.to_pyarrow(found).to_pylist()[0]
    return [column for i, column in enumerate(doubtful) if row[str(i)]]


def _spelt_otherwise(text: Any, dtype: Any) -> Any:
    """Return where a text is no usual spelling of a whole number or of a Boolean."""
    if dtype.is_boolean():
        # An empty text in quotes may still be null.
        return text.strip().lower().notin(("true", "false", ""))
    return text.like("0_%") | text.like("-0_%")


def _opened(file: Path) -> Any:
    """Return a file opened for reading bytes, `.gz` looked through."""
    return gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")


def _check_complete(file: Path) -> None:
    """Raise `EOFError` when a compressed file ends too early, which the engine does not mind."""
    if file.suffix.lower() == ".gz":
        with _opened(file) as handle:
            while handle.read(1 << 20):
                pass


def _header(file: Path) -> tuple[list[str], str]:
    """Return the column names of a CSV file as written, and the separator between them.

    The engine would rename duplicates. The separator is the one that gives the most columns.
    """
    with _opened(file) as handle:
        start = handle.read(1 << 16).decode("utf-8-sig", errors="replace")
    headers = [(next(csv.reader(io.StringIO(start), delimiter=d), []), d) for d in ",;\t|"]
    return max(headers, key=lambda found: len(found[0]))
