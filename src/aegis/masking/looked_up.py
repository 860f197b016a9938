"""Speed up a mask's expression by computing its result once for each value of the column.

An engine needs twenty times as long to format a text from integers, such as "[20, 30[", as to
choose among constants. If a column has few values, Aegis computes the text of each value once, and
the engine looks it up. Parquet stores such a column as a dictionary. There, the engine looks up
each entry of the dictionary in a map once. For other sources, the engine chooses the text by
bisection. Null, and any value that is not listed, still gets the mask's expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa

from aegis.masks import Mask, evaluate
from aegis.masks.mapping import mapped
from aegis.sources import Source
from aegis.sources.lookup import look_up
from aegis.summary.coded_rows import stored_rows

MANY_ROWS = 1_000_000
"""Smallest number of rows for which Aegis first lists the values of a column."""
MOST_VALUES = 512
"""Largest number of values that a column may have if its texts are looked up."""
MOST_IN_MAP = 128
"""Largest number of values in a map, because the engine searches a map from its start."""
_FEW_ROWS = 2_000_000
"""Up to this many rows, one query lists the values of all columns."""
_TRIAL_ROWS = 100_000
"""Number of rows on which Aegis tests whether a column has few values."""


def expressions(
    source: Source,
    columns: Mapping[str, ir.Column],
    masks: Mapping[str, Mask],
    *,
    rows: int = MANY_ROWS,
) -> dict[str, ir.Value]:
    """Return, for each column, an expression that computes its masked values. If possible, this is
    a faster expression with the same results.

    Parameters
    ----------
    source
        The table; it runs the queries that list the values.
    columns
        Columns of the table, by name.
    masks
        A fitted mask for each column.
    rows
        Smallest number of rows for which Aegis lists the values.
    """
    made = {name: mask.expression(columns[name]) for name, mask in masks.items()}
    if source.rows < rows or not source.engine.in_process:
        return made
    wanted = [n for n, mask in masks.items() if _gains(source, columns[n], mask, made[n])]
    for name, values in _values(source, wanted).items():
        made[name] = _chosen(source, columns[name], masks[name], values, made[name])
    return made


def _gains(source: Source, column: ir.Column, mask: Mask, plain: ir.Value) -> bool:
    """Return whether it is faster to look up the masked texts of a column than to compute them by
    the expression `plain`.
    """
    kind = column.type()
    quicker = kind.is_integer() or (kind.is_string() and source.is_parquet)
    own = plain.op()  # a constant requires no value, and the column itself no text
    of_values = bool(own.find(ops.Field)) and not isinstance(own, ops.Field)
    return mask.deterministic and quicker and plain.type().is_string() and of_values


def _chosen(
    source: Source, column: ir.Column, mask: Mask, values: pa.Array, plain: ir.Value
) -> ir.Value:
    """Return an expression that looks up the masked text of each of these values. For any other
    value, and if a lookup is not possible, it uses the expression `plain`.
    """
    [grouping] = evaluate([mask], values)
    if grouping.size == 1 or grouping.shown.null_count:
        return plain
    shown = grouping.shown.take(grouping.codes.tolist()).to_pylist()
    if source.is_parquet and len(values) <= MOST_IN_MAP:
        return look_up(column, values.to_pylist(), shown, plain)
    if not column.type().is_integer():
        return plain
    targets = {str(value): text for value, text in zip(values.to_pylist(), shown, strict=True)}
    return column.isnull().ifelse(plain, mapped(column, targets, plain))


def _values(source: Source, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return the distinct values of each column that has only few of them, ascending and without
    null. Columns with many values are left out.
    """
    held = stored_rows(source, names)
    if held is not None:
        known = {n: own.drop_null() for n, own in held.values.items()}
        return {n: own for n, own in known.items() if 0 < len(own) <= MOST_VALUES}
    few = names
    if names and source.rows > _FEW_ROWS:
        few = _few(source.table.select(*names).limit(_TRIAL_ROWS), names, source)
    if not few:
        return {}
    table = source.table
    lists = {f"v{i}": table[name].collect(distinct=True) for i, name in enumerate(few)}
    listed = source.collect(table.aggregate(**lists))
    values = {n: listed[f"v{i}"].combine_chunks().flatten() for i, n in enumerate(few)}
    return {n: own.drop_null().sort() for n, own in values.items() if 0 < len(own) <= MOST_VALUES}


def _few(trial: ir.Table, names: Sequence[str], source: Source) -> list[str]:
    """Return the columns that have few values in `trial`, the first rows of the table."""
    counts = {f"v{i}": trial[name].nunique() for i, name in enumerate(names)}
    [counted] = source.collect(trial.aggregate(**counts)).to_pylist()
    return [name for i, name in enumerate(names) if counted[f"v{i}"] <= MOST_VALUES]
