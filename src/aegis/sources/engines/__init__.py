"""Describe engines: one module for each known engine, and `AnyEngine` for all others that Ibis
supports.

Code outside `aegis.sources` uses the properties of `Engine` and never the name of an engine.
"""

from typing import Any

from aegis.sources.engines import duckdb, postgres, spark
from aegis.sources.engines.engine import BUCKETS, ROW_NUMBER, AnyEngine, Engine

_KNOWN: dict[str, type[AnyEngine]] = {
    duckdb.NAME: duckdb.DuckDB,
    postgres.NAME: postgres.Postgres,
    spark.NAME: spark.Spark,
}


def engine_of(backend: Any) -> Engine:
    """Return the object that describes the engine behind an Ibis backend."""
    return _KNOWN.get(str(backend.name), AnyEngine)(backend)


__all__ = ["BUCKETS", "ROW_NUMBER", "AnyEngine", "Engine", "engine_of"]
