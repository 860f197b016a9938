"""Derive column facts from a protected summary, to propose masks if a column gets another role.

The catalog has no rows. If the summary lists the values of a column with protected counts, this
module applies the criteria of `aegis init` to these values and counts. The proposals contain no
information beyond the summary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
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
"""Largest number of rows of the measured table; more rows would not change the proposal."""
_TYPES: Mapping[Kind, tuple[pa.DataType, Callable[[str], Any]]] = {
    Kind.INTEGER: (pa.int64(), int),
    Kind.NUMBER: (pa.float64(), float),
    Kind.TEXT: (pa.string(), str),
    Kind.DATE: (pa.date32(), lambda text: datetime.fromisoformat(text).date()),
    Kind.BOOLEAN: (pa.bool_(), lambda text: {"true": True, "false": False}[text.lower()]),
}
"""For each kind of values their type, and the function that parses the text of one."""


def proposed_masks(summary: ProtectedSummary, name: str, role: Role) -> tuple[Mask, ...]:
    """Return the masks that `aegis init` would propose for a column in this role; none if the
    summary lists no value of the column.
    """
    attribute = summary.attributes.get(name)
    facts = None if attribute is None else facts_of(attribute)
    return () if facts is None else propose_masks(facts, role).masks


@lru_cache(maxsize=256)
def facts_of(attribute: ProtectedAttribute) -> ColumnFacts | None:
    """Return facts about a column from the summary; None if the summary lists no value of it."""
    identity = parse_mask("identity")
    unmasked = next((c for c in attribute.candidates if c.declared == identity), None)
    if unmasked is None:
        return None
    counts = np.bincount(unmasked.groups, attribute.table.sum(axis=1).clip(0), len(unmasked.labels))
    named = [
        (value, float(count))
        for text, count in zip(unmasked.labels, counts, strict=True)
        if (value := _value(text, attribute.kind)) is not None and count >= 1
    ]
    if not named:
        return None
    rows = sum(count for _, count in named)
    scale = min(1.0, _MOST_ROWS / rows)
    values = pa.array([value for value, _ in named], _TYPES[attribute.kind][0])
    times = [max(1, round(count * scale)) for _, count in named]
    places = np.repeat(np.arange(len(named)), times)
    table = pa.table({attribute.name: values.take(pa.array(places))})
    facts = measure_columns(open_table(table))[attribute.name]
    return replace(facts, rows=round(rows))


def _value(text: str, kind: Kind) -> Any:
    """Parse the text of a value as this type; return None if that fails."""
    if text in (UNNAMED_SHOWN, NULL_LABEL):
        return None
    try:
        return _TYPES[kind][1](text)
    except (ValueError, KeyError):
        return None
