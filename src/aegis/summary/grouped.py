"""Count rows by computed keys, and compute each key only once per combination of raw values.

Most tables have far fewer combinations of values than rows. For them, the engine first runs a plain
GROUP BY of the columns, which works on dictionary codes without building texts. The keys are then
computed from its result. A trial query on the first rows shows whether combinations repeat; if they
do not, the keys are computed for each row.

For several counts of the same columns, `grouping` makes a server group the rows by all these columns
once and store the groups. The counts are then sums over the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import ibis.expr.operations as ops
import ibis.expr.types as ir

from aegis.masks import Kind
from aegis.sources import Source
from aegis.summary.coded_rows import read_rows, stored_rows

TRIAL_ROWS = 100_000
"""Number of rows in the trial query. Smaller tables are counted directly."""
_REPEATS = 4
"""Least mean number of trial rows per combination for which grouping twice pays."""
Groups = tuple[ir.Table, list[str]]
"""A table with each combination of some columns, as `c0`, `c1`, ..., and its number of rows
`aegis_n`; and the names of these columns.
"""
_STORED: WeakKeyDictionary[Source, Groups] = WeakKeyDictionary()
"""The groups of the rows of tables, as long as `grouping` lasts."""


@contextmanager
def grouping(source: Source, names: Iterable[str]) -> Iterator[None]:
    """Make a server group the rows of a table by the columns `names` once, and store the groups as
    long as the context lasts. `count_by` then counts these columns from the groups.

    Nothing is stored if the engine runs in this process, or if most rows of the trial query have a
    combination of values that no other row has.
    """
    schema = source.table.schema()
    columns = [n for n in dict.fromkeys(names) if n in schema and Kind.of(schema[n]) is not None]
    if source.engine.in_process or len(columns) < 2:
        yield
        return
    rows, _, alone = _first_rows(source, source.table, columns)
    if rows < TRIAL_ROWS or 2 * alone > rows:
        yield
        return
    with source.keep(_grouped(source.table, columns)) as stored:
        _STORED[source] = stored, columns
        try:
            yield
        finally:
            del _STORED[source]


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
    once = _once(source, base, expressions, columns)
    if once is None:
        return counted
    groups, names = once
    places = {
        ops.Field(base.op(), name): ops.Field(groups.op(), f"c{i}") for i, name in enumerate(names)
    }
    moved = {name: node.replace(places).to_expr() for name, node in expressions.items()}
    return groups.group_by(**moved).aggregate(n=groups["aegis_n"].sum().cast("int64"))


def _once(
    source: Source, base: ir.Table, keys: Mapping[str, ops.Value], columns: list[str]
) -> Groups | None:
    """Return the rows of a table grouped by columns that include `columns`; None if few
    combinations occur more than once, or if all `keys` are plain columns, so that grouping twice
    would not pay.

    If the groups are stored, or if the table is stored as Parquet and can be read as codes, no
    trial query is needed.
    """
    known = _STORED.get(source)
    if known is not None and base.equals(source.table) and set(columns) <= set(known[1]):
        return known
    if all(isinstance(key, ops.Field) for key in keys.values()):
        return None
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
        return source.upload(cells.rename_columns([*names, "aegis_n"])), columns
    rows, groups, _ = _first_rows(source, base, columns)
    if rows < TRIAL_ROWS or rows < _REPEATS * groups:
        return None
    return _grouped(base, columns), columns


def _grouped(table: ir.Table, columns: list[str]) -> ir.Table:
    """Return a query for the combinations of the columns and the number of rows of each."""
    keys = {f"c{i}": table[name] for i, name in enumerate(columns)}
    return table.group_by(**keys).aggregate(aegis_n=table.count())


def _columns(
    table: ir.Table, keys: Mapping[str, ir.Value]
) -> tuple[ir.Table, dict[str, ops.Value], list[str]] | None:
    """Return the table from which `table` selects columns, the keys as expressions on this table,
    and the columns that the keys use. Return None if a key uses anything but columns of this table.
    """
    node = table.op()
    base = node.parent.to_expr() if isinstance(node, ops.Project) else table
    expressions: dict[str, ops.Value] = {}
    for name, key in keys.items():
        value = key.op()
        if base is not table and isinstance(value, ops.Field) and value.rel == node:
            value = node.values[value.name]
        expressions[name] = value
    fields = [f for value in expressions.values() for f in value.find(ops.Field)]
    if not fields or any(field.rel != base.op() for field in fields):
        return None
    impure = {node for value in expressions.values() for node in value.find(ops.Impure)}
    # Ibis takes each function of an engine that it does not know for impure; those of masks are not.
    if not all(isinstance(node, ops.ScalarUDF) for node in impure):
        return None
    return base, expressions, list(dict.fromkeys(field.name for field in fields))


def _first_rows(source: Source, base: ir.Table, columns: list[str]) -> tuple[int, int, int]:
    """Return, for the first rows of a table, the number of rows, of combinations of the columns,
    and of rows whose combination no other of these rows has.
    """
    groups = _grouped(base.select(*columns).limit(TRIAL_ROWS), columns)
    size = groups["aegis_n"]
    alone = (size == 1).sum().cast("int64")
    counted = source.collect(
        groups.aggregate(rows=size.sum().cast("int64"), groups=groups.count(), alone=alone)
    )
    rows, combinations, single = (counted[name][0].as_py() or 0 for name in counted.column_names)
    return rows, combinations, single
