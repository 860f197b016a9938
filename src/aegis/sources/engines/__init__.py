"""Describe engines: one module for each known engine, and `Engine` for all others that Ibis
supports.

Code outside `aegis.sources` uses the properties of `Engine` and never the name of an engine.
"""

from typing import Any

from aegis.sources.engines import duckdb, postgres, spark
from aegis.sources.engines.engine import BUCKETS, ROW_NUMBER, Engine

_KNOWN: dict[str, type[Engine]] = {
    duckdb.NAME: duckdb.DuckDB,
    postgres.NAME: postgres.Postgres,
    spark.NAME: spark.Spark,
}


def engine_of(backend: Any) -> Engine:
    """Return the object that describes the engine behind an Ibis backend."""
    return _KNOWN.get(str(backend.name), Engine)(backend)


__all__ = ["BUCKETS", "ROW_NUMBER", "Engine", "engine_of"]
