"""Keys of persons, recognised by constant traits: all rows of a key value have the same sex, race
or date of birth.

Where a person has many rows, as in panels and repeated measurements, neither a name such as `nr` nor
the number of rows per value tells the key from a code of things. But a person has one sex and one
date of birth, and whatever numbers persons has one of them for each number.
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
"""Most columns that are looked at as keys, those with the most values."""
MOST_TRAITS = 10
"""Most traits that are asked for: each costs one grouping of the table by each key."""
FIXED = 0.98
"""Share of the values that must come with one trait each: registers hold slips of the pen."""
BY_CHANCE = 1e-3
"""Largest probability that a trait which the key has nothing to do with looks fixed."""
ALIKE = 0.99
"""Share of the values of the finest key from which another column is a key of the same persons."""
FINER = 3
"""Times as many values as the trait that a key must have: a recoded trait is no key."""


@dataclass(frozen=True)
class Trait:
    """A column with a trait that a person keeps for life.

    Attributes
    ----------
    name
        The column.
    distinct
        How many values it has.
    peak
        Share of the values that are the most frequent one.
    """

    name: str
    distinct: int
    peak: float


def find_fixed(
    source: Source, table: ir.Table, keys: Mapping[str, int], traits: Sequence[Trait]
) -> dict[str, tuple[str, ...]]:
    """Return which traits each column fixes, in one query over all of them.

    Of columns that fix one trait, those with the most values count: what else is the same for a person
    throughout and distinguishes persons, such as the length of a stay, is measured and no key.

    Only values that come back are asked: of a value in one row everything is fixed. Two rows of
    one value agree by chance at most as often as the most frequent value of the trait is met, so
    n such values look fixed with a probability of at most peak to the power of n.

    Parameters
    ----------
    source
        The opened table, which runs the query.
    table
        Its rows, or a sample of them.
    keys
        Columns that may be keys, with how many values each has.
    traits
        The columns that persons have for life.

    Returns
    -------
    dict
        By column, the traits that it fixes; columns that fix none are left out.

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
    """Return the rows of all tables, halved time and again: a chain of many unions is too deep to compile."""
    if len(tables) == 1:
        return tables[0]
    middle = len(tables) // 2
    return stacked(tables[:middle]).union(stacked(tables[middle:]))


def _compared(traits: Sequence[Trait]) -> list[Trait]:
    """Return the traits that vary: of one that hardly does, nothing can be told."""
    return [trait for trait in traits if trait.distinct > 1 and 0 < trait.peak < 1]


def _counts(table: ir.Table, key: str, trait: Trait) -> ir.Table:
    """Return one row: how many values come back with a known trait, and how many with one alone."""
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
