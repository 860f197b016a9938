"""A PostgreSQL server that may be stopped and a Spark session, where their programs are installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from postgres_server import Server, server
from queries_written import use_threads

JAVA = (
    "-Xms1g -Xmn600m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options of a Java that lives for a minute: what it compiles best, and what it checks of the classes of
libraries, pay off after that; with room for what is new, it collects garbage seldom."""


@pytest.fixture(scope="module", autouse=True)
def all_threads_of_duckdb() -> Iterator[None]:
    """Answer queries on as many threads as DuckDB uses by itself."""
    use_threads(None)
    yield
    use_threads(1)


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """A server that a test may stop."""
    with server() as made:
        yield made


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark session; skips with the reason where Spark or Java is missing."""
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install '.[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()
