"""Threads that share the embedded engine, and queries while another's rows are read."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from aegis.sources import open_table
from aegis.sources.embedded import embedded


def test_threads_wait_for_one_another(tmp_path: Path) -> None:
    """Without turns they wait for ever, or read each other's rows."""

    def read(number: int) -> None:
        held = pa.table({"a": [number] * 5_000})
        csv.write_csv(held, tmp_path / f"{number}.csv")
        for _ in range(5):
            for table in (held, tmp_path / f"{number}.csv"):
                source = open_table(table)
                rows = pa.Table.from_batches(source.batches(source.table, rows=100))
                assert rows["a"].to_pylist() == [number] * 5_000

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(read, range(4)))
    finally:
        sys.setswitchinterval(before)


def test_no_query_begins_while_rows_are_read(tmp_path: Path) -> None:
    """It would end them: DuckDB takes the rest of them for read."""
    parquet.write_table(pa.table({"a": range(300_000)}), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    batches = source.batches(source.table, rows=1_000)
    read = len(next(batches))
    with pytest.raises(RuntimeError, match="while rows of the first were still being read"):
        source.collect(source.table.limit(1))
    assert read + sum(map(len, batches)) == source.rows == 300_000


def test_a_text_file_opens_after_a_result_that_nobody_read_to_its_end(tmp_path: Path) -> None:
    """Such a result kept an old view of the tables: the file "could not be read"."""
    file = tmp_path / "t.csv"
    file.write_text("age,income\n" + "31,200\n42,300\n" * 50)
    engine = embedded().con
    assert engine.execute("SELECT * FROM range(10_000_000)").fetchone() == (0,)
    assert open_table(file).rows == 100
