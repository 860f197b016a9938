"""Which masks a release uses, and what in the data they do not know."""

from __future__ import annotations

from collections.abc import Mapping

import ibis.expr.types as ir
import numpy as np

from aegis.errors import DataError, PolicyError
from aegis.masks import Kind, Mask, ValueCounts
from aegis.policy import Configuration, Policy, Role
from aegis.sources import Source
from aegis.summary.codes import sorted_values


def release_masks(policy: Policy, configuration: Configuration) -> dict[str, Mask | None]:
    """Return what becomes of each released column: its mask, or None where it is kept as it is.

    Identifiers are left out, unless the policy gives them a mask (`tokenise`), which is then
    used. The label is kept unless the policy masks it.

    Raises
    ------
    PolicyError
        The configuration leaves out a scored attribute.
    """
    found: dict[str, Mask | None] = {}
    for attribute in policy.released():
        if attribute.role is Role.IDENTIFIER:
            found[attribute.name] = attribute.masks[0]
        elif attribute.name in configuration.masks:
            found[attribute.name] = configuration.masks[attribute.name]
        else:
            raise PolicyError(
                f"Configuration {configuration.name!r} does not mask {attribute.name!r}.",
                hint="Name every scored attribute.",
            )
    found.setdefault(policy.label.column, None)
    return found


def fit_masks(source: Source, masks: Mapping[str, Mask | None]) -> dict[str, Mask | None]:
    """Fit what is not fitted yet to this table, and check that every mask fits its column."""
    fitted: dict[str, Mask | None] = {}
    for name, mask in masks.items():
        column = source.require(name, where="named in the policy")
        kind = Kind.of(column.type())
        if mask is None:
            fitted[name] = None
            continue
        if kind is None:
            raise DataError(
                f"Attribute {name!r} has type {column.type()}, which no mask works on.",
                hint="Convert it to a number, text, date or boolean.",
            )
        mask.check(kind, name)
        fitted[name] = mask if mask.fitted else mask.fit(_value_counts(source, column, kind))
    return fitted


def _value_counts(source: Source, column: ir.Column, kind: Kind) -> ValueCounts:
    table = source.table
    found = source.collect(table.group_by(v=column).aggregate(n=table.count()))
    values, order = sorted_values(found["v"].combine_chunks())
    return ValueCounts(kind, values, found["n"].to_numpy().astype(np.int64)[order])


def count_unseen(source: Source, masks: Mapping[str, Mask | None]) -> dict[str, int]:
    """Return per attribute how many rows hold a value that its mask does not know."""
    unknown = {}
    for name, mask in masks.items():
        known = mask.known(source.table[name]) if mask is not None else None
        if known is not None:
            unknown[name] = (~known).fill_null(False).sum().fill_null(0)
    if not unknown:
        return {}
    counts = source.collect(
        source.table.aggregate(**{f"u{i}": e for i, e in enumerate(unknown.values())})
    )
    row = counts.to_pylist()[0]
    return {name: int(row[f"u{i}"]) for i, name in enumerate(unknown) if row[f"u{i}"]}


def refuse_unseen(unseen: Mapping[str, int]) -> None:
    """Raise `DataError` when there are unseen values."""
    if unseen:
        listed = ", ".join(f"{name} ({count:,} rows)" for name, count in unseen.items())
        raise DataError(
            f"The table holds values that the masks have never seen: {listed}.",
            hint="Add them to the hierarchy or groups, or write `unseen: suppress` in the policy to release them as '*'.",
        )
