"""Facts on a column from a protected summary, in the form of `aegis init`, to propose masks for
another role.

The catalog sees no row. Where the summary names the values of a column with their protected counts, a table with these
values, so often, is measured in the way that a provider's table is; nothing of it goes beyond the summary.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.masks import Kind, Mask, parse_mask
from aegis.masks.grouping import NULL_LABEL
from aegis.policy import Role
from aegis.policy.suggest.facts import ColumnFacts
from aegis.policy.suggest.masks import propose_masks
from aegis.policy.suggest.profile import measure_columns
from aegis.safe.protect import ProtectedSummary
from aegis.safe.protect.cells import UNNAMED_SHOWN
from aegis.safe.protect.model import ProtectedAttribute
from aegis.sources import open_table

_MOST_ROWS = 100_000
"""Rows of the table that is measured; more of them change no proposal."""
_TYPES = {
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.BOOLEAN: pa.bool_(),
}


def proposed_masks(summary: ProtectedSummary, name: str, role: Role) -> tuple[Mask, ...]:
    """Return the masks that `aegis init` proposes for a column under another role.

    Empty where the summary names none of its values, and the masks are for the provider to propose.
    """
    attribute = summary.attributes.get(name)
    facts = None if attribute is None else facts_of(attribute)
    return () if facts is None else propose_masks(facts, role).masks


@lru_cache(maxsize=256)
def facts_of(attribute: ProtectedAttribute) -> ColumnFacts | None:
    """Return the known facts on a column; None if none of its values is named."""
    identity = parse_mask("identity")
    whole = next((c for c in attribute.candidates if c.declared == identity), None)
    if whole is None:
        return None
    counts = np.bincount(whole.groups, attribute.table.sum(axis=1).clip(0), len(whole.shown))
    named = [
        (value, float(count))
        for text, count in zip(whole.shown, counts, strict=True)
        if (value := _value(text, attribute.kind)) is not None and count >= 1
    ]
    if not named:
        return None
    rows = sum(count for _, count in named)
    scale = min(1.0, _MOST_ROWS / rows)
    values = pa.array([value for value, _ in named], _TYPES[attribute.kind])
    times = [max(1, round(count * scale)) for _, count in named]
    places = np.repeat(np.arange(len(named)), times)
    table = pa.table({attribute.name: values.take(pa.array(places))})
    facts = measure_columns(open_table(table))[attribute.name]
    return replace(facts, rows=round(rows))


def _value(text: str, kind: Kind) -> Any:
    """Return the value that a text of the summary shows, or None if it is none of this kind."""
    if text in (UNNAMED_SHOWN, NULL_LABEL):
        return None
    try:
        match kind:
            case Kind.INTEGER:
                return int(text)
            case Kind.NUMBER:
                return float(text)
            case Kind.DATE:
                return _day(text)
            case Kind.BOOLEAN:
                return {"true": True, "false": False}.get(text.lower())
    except ValueError:
        return None
    return text


def _day(text: str) -> date:
    return datetime.fromisoformat(text).date()
