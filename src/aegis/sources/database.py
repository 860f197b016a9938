"""Open tables of databases by URL, create tables in one transaction, and compile queries to an SQL
dialect, whose engine need not be installed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import sqlglot
from ibis.config import Config
from sqlglot import exp

from aegis.errors import DataError, EngineError, PolicyError
from aegis.sources.embedded import engine_errors, limit_alike, translate
from aegis.sources.engines import SPARK, infinity_is_known, null_is_not_nan
from aegis.sources.source import Source
from aegis.sources.urls import check_url, shown_url, without_secrets

SCHEMES = ("postgres://", "postgresql://", "duckdb://")
"""The prefixes of the URLs of databases."""
_EXTRAS = {"postgres": "aegis-advisor[postgres]"}


def open_database(url: str, table: str | None) -> Source:
    """Open a table or view of a database, and return it as a `Source`.

    Parameters
    ----------
    url
        postgres://user:password@host:port/database or duckdb:///path/to/file. The password may also
        be in the variable PGPASSWORD or in ~/.pgpass. Options after `?` are passed to the driver.
    table
        The table or view, as name or schema.name, in the spelling of the database.

    Raises
    ------
    EngineError
        The server cannot be reached or refuses the user, or its driver is not installed. The
        message never contains the password.
    DataError
        The database has no such table; the message lists its tables.
    PolicyError
        No table is given, or the URL is malformed.
    """
    safe_url = shown_url(url)
    if not url.lower().startswith("duckdb"):
        check_url(url)
    if table is None:
        raise PolicyError(
            f"{safe_url} has several tables, and you named none.", hint="Name one with --table."
        )
    connection = _connect(url, safe_url)
    return open_named(connection, table, f"{table} of {safe_url}")


def open_named(connection: Any, table: str, origin: str) -> Source:
    """Open a table through an existing connection; `origin` names the database in messages."""
    path = table_path(table)
    try:
        with engine_errors(origin):
            return Source(connection.table(path[-1], **_within(path)), origin)
    except EngineError as error:
        if isinstance(error.__cause__, duckdb.PermissionException):
            raise EngineError(
                error.message,
                hint="Views of a DuckDB file may read only files in its folder. Copy the rows into "
                "a table of the database, or give Aegis the files themselves.",
            ) from error
        # Not all that can be opened is listed: materialized views are not.
        if path[-1] not in table_names(connection, table):
            raise _missing(connection, table, path, origin) from error
        raise


def table_path(name: str) -> tuple[str, ...]:
    """Split a name into catalog and schema, if stated, and table; refuse what is no name."""
    try:
        parsed = exp.to_table(name, dialect="postgres")
        parts = tuple(part.name for part in parsed.parts)
    except (sqlglot.errors.SqlglotError, AttributeError):
        parts = ()
    if not parts or not all(parts) or len(parts) > 3:
        raise PolicyError(
            f"{name!r} is not a name of a table.",
            hint="Write table or schema.table; quote each part that has characters other than letters, digits and _.",
        )
    return parts


@contextmanager
def transaction(source: Source) -> Iterator[Any]:
    """Yield a function that runs an SQL statement; if the body fails, all are undone."""
    with engine_errors(source.origin), source.engine.transaction(source.origin) as run:
        yield run


def _connect(url: str, safe_url: str) -> Any:
    kind = "duckdb" if url.lower().startswith("duckdb") else "postgres"
    try:
        connection = ibis.connect(url)
        # Closed when nobody holds it any more, and at the latest when the program ends.
        weakref.finalize(connection, connection.con.close)
        if kind == "duckdb":
            limit_alike(connection)
        return connection
    except ImportError as error:
        raise EngineError(
            f"{safe_url} needs a driver that is not installed: {error.name}.",
            hint=f"Install it: pip install '{_EXTRAS.get(kind, 'aegis-advisor')}'.",
        ) from error
    except Exception as error:  # noqa: BLE001 - drivers have exceptions of their own
        translated = translate(error, safe_url)
        reason = translated.message.partition(": ")[2] or translated.message
        raise EngineError(
            f"Cannot connect to {safe_url}: {without_secrets(reason, url)}",
            hint="Check that the file is there, complete, and used by no other program."
            if kind == "duckdb"
            else "Check the address, that the server runs, and user and password.",
        ) from None


def _within(path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) == 1:
        return {}
    return {"database": path[0] if len(path) == 2 else (path[0], path[1])}


def table_names(connection: Any, table: str) -> list[str]:
    """Return the tables and views in the schema that contains `table`."""
    schema = _within(table_path(table))
    try:
        with engine_errors(table):
            return [str(name) for name in connection.list_tables(**schema)]
    except EngineError:  # engines say in ways of their own that a schema is missing
        return []


def _missing(connection: Any, table: str, path: tuple[str, ...], origin: str) -> DataError:
    """Return the error for a table that cannot be opened; it lists those that can."""
    error = DataError.unknown_column(path[-1], table_names(connection, table))
    return DataError(f"No table {table!r} in the database ({origin}).", hint=error.hint)


_COMPILERS = {"spark": SPARK}
"""Ibis's name of the compiler of a dialect, if it differs from the dialect's name."""
_OF_SPARK = ("spark", "databricks")


def compile_query(query: ir.Table, dialect: str) -> tuple[Any, exp.Expression]:
    """Compile a query to SQL; return sqlglot's name of the dialect, and the SQL."""
    from ibis.backends.sql import compilers  # of twenty engines: half a second, for exports only

    compiler = getattr(compilers, _COMPILERS.get(dialect, dialect)).compiler
    with _spark_options():
        if dialect in _OF_SPARK:
            tree = null_is_not_nan(compiler.to_sqlglot(infinity_is_known(query).unbind()))
        else:
            tree = compiler.to_sqlglot(query.unbind())
    return compiler.dialect, tree


class _SparkOptions(Config):  # type: ignore[misc]
    """Options that the compiler of Spark requires; Ibis sets them only if Spark is installed."""

    treat_nan_as_null: bool = False


@contextmanager
def _spark_options() -> Iterator[None]:
    before = ibis.options.pyspark
    ibis.options.pyspark = before or _SparkOptions()
    try:
        yield
    finally:
        ibis.options.pyspark = before
