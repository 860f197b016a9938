"""A mask's expression with its results for the values of a column written into it.

Texts made from whole numbers, such as "[20, 30[", cost an engine twenty times what it takes to
choose among constants. Where a column has few values, each value's text is computed once and looked
up. In Parquet such a column is stored as a dictionary, and a lookup in a map is done once for each
entry of it; elsewhere the text is chosen by bisection. Any other value, and null, would still get
the mask's own expression.
"""

from __future__ import annotations

import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

from aegis.masks import Mask, evaluate
from aegis.masks.mapping import mapped
from aegis.sources import Source
from aegis.sources.lookup import look_up

MANY_ROWS = 1_000_000
"""Fewer rows are masked before the values are known."""
MOST_VALUES = 512
"""Most values of a column that are written into an expression."""
MOST_IN_MAP = 128
"""Most values of a map: it is searched from its start."""
_TRIAL_ROWS = 100_000
"""Rows on which it is seen whether a column has few values."""


def expression(source: Source, column: ir.Column, mask: Mask, *, rows: int = MANY_ROWS) -> ir.Value:
    """Return the expression of the masked column, or a quicker one that equals it on every value.

    Parameters
    ----------
    source
        Runs the query that lists the values.
    column
        A column of the source's table.
    mask
        A fitted mask.
    rows
        Least number of rows for which the values are listed.
    """
    plain = mask.expression(column)
    of_number = column.type().is_integer()
    quicker = of_number or (column.type().is_string() and source.is_parquet)
    if not (
        mask.deterministic and quicker and plain.type().is_string() and source.engine.in_process
    ):
        return plain
    if source.rows < rows or not plain.op().find(ops.Field):  # a constant asks for no value
        return plain
    values = _values(source, column.get_name())
    if values is None:
        return plain
    [grouping] = evaluate([mask], values)
    if grouping.size == 1 or grouping.shown.null_count:
        return plain
    shown = grouping.shown.take(grouping.codes.tolist()).to_pylist()
    if source.is_parquet and len(values) <= MOST_IN_MAP:
        return look_up(column, values.to_pylist(), shown, plain)
    if not of_number:
        return plain
    targets = {str(value): text for value, text in zip(values.to_pylist(), shown, strict=True)}
    return column.isnull().ifelse(plain, mapped(column, targets, plain))


def _values(source: Source, name: str) -> pa.Array | None:
    """Return the values of a column but null; None where there are none or many."""
    column = source.table.select(v=source.table[name])
    for table in (column.limit(_TRIAL_ROWS), column):
        distinct = source.collect(table.distinct().limit(MOST_VALUES + 1))["v"].combine_chunks()
        values = distinct.drop_null()
        if len(values) > MOST_VALUES:
            return None
    return values.sort() if len(values) else None
