"""Count rows by computed keys, and compute each key only once per combination of raw values.

Most tables have far fewer combinations of values than rows. For them, the engine first runs a plain
GROUP BY of the columns, which works on dictionary codes without building texts. The keys are then
computed from its result. A trial query on the first rows shows whether combinations repeat; if they
do not, the keys are computed for each row.
"""

from __future__ import annotations

from collections.abc import Mapping

import ibis.expr.operations as ops
import ibis.expr.types as ir

from aegis.sources import Source
from aegis.summary.coded_rows import read_rows, stored_rows

TRIAL_ROWS = 100_000
"""Number of rows in the trial query. Smaller tables are counted directly."""
_REPEATS = 4
"""Least mean number of trial rows per combination for which grouping twice pays."""


def count_by(source: Source, table: ir.Table, keys: Mapping[str, ir.Value]) -> ir.Table:
    """Return a query that counts how many rows of `table` have each combination of `keys`, in a
    column `n`.

    Parameters
    ----------
    source
        The source of the table. If a trial query on it shows that combinations repeat, rows are
        first counted by combination of the columns that the keys use.
    table
        The table. The keys are expressions of its columns.
    keys
        The keys by name.
    """
    direct = table.group_by(**keys) if keys else table
    counted = direct.aggregate(n=table.count())
    prepared = _columns(table, keys)
    if prepared is None:
        return counted
    base, expressions, columns = prepared
    once = _once(source, base, columns)
    if once is None:
        return counted
    places = {
        ops.Field(base.op(), name): ops.Field(once.op(), f"c{i}") for i, name in enumerate(columns)
    }
    moved = {name: node.replace(places).to_expr() for name, node in expressions.items()}
    return once.group_by(**moved).aggregate(n=once["aegis_n"].sum().cast("int64"))


def _once(source: Source, base: ir.Table, columns: list[str]) -> ir.Table | None:
    """Return a table with each combination of the columns, as `c0`, `c1`, ..., and its number of
    rows `aegis_n`; None if few combinations occur more than once.

    If the table is stored as Parquet and can be read as codes, no trial query is needed.
    """
    whole = base.equals(source.table) or (
        source.numbered is not None and base.equals(source.numbered)
    )
    stored = whole and source.is_parquet and source.rows >= TRIAL_ROWS
    coded = (stored_rows(source, columns) or read_rows(source, columns)) if stored else None
    if coded is not None:
        cells = coded.cells(columns)
        if source.rows < _REPEATS * cells.num_rows:
            return None
        names = [f"c{i}" for i in range(len(columns))]
        return source.upload(cells.rename_columns([*names, "aegis_n"]))
    if not _repeats(source, base, columns):
        return None
    raw = base.group_by(**{f"c{i}": base[name] for i, name in enumerate(columns)})
    return raw.aggregate(aegis_n=base.count())


def _columns(
    table: ir.Table, keys: Mapping[str, ir.Value]
) -> tuple[ir.Table, dict[str, ops.Value], list[str]] | None:
    """Return the table from which `table` selects columns, the keys as expressions on this table,
    and the columns that the keys use.

    Return None if all keys are plain columns, or if a key uses anything but columns of this table.
    """
    node = table.op()
    base = node.parent.to_expr() if isinstance(node, ops.Project) else table
    expressions: dict[str, ops.Value] = {}
    for name, key in keys.items():
        value = key.op()
        if base is not table and isinstance(value, ops.Field) and value.rel == node:
            value = node.values[value.name]
        expressions[name] = value
    if all(isinstance(value, ops.Field) for value in expressions.values()):
        return None
    fields = [f for value in expressions.values() for f in value.find(ops.Field)]
    if not fields or any(field.rel != base.op() for field in fields):
        return None
    impure = {node for value in expressions.values() for node in value.find(ops.Impure)}
    # Ibis takes each function of an engine that it does not know for impure; those of masks are not.
    if not all(isinstance(node, ops.ScalarUDF) for node in impure):
        return None
    return base, expressions, list(dict.fromkeys(field.name for field in fields))


def _repeats(source: Source, base: ir.Table, columns: list[str]) -> bool:
    """Return whether the combinations of the columns repeat often enough in the first rows."""
    first = base.select(*columns).limit(TRIAL_ROWS)
    groups = first.group_by(columns).aggregate(aegis_n=first.count())
    counted = source.collect(
        groups.aggregate(groups=groups.count(), rows=groups["aegis_n"].sum().cast("int64"))
    )
    rows = counted["rows"][0].as_py() or 0
    return bool(rows >= TRIAL_ROWS and rows >= _REPEATS * counted["groups"][0].as_py())
