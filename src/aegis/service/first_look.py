"""A first look at a table, before its label is chosen: types, distributions, missing values,
duplicates.
"""

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
"""Bars of the distribution of a number."""
_DRAWN = 60
"""Most columns whose distribution is counted; of the others range and frequent values are shown."""
_COUNTED = 2_000_000
"""Most rows among which repeated ones are counted: all of them must be compared."""
_NAMES = {
    Kind.INTEGER: "whole number",
    Kind.NUMBER: "number",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.BOOLEAN: "yes or no",
}


@dataclass(frozen=True)
class ColumnLook:
    """One column at first sight.

    Attributes
    ----------
    name, kind
        The column, and what it holds.
    missing
        Share of the rows without a value.
    distinct
        How many different values, in words.
    span
        The least and the greatest of numbers and dates; empty otherwise.
    bars
        Share of the values in each of equally wide parts of the span, as parts of the highest one.
    frequent
        Frequent values with their share of the rows.
    note
        What to look at twice; empty if nothing is.
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
    """A table at first sight.

    Attributes
    ----------
    rows, duplicates
        How many rows, and how many of them repeat an earlier one in all columns; None of tables that are
        too large to count them at first sight.
    columns
        Its columns, in order.
    """

    rows: int
    duplicates: int | None
    columns: tuple[ColumnLook, ...]

    @property
    def with_missing(self) -> int:
        """How many columns have missing values."""
        return sum(column.missing > 0 for column in self.columns)


def look_at(source: Source) -> TableLook:
    """Return a first look at a table; frequent values of a large table come from a sample.

    Raises
    ------
    DataError
        The table has no rows.
    """
    facts = measure_columns(source)
    sample = source.sample(SAMPLE_ROWS, seed=0)
    bars = {
        name: _bars(source, sample, fact)
        for name, fact in list(facts.items())[:_DRAWN]
        if _spread(fact)
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
        "nothing that masks work on"
        if facts.kind is None
        else _NAMES.get(facts.kind, str(facts.kind)),
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
        return "has one value in all rows"
    if facts.special:
        return f"{facts.special:,} values are NaN or infinite"
    if facts.unique_share >= NEARLY_ALL and facts.kind is not Kind.NUMBER:
        return "has another value in nearly each row"
    return ""


def _spread(facts: ColumnFacts) -> bool:
    return (
        facts.kind in (Kind.INTEGER, Kind.NUMBER)
        and facts.low is not None
        and facts.low != facts.high
    )


def _bars(source: Source, sample: ir.Table, facts: ColumnFacts) -> tuple[float, ...]:
    """Return how numbers spread over equally wide parts of their span."""
    low, high = float(facts.low), float(facts.high)
    values = finite(sample[facts.name]).cast("float64")
    place = ((values - low) / (high - low) * _BARS).floor().clip(upper=_BARS - 1).cast("int64")
    held = sample.select(place=place)
    known = held.filter(held.place.notnull())
    counted = source.collect(known.group_by("place").aggregate(n=known.count()))
    counts = {int(row["place"]): int(row["n"]) for row in counted.to_pylist()}
    most = max(counts.values(), default=1)
    return tuple(counts.get(i, 0) / most for i in range(_BARS))


def _plain(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
