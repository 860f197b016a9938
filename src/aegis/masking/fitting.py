"""Fit masks to a table, and count the rows with values that the masks do not cover."""

from __future__ import annotations

from collections.abc import Mapping

import ibis.expr.types as ir
import numpy as np

from aegis.errors import DataError
from aegis.masks import Kind, Mask, ValueCounts, join_lookups, lookup_of
from aegis.sources import Source
from aegis.summary.codes import sorted_values
from aegis.summary.grouped import count_by


def fit_masks(
    source: Source, masks: Mapping[str, Mask | None], shared_rows: int
) -> dict[str, Mask | None]:
    """Fit all masks that are not fitted yet to this table, and check that every mask fits its column.

    Parameters
    ----------
    source
        The table.
    masks
        The mask of each column; None shows the column as it is.
    shared_rows
        Smallest number of rows that must share each bound that a mask learns from the table, such
        as the end of a range.
    """
    source.refuse_other_table(masks)
    fitted: dict[str, Mask | None] = {}
    for name, mask in masks.items():
        column = source.require(name, where="named in the policy")
        kind = Kind.of(column.type())
        if mask is None:
            fitted[name] = None
            continue
        if kind is None:
            raise DataError(
                f"Attribute {name!r} has type {column.type()}, and no mask supports this type.",
                hint="Convert it to a number, text, date or boolean.",
            )
        mask.check(kind, name)
        if not mask.fitted:
            mask = mask.fit(_value_counts(source, column, kind, shared_rows))
        fitted[name] = mask
    return fitted


def _value_counts(source: Source, column: ir.Column, kind: Kind, shared_rows: int) -> ValueCounts:
    table = source.table
    counted = source.collect(table.group_by(v=column).aggregate(n=table.count()))
    values, order = sorted_values(counted["v"].combine_chunks())
    counts = counted["n"].to_numpy().astype(np.int64)[order]
    return ValueCounts(kind, values, counts, shared_rows)


def count_unseen(source: Source, masks: Mapping[str, Mask | None]) -> dict[str, int]:
    """Return, for each attribute, how many rows have a value that the attribute's mask does not
    cover.
    """
    table = source.table
    unseen = {}
    for name, mask in masks.items():
        if lookup_of(mask, table[name].type()) is not None:
            rows = _not_found(source, name, mask)
            if rows:
                unseen[name] = rows
            continue
        known = mask.known(table[name]) if mask is not None else None
        if known is None:
            continue
        unknown = (~known).fill_null(False)
        unknown_rows = source.collect(count_by(source, table, {"unknown": unknown})).to_pylist()
        rows = sum(row["n"] for row in unknown_rows if row["unknown"])
        if rows:
            unseen[name] = int(rows)
    return unseen


def _not_found(source: Source, name: str, mask: Mask | None) -> int:
    """Return how many rows have a value (not null) that the lookup table of a mask does not
    contain. `name` is the column.
    """
    joined = join_lookups(source, source.table, {name: mask})
    absent = joined.table[name].notnull() & joined.looked_up[name].isnull()
    counted = source.collect(joined.table.aggregate(n=absent.sum().cast("int64")))
    return int(counted["n"][0].as_py() or 0)


def refuse_unseen(unseen: Mapping[str, int]) -> None:
    """Raise `DataError` if masks do not cover all values. `unseen` has the number of rows with such
    values by column, as `count_unseen` returns it.
    """
    if unseen:
        listed = ", ".join(f"{name} ({count:,} rows)" for name, count in unseen.items())
        raise DataError(
            f"The table has values that its masks do not cover: {listed}.",
            hint="Add them to the hierarchy or groups, or write `unseen: suppress` in the policy to release them as '*'.",
        )
