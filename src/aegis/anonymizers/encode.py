"""Encode an Arrow table as records for the record-level methods, by the roles of its columns.

Mask the quasi-identifiers before a method suppresses single cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from aegis.anonymizers.records import (
    Codes,
    RecordAttribute,
    Records,
    RecordTable,
    SensitiveAttribute,
    ValueTree,
)
from aegis.arrays import Floats
from aegis.errors import DataError, PolicyError, member, require_known
from aegis.masking import count_unseen, fit_masks, masked_table, refuse_unseen
from aegis.masks import Identity, Mask, parse_mask
from aegis.policy import Attribute, AttributeKind, Policy, Role, Unseen
from aegis.sources import open_table

ROLES: tuple[str, ...] = (*(role.value for role in Role), "label")
HierarchyRows = Sequence[Sequence[Any]]
"""One row for each value: the value, then its group on each level, from the finest to the coarsest."""


def encode(
    table: pa.Table,
    roles: Mapping[str, str],
    *,
    kinds: Mapping[str, str] | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
    hierarchies: Mapping[str, HierarchyRows] | None = None,
    degenerate: bool = False,
) -> Records:
    """Encode `table` as records: each attribute becomes a column of integer codes.

    Parameters
    ----------
    table
        Any Arrow table. Null and NaN mean missing; missing counts as one value.
    roles
        The role of every column: a role of a policy, such as `quasi-identifier`, or `label`.
    kinds
        The kinds of quasi-identifiers, where they differ from the default of the column's type. By
        default, numbers are numeric, dates and times are ordinal, and other types are categorical.
    orders
        For ordinal attributes, all values ascending. Compared as text, 1, 1.0 and "1" are equal.
    hierarchies
        For each attribute, the rows (value, group on level 1, ..., group on the top level). If the
        top level has several groups, a level with one group is added. A missing value without a row
        is generalised directly to the top.
    degenerate
        Whether to accept quasi-identifiers that are constant or all null. They change no group.

    Raises
    ------
    PolicyError
        A column has no role, a role or kind is unknown, or an order lacks a value.
    DataError
        A column is unknown, a quasi-identifier is all null or constant, a numeric attribute has
        text, or a hierarchy does not cover a value.
    """
    _check_roles(table, roles)
    _check_types(table, roles)
    kinds, orders, hierarchies = kinds or {}, orders or {}, hierarchies or {}
    quasi = [name for name in table.column_names if roles[name] == "quasi-identifier"]
    _check_names(quasi, {"kinds": kinds, "orders": orders, "hierarchies": hierarchies})
    attributes = tuple(
        _attribute(
            name,
            table.column(name),
            _kind(name, table.column(name), kinds, orders),
            orders.get(name),
            hierarchies.get(name),
        )
        for name in quasi
    )
    if not degenerate:
        for attribute in attributes:
            _refuse_degenerate(attribute)
    names = table.column_names
    protected = [name for name in names if roles[name] == "sensitive"]
    sensitive = tuple(_sensitive(name, table.column(name)) for name in protected)
    left_out = tuple(name for name in names if roles[name] in (Role.IDENTIFIER, Role.IGNORE))
    return Records(attributes, sensitive, left_out)


def _check_names(quasi: Sequence[str], entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse kinds, orders or hierarchies of a column that is not a quasi-identifier."""
    for what, columns in entries.items():
        for name in columns:
            if name not in quasi:
                raise DataError.unknown_column(name, quasi, where=f"{what} of quasi-identifiers")


def encode_for(
    table: pa.Table,
    policy: Policy,
    *,
    kinds: Mapping[str, str] | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> Records:
    """Encode `table` with the roles and hierarchies of `policy`.

    Columns that the policy does not name are left out of the release. The label is released
    unchanged, unless the policy gives it a role. `kinds` and `orders` override the kinds and orders
    of the policy. They are written as in `encode`, which also lists the errors.
    """
    for name in policy.attributes:
        if name not in table.column_names:
            raise DataError.unknown_column(name, table.column_names, where="policy")
    roles: dict[str, str] = dict.fromkeys(table.column_names, Role.IGNORE)
    if policy.label:
        roles[policy.label.column] = "label"
    roles |= {name: attribute.role for name, attribute in policy.attributes.items()}
    roles |= dict.fromkeys(policy.sensitive, Role.SENSITIVE)
    return encode_declared(table, roles, policy, kinds=kinds, orders=orders)


def encode_declared(
    table: pa.Table,
    roles: Mapping[str, str],
    policy: Policy,
    *,
    kinds: Mapping[str, str] | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> Records:
    """Encode a table with these roles and the policy's kinds, orders and hierarchies. `kinds` and
    `orders` override those of the policy, as in `encode_for`.
    """
    quasi = policy.quasi_identifiers
    declared_kinds = {
        attribute.name: str(attribute.kind) for attribute in quasi if attribute.kind is not None
    }
    declared_orders = {attribute.name: attribute.order for attribute in quasi if attribute.order}
    return encode(
        table,
        roles,
        kinds=declared_kinds | dict(kinds or {}),
        orders=declared_orders | dict(orders or {}),
        hierarchies={a.name: a.hierarchy.rows for a in quasi if a.hierarchy is not None},
    )


def roles_of(table: pa.Table, policy: Policy) -> dict[str, str]:
    """Return the role of each released column; a sensitive quasi-identifier has the latter role."""
    roles: dict[str, str] = dict.fromkeys(table.column_names, Role.FEATURE)
    roles |= dict.fromkeys((n for n in policy.sensitive if n in roles), Role.SENSITIVE)
    return roles | {a.name: Role.QUASI_IDENTIFIER for a in policy.quasi_identifiers}


def _check_roles(table: pa.Table, roles: Mapping[str, str]) -> None:
    for name, role in roles.items():
        if name not in table.column_names:
            raise DataError.unknown_column(name, table.column_names, where="roles")
        require_known(f"role of column {name!r}:", role, ROLES)
    lacking = [name for name in table.column_names if name not in roles]
    if lacking:
        raise PolicyError(
            f"There is no role for column {lacking[0]!r}"
            + (f" and {len(lacking) - 1} more." if len(lacking) > 1 else "."),
            hint=f"Give every column a role: {', '.join(ROLES)}.",
        )


def _check_types(table: pa.Table, roles: Mapping[str, str]) -> None:
    for field in table.schema:
        if roles[field.name] in ("quasi-identifier", "sensitive") and pt.is_nested(field.type):
            raise DataError(
                f"Column {field.name!r} has nested values ({field.type}), which cannot be encoded.",
                hint="Flatten the column, or give it the role 'identifier' to leave it out.",
            )


def _refuse_degenerate(attribute: RecordAttribute) -> None:
    if len(attribute.codes) and attribute.present == 0:
        raise DataError(
            f"Quasi-identifier {attribute.name!r} is null in every row.",
            hint="Drop the column, or give it another role.",
        )
    if attribute.size == 1:
        raise DataError(
            f"Quasi-identifier {attribute.name!r} has the same value in every row: "
            f"{attribute.domain[0]!r}.",
            hint="Give it the role 'feature' or drop it: it cannot distinguish records.",
        )


def _kind(
    name: str,
    column: pa.ChunkedArray,
    kinds: Mapping[str, str],
    orders: Mapping[str, Sequence[Any]],
) -> AttributeKind:
    kind_name = kinds.get(name)
    if kind_name is None:
        if name in orders:
            return AttributeKind.ORDINAL
        return _natural_kind(column.type)
    kind = member(AttributeKind, kind_name, f"kind of attribute {name!r}:")
    has_order = name in orders or _natural_kind(column.type) is not AttributeKind.CATEGORICAL
    if kind is AttributeKind.ORDINAL and not has_order:
        raise PolicyError(
            f"The order of the {column.type} values of ordinal attribute {name!r} is not known.",
            hint="Give its values in ascending order: `order: [low, middle, high]`.",
        )
    return kind


def _natural_kind(dtype: pa.DataType) -> AttributeKind:
    """Return the kind that an attribute has by default if its column has this type."""
    if pt.is_dictionary(dtype):
        dtype = dtype.value_type
    if pt.is_integer(dtype) or pt.is_floating(dtype) or pt.is_decimal(dtype):
        return AttributeKind.NUMERIC
    return AttributeKind.ORDINAL if pt.is_temporal(dtype) else AttributeKind.CATEGORICAL


def _encoded(column: pa.ChunkedArray) -> tuple[Codes, list[Any]]:
    """Return the code of each row's value (-1 for missing), and the distinct values without missing."""
    if pt.is_floating(column.type):
        # -0.0 + 0.0 is 0.0: Arrow distinguishes the two zeros, and Python does not.
        column = pc.add(column, pa.scalar(0.0, column.type))
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pt.is_null(column.type):
        column = column.cast(pa.string())
    array = column.combine_chunks().dictionary_encode()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    codes = pc.fill_null(array.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return codes, array.dictionary.to_pylist()


def _reordered(codes: Codes, order: Sequence[int]) -> Codes:
    """Renumber codes so that code order[i] becomes i, and -1 (missing) the last code."""
    new_codes = np.empty(len(order) + 1, dtype=np.int32)
    new_codes[list(order)] = np.arange(len(order))
    new_codes[-1] = len(order)
    return new_codes[codes]


def _attribute(
    name: str,
    column: pa.ChunkedArray,
    kind: AttributeKind,
    order: Sequence[Any] | None,
    rows: HierarchyRows | None,
) -> RecordAttribute:
    if kind is AttributeKind.NUMERIC and _natural_kind(column.type) is not AttributeKind.NUMERIC:
        raise DataError(
            f"Attribute {name!r} cannot be numeric: its values have the type {column.type}.",
            hint="Convert the column to numbers, or declare it ordinal or categorical.",
        )
    codes, values = _encoded(column)
    table = None if rows is None else _rows_by_value(name, values, rows)
    domain = _ordered(name, values, kind, order, table)
    index = {value: i for i, value in enumerate(values)}
    codes = _reordered(codes, [index[value] for value in domain])
    if (codes == len(domain)).any():
        domain = [*domain, None]
    hierarchy = _hierarchy(name, domain, table) if table else None
    numbers = _numbers(domain) if kind is AttributeKind.NUMERIC else np.empty(0)
    if np.isinf(numbers).any():
        raise DataError(
            f"Numeric attribute {name!r} has infinite values, so groups would have no mean.",
            hint="Replace them by null or by a finite number first.",
        )
    centre, spread = _scale(codes, numbers)
    return RecordAttribute(
        name, kind, codes, tuple(domain), hierarchy, numbers, centre, spread, _resolution(numbers)
    )


def _ordered(
    name: str,
    values: list[Any],
    kind: AttributeKind,
    order: Sequence[Any] | None,
    rows: dict[Any, tuple[str, ...]] | None,
) -> list[Any]:
    if kind is AttributeKind.ORDINAL and order is not None:
        ranks = {_text(value): rank for rank, value in enumerate(order)}
        unknown = [value for value in values if _text(value) not in ranks]
        if unknown:
            raise PolicyError(
                f"The order of ordinal attribute {name!r} lacks the value {unknown[0]!r}"
                + (f" and {len(unknown) - 1} more." if len(unknown) > 1 else "."),
                hint="List every value that occurs in the column.",
            )
        return sorted(values, key=lambda value: ranks[_text(value)])
    if kind is AttributeKind.CATEGORICAL and rows is not None:
        return sorted(values, key=lambda value: (rows[value][::-1], str(value)))
    return sorted(values, key=str) if kind is AttributeKind.CATEGORICAL else sorted(values)


def _rows_by_value(name: str, values: list[Any], rows: HierarchyRows) -> dict[Any, tuple[str, ...]]:
    widths = {len(row) for row in rows}
    if len(widths) != 1 or min(widths) < 2:
        raise DataError(
            f"The rows of the hierarchy of {name!r} have different or too few levels: "
            f"{', '.join(map(str, sorted(widths)))}.",
            hint="Give every value the same number of levels, at least two: itself and a group.",
        )
    by_text: dict[str, tuple[str, ...]] = {}
    for row in rows:
        texts = tuple(_text(cell) for cell in row)
        if by_text.setdefault(texts[0], texts) != texts:
            raise DataError(
                f"The hierarchy of {name!r} lists the value {texts[0]!r} twice, with different groups.",
                hint="Keep one of the two rows.",
            )
    lacking = [value for value in values if _text(value) not in by_text]
    if lacking:
        raise DataError(
            f"The hierarchy of {name!r} does not cover the value {lacking[0]!r}"
            + (f" and {len(lacking) - 1} more." if len(lacking) > 1 else "."),
            hint="Add a row for every value that occurs in the column.",
        )
    chosen: dict[Any, tuple[str, ...]] = {value: by_text[_text(value)] for value in values}
    if _text(None) in by_text:
        chosen[None] = by_text[_text(None)]
    if len({texts[-1] for texts in by_text.values()}) > 1:
        chosen = {value: (*texts, "*") for value, texts in chosen.items()}
    return chosen


def _text(value: Any) -> str:
    """Return a value as hierarchies write it: 39.0 as "39", null as "NULL"."""
    if value is None:
        return "NULL"
    is_integer = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_integer else str(value)


def _hierarchy(name: str, domain: list[Any], rows: dict[Any, tuple[str, ...]]) -> ValueTree:
    height = len(next(iter(rows.values())))
    top = next(iter(rows.values()))[-1]
    # Without its own row, a missing value has a chain up to the root that no text equals.
    alone: tuple[str | None, ...] = (*([None] * (height - 1)), top)
    chains: list[tuple[str | None, ...]] = [
        alone if value is None and None not in rows else rows[value] for value in domain
    ]
    levels = np.empty((len(domain), height), dtype=np.int32)
    labels: list[tuple[str, ...]] = []
    for level in range(height):
        numbers: dict[str | None, int] = {}
        for code, chain in enumerate(chains):
            levels[code, level] = numbers.setdefault(chain[level], len(numbers))
        labels.append(tuple("*" if text is None else text for text in numbers))
    try:
        return ValueTree(levels, tuple(labels))
    except DataError as error:
        raise DataError(f"Hierarchy of {name!r}: {error.message}", hint=error.hint) from None


def _numbers(domain: list[Any]) -> Floats:
    return np.array([np.nan if v is None else float(v) for v in domain], dtype=np.float64)


def _scale(codes: Codes, numbers: Floats) -> tuple[float, float]:
    present = ~np.isnan(numbers)
    if not present.any():
        return 0.0, 1.0
    values = numbers[present]
    weights = np.bincount(codes, minlength=len(numbers))[present]
    centre = float(np.average(values, weights=weights))
    spread = float(np.sqrt(np.average((values - centre) ** 2, weights=weights)))
    return centre, spread if spread > 0 else 1.0


def _resolution(numbers: Floats) -> float:
    """Return the largest power of ten, from 1 to 1e-6, of which all numbers are multiples.

    The result is 0 if there is none.
    """
    present = numbers[~np.isnan(numbers)]
    for digits in range(7):
        step = 10.0**-digits
        if len(present) and np.allclose(
            present, np.round(present / step) * step, rtol=0, atol=1e-9
        ):
            return step
    return 0.0


def _sensitive(name: str, column: pa.ChunkedArray) -> SensitiveAttribute:
    codes, values = _encoded(column)
    order = sorted(range(len(values)), key=lambda i: str(values[i]))
    domain: list[Any] = [values[i] for i in order]
    codes = _reordered(codes, order)
    if (codes == len(domain)).any():
        domain.append(None)
    return SensitiveAttribute(name, codes, tuple(domain))


ROW = "__aegis_row__"
"""Column with the number of each row, to restore the order of masked rows."""


def with_masks(
    read: RecordTable, masks_given: Mapping[str, Any] | None, *, learning: bool = True
) -> RecordTable:
    """Mask the quasi-identifiers of the table, and encode the masked values.

    `masks_given` are masks by quasi-identifier, as a policy writes them. A quasi-identifier that is
    not given stays unmasked if `identity` is among its candidates or if it has no candidates.
    Otherwise it gets its first candidate that is not random. `learning` tells whether masks may
    learn from the table.

    Raises
    ------
    PolicyError
        A name is not a quasi-identifier; or a mask is unknown, does not fit its column, or is
        random.
    DataError
        A mask does not cover a value, and the policy says `unseen: error`.
    """
    masks = _masks(read.policy, masks_given or {})
    masks_used = {name: mask for name, mask in masks.items() if mask is not None}
    for name, mask in masks_used.items() if not learning else ():
        if not mask.fitted:
            raise PolicyError(
                f"Mask {mask} of {name!r} cannot be used here, because it learns from the table.",
                hint="Name a mask that does not: a level, fixed edges or a width, listed values.",
            )
    table = _masked(read, masks_used)
    records = encode(table, roles_of(table, read.policy), degenerate=True)
    return replace(
        read,
        table=table,
        records=replace(records, left_out=read.records.left_out, persons=read.persons),
        masks={name: str(mask) for name, mask in masks_used.items()},
    )


def _masked(read: RecordTable, masks: Mapping[str, Mask]) -> pa.Table:
    """Return the table with its columns masked; the order of rows does not change."""
    if not masks:
        return read.table
    rows = pa.array(np.arange(read.table.num_rows))
    source = open_table(read.table.append_column(ROW, rows))
    every: dict[str, Mask | None] = {name: masks.get(name) for name in read.table.column_names}
    fitted = fit_masks(source, every, read.policy.shared_rows)
    if read.policy.unseen is Unseen.ERROR:
        refuse_unseen(count_unseen(source, fitted))
    table = source.collect(masked_table(source, fitted | {ROW: None}))
    return table.sort_by(ROW).drop_columns([ROW])


def _masks(policy: Policy, masks: Mapping[str, Any]) -> dict[str, Mask | None]:
    quasi = {attribute.name: attribute for attribute in policy.quasi_identifiers}
    for name in masks:
        require_known("quasi-identifier in `masks`:", name, quasi)
    return {
        name: given_mask(attribute, masks[name]) if name in masks else least_mask(attribute)
        for name, attribute in quasi.items()
    }


def given_mask(attribute: Attribute, spec: Any) -> Mask | None:
    """Return the mask that `spec` describes, None for `identity`; raise `PolicyError` if random."""
    where = f"mask of {attribute.name!r}"
    mask = parse_mask(spec, hierarchy=attribute.hierarchy, where=where)
    if not mask.deterministic:
        raise PolicyError(
            f"{where}: a method that suppresses cells cannot use {mask}, which draws at random.",
            hint="Name a mask that draws nothing at random.",
        )
    return None if mask == Identity() else mask


def least_mask(attribute: Attribute) -> Mask | None:
    """Return the first candidate that is not random; None if the column may be released unmasked.
    Raise `PolicyError` if all candidates are noise masks.
    """
    if not attribute.masks or Identity() in attribute.masks:
        return None
    for mask in attribute.masks:
        if mask.deterministic:
            return mask
    raise PolicyError(
        f"Record-level releases cannot mask {attribute.name!r}: all its candidates are noise masks.",
        hint="Give it a candidate without noise, or leave out the record-level methods.",
    )
