"""Large tables, drawn from Adult with replacement by a seeded hash of the row number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow.parquet

from benchmarks.measure import ADULT, SHARED

SEED = 7
COLUMNS = (
    'age, workclass, education, "marital-status", occupation, relationship, race, sex, '
    '"capital-gain", "capital-loss", "hours-per-week", "native-country", income'
)
"""All columns but the sampling weight and the number of the education."""


def make_table(folder: Path, rows: int) -> Path:
    """Return a Parquet file of `rows` rows of Adult, 14 attributes and the label; made once."""
    path = folder / f"adult_{rows}.parquet"
    if not path.exists():
        _write(f"SELECT adult.* EXCLUDE (place) FROM {_drawn(rows)}", path)
    return path


def jittered(folder: Path, rows: int) -> Path:
    """Return a Parquet file with rows of Adult, whose age and hours are moved by at most two."""
    path = folder / f"jittered_{rows}.parquet"
    if not path.exists():
        moved = (
            f"SELECT adult.* REPLACE ((age + (hash(i + {SEED + 1}) % 5)::INT - 2)::INT AS age, "
            f'greatest(1, "hours-per-week" + (hash(i + {SEED + 2}) % 5)::INT - 2)::INT '
            f'AS "hours-per-week") FROM {_drawn(rows)}'
        )
        _write(f"SELECT {COLUMNS} FROM ({moved})", path)
    return path


def with_persons(table: Path, rows: int) -> Path:
    """Return the table with a column `person`: a fifth as many persons as rows, drawn by a hash."""
    path = table.with_suffix(".persons.parquet")
    if not path.exists():
        person = f"hash(row_number() OVER () + {SEED}) % {rows // 5}"
        _write(f"SELECT *, {person} AS person FROM '{table}'", path)
    return path


def as_csv(table: Path, *, quoted: bool = False) -> Path:
    """Return a Parquet file written as CSV, each field in quotes where asked; made once."""
    path = table.with_suffix(".quoted.csv" if quoted else ".csv")
    if not path.exists():
        _write(f"FROM '{table}'", path, f"csv, HEADER{', FORCE_QUOTE *' if quoted else ''}")
    return path


def _drawn(rows: int) -> str:
    """Return the rows `adult` that a hash of the number i draws, as a relation in SQL."""
    size = pyarrow.parquet.read_metadata(ADULT).num_rows
    adult = f"SELECT *, row_number() OVER () - 1 AS place FROM read_parquet('{ADULT}')"
    return f"range({rows}) AS drawn(i) JOIN ({adult}) adult ON place = hash(i + {SEED}) % {size}"


def _write(query: str, path: Path, options: str = "parquet") -> None:
    """Write the rows of a query in any order; if this is interrupted, the file is not there."""
    part = path.with_name(f"{path.name}.part")
    with duckdb.connect(config={"temp_directory": str(path.parent / "spill")}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY ({query}) TO '{part}' (FORMAT {options})")
    part.rename(path)


def make_csv(folder: Path, columns: Sequence[str], rows: int, *, row: bool = True) -> Path:
    """Return a CSV file of columns of Adult's first rows, with the row's parity as column `row`."""
    path = folder / f"adult_{'_'.join(columns)}_{rows}_{row}.csv"
    names = ", ".join(f'"{name}"' for name in columns)
    parity = ", row_number() OVER () % 2 AS row" if row else ""
    duckdb.connect().execute(
        f"COPY (SELECT {names}{parity} FROM read_parquet('{ADULT}') LIMIT {rows}) TO '{path}'"
    )
    return path


def make_complete(folder: Path) -> Path:
    """Return training and test part of Adult without missing values: 45,222 rows."""
    path = folder / "adult_complete.parquet"
    connection = duckdb.connect()
    names = connection.sql(f"FROM read_parquet('{ADULT}')").columns
    parts = " UNION ALL ".join(
        f"FROM read_csv('{SHARED / 'adult' / name}', skip={skipped}, header=false, "
        f"all_varchar=true, names={names})"
        for name, skipped in (("adult.data", 0), ("adult.test", 1))
    )
    trimmed = [f'trim("{name}")' for name in names]
    shown = ", ".join(f'{text} AS "{name}"' for text, name in zip(trimmed, names, strict=True))
    connection.execute(
        f"COPY (SELECT * REPLACE (age::INT AS age) FROM (SELECT {shown} FROM ({parts}) "
        f"WHERE NOT list_contains([{', '.join(trimmed)}], '?'))) TO '{path}' (FORMAT parquet)"
    )
    return path
