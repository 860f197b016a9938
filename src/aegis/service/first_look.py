"""Describe a table at first sight: types, distributions, missing values, duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aegis.masks import Kind
from aegis.policy.suggest.facts import NEARLY_ALL, ColumnFacts
from aegis.policy.suggest.profile import SAMPLE_ROWS, finite, measure_columns

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from aegis.sources import Source

_BARS = 12
"""Number of bars of the distribution of a numeric column."""
_COLUMNS_DRAWN = 60
"""Largest number of columns with a counted distribution; others show range and frequent values."""
_COUNTED = 2_000_000
"""Largest number of rows for which duplicates are counted, because all rows must be compared."""
_NAMES = {
    None: "a type that Aegis cannot mask",
    Kind.INTEGER: "whole number",
    Kind.NUMBER: "number",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.BOOLEAN: "yes or no",
}


@dataclass(frozen=True)
class ColumnLook:
    """A short description of one column for the first page of the workbench.

    Attributes
    ----------
    missing
        Share of the rows without a value.
    distinct
        Number of different values, in words.
    span
        Smallest and largest value of numbers and dates; empty otherwise.
    bars
        Heights of a histogram's bars: the number of values in each of several equally wide intervals,
        divided by the largest such number.
    frequent
        Frequent values with their share of the rows.
    note
        Note about a possible problem; empty if there is none.
    """

    name: str
    kind: str
    missing: float
    distinct: str
    span: str
    bars: tuple[float, ...]
    frequent: tuple[tuple[str, float], ...]
    note: str


@dataclass(frozen=True)
class TableLook:
    """A short description of a table and its columns, in the order of the table. `duplicates` is
    the number of rows that equal an earlier row in all columns (None for tables that are too
    large).
    """

    rows: int
    duplicates: int | None
    columns: tuple[ColumnLook, ...]

    @property
    def with_missing(self) -> int:
        """Number of columns with missing values."""
        return sum(column.missing > 0 for column in self.columns)


def look_at(source: Source) -> TableLook:
    """Describe a table; in large tables, frequent values are counted on a sample. Raise `DataError`
    if the table has no rows.
    """
    facts = measure_columns(source)
    sample = source.sample(SAMPLE_ROWS, seed=0)
    bars = {
        name: _bars(source, sample, fact)
        for name, fact in list(facts.items())[:_COLUMNS_DRAWN]
        if fact.numeric and fact.low is not None and fact.low != fact.high
    }
    return TableLook(
        source.rows,
        _duplicates(source),
        tuple(_look(fact, bars.get(name, ())) for name, fact in facts.items()),
    )


def _duplicates(source: Source) -> int | None:
    if source.rows > _COUNTED:
        return None
    distinct = source.table.distinct()
    counted = source.collect(distinct.aggregate(rows=distinct.count()))
    return source.rows - int(counted.to_pylist()[0]["rows"])


def _look(facts: ColumnFacts, bars: tuple[float, ...]) -> ColumnLook:
    about = "" if facts.exact else "about "
    return ColumnLook(
        facts.name,
        _NAMES[facts.kind],
        facts.nulls / facts.rows,
        "–" if facts.kind is None else f"{about}{facts.distinct:,}",
        "" if facts.low is None else f"{_plain(facts.low)} to {_plain(facts.high)}",
        bars,
        () if bars else facts.frequent[:3],
        _note(facts),
    )


def _note(facts: ColumnFacts) -> str:
    if facts.values == 0:
        return "has no value"
    if facts.kind is None:
        return ""
    if facts.distinct <= 1:
        return "one value in all rows"
    if facts.special:
        return f"{facts.special:,} values are NaN or infinite"
    if facts.unique_share >= NEARLY_ALL and facts.kind is not Kind.NUMBER:
        return "a different value in nearly every row"
    return ""


def _bars(source: Source, sample: ir.Table, facts: ColumnFacts) -> tuple[float, ...]:
    """Return the `bars` of a `ColumnLook` for a column's numbers in the rows `sample`."""
    low, high = float(facts.low), float(facts.high)
    values = finite(sample[facts.name]).cast("float64")
    interval = ((values - low) / (high - low) * _BARS).floor().clip(upper=_BARS - 1).cast("int64")
    intervals = sample.select(interval=interval)
    intervals = intervals.filter(intervals.interval.notnull())
    counted = source.collect(intervals.group_by("interval").aggregate(n=intervals.count()))
    counts = {int(row["interval"]): int(row["n"]) for row in counted.to_pylist()}
    most = max(counts.values(), default=1)
    return tuple(counts.get(i, 0) / most for i in range(_BARS))


def _plain(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
