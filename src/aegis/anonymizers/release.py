"""Build the released table from groups of records, and check its class sizes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from aegis.anonymizers.base import Grouped, Style
from aegis.anonymizers.groups import RecordGroups, centroid, distinct_values, extent
from aegis.anonymizers.records import Codes, RecordAttribute, Records
from aegis.arrays import Ints
from aegis.errors import InternalError
from aegis.policy import AttributeKind

SUPPRESSED_VALUE = "*"
"""The generalised value that represents all values."""


def build_release(
    table: pa.Table, records: Records, grouped: Grouped, *, style: Style | None = None
) -> pa.Table:
    """Return the masked table: `table` with the values of each group replaced.

    Identifiers, ignored columns and suppressed records are left out. Other columns and the order of
    rows do not change. In a centroid release, ordinal and categorical columns keep their type.
    Numeric columns become floating point (with `rounded`, integers stay integers). In a generalised
    release, each group shows text:

    - the value itself, if all values of the group are equal;
    - the label of the lowest common ancestor, if the attribute has a hierarchy;
    - "[lo, hi]" for other ordered attributes, and the values joined by "|" for all others;
    - "*" if the group has both missing and other values, and null if all are missing.

    Parameters
    ----------
    table
        The table that `records` encodes, with the same rows.
    records, grouped
        The encoded table and its groups.
    style
        How groups are shown; by default the method's style. Methods that release values record by
        record ignore it.

    Raises
    ------
    InternalError
        The method claims k for each class, but a class of the release is smaller.
    """
    if table.num_rows != len(records):
        raise InternalError(
            f"The table has {table.num_rows} rows, but there are {len(records)} records."
        )
    style = grouped.style if style is None else style
    groups = grouped.groups
    chosen = np.flatnonzero(groups.of >= 0)
    released = table.drop_columns(list(records.left_out))
    if groups.suppressed:
        released = released.filter(pa.array(groups.of >= 0))
    for attribute in records.attributes:
        position = released.schema.get_field_index(attribute.name)
        column = _column(table, attribute, grouped, style, chosen)
        released = released.set_column(position, attribute.name, column)
    released = released.replace_schema_metadata(None)
    if grouped.claims_k:
        _check(released, records, grouped.options.k)
    return released


def _column(
    table: pa.Table, attribute: RecordAttribute, grouped: Grouped, style: Style, chosen: Ints
) -> pa.Array:
    if grouped.columns is not None:
        values = grouped.columns[attribute.name]
        return pa.array([values[row] for row in chosen])
    groups = grouped.groups
    if style is Style.CENTROID:
        rounded = grouped.options.rounded
        values_of_groups = _centroids(
            table.schema.field(attribute.name).type, attribute, groups, rounded
        )
    else:
        values_of_groups = generalised(attribute, groups)
    return values_of_groups.take(pa.array(groups.of[chosen]))


def _centroids(
    dtype: pa.DataType, attribute: RecordAttribute, groups: RecordGroups, rounded: bool
) -> pa.Array:
    middle = centroid(attribute, groups, rounded=rounded)
    if attribute.kind is AttributeKind.NUMERIC:
        missing = np.isnan(middle)
        if rounded and pt.is_integer(dtype):
            integers = np.where(missing, 0, middle).astype(np.int64)
            return pa.array(integers, mask=missing).cast(dtype)
        return pa.array(middle, mask=missing)
    if pt.is_dictionary(dtype):
        dtype = dtype.value_type
    return pa.array(attribute.domain, dtype).take(pa.array(middle))


def generalised(attribute: RecordAttribute, groups: RecordGroups) -> pa.Array:
    """Return the text (value, range, ancestor or set) that represents each group, shape (G,)."""
    if attribute.hierarchy is None and not attribute.ordered:
        return pa.array(_sets(attribute, groups), pa.string())
    covered = extent(attribute, groups)
    by_tree = attribute.hierarchy is not None
    # Each text is written once: groups are many, distinct ranges and ancestors are few.
    key = (covered.height if by_tree else covered.high).astype(np.int64) * attribute.size
    distinct, of = np.unique(key + covered.low, return_inverse=True)
    second, low = np.divmod(distinct, attribute.size)
    texts = (
        ancestors(attribute, low, second)
        if by_tree
        else [
            code_range(attribute, *ends) for ends in zip(low.tolist(), second.tolist(), strict=True)
        ]
    )
    return pa.array(texts, pa.string()).take(pa.array(of))


def ancestors(
    attribute: RecordAttribute, codes: Codes | Ints, heights: Codes | Ints
) -> list[str | None]:
    """Return the label of the group of each value at a height of the hierarchy. `codes` and
    `heights` have the value and the height, shape (M,) each.
    """
    tree = attribute.tree
    return [
        None
        if height == 0 and code == attribute.missing
        else tree.labels[height][tree.levels[code, height]]
        for code, height in zip(codes.tolist(), np.asarray(heights).tolist(), strict=True)
    ]


def code_range(attribute: RecordAttribute, low: int, high: int) -> str | None:
    """Return the values from code `low` to code `high` as text, such as "[5, 9]"; None if the
    missing value is the only one.
    """
    if low == attribute.missing:
        return None
    if high == attribute.missing:
        return SUPPRESSED_VALUE
    return interval(attribute.domain[low], attribute.domain[high])


def interval(low: Any, high: Any) -> str:
    """Return a range as "[low, high]", or the value alone if both ends are equal."""
    return str(low) if low == high else f"[{low}, {high}]"


def _sets(attribute: RecordAttribute, groups: RecordGroups) -> list[str | None]:
    group, codes = distinct_values(attribute, groups)
    bounds = np.searchsorted(group, np.arange(len(groups) + 1))
    texts: list[str | None] = []
    for start, end in pairwise(bounds.tolist()):
        group_codes = codes[start:end]
        if group_codes[-1] == attribute.missing:
            texts.append(None if len(group_codes) == 1 else SUPPRESSED_VALUE)
        elif len(group_codes) == attribute.present and len(group_codes) > 1:
            texts.append(SUPPRESSED_VALUE)
        else:
            texts.append("|".join(str(attribute.domain[code]) for code in group_codes))
    return texts


def _check(released: pa.Table, records: Records, k: int) -> None:
    names = [a.name for a in records.attributes]
    counted = released.group_by(names, use_threads=False).aggregate([([], "count_all")])
    sizes = counted.column("count_all").to_numpy()
    if len(sizes) and sizes.min() < k:
        raise InternalError(f"The release has a class of {sizes.min()} rows, below k = {k}.")
