"""Mask the quasi-identifiers before a method suppresses single cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.anonymizers.encode import encode, roles_of
from aegis.anonymizers.record_table import RecordTable
from aegis.errors import PolicyError
from aegis.masking import count_unseen, fit_masks, masked_table, refuse_unseen
from aegis.masks import Identity, Mask, parse_mask
from aegis.policy import Attribute, Policy, Unseen
from aegis.sources import open_table

ROW = "__aegis_row__"
"""Column with the number of each row, to restore the order of masked rows."""


def shown_by_masks(
    read: RecordTable, given: Mapping[str, Any] | None, *, learning: bool = True
) -> RecordTable:
    """Mask the quasi-identifiers of the table, and encode the masked values.

    Parameters
    ----------
    read
        The table with unmasked quasi-identifiers.
    given
        Masks by quasi-identifier, as a policy writes them. A quasi-identifier that is not given
        stays unmasked if `identity` is among its candidates or if it has no candidates. Otherwise
        it gets its first candidate that is not random.
    learning
        Whether masks may learn from the table.

    Raises
    ------
    PolicyError
        A name is not a quasi-identifier; or a mask is unknown, does not fit its column, or is
        random.
    DataError
        A mask does not cover a value, and the policy says `unseen: error`.
    """
    masks = _masks(read.policy, given or {})
    shown = {name: mask for name, mask in masks.items() if mask is not None}
    for name, mask in shown.items() if not learning else ():
        if not mask.fitted:
            raise PolicyError(
                f"Mask {mask} of {name!r} cannot be used here, because it learns from the table.",
                hint="Name a mask that does not: a level, fixed edges or a width, listed values.",
            )
    table = _masked(read, shown)
    records = encode(table, roles_of(table, read.policy), degenerate=True)
    return replace(
        read,
        table=table,
        records=replace(records, left_out=read.records.left_out, persons=read.persons),
        shown={name: str(mask) for name, mask in shown.items()},
    )


def _masked(read: RecordTable, shown: Mapping[str, Mask]) -> pa.Table:
    """Return the table with a mask applied to each of the columns in `shown`; the order of rows
    does not change.
    """
    if not shown:
        return read.table
    rows = pa.array(np.arange(read.table.num_rows))
    source = open_table(read.table.append_column(ROW, rows))
    every: dict[str, Mask | None] = {name: shown.get(name) for name in read.table.column_names}
    fitted = fit_masks(source, every, read.policy.shared_rows)
    if read.policy.unseen is Unseen.ERROR:
        refuse_unseen(count_unseen(source, fitted))
    table = source.collect(masked_table(source, fitted | {ROW: None}))
    return table.sort_by(ROW).drop_columns([ROW])


def _masks(policy: Policy, given: Mapping[str, Any]) -> dict[str, Mask | None]:
    quasi = {attribute.name: attribute for attribute in policy.quasi_identifiers}
    for name in given:
        if name not in quasi:
            raise PolicyError.unknown("quasi-identifier in `masks`:", name, list(quasi))
    return {
        name: given_mask(attribute, given[name]) if name in given else least_mask(attribute)
        for name, attribute in quasi.items()
    }


def given_mask(attribute: Attribute, spec: Any) -> Mask | None:
    """Return the mask that the option `masks` names for an attribute, as a policy writes it; None
    for `identity`. Raises `PolicyError` if the mask is random.
    """
    where = f"mask of {attribute.name!r}"
    mask = parse_mask(spec, hierarchy=attribute.hierarchy, where=where)
    if not mask.deterministic:
        raise PolicyError(
            f"{where}: a method that suppresses cells cannot use {mask}, which draws at random.",
            hint="Name a mask that draws nothing at random.",
        )
    return None if mask == Identity() else mask


def least_mask(attribute: Attribute) -> Mask | None:
    """Return the first candidate of a column that is not random; None if the column may be released
    unmasked.

    Raises
    ------
    PolicyError
        All candidates of the column are noise masks.
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
