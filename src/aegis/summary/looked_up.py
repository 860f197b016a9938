"""A mask's expression with its results for the values of a column written into it.

Texts made from whole numbers, such as "[20, 30[", cost an engine twenty times what it takes to
choose among constants. Where a column has few values, each value's text is computed once and
chosen by bisection; any other value would still get the mask's own expression.
"""

from __future__ import annotations

import ibis.expr.types as ir

from aegis.masks import Mask, evaluate
from aegis.masks.mapping import mapped
from aegis.sources import Source

MANY_ROWS = 1_000_000
"""Fewer rows are masked before the values are known."""
MOST_VALUES = 512
"""Most values of a column that are written into an expression."""


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
    text_of_number = column.type().is_integer() and plain.type().is_string()
    if not (mask.deterministic and text_of_number and source.is_embedded and source.rows >= rows):
        return plain
    listed = source.table.select(v=source.table[column.get_name()]).distinct()
    values = source.collect(listed.limit(MOST_VALUES + 1))["v"].combine_chunks().drop_null()
    if not 0 < len(values) <= MOST_VALUES:
        return plain
    [grouping] = evaluate([mask], values)
    if grouping.size == 1 or grouping.shown.null_count:
        return plain
    shown = grouping.shown.take(grouping.codes.tolist()).to_pylist()
    targets = {str(value): text for value, text in zip(values.to_pylist(), shown, strict=True)}
    quick = mapped(column, targets, plain)
    return column.isnull().ifelse(plain, quick)
