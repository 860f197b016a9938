"""Measure the facts about a table that a first policy needs, with a few queries.

The first query aggregates over all columns of the whole table: it counts nulls, finds ranges and,
if the table is not large, counts distinct values. The second query finds quantiles and the forms of
texts; for a large table, it uses a seeded sample. The third query finds the most frequent values of
all categories at once. The last query tests which lifelong traits each possible key of persons
determines. For wide tables, each of these steps needs several queries. Each step adds its figures
to the facts about the columns that it gets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import takewhile
from typing import Any

import ibis
import ibis.expr.types as ir

from aegis.errors import DataError
from aegis.files import SILENT, Progress
from aegis.masks import Kind
from aegis.policy.model import Role
from aegis.policy.suggest.facts import (
    FEWEST_KEYS,
    LOWERED,
    NEARLY_ALL,
    SHAPES,
    ColumnFacts,
    in_order,
)
from aegis.policy.suggest.names import (
    ALIKE,
    MOST_KEYS,
    MOST_STEADY,
    MOST_TIMES,
    MOST_TRAITS,
    Trait,
    find_fixed,
    find_once_each,
    find_steady,
    names_measure,
    names_survey_weight,
    names_thing_or_time,
    names_time,
)
from aegis.sources import Source

EXACT_ROWS = 1_000_000
"""Largest number of rows for which distinct values are counted instead of estimated from the sample."""
_AT_ONCE = 300
"""Number of aggregates in a query of the embedded engine, which compares all of them with each other."""
_MOST_AT_ONCE = 1600
"""Number of aggregates in a query of other engines, which read all columns each time.

PostgreSQL allows 1,664.
"""
_STACKED_AT_ONCE = 150
"""Number of columns whose values are stacked in one query of the embedded engine."""
SAMPLE_ROWS = 200_000
"""Number of rows in the sample for quantiles, forms of texts and most frequent values."""
SHOWN_VALUES = 5
"""Number of most frequent values that are kept."""
FEWEST_ROWS = 5
"""A value with fewer rows than this is not shown, because it could identify a person."""
FEW_VALUES = 50
"""Largest number of distinct whole numbers for which frequent values are shown."""
MOST_RANGES = 60
"""Ranges of numbers that are written as texts are sorted only if there are at most this many."""
YEARS = (1800, 2101)
"""Whole numbers from the first year to before the second may be dates such as 20190107."""
SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


def measure_columns(source: Source, *, progress: Progress = SILENT) -> dict[str, ColumnFacts]:
    """Return the facts about every column of a table, in the table's order; four queries, one step.
    Raise `DataError` if the table has no rows, and `EngineError` if the engine failed.
    """
    with progress.step("Reading the table"):
        if source.rows == 0:
            raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
    with progress.step("Measuring columns", 4) as step:
        step.note("counts and ranges")
        facts = _count(source)
        step.advance()
        step.note("quantiles and forms")
        sample = source.sample(SAMPLE_ROWS, seed=0)
        facts = _describe(source, sample, facts)
        step.advance()
        step.note("frequent values")
        facts = _find_repetition(source, sample, facts)
        step.advance()
        step.note("keys of persons")
        facts = _find_keys(source, sample, facts)
        step.advance()
    return {column.name: column for column in facts}


def finite(column: ir.Column) -> ir.Value:
    """Return the column with null in place of NaN, the infinities, and the dates and times outside
    the years 1 to 9999, which Python cannot represent.
    """
    kind = column.type()
    if kind.is_date():
        return ibis.ifelse(column.between(date.min, date.max), column, ibis.null(kind))
    if kind.is_timestamp():
        first, last = datetime.min, datetime.max
        if kind.timezone is not None:  # in each time zone, these moments are within the years
            first, last = (datetime(*day, 9, tzinfo=UTC) for day in ((1, 1, 2), (9999, 12, 31)))
        micro = column.cast(kind.copy(scale=6)) if (kind.scale or 0) > 6 else column
        return ibis.ifelse(micro.between(first, last), micro, ibis.null(micro.type()))
    if not kind.is_floating():
        return column
    return ibis.ifelse(column.isnan() | column.isinf(), ibis.null(column.type()), column)


def _row(source: Source, table: ir.Table, aggregations: Mapping[str, ir.Value]) -> dict[str, Any]:
    """Run aggregations over a table; for wide tables, this takes several queries."""
    names = list(aggregations)
    at_once = _AT_ONCE if source.engine.in_process else _MOST_AT_ONCE
    row: dict[str, Any] = {}
    for start in range(0, len(names), at_once):
        batch = {name: aggregations[name] for name in names[start : start + at_once]}
        row |= source.collect(table.aggregate(**batch)).to_pylist()[0]
    return row


def _count(source: Source) -> list[ColumnFacts]:
    """Return the numbers of nulls and of NaN, the smallest and the largest value and, unless the
    table is large, the number of values of all columns, from one query over the whole table.
    """
    table, exact = source.table, source.rows <= EXACT_ROWS
    aggregations: dict[str, ir.Value] = {}
    for i, name in enumerate(source.columns):
        column = table[name]
        kind = Kind.of(column.type())
        aggregations[f"values{i}"] = column.count()
        if kind is None:
            continue
        if exact:
            aggregations[f"distinct{i}"] = column.nunique()
        if not exact or kind.ordered:
            aggregations[f"low{i}"] = finite(column).min()
            aggregations[f"high{i}"] = finite(column).max()
        if kind is Kind.NUMBER:
            aggregations[f"whole{i}"] = (finite(column) % 1 == 0).all()
        if column.type().is_floating():
            aggregations[f"special{i}"] = (column.isnan() | column.isinf()).sum()
    row = _row(source, table, aggregations)
    stem = common_stem(source.columns)
    return [
        ColumnFacts(
            name=name,
            spoken=name[len(stem) :],
            dtype=str(table[name].type()),
            kind=Kind.of(table[name].type()),
            rows=source.rows,
            nulls=source.rows - row[f"values{i}"],
            distinct=row.get(f"distinct{i}") or 0,
            exact=exact,
            low=row.get(f"low{i}"),
            high=row.get(f"high{i}"),
            special=row.get(f"special{i}") or 0,
            whole_numbers=bool(row.get(f"whole{i}")),
        )
        for i, name in enumerate(source.columns)
    ]


def common_stem(names: Sequence[str]) -> str:
    """Return the prefix that four or more names have in common; empty if it is one of them."""
    first, last = min(names), max(names)
    pairs = zip(first, last, strict=False)
    stem = first[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
    return stem if len(names) >= 4 and stem not in names else ""


def estimate_distinct(rows: int, sampled: int, distinct: int) -> int:
    """Estimate the number of different values in `rows` rows that are not null from the number of
    `distinct` values in `sampled` ones.

    The estimate D solves D (1 - (1 - q)^(rows / D)) = seen, where q = sampled / rows. The left side
    is the expected number of values in the sample if D values are equally frequent and each row is
    drawn with probability q. If values have different frequencies, the sample has fewer values, so
    the estimate is too low. It is never below `distinct` or above `rows`.
    """
    if distinct >= sampled or sampled >= rows:
        return rows if sampled < rows else distinct
    missed = math.log1p(-sampled / rows)
    low, high = math.log(distinct), math.log(rows)
    for _ in range(60):
        middle = (low + high) / 2
        size = math.exp(middle)
        if -size * math.expm1(missed * rows / size) < distinct:
            low = middle
        else:
            high = middle
    return min(rows, max(distinct, round(math.exp(high))))


def _describe(source: Source, sample: ir.Table, facts: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Add the quantiles of all numeric columns, from one query on a sample."""
    aggregations: dict[str, ir.Value] = {}
    for i, column_facts in enumerate(facts):
        if column_facts.kind is None or (column_facts.exact and column_facts.distinct < 2):
            continue
        column = sample[column_facts.name]
        if not column_facts.exact:
            aggregations[f"sampled{i}"] = column.count()
            aggregations[f"seen{i}"] = column.nunique()
        if column_facts.kind.numeric:
            aggregations[f"quantiles{i}"] = finite(column.cast("float64")).quantile(list(SHARES))
            if column_facts.integral:
                aggregations[f"round{i}"] = (column % 10 == 0).ifelse(1, 0).cast("float64").mean()
                if column_facts.kind is Kind.INTEGER and _in_years(column_facts):
                    aggregations[f"dated{i}"] = _dated(column).ifelse(1, 0).cast("float64").mean()
    row = _row(source, sample, aggregations)
    return [_described(column, i, row) for i, column in enumerate(facts)]


def _described(facts: ColumnFacts, i: int, row: Mapping[str, Any]) -> ColumnFacts:
    if f"seen{i}" in row:
        facts = _estimated(facts, row[f"sampled{i}"], row[f"seen{i}"])
    quantiles = row.get(f"quantiles{i}")
    if quantiles:
        pairs = zip(SHARES, quantiles, strict=True)
        by_share = {s: float(q) for s, q in pairs if q is not None}
        facts = replace(facts, quantiles=by_share, round_share=row.get(f"round{i}") or 0.0)
    dated = row.get(f"dated{i}")
    return facts if dated is None else replace(facts, shapes={"date": dated})


def _in_years(facts: ColumnFacts) -> bool:
    """Return whether all numbers of a column would be of `YEARS` if they were dates like 20190107."""
    low, high = (10_000 * year for year in YEARS)
    return facts.low is not None and low <= facts.low and facts.high < high


def _dated(column: ir.Value) -> ir.BooleanValue:
    """Return whether a number is a date YYYYMMDD: the month is 1 to 12, the day 1 to 31."""
    month, day = (column // 100) % 100, column % 100
    return (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)


def _estimated(facts: ColumnFacts, sampled: int, distinct: int) -> ColumnFacts:
    """Add the estimated number of different values, from `distinct` ones in `sampled` rows. It is
    at least 1 if the table has any value, and at least 2 if the smallest and the largest value
    differ.
    """
    estimate = estimate_distinct(facts.values, sampled, distinct) if distinct else 0
    least = min(facts.values, int(facts.low is not None) + int(facts.low != facts.high))
    ordered = facts.kind is not None and facts.kind.ordered
    return replace(
        facts,
        distinct=max(estimate, least, int(facts.special > 0)),
        low=facts.low if ordered else None,
        high=facts.high if ordered else None,
    )


def _find_repetition(
    source: Source, sample: ir.Table, facts: Sequence[ColumnFacts]
) -> list[ColumnFacts]:
    """Add, by two queries on a sample (more for wide tables), how often values repeat, the forms of
    texts, and the most frequent values.
    """
    at_once = _STACKED_AT_ONCE if source.engine.in_process else _MOST_AT_ONCE
    indices = [i for i, column in enumerate(facts) if _repeats(column)]
    described = list(facts)
    for start in range(0, len(indices), at_once):
        batch = indices[start : start + at_once]
        together = _find_values(source, sample, [described[i] for i in batch])
        for i, column in zip(batch, together, strict=True):
            described[i] = column
    return described


def _find_values(
    source: Source, sample: ir.Table, facts: Sequence[ColumnFacts]
) -> list[ColumnFacts]:
    """Do `_find_repetition` for some columns, which are stacked and grouped by value, so that the
    form of each different value is tested once.
    """
    columns = {f"c{i}": sample[column.name].cast("string") for i, column in enumerate(facts)}
    stacked = sample.select(**columns).pivot_longer(
        ibis.selectors.all(), names_to="column", values_to="value"
    )
    grouped = (
        stacked.filter(stacked["value"].notnull())
        .group_by("column", "value")
        .aggregate(n=lambda t: t.count())
    )
    text_columns = [f"c{i}" for i, column in enumerate(facts) if column.kind is Kind.TEXT]
    by_column = grouped.group_by("column").aggregate(**_repetition(grouped, text_columns))
    measured = {row["column"]: row for row in source.collect(by_column).to_pylist()}
    facts = [_repeated(column, measured.get(f"c{i}")) for i, column in enumerate(facts)]
    return _find_frequent(source, sample, grouped, facts)


def _repetition(grouped: ir.Table, texts: Sequence[str]) -> dict[str, ir.Value]:
    """Return aggregations over the table `grouped`, which has each value of a column with its
    number of rows `n`: how often values repeat and, for the columns `texts`, the forms of the
    values.
    """
    size, value = grouped["n"].cast("float64"), grouped["value"]
    rows = size.sum()
    aggregations: dict[str, ir.Value] = {
        "rows": rows,
        "squares": (size * size).sum(),
        "peak": size.max() / rows,
        "shortest": value.length().min(),
        "longest": value.length().max(),
    }
    if texts:
        is_text = grouped["column"].isin(list(texts))
        for shape, pattern in SHAPES.items():
            read = value.lower().strip() if shape in LOWERED else value
            matches = ibis.ifelse(is_text, read.re_search(pattern), ibis.literal(False))
            aggregations[shape] = ibis.ifelse(matches, size, 0.0).sum() / rows
    return aggregations


def _repeated(facts: ColumnFacts, row: Mapping[str, Any] | None) -> ColumnFacts:
    """Add the figures in `row` (None: there are none): `peak`, `separation` and the lengths and
    forms of texts.
    """
    if row is None:
        return facts
    rows = row["rows"]
    pairs = rows * (rows - 1)
    facts = replace(
        facts, peak=row["peak"], separation=1 - (row["squares"] - rows) / pairs if pairs else 0.0
    )
    if facts.kind is not Kind.TEXT:
        return facts
    return replace(
        facts,
        lengths=(row["shortest"], row["longest"]),
        shapes={shape: row[shape] for shape in SHAPES},
    )


def _find_frequent(
    source: Source, sample: ir.Table, grouped: ir.Table, facts: Sequence[ColumnFacts]
) -> list[ColumnFacts]:
    """Add the most frequent values of each column that may have categories. `grouped` has each
    value of a column with its number of rows in the sample.
    """
    columns = [f"c{i}" for i, column in enumerate(facts) if _countable(column)]
    if not columns:
        return list(facts)
    rank = ibis.row_number().over(group_by="column", order_by=[ibis.desc("n"), "value"])
    ranked = grouped.filter(grouped["column"].isin(columns)).mutate(rank=rank)
    ranged = [f"c{i}" for i, column in enumerate(facts) if _ranged(column)]
    most_frequent = ranked.filter(
        (ranked["rank"] < SHOWN_VALUES)
        | (ranked["column"].isin(ranged or [""]) & (ranked["rank"] < MOST_RANGES))
    )
    rows = source.collect(most_frequent.order_by("column", "rank")).to_pylist()
    total = _row(source, sample, {"total": sample.count()})["total"]
    by_column: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_column.setdefault(row["column"], []).append(row)
    return [
        _with_values(column, by_column.get(f"c{i}", []), total) for i, column in enumerate(facts)
    ]


def _with_values(facts: ColumnFacts, rows: Sequence[Mapping[str, Any]], total: int) -> ColumnFacts:
    """Add the most frequent values, if comments may quote them, and if all values are ranges of
    numbers, these ranges. `rows` has values with their number of rows `n`, out of `total` rows.
    """
    frequent = [(r["value"], r["n"] / total) for r in rows[:SHOWN_VALUES] if r["n"] >= FEWEST_ROWS]
    texts = [str(row["value"]) for row in rows]
    ranges = in_order(texts) if _ranged(facts) and len(texts) == facts.distinct else ()
    return replace(facts, frequent=tuple(frequent), ranges=ranges)


def _find_keys(source: Source, sample: ir.Table, facts: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Add, for each column that may identify persons, the columns of lifelong traits that it
    determines, and those that differ in many of its values (both tested on a sample if the table is
    large); and a column of times such that no two rows agree in both.
    """
    traits = [
        Trait(column.name, column.distinct, column.peak)
        for column in facts
        if column.concept is not None and column.concept.trait
    ]
    possible = sorted(filter(_may_be_key, facts), key=lambda column: -column.distinct)
    keys = {column.name: column.distinct for column in possible[:MOST_KEYS]}
    fixed, varied = find_fixed(source, sample, keys, traits[:MOST_TRAITS])
    steady, numbers = _find_steady(source, sample, possible[:MOST_KEYS], facts)
    once = _find_once_each(source, possible[:MOST_KEYS], facts)
    return [
        replace(
            column,
            fixes=fixed.get(column.name, ()) or steady.get(column.name, ()),
            numbers=numbers.get(column.name),
            varies=varied.get(column.name, ()),
            once_each=once.get(column.name),
        )
        for column in facts
    ]


FEWEST_STEADY = 3
"""A column with the name of a key is one if it determines at least so many other columns."""


def _find_steady(
    source: Source, sample: ir.Table, possible: Sequence[ColumnFacts], facts: Sequence[ColumnFacts]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return, for each column that a name makes a key, the columns that it determines, if there are
    `FEWEST_STEADY` or more; and, for columns that number the same persons, the key.
    """
    keys = {column.name: column for column in possible if _named_key(column)}
    kinds = (Kind.INTEGER, Kind.TEXT, Kind.BOOLEAN, Kind.NUMBER)
    others = [
        Trait(column.name, column.distinct, column.peak or 1 / column.distinct)
        for column in facts
        if column.kind in kinds and column.distinct > 1
    ]
    determined = find_steady(source, sample, list(keys), others[:MOST_STEADY])
    by_name = {column.name: column for column in facts}
    steady: dict[str, tuple[str, ...]] = {}
    numbers: dict[str, str] = {}
    for key, names in determined.items():
        values = keys[key].distinct
        coarse = [name for name in names if by_name[name].distinct < ALIKE * values]
        if len(coarse) < FEWEST_STEADY:
            continue
        steady[key] = tuple(coarse[:FEWEST_STEADY])
        twins = (name for name in names if name not in coarse and _may_be_key(by_name[name]))
        numbers |= {name: key for name in twins if by_name[name].distinct * ALIKE <= values}
    return steady, numbers


def _named_key(facts: ColumnFacts) -> bool:
    """Return whether a name says that a column identifies somebody: `ID`, or a full name."""
    concept = facts.concept
    if concept is None or concept.role is not Role.IDENTIFIER or names_thing_or_time(facts.spoken):
        return False
    return not concept.weak or facts.is_bare


def _find_once_each(
    source: Source, possible: Sequence[ColumnFacts], facts: Sequence[ColumnFacts]
) -> dict[str, str]:
    """Return columns that may number persons who were observed several times, such as at each
    visit, each with a column of times such that no two rows agree in both. A sample cannot show
    this, so the result is empty if the table is too large to be read completely.
    """
    if source.rows > EXACT_ROWS:
        return {}
    keys = {
        column.name: 1 - column.separation
        for column in possible
        if column.even and not names_thing_or_time(column.spoken)
    }
    times = {
        column.name: 1 - column.separation
        for column in facts
        if column.kind in (Kind.INTEGER, Kind.TEXT, Kind.DATE)
        and column.distinct > 1
        and names_time(column.spoken)
    }
    return find_once_each(source, source.table, keys, dict(list(times.items())[:MOST_TIMES]))


def _may_be_key(facts: ColumnFacts) -> bool:
    """Return whether integers or texts repeat, and their name has no other meaning than persons."""
    if facts.kind not in (Kind.INTEGER, Kind.TEXT) or not facts.distinct >= FEWEST_KEYS:
        return False
    if facts.distinct >= NEARLY_ALL * facts.values:
        return False
    concept = facts.concept
    if names_measure(facts.spoken) or names_survey_weight(facts.spoken):
        return False
    return concept is None or concept.role is Role.IDENTIFIER


def _ranged(facts: ColumnFacts) -> bool:
    """Return whether a column has texts that are ranges, few enough to be listed."""
    return facts.shape("range") > NEARLY_ALL and 2 < facts.distinct <= MOST_RANGES


def _repeats(facts: ColumnFacts) -> bool:
    """Return whether Aegis counts how often each value occurs: for all but measured numbers."""
    return _countable(facts) or facts.integral or facts.kind is Kind.DATE


def _countable(facts: ColumnFacts) -> bool:
    if facts.kind is Kind.INTEGER:
        return facts.distinct <= FEW_VALUES or facts.categorical
    return facts.kind in (Kind.TEXT, Kind.BOOLEAN) or (
        facts.kind is Kind.NUMBER and 0 < facts.distinct <= FEW_VALUES
    )
