"""Read the rows of a table once, as integer codes from which everything is then counted, or let a
server count groups of rows.

If rows are counted by computed keys, each key is computed only once per combination of raw values.
Most tables have far fewer combinations of values than rows. For them, the engine first runs a plain
GROUP BY of the columns, which works on dictionary codes without building texts. The keys are then
computed from its result. A trial query on the first rows shows whether combinations repeat; if they
do not, the keys are computed for each row.

For several counts of the same columns, `grouping` makes a server group the rows by all these columns
once and store the groups. The counts are then sums over the groups. Spark also sends the groups to
this process, if there are few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from threading import get_ident
from weakref import WeakKeyDictionary

import ibis.expr.operations as ops
import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.arrays import Flags, Int32s, Integers, counts_by_key
from aegis.masks import Kind
from aegis.sources import Source
from aegis.sources.embedded import LEAST_MEMORY, limits, parse_size
from aegis.sources.open import stored_batches
from aegis.summary.codes import encode, narrow, stored_codes
from aegis.summary.frequency import BLOCK, LARGEST_KEY, FrequencyTable, distinct_rows, mixed
from aegis.summary.model import AttributeSummary

MOST_ROWS = 2_000_000
"""Largest number of rows of a table that is kept in memory as codes while its summary is in use."""
MOST_CELLS = 50_000_000
"""Largest number of cells (rows times columns) of such a table; a code takes one, two or four
bytes.
"""
_CELL_BYTES = 64
"""Bytes of a cell while it is read: with its code, the text of a value that no other row holds."""
_FETCHED = 2_000_000
"""Rows times columns that are fetched at a time: as they are they take some tens of bytes a cell."""

LARGE = 1_000_000
"""Least rows of a Parquet file whose columns are held while it is released."""
_CODE_BYTES = 8
"""Bytes of a cell of such a file, with what is computed from its code."""
_COUNTED = 1 << 18
"""Rows whose values are counted at a time: their 64-bit keys fit in the cache of a processor."""
_FIRST, _REPEATS = 100_000, 4
"""First rows of it, and how many of them must share a value on average."""

Codes = npt.NDArray[np.int64]
Part = tuple[npt.NDArray[np.unsignedinteger], pa.Array]
"""The result of `stored_codes` for some rows of a column."""
_IN_MEMORY: WeakKeyDictionary[Source, dict[str, Part]] = WeakKeyDictionary()
"""The columns of tables that are held, as far as they have been read."""


@dataclass(frozen=True, eq=False)
class CodedRows:
    """The rows of a table in its order, with an integer code in place of each value.

    Attributes
    ----------
    values
        For each column, its distinct values in ascending order, with null last.
    codes
        For each column, the index of the value of each of N rows in `values`, shape (N,), in the
        smallest integer type.
    label
        The class of each row, shape (N,), in the smallest integer type; it is C if the row has no
        label.
    classes
        The number of classes, C.
    """

    values: Mapping[str, pa.Array]
    codes: Mapping[str, npt.NDArray[np.unsignedinteger]]
    label: npt.NDArray[np.unsignedinteger]
    classes: int
    _cells: WeakKeyDictionary[FrequencyTable, npt.NDArray[np.unsignedinteger]] = field(
        init=False, repr=False, default_factory=WeakKeyDictionary
    )

    @cached_property
    def labelled(self) -> Flags:
        """Whether each of N rows has a class of the label, shape (N,)."""
        return self.label < self.classes

    def with_copy(self, name: str, copy: str) -> CodedRows:
        """Return the rows with one more column `copy`, equal to the column `name`."""
        values = {**self.values, copy: self.values[name]}
        return replace(self, values=values, codes={**self.codes, copy: self.codes[name]})

    def with_constants(self, names: Sequence[str], value: str) -> CodedRows:
        """Return the rows with further columns `names`, in which all rows have the value `value`."""
        same = np.zeros(len(self.label), dtype=np.uint8)
        values = {**self.values, **dict.fromkeys(names, pa.array([value]))}
        return replace(self, values=values, codes={**self.codes, **dict.fromkeys(names, same)})

    def only(self, keep: Flags | slice) -> CodedRows:
        """Return the rows that `keep` flags. `values` still lists values that none of them has."""
        codes = {name: of_rows[keep] for name, of_rows in self.codes.items()}
        return replace(self, codes=codes, label=self.label[keep])

    def masked(
        self, groups: Mapping[str, tuple[Integers, pa.Array]], keep: Flags | slice
    ) -> CodedRows:
        """Return the rows that `keep` flags with some columns masked: `groups` has the group of
        each value, shape (V,), and the masked value of each group.
        """
        columns = {
            name: join_parts(
                [(narrow(group_of, len(masked_values))[self.codes[name][keep]], masked_values)],
                masked_values.type,
            )
            for name, (group_of, masked_values) in groups.items()
        }
        return CodedRows(
            {name: values for name, (_, values) in columns.items()},
            {name: codes for name, (codes, _) in columns.items()},
            self.label[keep],
            self.classes,
        )

    def rows(self, name: str) -> Codes:
        """Return how many rows have each of the V values of the column `name`, shape (V,)."""
        counted = np.zeros(len(self.values[name]), dtype=np.int64)
        for start in range(0, len(self.label), _COUNTED):
            block = self.codes[name][start : start + _COUNTED]
            counted += np.bincount(block, minlength=len(counted))
        return counted

    def joint(self, name: str, weights: Codes | None = None) -> Codes:
        """Count the rows, or add up their weights, by the values of a column and the C classes,
        shape (V, C + 1). The last column counts the rows without a label.
        """
        columns = self.classes + 1
        if weights is None and self.classes == 1 and self.labelled.all():
            return np.column_stack([self.rows(name), np.zeros(len(self.values[name]), np.int64)])
        counted = np.zeros(len(self.values[name]) * columns, dtype=np.int64)
        for start in range(0, len(self.label), _COUNTED):
            rows = slice(start, start + _COUNTED)
            cell = self.codes[name][rows].astype(np.int64)
            cell *= columns
            cell += self.label[rows]
            some = None if weights is None else weights[rows]
            counted += np.bincount(cell, weights=some, minlength=len(counted)).astype(np.int64)
        return counted.reshape(-1, columns)

    def frequency(
        self,
        quasi: tuple[str, ...],
        sensitive: tuple[str, ...],
        attributes: Mapping[str, AttributeSummary],
        label: str,
        sizes: Codes | None = None,
    ) -> tuple[FrequencyTable, Integers]:
        """Return the frequency table of these rows, and the index of the cell of each row, shape
        (N,). If each row stands for several, `sizes` says how many, shape (N,).
        """
        names = tuple(dict.fromkeys((*quasi, *sensitive, label)))
        codes: dict[str, Integers] = {}
        representatives: dict[str, Int32s] = {}
        for name in names:
            if name == label:
                codes[name] = self.label
                continue
            groups, representatives[name], _ = attributes[name].key_groups
            codes[name] = narrow(groups, len(representatives[name]))[self.codes[name]]
        return FrequencyTable.of((quasi, sensitive, label), codes, representatives, sizes)

    def cell_of_rows(
        self, frequency: FrequencyTable, attributes: Mapping[str, AttributeSummary]
    ) -> npt.NDArray[np.unsignedinteger]:
        """Return the index of the cell of each row in a frequency table of these rows, shape (N,)."""
        if frequency not in self._cells:
            arguments = frequency.quasi, frequency.sensitive, attributes, frequency.label
            self._cells[frequency] = narrow(self.frequency(*arguments)[1], frequency.cells)
        return self._cells[frequency]

    def cells(self, names: Sequence[str]) -> pa.Table:
        """Return how many rows `n` have each combination of values in these columns, called `k0`,
        `k1`, ...
        """
        codes, counts = self._combinations([self.codes[n] for n in names])
        columns = [self.values[n].take(pa.array(c)) for n, c in zip(names, codes, strict=True)]
        keys = [f"k{i}" for i in range(len(names))]
        return pa.table([*columns, pa.array(counts)], names=[*keys, "n"])

    def _combinations(self, columns: Sequence[Integers]) -> tuple[list[Integers], Codes]:
        """Return the combinations of codes that occur, ascending, as one array for each of the
        `columns`; and the rows of each. It sorts keys, not rows, in a fifth of the time.
        """
        rows = len(self.label)
        sizes = [int(column.max(initial=0)) + 1 for column in columns]
        if not columns or not rows or prod(sizes) >= LARGEST_KEY:
            first, _, counts = distinct_rows(columns, rows)
            return [column[first] for column in columns], counts
        parts = [
            counts_by_key(mixed((c[i : i + BLOCK] for c in columns), sizes), None, prod(sizes))
            for i in range(0, rows, BLOCK)
        ]
        keys, counts = map(np.concatenate, zip(*parts, strict=True))
        if len(parts) > 1:
            keys, counts = counts_by_key(keys, counts, prod(sizes))
        codes: list[Integers] = []
        for size in reversed(sizes):
            keys, code = np.divmod(keys, size)
            codes.insert(0, code)
        return codes, counts


def fits(source: Source, rows: int, columns: int) -> bool:
    """Return whether the codes of so many rows and columns stay within the memory limit. Rows are
    read only if the engine runs in this process, because only aggregates may leave a database.
    """
    cells = rows * columns
    if not source.engine.in_process or rows > MOST_ROWS or cells > MOST_CELLS:
        return False
    needed = cells * _CELL_BYTES
    return needed <= LEAST_MEMORY or needed <= parse_size(limits().memory)


def read_rows(source: Source, names: Sequence[str], rows: int | None = None) -> CodedRows | None:
    """Read columns of all rows as codes, without a label: all rows get the same class. Return None
    if the engine should count the rows instead, because there are too many columns or rows, or a
    column has a type that no mask accepts.
    """
    schema = source.table.schema()
    if any(name not in schema or Kind.of(schema[name]) is None for name in names):
        return None
    rows = source.rows if rows is None else rows
    if not fits(source, rows, len(names)):
        return None
    parts = _stored(source, names)
    if not parts:
        columns = source.table.select(**{f"a{i}": source.table[n] for i, n in enumerate(names)})
        parts = _parts(source, columns, names)
    return CodedRows(*_joined(source, names, parts), np.zeros(rows, dtype=np.uint8), 1)


@contextmanager
def holding(source: Source) -> Iterator[None]:
    """Return a context that keeps the columns of a large Parquet table in memory once `stored_rows`
    has read them. Threads that keep columns of the same source share them, until the block of the
    first thread ends.
    """
    cells = source.rows * len(source.columns) if source.is_parquet else 0
    large = source.is_parquet and source.rows >= LARGE
    columns: dict[str, Part] = {}
    if not (large and cells * _CODE_BYTES <= parse_size(limits().memory)) or (
        _IN_MEMORY.setdefault(source, columns) is not columns
    ):
        yield
        return
    try:
        yield
    finally:
        del _IN_MEMORY[source]


def is_held(source: Source) -> bool:
    """Return whether `holding` keeps the columns of a table in memory."""
    return source in _IN_MEMORY


def stored_rows(source: Source, names: Sequence[str]) -> CodedRows | None:
    """Return columns of all rows of a table whose columns `holding` keeps in memory; None for other
    tables, and if the engine should read the columns: if they are not stored as they are, or if
    their values hardly repeat. Each column is read only once.
    """
    columns, schema = _IN_MEMORY.get(source), source.table.schema()
    if columns is None or any(n not in schema or Kind.of(schema[n]) is None for n in names):
        return None
    missing = [name for name in dict.fromkeys(names) if name not in columns]
    if missing and not _repeat(source, missing):
        return None
    for name in missing:  # one at a time, which takes the least memory
        parts = _stored(source, [name])
        if not parts:
            return None
        values, codes = _joined(source, [name], parts)
        columns[name] = codes[name], values[name]
    pa.default_memory_pool().release_unused()
    return CodedRows(
        {name: columns[name][1] for name in names},
        {name: columns[name][0] for name in names},
        np.zeros(source.rows, dtype=np.uint8),
        1,
    )


def _repeat(source: Source, names: Sequence[str]) -> bool:
    """Return whether values repeat in each column in the first rows of a Parquet file."""
    try:
        batches = stored_batches(source, names, rows=_FIRST)
        first = None if batches is None else next(batches, None)
        columns = [] if first is None else [stored_codes(column)[1] for column in first.columns]
    except (pa.ArrowException, OSError):
        return False
    return first is not None and all(_REPEATS * len(distinct) <= len(first) for distinct in columns)


def _parts(source: Source, table: ir.Table, names: Sequence[str]) -> list[list[Part]]:
    """Run the query `table`, and return its columns `names` as codes in batches of rows: for each
    column, the code of each row and the value of each code, by batch.
    """
    return [
        [stored_codes(column) for column in batch.columns]
        for batch in source.batches(table, rows=_at_a_time(names))
    ]


def _stored(source: Source, names: Sequence[str]) -> list[list[Part]]:
    """Read the columns `names` as Parquet files store them, and return them as codes in batches of
    rows: for each column, the code of each row and the value of each code, by batch. The list is
    empty if that is not possible.
    """
    try:
        batches = stored_batches(source, tuple(dict.fromkeys(names)), rows=_at_a_time(names))
        return [[stored_codes(batch.column(name)) for name in names] for batch in batches or ()]
    except (pa.ArrowException, OSError):
        return []  # the engine says what is wrong with the file


def _at_a_time(names: Sequence[str]) -> int:
    return max(_FETCHED // (len(names) + 1), 1)


def fetch_codes(source: Source, table: ir.Table) -> dict[str, npt.NDArray[np.unsignedinteger]]:
    """Return the code of each of the N rows' value, shape (N,), for each column of an engine's
    table.

    A code is the index of the value among the distinct values, which are in ascending order with
    null last. The order of the rows is arbitrary, but the same for all columns.
    """
    names, codes = table.columns, {}
    parts = _parts(source, table, names)
    for name in names:
        dtype = table[name].type().to_pyarrow()
        codes[name] = join_parts([columns.pop(0) for columns in parts], dtype)[0]
    return codes


def _joined(
    source: Source, names: Sequence[str], parts: Sequence[list[Part]]
) -> tuple[dict[str, pa.Array], dict[str, npt.NDArray[np.unsignedinteger]]]:
    """Join the batches of each column; return the distinct values and the code of each row, by
    column.

    `parts` is emptied, to save memory.
    """
    values: dict[str, pa.Array] = {}
    codes: dict[str, npt.NDArray[np.unsignedinteger]] = {}
    for name in names:
        column_parts = [columns.pop(0) for columns in parts]
        dtype = source.table[name].type().to_pyarrow()
        codes[name], values[name] = join_parts(column_parts, dtype)
    return values, codes


def join_parts(
    parts: Sequence[Part], dtype: pa.DataType
) -> tuple[npt.NDArray[np.unsignedinteger], pa.Array]:
    """Join the batches of a column, each of which has a code for each row and the value of each
    code. Return the code of each row of all batches, and the distinct values, of the type `dtype`.
    """
    if not parts:
        return np.zeros(0, dtype=np.uint8), pa.array([], dtype)
    value_codes, distinct = encode(pa.concat_arrays([values for _, values in parts]))
    starts = np.cumsum([0, *(len(values) for _, values in parts)]).tolist()
    small = narrow(value_codes, len(distinct))
    codes = [
        small[start:].take(indices) for start, (indices, _) in zip(starts, parts, strict=False)
    ]
    used = np.zeros(len(distinct), dtype=np.bool_)
    for part_codes in codes:
        used[part_codes] = True
        if used.all():  # mostly after a few rows
            return np.concatenate(codes), distinct
    some = narrow(np.cumsum(used) - 1, int(used.sum()))
    return some.take(np.concatenate(codes)), distinct.filter(pa.array(used))


TRIAL_ROWS = 100_000
"""Number of rows in the trial query. Smaller tables are counted directly."""
_LEAST_REPEATS = 4
"""Least mean number of trial rows per combination for which grouping twice pays."""
Groups = tuple[ir.Table, list[str]]
"""A table with each combination of some columns, as `c0`, `c1`, ..., and its number of rows
`aegis_n`; and the names of these columns.
"""
_STORED: WeakKeyDictionary[Source, tuple[int, Groups | None, pa.Table | None]] = WeakKeyDictionary()
"""The groups of the rows of tables, as long as `grouping` lasts: the thread that uses them, the
groups in the engine, and the same groups in memory if they were read.
"""


@contextmanager
def grouping(source: Source, names: Iterable[str]) -> Iterator[None]:
    """Make a server group the rows of a table by the columns `names` once, and store the groups as
    long as the context lasts. `count_by` then counts these columns from the groups.

    Nothing is stored if the engine runs in this process, if most of the first rows (which a trial
    query reads) have a combination of values that no other row has, or if groups of the table are
    stored already. Other threads do not use the groups.
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
    mine: tuple[int, Groups | None, pa.Table | None] = get_ident(), None, None
    if _STORED.setdefault(source, mine) is not mine:
        yield
        return
    try:
        with source.keep(_grouped(source.table, columns)) as stored:
            _STORED[source] = mine[0], (stored, columns), _read(source, stored)
            yield
    finally:
        del _STORED[source]


def _read(source: Source, groups: ir.Table) -> pa.Table | None:
    """Return stored groups as a table in memory; None if there are too many of them, or if they
    must not leave the engine.
    """
    if not source.engine.sends_combinations:
        return None
    size = source.collect(groups.aggregate(n=groups.count()))["n"][0].as_py()
    return source.collect(groups) if size <= MOST_ROWS else None


def read_groups(source: Source, names: Iterable[str]) -> tuple[CodedRows, Codes] | None:
    """Return the stored groups of the rows of a table as codes, without a label, and the number of
    rows of each group. Return None if no groups were read, or if they lack one of the columns
    `names`.
    """
    thread, stored, groups = _STORED.get(source) or (0, None, None)
    if groups is None or stored is None or thread != get_ident() or {*names} - {*stored[1]}:
        return None
    codes, values = {}, {}
    for i, name in enumerate(stored[1]):
        group_codes, values[name] = encode(groups[f"c{i}"].combine_chunks())
        codes[name] = narrow(group_codes, len(values[name]))
    rows = CodedRows(values, codes, np.zeros(groups.num_rows, dtype=np.uint8), 1)
    return rows, groups["aegis_n"].to_numpy()


def counted_by(source: Source, table: ir.Table, keys: Mapping[str, ir.Value]) -> pa.Table:
    """Return how many rows of `table` have each combination of `keys`, in a column `n`, as a table
    in memory. If the groups of the rows were read, keys that are columns need no query.

    The parameters are those of `count_by`.
    """
    thread, stored, groups = _STORED.get(source) or (0, None, None)
    prepared = _columns(table, keys)
    if groups is not None and stored is not None and prepared and thread == get_ident():
        base, expressions, _ = prepared
        names = [key.name for key in expressions.values() if isinstance(key, ops.Field)]
        if base.equals(source.table) and len(names) == len(keys) and set(names) <= set(stored[1]):
            columns = [groups[f"c{stored[1].index(name)}"] for name in names]
            table_of_keys = pa.table([*columns, groups["aegis_n"]], names=[*keys, "n"])
            counted = table_of_keys.group_by(list(keys)).aggregate([("n", "sum")])
            return counted.select([*keys, "n_sum"]).rename_columns([*keys, "n"])
    return source.collect(count_by(source, table, keys))


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
    replacements = {
        ops.Field(base.op(), name): ops.Field(groups.op(), f"c{i}") for i, name in enumerate(names)
    }
    moved = {name: node.replace(replacements).to_expr() for name, node in expressions.items()}
    return groups.group_by(**moved).aggregate(n=groups["aegis_n"].sum().cast("int64"))


def _once(
    source: Source, base: ir.Table, keys: Mapping[str, ops.Value], columns: list[str]
) -> Groups | None:
    """Return the rows of the table `base` grouped by columns that include `columns`, from which
    rows can then be counted by `keys`. Return None if few combinations occur more than once, or if
    all `keys` are plain columns, so that grouping twice would not pay.

    If the groups are stored, or if the table is stored as Parquet and can be read as codes, no
    trial query is needed.
    """
    thread, stored_groups, _ = _STORED.get(source) or (0, None, None)
    usable = thread == get_ident() and base.equals(source.table)
    if stored_groups is not None and usable and set(columns) <= set(stored_groups[1]):
        return stored_groups
    if all(isinstance(key, ops.Field) for key in keys.values()):
        return None
    all_rows = base.equals(source.table) or (
        source.numbered is not None and base.equals(source.numbered)
    )
    stored = all_rows and source.is_parquet and source.rows >= TRIAL_ROWS
    coded_rows = (stored_rows(source, columns) or read_rows(source, columns)) if stored else None
    if coded_rows is not None:
        cells = coded_rows.cells(columns)
        if source.rows < _LEAST_REPEATS * cells.num_rows:
            return None
        names = [f"c{i}" for i in range(len(columns))]
        return source.upload(cells.rename_columns([*names, "aegis_n"])), columns
    rows, groups, _ = _first_rows(source, base, columns)
    if rows < TRIAL_ROWS or rows < _LEAST_REPEATS * groups:
        return None
    return _grouped(base, columns), columns


def _grouped(table: ir.Table, columns: list[str]) -> ir.Table:
    """Return a query for the combinations of values in `columns`, and the rows with each."""
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
    """Return three numbers for the first rows of the table `base`: rows, different combinations of
    values in `columns`, and rows whose combination no other of these rows has.
    """
    groups = _grouped(base.select(*columns).limit(TRIAL_ROWS), columns)
    size = groups["aegis_n"]
    alone = (size == 1).sum().cast("int64")
    counted = source.collect(
        groups.aggregate(rows=size.sum().cast("int64"), groups=groups.count(), alone=alone)
    )
    rows, combinations, single = (counted[name][0].as_py() or 0 for name in counted.column_names)
    return rows, combinations, single
