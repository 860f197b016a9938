"""Compile queries to an SQL dialect; the engine of the dialect need not be installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ibis
import ibis.expr.types as ir
from ibis.config import Config
from sqlglot import exp

from aegis.sources.engines.spark import NAME as SPARK
from aegis.sources.engines.spark import infinity_is_known, null_is_not_nan

_COMPILERS = {"spark": SPARK}
"""Ibis's name of the compiler of a dialect, if it differs from the dialect's name."""
_OF_SPARK = ("spark", "databricks")


def compile_query(query: ir.Table, dialect: str) -> tuple[Any, exp.Expression]:
    """Compile a query to SQL, and return sqlglot's name of the dialect together with the SQL
    text.
    """
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
