"""Detect keys of persons: columns that determine the sex, race or date of birth.

In panels and repeated measurements, each person has many rows. Then neither a name such as `nr` nor
the number of rows per value distinguishes the key of persons from other codes. But a person has one
sex and one date of birth. So each value of a column that identifies persons occurs with only one
sex and one date of birth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.types as ir

from aegis.sources import Source

MOST_KEYS = 20
"""Largest number of columns that are tested as keys: those with the most values."""
MOST_TRAITS = 10
"""Largest number of traits that are tested, because each trait requires one grouping of the table
by each key.
"""
FIXED = 0.98
"""A key determines a trait if at least this share of its values have a single trait; registers
contain typing errors.
"""
BY_CHANCE = 1e-3
"""Largest allowed probability that an unrelated trait looks determined by chance."""
ALIKE = 0.99
"""A key is also kept if its number of values is at least this share of the finest key's number of
values.
"""
FINER = 3
"""Smallest ratio of the number of values of a key to the number of values of a trait, because a
recoded trait is not a key.
"""
MOST_TIMES = 5
"""Largest number of columns of times that are tested, because each requires one grouping by each
key.
"""
ONCE = 0.999
"""At least this share of the rows must be the only ones with their value and time; tables contain
typing errors.
"""


@dataclass(frozen=True)
class Trait:
    """A column that contains a lifelong trait of persons, such as sex or date of birth.

    Attributes
    ----------
    name
        The column.
    distinct
        Number of its values.
    peak
        Share of the rows that have the most frequent value.
    """

    name: str
    distinct: int
    peak: float


def find_fixed(
    source: Source, table: ir.Table, keys: Mapping[str, int], traits: Sequence[Trait]
) -> dict[str, tuple[str, ...]]:
    """Return, for each possible key, the traits that are the same in all rows with one value of the
    key. One query examines all columns.

    A column determines a trait if the trait is constant for each value of the column. If several
    columns determine only a single trait, only those with the most values are returned: the others,
    such as the length of a stay, are measurements and not keys.

    Only values that occur in several rows are tested, because a value with a single row determines
    everything. Two rows with the same value agree in the trait by chance with a probability of at
    most `peak`, the share of the trait's most frequent value. So if n values occur in several rows,
    the rows of every value agree by chance with a probability of at most peak ** n.

    Parameters
    ----------
    source
        The opened table, which runs the query.
    table
        Its rows, or a sample of them.
    keys
        Columns that may be keys, with their numbers of values.
    traits
        The columns with lifelong traits of persons.

    Returns
    -------
    dict
        For each column, the traits that it determines; columns without such traits are absent.

    Raises
    ------
    EngineError
        The engine failed.
    """
    asked = {
        key: [trait for trait in traits if trait.name != key and trait.distinct * FINER <= distinct]
        for key, distinct in keys.items()
    }
    counts = [
        _counts(table, key, trait) for key, listed in asked.items() for trait in _compared(listed)
    ]
    if not counts:
        return {}
    rows = source.collect(stacked(counts)).to_pylist()
    fixed: dict[str, tuple[str, ...]] = {}
    for trait in traits:
        fixing = [r["key"] for r in rows if r["trait"] == trait.name and _is_fixed(r, trait.peak)]
        most = max((keys[key] for key in fixing), default=0)
        for key in fixing:
            if keys[key] >= ALIKE * most:
                fixed[key] = (*fixed.get(key, ()), trait.name)
    return fixed


def stacked(tables: Sequence[ir.Table]) -> ir.Table:
    """Return a table with the rows of all given tables, built as a balanced tree of unions.

    A long chain of unions would be too deep to compile.
    """
    if len(tables) == 1:
        return tables[0]
    middle = len(tables) // 2
    return stacked(tables[:middle]).union(stacked(tables[middle:]))


def _compared(traits: Sequence[Trait]) -> list[Trait]:
    """Return the traits that vary enough to test whether a column determines them."""
    return [trait for trait in traits if trait.distinct > 1 and 0 < trait.peak < 1]


def _counts(table: ir.Table, key: str, trait: Trait) -> ir.Table:
    """Return a query for two numbers: how many values of `key` have several rows with a known
    trait, and how many of these values have only one trait.
    """
    known = table.filter(table[key].notnull() & table[trait.name].notnull())
    column = known[trait.name]
    if column.type().is_boolean():  # some engines have no least flag
        column = column.ifelse(1, 0)
    groups = known.group_by(value=known[key]).aggregate(
        rows=known.count(), low=column.min(), high=column.max()
    )
    again = groups.filter(groups["rows"] > 1)
    same = (again["low"] == again["high"]).ifelse(1, 0)
    return again.aggregate(again=again.count(), same=same.sum()).mutate(
        key=ibis.literal(key), trait=ibis.literal(trait.name)
    )


def _is_fixed(row: Mapping[str, Any], peak: float) -> bool:
    again, same = row["again"], row["same"] or 0
    return bool(again and same >= FIXED * again and again * math.log(peak) <= math.log(BY_CHANCE))


def find_once_each(
    source: Source, table: ir.Table, keys: Mapping[str, float], times: Mapping[str, float]
) -> dict[str, str]:
    """Return, for each possible key, a column of times in which no time occurs twice among the rows
    with one value of the key.

    Suppose two columns are unrelated, and p and q are the shares of pairs of rows that agree in
    each. Then n rows have about n (n - 1) / 2 p q pairs that agree in both, and no such pair with a
    probability of exp(-n (n - 1) / 2 p q). Pairs of columns for which this probability is above
    `BY_CHANCE` are not tested, for example any column with a clock time.

    Parameters
    ----------
    source
        The opened table, which runs the query.
    table
        Its rows.
    keys, times
        Columns that may be keys, and columns of times. Each has the share of pairs of rows that
        agree in the column, from 0 to 1.

    Raises
    ------
    EngineError
        The engine failed.
    """
    pairs = source.rows * (source.rows - 1) / 2
    asked = [
        (key, time)
        for key, p in keys.items()
        for time, q in times.items()
        if key != time and pairs * p * q >= -math.log(BY_CHANCE)
    ]
    if not asked:
        return {}
    counts = [_count(table, key, time) for key, time in asked]
    rows = source.collect(stacked(counts)).to_pylist()
    once = {(r["key"], r["time"]) for r in rows if r["cells"] and r["cells"] >= ONCE * r["rows"]}
    return {key: time for key, time in reversed(asked) if (key, time) in once}


def _count(table: ir.Table, key: str, time: str) -> ir.Table:
    """Return a query for two numbers: rows with a key and a time, and different pairs of these."""
    known = table.filter(table[key].notnull() & table[time].notnull())
    cells = known.group_by(key_value=known[key], time_value=known[time]).aggregate(n=known.count())
    return cells.aggregate(rows=cells["n"].sum(), cells=cells.count()).mutate(
        key=ibis.literal(key), time=ibis.literal(time)
    )
