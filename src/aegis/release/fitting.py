"""Check whether a masked table fits the masks that it was made with: columns, types and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from aegis.masks import Mask
from aegis.masks.base import SUPPRESSED, Kind
from aegis.policy import Configuration, Policy
from aegis.release.choice import hidden_columns, release_masks
from aegis.release.mismatch import brief
from aegis.sources import Source, open_table
from aegis.summary.builder import shown_values

_NUMERIC = (Kind.INTEGER, Kind.NUMBER)


def unfitting(
    table: Any, policy: Policy, configuration: Configuration, kinds: Mapping[str, Kind]
) -> list[str]:
    """Describe everything in a masked table that its configuration cannot have produced.

    The table must have exactly the columns that the configuration releases, each with the type that
    its mask produces. Every value must be one that the mask can show.

    Parameters
    ----------
    table
        The masked table, in any form that `open_table` accepts.
    policy, configuration
        The policy and the configuration of the release, with fitted masks.
    kinds
        Kinds of the columns of the unmasked table by name. A column that is not listed may have any
        type.
    """
    source = open_table(table)
    masks = release_masks(policy, configuration)
    hidden = hidden_columns(policy, masks)
    expected = [name for name in masks if name not in hidden]
    wrong = [f"it has the column {n!r}" for n in source.columns if n not in expected]
    wrong += [f"it lacks the column {name!r}" for name in expected if name not in source.columns]
    for name in expected:
        mask = masks[name]
        if name not in source.columns:
            continue
        stored = Kind.of(source.table[name].type())
        given = kinds.get(name)
        shown = given if mask is None or given is None else mask.output_kind(given)
        if shown is not None and not _holds(stored, shown):
            wrong.append(f"{name} holds {stored or 'another type'}, and {mask} shows {shown}")
            continue
        odd = None if mask is None else odd_values(source, name, mask)
        if odd:
            wrong.append(f"{name} shows {', '.join(map(brief, odd))}, which {mask} cannot")
    return wrong


def odd_values(source: Source, name: str, mask: Mask) -> list[str] | None:
    """Return up to five values of the column `name` that its mask cannot show. None if the mask
    does not determine which values it shows.
    """
    column = source.table[name]
    shown = source.collect(source.table.select(v=column).distinct())["v"]
    values = pc.drop_null(shown)
    if mask.idempotent:
        if len(values) and Kind.of(column.type()) not in mask.fits:
            return sorted(map(str, values.to_pylist()))[:5]
        masked = shown_values(mask, values.combine_chunks())
        pairs = zip(values.to_pylist(), masked.to_pylist(), strict=True)
        return sorted(str(value) for value, again in pairs if value != again)[:5]
    if mask.shows(SUPPRESSED) is None:
        return None
    return sorted(text for text in map(str, values.to_pylist()) if not mask.shows(text))[:5]


def _holds(stored: Kind | None, shown: Kind) -> bool:
    """Return whether a stored column can have the kind that a mask produces.

    Whole numbers may be stored as integers or as other numbers: pandas stores integers with nulls as
    floats, and a noisy summary learns from the values, not from the type, that numbers are whole.
    """
    return stored is shown or (stored in _NUMERIC and shown in _NUMERIC)
