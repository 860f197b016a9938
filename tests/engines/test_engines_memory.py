"""Memory limits, full disks and partitioned folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_support import assert_same, awkward, policy

from aegis.errors import EngineError, PolicyError
from aegis.sources import limit_memory
from aegis.sources.failures import engine_errors, translate, without_secrets
from aegis.sources.memory import parse_size
from aegis.summary import summarize


@pytest.mark.parametrize(
    ("given", "size"),
    [("4GB", 4 * 10**9), ("512 MiB", 512 << 20), ("1.5g", 1_500_000_000), (100, 100), ("7", 7)],
)
def test_sizes_are_read(given: str | int, size: int) -> None:
    assert parse_size(given) == size


@pytest.mark.parametrize("given", ["", "GB", "-1GB", "4 XB", "1.GB", "4iB"])
def test_other_sizes_are_refused(given: str) -> None:
    with pytest.raises(PolicyError, match="is no amount of memory"):
        parse_size(given)


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(PolicyError, match="below 64 MiB"):
        limit_memory("10MB")


LIMITED = """
import sys
import aegis
from aegis.errors import EngineError
from aegis.sources import embedded, limit_memory
size = limit_memory("200MB", folder=sys.argv[1])
assert size == 200_000_000
value = embedded().raw_sql("SELECT current_setting('memory_limit')").fetchall()[0][0]
assert value.startswith("190.7"), value
from aegis.sources import open_table
try:
    open_table(sys.argv[2]).collect(embedded().sql("SELECT list(range) FROM range(300000000)"))
except EngineError as error:
    print(error.message, error.hint)
"""


def test_the_limit_is_kept_and_said_to_be_too_small(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(awkward(), file)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "spill"), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The memory limit is too small for" in done.stdout
    assert "--memory-limit" in done.stdout


def test_a_full_disk_is_said() -> None:
    error = duckdb.IOException('IO Error: Could not write file "x": No space left on device')
    assert "The disk is full" in translate(error, "t").message


def test_passwords_are_left_out() -> None:
    assert (
        without_secrets("at postgres://me:s3:cr/et@host/db now")
        == "at postgres://me:***@host/db now"
    )
    assert without_secrets("host=h password='my secret' user=u") == "host=h password=*** user=u"
    with pytest.raises(EngineError, match=r"postgres://u:\*\*\*@h/db"), engine_errors("t"):
        raise duckdb.Error("cannot open postgres://u:hunter2@h/db")


def test_errors_of_others_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), engine_errors("t"):
        raise ZeroDivisionError


def test_a_partitioned_folder_is_its_table(tmp_path: Path) -> None:
    table = awkward()
    for value in ("yes", "no"):
        part = table.filter(pa.compute.field("y") == value)
        folder = tmp_path / "t" / f"y={value}"
        folder.mkdir(parents=True)
        half = part.num_rows // 2
        pq.write_table(part.slice(0, half).drop(["y"]), folder / "1.parquet")
        pq.write_table(part.slice(half).drop(["y"]), folder / "2.parquet")
    left_over = tmp_path / "t" / "_temporary"
    left_over.mkdir()
    pq.write_table(pa.table({"z": [1]}), left_over / "3.parquet")
    assert_same(summarize(tmp_path / "t", policy()), summarize(table, policy()))
    found = summarize(f"{tmp_path}/t/y=*/*.parquet", policy())
    assert_same(found, summarize(table, policy()))
