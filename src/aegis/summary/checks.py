"""Check whether a table can be summarised, and cut numeric labels into bins."""

from __future__ import annotations

import ibis.expr.types as ir
import pyarrow as pa

from aegis.arrays import Ints
from aegis.errors import DataError
from aegis.masks import Kind, Mask, Quantiles, ValueCounts
from aegis.policy import Attribute, Label, Policy, Role
from aegis.sources import Source

MAX_CLASSES = 1_024
"""Largest number of classes of a label."""


def check_columns(source: Source, policy: Policy) -> None:
    """Raise `DataError` if the table does not have a column that the policy names."""
    named = [a.name for a in policy.attributes.values() if a.role is not Role.IGNORE]
    source.refuse_other_table([*policy.label.columns, *named])
    for column in policy.label.columns:
        source.require(column, where="the policy's label")
    if policy.person is not None:
        source.require(policy.person, where="the policy's person")
    if policy.weight is not None:
        source.require(policy.weight, where="the policy's weight")
    for name in named:
        source.require(name, where="named in the policy")


def kind_of(column: ir.Column, attribute: Attribute) -> Kind:
    """Return the kind of values that a column has (number, text, ...); raise `DataError` if no mask
    accepts them.
    """
    kind = Kind.of(column.type())
    if kind is None:
        raise DataError(
            f"Attribute {attribute.name!r} has type {column.type()}, which no mask works on.",
            hint="Convert it to a number, text, date or boolean, or give it the role ignore.",
        )
    return kind


def check_label(column: ir.Column) -> None:
    """Raise `DataError` if values of the label's type cannot be classes."""
    dtype = column.type()
    if Kind.of(dtype) is None and not dtype.is_null():
        raise DataError(
            f"The label {column.get_name()!r} has type {dtype}, which cannot be cut into classes.",
            hint="Convert it to a number, text, date or boolean.",
        )


def label_bins(column: ir.Column, values: pa.Array, counts: Ints, label: Label) -> Mask:
    """Return the mask that cuts a numeric label into ranges, at the declared cut points or at
    quantiles of its `values`.
    """
    kind = Kind.of(column.type())
    bins = label.bins or len(label.cuts) + 1
    if kind is None or not kind.numeric:
        raise DataError(
            f"The label {column.get_name()!r} is cut into {bins} bins but has type {column.type()}.",
            hint="Bins are for numeric labels; leave them out.",
        )
    return Quantiles(bins, label.cuts or None).fit(ValueCounts(kind, values, counts))


def check_values(name: str, values: int, most: int) -> None:
    """Raise `DataError` if an attribute has more than `most` distinct values."""
    if values > most:
        raise DataError(
            f"Attribute {name!r} has more than {most:,} distinct values.",
            hint="Give it the role identifier or ignore, or round it before.",
        )


def check_classes(column: str, classes: pa.Array) -> None:
    """Raise `DataError` if the label has fewer classes or more classes than Aegis allows."""
    if len(classes) == 0:
        raise DataError(
            f"The label {column!r} is null in every row.", hint="Choose a label with values."
        )
    if len(classes) == 1:
        raise DataError(
            f"The label {column!r} has one class only: {classes[0].as_py()!r}.",
            hint="Advice needs a label with at least two classes.",
        )
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"The label {column!r} has {len(classes):,} classes; at most {MAX_CLASSES} are allowed.",
            hint="For a numeric label, write `label: {column: NAME, bins: 5}`.",
        )


def check_hierarchy(attribute: Attribute, data: ValueCounts) -> None:
    """Raise `DataError` if the hierarchy of an attribute lacks some of the attribute's values."""
    if attribute.hierarchy is None:
        return
    missing = attribute.hierarchy.uncovered(data.values)
    if missing:
        shown = ", ".join(repr(v) for v in missing[:5])
        raise DataError(
            f"The hierarchy of {attribute.name!r} does not cover {len(missing)} of its values: {shown}"
            + (", ..." if len(missing) > 5 else "."),
            hint="Add a row for each of them to the hierarchy.",
        )
