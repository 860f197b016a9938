"""Apply masks with many values by joining a small table, if an expression would be too long.

For a `Level` of a hierarchy with 100,000 values, an engine needs minutes and gigabytes to evaluate
a CASE with 100,000 branches. A join of the column with a table that has a row per value gives the
same result. Values that are not in a table of an engine are looked up in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.compute as pc

from aegis.masks.base import SUPPRESSED, Mask
from aegis.masks.hierarchy import Hierarchy
from aegis.masks.level import Level
from aegis.sources import Source

MANY = 1_000
"""Smallest number of values for which a mask is applied by a lookup table."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """A mask as a list of values and the masked text of each.

    Attributes
    ----------
    values
        The values, in the column's type, without duplicates and without null.
    shown
        The masked text of each value.
    otherwise
        The masked text of all other values.
    of_null
        The masked text of null; None if it stays null.
    """

    values: pa.Array
    shown: pa.Array
    otherwise: str
    of_null: str | None = None

    def evaluate(self, column: pa.Array) -> pa.Array:
        """Return the masked value of each entry of an array of the column's type."""
        places = pc.index_in(column, value_set=self.values)
        shown = pc.fill_null(self.shown.take(places), self.otherwise)
        null = pa.scalar(self.of_null, pa.string())
        return pc.if_else(pc.is_null(column), null, shown)

    def expression(self, column: ir.Value, joined: ir.Value) -> ir.Value:
        """Return the masked `column`, given `joined`, the masked texts that a join with the list
        found; it is null where no value of the list matched.
        """
        null = ibis.null(dt.string) if self.of_null is None else ibis.literal(self.of_null)
        return ibis.ifelse(column.isnull(), null, joined.fill_null(self.otherwise))


def lookup_of(mask: Mask | None, dtype: dt.DataType) -> Lookup | None:
    """Return a mask as a list of values and masked texts, for a column of the type `dtype`; None if
    the mask has a short expression instead, or no list.
    """
    if mask is None or not (dtype.is_string() or dtype.is_integer()):
        return None
    if type(mask).targets is Mask.targets:
        return None
    lookup = _remembered(mask, dtype)
    return None if lookup is None or len(lookup.values) < MANY else lookup


@lru_cache(maxsize=256)
def _remembered(mask: Mask, dtype: dt.DataType) -> Lookup | None:
    if (
        isinstance(mask, Level)
        and mask.level > 0
        and mask.hierarchy is not None
        and dtype.is_string()
    ):
        return _of_level(mask.hierarchy, mask.level)
    targets = mask.targets(dtype)
    if targets is None:
        return None
    return Lookup(
        pa.array(list(targets.keyed), dtype.to_pyarrow()),
        pa.array(list(targets.keyed.values()), pa.string()),
        targets.otherwise,
        targets.of_null,
    )


def _of_level(hierarchy: Hierarchy, level: int) -> Lookup:
    """Return the list of a hierarchy's values, which are texts, and their groups on `level`. The
    result is the same as from `Level.targets`.
    """
    values, shown = hierarchy.columns[0], hierarchy.columns[level]
    of_null = None
    if values.null_count:
        of_null = shown.filter(pc.is_null(values))[0].as_py()
        shown, values = shown.filter(pc.is_valid(values)), values.drop_null()
    return Lookup(values, shown, SUPPRESSED, of_null)


@dataclass(frozen=True, eq=False)
class Joined:
    """A table joined with lookups for some of its columns. A lookup is a list of values and their
    masked texts.

    Attributes
    ----------
    table
        The joined table. Its own columns keep their names. If there is a lookup, the rows are in no
        particular order.
    looked_up
        For each column with a lookup, the result of the join; null in rows without a match.
    lookups
        The lookups by column.
    """

    table: ir.Table
    looked_up: Mapping[str, ir.Value]
    lookups: Mapping[str, Lookup]

    def masked(self, name: str, mask: Mask | None) -> ir.Value:
        """Return the expression of a masked column of `table`; if `mask` is None, the column
        itself.
        """
        column = self.table[name]
        if name in self.lookups:
            return self.lookups[name].expression(column, self.looked_up[name])
        return column if mask is None else mask.told_apart(column)


def join_lookups(source: Source, table: ir.Table, masks: Mapping[str, Mask | None]) -> Joined:
    """Return a table of the source's engine, joined with a list of values and masked texts for each
    mask that needs one.

    Masks with a short expression do not change the table.
    """
    lookups: dict[str, Lookup] = {}
    handed: dict[str, ir.Table] = {}
    for name, mask in masks.items():
        lookup = lookup_of(mask, table[name].type())
        if lookup is not None:
            lookups[name] = lookup
            place = len(handed)
            small: Any = {f"aegis_v{place}": lookup.values, f"aegis_g{place}": lookup.shown}
            handed[name] = source.upload(pa.table(small))
    return joined_with(table, lookups, handed)


def joined_with(
    table: ir.Table, lookups: Mapping[str, Lookup], handed: Mapping[str, ir.Table]
) -> Joined:
    """Return a table joined with lookup tables, one for each column in `handed`; `lookups` has
    their contents. The join adds the columns aegis_v0 (values), aegis_g0 (masked texts), aegis_v1,
    ...
    """
    for place, (name, small) in enumerate(handed.items()):
        table = table.left_join(small, table[name] == small[f"aegis_v{place}"])
    columns = {name: table[f"aegis_g{place}"] for place, name in enumerate(handed)}
    return Joined(table, columns, lookups)
