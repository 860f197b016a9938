"""Large tables, drawn from Adult with replacement by a seeded hash of the row number."""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.measure import ADULT

SEED = 7


def make_table(folder: Path, rows: int) -> Path:
    """Return a Parquet file of `rows` rows of Adult, 14 attributes and the label; made once."""
    path = folder / f"adult_{rows}.parquet"
    if path.exists():
        return path
    connection = duckdb.connect(config={"temp_directory": str(folder / "spill")})
    connection.execute(
        f"CREATE TABLE adult AS SELECT *, row_number() OVER () - 1 AS place "
        f"FROM read_parquet('{ADULT}')"
    )
    size = connection.sql("SELECT count(*) FROM adult").fetchall()[0][0]
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(
        f"COPY (SELECT adult.* EXCLUDE (place) FROM range({rows}) AS drawn(i) "
        f"JOIN adult ON place = hash(i + {SEED}) % {size}) TO '{path}' (FORMAT parquet)"
    )
    connection.close()
    return path
