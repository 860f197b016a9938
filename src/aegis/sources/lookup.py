"""Replace values by texts in the embedded engine, with one look-up for each entry of a column's
dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from aegis.sources.functions import engine_function


@cache
def _function(key: dt.DataType) -> Any:
    """Return the engine's function that looks up keys of this type; a cast would lose the dictionary."""
    return engine_function("map_extract_value", (dt.Map(key, dt.string), key), dt.string)


def look_up(
    column: ir.Column, values: Sequence[str | int], texts: Sequence[str], rest: ir.Value
) -> ir.Value:
    """Return for each value of `column` (texts or whole numbers) its text, and `rest` for null and all
    others; `values` and `texts` belong together.
    """
    key = column.type().copy(nullable=True)
    table = ibis.literal(dict(zip(values, texts, strict=True)), type=dt.Map(key, dt.string))
    return ibis.coalesce(_function(key)(table, column), rest)
