"""The cases of the engine suite: awkward columns, every mask on them, known gaps, and engines."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aegis.masks import parse_mask
from aegis.sources import Source, open_table

COLUMNS: dict[str, pa.Array] = {
    "integers": pa.array([0, -1, 7, -7, 12345, -(2**62), 2**62, None], pa.int64()),
    "floats": pa.array(
        [0.0, -0.5, 0.3, 2.5, -2.5, 1e300, -1e300, math.nan, math.inf, -math.inf, None],
        pa.float64(),
    ),
    "decimals": pa.array(
        [Decimal("0.00"), Decimal("-0.05"), Decimal("12.34"), Decimal("-99999.99"), None],
        pa.decimal128(9, 2),
    ),
    "texts": pa.array(
        [
            "",
            " ",
            "a",
            "A",
            "ß",
            "é",
            "e\u0301",
            "名前です",
            "O'Brien",
            'say "hi"',
            "x" * 3000,
            "%_\\",
            None,
        ]
    ),
    "booleans": pa.array([True, False, None]),
    "dates": pa.array(
        [date(1, 1, 1), date(1969, 12, 31), date(2023, 1, 1), date(2024, 2, 29), None], pa.date32()
    ),
    "times": pa.array(
        [datetime(1969, 12, 31, 23, 59, 59), datetime(2024, 2, 29, 12, 30, 0, 123456), None],
        pa.timestamp("us"),
    ),
    "zoned": pa.array(
        [
            datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
            datetime(2024, 12, 31, 23, 30, tzinfo=UTC),
            None,
        ],
        pa.timestamp("us", tz="UTC"),
    ),
    "zoned in Berlin": pa.array(
        [datetime(2023, 12, 31, 23, 30, tzinfo=UTC), datetime(2024, 6, 30, 22, tzinfo=UTC), None],
        pa.timestamp("us", tz="Europe/Berlin"),
    ),
}

MASKS: dict[str, list[Any]] = {
    "integers": [
        {"bucketize": {"width": 10}},
        {"bucketize": {"width": 10, "show": "lower"}},
        {"bucketize": {"width": 0.5, "show": "lower"}},
        {"quantiles": {"count": 3, "edges": [0, 100]}},
        {"round": {"step": 5}},
        {"round": {"digits": 2}},
        {"top_code": {"at": 100}},
        {"bottom_code": {"at": -100}},
        {"erase_digits": {"digits": 2}},
        {"blur": {"keep": 2}},
        {"keep_frequent": {"count": 2, "values": [7, 0]}},
        {"group": {"groups": {"small": [0, -1, 7]}, "rest": "other"}},
    ],
    "floats": [
        {"bucketize": {"width": 0.1}},
        {"equal_width": {"count": 3, "edges": [0, 1]}},
        {"round": {"step": 0.5}},
        {"round": {"digits": 2}},
        {"top_code": {"at": 1}},
        {"bottom_code": {"at": -1}},
        {"erase_digits": {"digits": 1}},
    ],
    "decimals": [
        {"bucketize": {"width": 10}},
        {"round": {"step": 0.1}},
        {"top_code": {"at": 10}},
        {"erase_digits": {"digits": 1}},
    ],
    "texts": [
        {"blur": {"keep": 1}},
        {"blur": {"hide": 2}},
        {"blur": {"keep": 2, "side": "trailing"}},
        {"keep_frequent": {"count": 2, "values": ["a", "ß"]}},
        {"group": {"groups": {"quoted": ["O'Brien", 'say "hi"'], "odd": ["%_\\"]}, "rest": "keep"}},
    ],
    "booleans": [{"keep_frequent": {"count": 1, "values": [True]}}],
    "dates": [
        *({"truncate": {"unit": unit}} for unit in ("day", "week", "month", "quarter", "year")),
        {"truncate": {"unit": "year", "count": 10, "show": "decade"}},
    ],
    "times": [{"truncate": {"unit": unit}} for unit in ("day", "month")],
    "zoned": [{"truncate": {"unit": unit}} for unit in ("day", "year")],
    "zoned in Berlin": [{"truncate": {"unit": "month"}}],
}


@dataclass(frozen=True)
class Case:
    """A mask on a column."""

    column: str
    mask: Any

    @property
    def name(self) -> str:
        """The case's name: column and mask."""
        return f"{self.column}: {parse_mask(self.mask)}"

    def expected(self) -> list[Any]:
        """Return what the embedded engine shows, value by value."""
        return list(_expected(self.column, repr(self.mask)))


CASES = [
    Case(column, mask)
    for column, masks in MASKS.items()
    for mask in ["identity", "suppress", *masks]
]


@dataclass(frozen=True)
class Gap:
    """What an engine does not do as the others: the reason, and how it shows."""

    reason: str
    raises: type[Exception] = AssertionError


_ZONE = "The engine does not store the time zone of a column. Aegis reads the times in UTC"
GAPS: dict[tuple[str, str], Gap] = {
    (engine, case): Gap(_ZONE)
    for engine in ("PostgreSQL", "Spark")
    for case in ("zoned in Berlin: identity", "zoned in Berlin: truncate(unit=month)")
}


def shown(value: Any) -> Any:
    """Return a value that compares across engines: NaN as a text, one zero, times in UTC."""
    if isinstance(value, float):
        return "<NaN>" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def table_of(column: str) -> pa.Table:
    """Return a column of the cases as a table with row numbers."""
    values = COLUMNS[column]
    return pa.table({"row": pa.array(range(len(values)), pa.int64()), "v": values})


@cache
def _expected(column: str, spec: str) -> tuple[Any, ...]:
    source = open_table(table_of(column))
    mask = parse_mask(next(c.mask for c in CASES if c.column == column and repr(c.mask) == spec))
    masked = source.table.select(row="row", x=mask.expression(source.table["v"]))
    rows = source.collect(masked).sort_by("row")
    return tuple(shown(value) for value in rows["x"].to_pylist())


def opened(engine: str, request: pytest.FixtureRequest, stack: ExitStack) -> dict[str, Source]:
    """Return every column as a table of an engine."""
    return ENGINES[engine](request, stack)


def _duckdb(_: pytest.FixtureRequest, __: ExitStack) -> dict[str, Source]:
    return {column: open_table(table_of(column)) for column in COLUMNS}


def _postgres(request: pytest.FixtureRequest, stack: ExitStack) -> dict[str, Source]:
    connection = ibis.connect(request.getfixturevalue("postgres").url)
    stack.callback(connection.disconnect)
    return _tables(connection)


def _spark(request: pytest.FixtureRequest, stack: ExitStack) -> dict[str, Source]:
    session = request.getfixturevalue("spark")
    folder = Path(stack.enter_context(TemporaryDirectory()))
    found = {}
    for column in COLUMNS:
        pq.write_table(table_of(column), folder / f"{column}.parquet")
        found[column] = open_table(folder / f"{column}.parquet", engine=session)
    return found


def _tables(connection: Any) -> dict[str, Source]:
    found = {}
    for column in COLUMNS:
        name = f"case_{column}"
        connection.create_table(name, table_of(column), overwrite=True)
        found[column] = Source(connection.table(name), name)
    return found


Opener = Callable[[pytest.FixtureRequest, ExitStack], dict[str, Source]]
ENGINES: dict[str, Opener] = {
    "DuckDB": _duckdb,
    "PostgreSQL": _postgres,
    "Spark": _spark,
}
