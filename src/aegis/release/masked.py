"""The masked table as one query, and what in the data its masks do not know."""

from __future__ import annotations

from collections.abc import Mapping

import ibis
import ibis.expr.types as ir
import numpy as np

from aegis.errors import DataError, PolicyError
from aegis.masks import Kind, Mask, ValueCounts
from aegis.policy import Configuration, Policy, Role, Unseen
from aegis.privacy import PrivacyRule, Verdict
from aegis.sources import Source
from aegis.summary import count_classes
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


def masked_table(source: Source, masks: Mapping[str, Mask | None]) -> ir.Table:
    """Return the released columns, masked, in the order of the table."""
    columns = {}
    for name in source.columns:
        if name in masks:
            mask = masks[name]
            column = source.table[name]
            columns[name] = column if mask is None else mask.expression(column)
    return source.table.select(**columns)


def count_unseen(source: Source, masks: Mapping[str, Mask | None]) -> dict[str, int]:
    """Return per attribute how many rows hold a value that its mask does not know."""
    unknown = {}
    for name, mask in masks.items():
        known = mask.known(source.table[name]) if mask is not None else None
        if known is not None:
            unknown[name] = (~known).fill_null(False).sum().fill_null(0)
    if not unknown:
        return {}
    counts = source.collect(source.table.aggregate(**{f"u{i}": e for i, e in enumerate(unknown.values())}))
    row = counts.to_pylist()[0]
    return {name: int(row[f"u{i}"]) for i, name in enumerate(unknown) if row[f"u{i}"]}


def refuse_unseen(unseen: Mapping[str, int], policy: Policy) -> None:
    """Raise `DataError` for unseen values where the policy says so."""
    if unseen and policy.unseen is Unseen.ERROR:
        listed = ", ".join(f"{name} ({count:,} rows)" for name, count in unseen.items())
        raise DataError(
            f"The table holds values that the masks have never seen: {listed}.",
            hint="Add them to the hierarchy or groups, or write `unseen: suppress` in the policy to release them as '*'.",
        )


def suppress(
    source: Source,
    table: ir.Table,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    rule: PrivacyRule,
) -> tuple[ir.Table, Verdict]:
    """Leave out the rows of classes that fail the rule.

    Parameters
    ----------
    source
        Runs the query that counts the classes.
    table
        The masked table.
    quasi, sensitive
        Columns that form the classes, and columns that the rule protects.
    rule
        What every class must meet.

    Returns
    -------
    tuple
        The table without those rows, and what the rule said.
    """
    counted = count_classes(source, quasi, sensitive, table=table)
    verdict = rule.check(counted.table)
    if verdict.kept.all() or not quasi:
        return table, verdict
    failing = ibis.memtable(counted.members(~verdict.kept))
    matches = [table[name].identical_to(failing[f"k{i}"]) for i, name in enumerate(quasi)]
    return table.anti_join(failing, matches), verdict
