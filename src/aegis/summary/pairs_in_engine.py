"""Count co-occurrences in an engine outside this process, which returns only aggregates.

An atom is a set of values that no candidate mask distinguishes. The engine computes the atoms of
each row and stores them in a temporary table of small integers: `a0`, `a1`, ... (atoms), `y`
(class), `f` (fold), and possibly `u` (unit), `r` (numeric label) and `w` (weight). Each GROUP BY on
this table counts a few attributes together; a query has several GROUP BYs. The counts of each pair
of attributes are sums of these counts.

If there are few rows, Spark counts the combinations of all atoms with one GROUP BY instead, and
this process counts the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Array, Ints, counts_by_key
from aegis.files import Step
from aegis.masks.categories import mapped, text_of
from aegis.sources import Source
from aegis.summary.codes import Dealer, narrow, table_changed
from aegis.summary.cooccurrence import Chunk, PairCounts, with_folds
from aegis.summary.model import AttributeSummary
from aegis.summary.responses import ResponseSums
from aegis.summary.weights import WeightSums

_LONGEST_CASE = 2
"""A column of at most so many values is coded by a CASE, one of more by a join.

PostgreSQL tests the branches of a CASE one after the other in each row, and again wherever a query
uses the code. Spark sends small tables to all executors, and does not compile a query with a long
CASE.
"""
_TOGETHER = 16
"""Sets of attributes that are counted in one query: engines plan longer ones slowly."""
_MOST_CELLS = 1 << 20
"""Attributes are counted together up to about so many cells; a pair may have more."""
_LARGEST_KEY = 1 << 62
_NOWHERE = -1
_MOST_HASHED = 10_000
"""Largest number of values of a column for which the engine writes hashes instead of codes."""
_HASH_BITS = 32
"""Number of bits of the hashes: Spark's have no more."""
Encoding = tuple[str, pa.Array, Array]
"""A column, its distinct values, and the code of each."""


def _joint(index: Ints, count: Ints, size: int, width: int) -> Ints:
    """Return the rows by atom, class and fold of an attribute, shape (size, width), from the cells
    of the attribute paired with itself. `width` is the number of classes times folds.
    """
    cell, column = np.divmod(index, width)
    joint = np.zeros((size, width), dtype=np.int64)
    joint[cell // size, column] = count
    return joint


def count_pairs_in_engine(
    source: Source,
    rows: ir.Table,
    attributes: Mapping[str, AttributeSummary],
    label: Callable[[ir.Table], ir.Value],
    classes: pa.Array,
    step: Step,
    dealer: Dealer,
    *,
    person: str | None = None,
    response: Callable[[ir.Table], ir.Value] | None = None,
    weight: Callable[[ir.Table], ir.Value] | None = None,
) -> PairCounts:
    """Count co-occurrences of all pairs of attributes by class in the engine of `source`.

    Parameters
    ----------
    source, rows
        The source whose engine runs the queries, and the rows to count (all or a sample).
    attributes
        The attributes, with the atom of each of their values.
    label, classes
        A function that returns the class of each row (rows without one do not count); all classes.
    step
        The progress. It advances by the number of rows of the table, times the share of the pairs
        that have been counted.
    dealer
        Assigns rows to folds; rows are also counted by fold.
    person
        Column that identifies persons; all rows of a person get the same fold.
    response, weight
        Functions that return the numeric label and the weight of each row in units; None without.
    """
    names, folds = tuple(attributes), dealer.folds
    sizes = tuple(a.n_atoms for a in attributes.values())
    expressions = {"aegis_y": label, "aegis_r": response, "aegis_w": weight}
    columns = {name: value(rows) for name, value in expressions.items() if value is not None}
    if person is not None:
        columns["aegis_u"] = ibis.dense_rank().over(order_by=rows[person])
    labelled = rows.mutate(**columns)
    small = dealt(_atoms(source, labelled, attributes, classes), dealer)
    width = len(classes) * folds
    spread = [_spread(attribute) for attribute in attributes.values()]
    together = joint_sets(sizes, spread, _MOST_CELLS // width, _LARGEST_KEY // width)
    tallies: dict[tuple[int, int], tuple[Ints, Ints]] = {}
    with source.keep(small) as small_table:
        for start in range(0, len(together), _TOGETHER):
            chunk = together[start : start + _TOGETHER]
            for joint in _count(source, small_table, chunk, sizes, width, folds):
                tallies |= {pair: joint.of(pair) for pair in joint.pairs if pair not in tallies}
            step.advance(source.rows * len(chunk) / len(together))
        responses = None if response is None else _responses(source, small_table, sizes, folds)
        totals = None if weight is None else _weights(source, small_table)
    atom_counts = [_joint(*tallies[i, i], size, width) for i, size in enumerate(sizes)]
    per_fold = atom_counts[0].reshape(-1, folds).sum(axis=0)
    pairs = {pair: cells for pair, cells in tallies.items() if pair[0] < pair[1]}
    counts = with_folds(names, sizes, len(classes), atom_counts, pairs, per_fold, responses)
    if totals is None:
        return counts
    return replace(counts, rows=totals[0], weights=replace(totals[1], divisor=dealer.divisor))


def read_combinations(
    source: Source,
    rows: ir.Table,
    attributes: Mapping[str, AttributeSummary],
    label: Callable[[ir.Table], ir.Value],
    classes: pa.Array,
) -> Chunk:
    """Return the atoms and the class of each row with a class, in arbitrary order; there must be
    few rows.

    The engine counts how many of the `rows` have each combination of atoms and class, and only
    these counts are read. They arrive as whole numbers whose digits are the atoms and the class,
    several to a number. The arguments are as in `count_pairs_in_engine`.
    """
    encodings = _encodings(attributes, classes)
    table, digits = _digits(source, rows.mutate(aegis_y=label(rows)), encodings)
    blocks: list[list[str]] = []
    space = 1
    for name, digit in digits.items():
        space *= digit.size
        if not blocks or space > _LARGEST_KEY:
            blocks.append([])
            space = digit.size
        blocks[-1].append(name)
    small = table.select(**{name: digit.expression(table) for name, digit in digits.items()})
    sizes = [[digits[name].size for name in block] for block in blocks]
    keys = {f"k{i}": _key(small, block, sizes[i]) for i, block in enumerate(blocks)}
    counted = source.collect(small.group_by(**keys).aggregate(n=small.count()))
    codes = {
        name: digits[name].decode(written)
        for i, block in enumerate(blocks)
        for name, written in zip(
            block, np.unravel_index(counted[f"k{i}"].to_numpy(), sizes[i]), strict=True
        )
    }
    label_codes = codes.pop("y")
    has_class = label_codes != _NOWHERE
    times = counted["n"].to_numpy()[has_class]
    atoms = []
    for of_cells, attribute in zip(codes.values(), attributes.values(), strict=True):
        atoms.append(np.repeat(narrow(of_cells[has_class], attribute.n_atoms), times))
        if (of_cells == _NOWHERE).any():
            raise table_changed()
    return Chunk(atoms, np.repeat(label_codes[has_class], times))


@dataclass(frozen=True, eq=False)
class _Digit:
    """A whole number in place of each value of a column, from which the value's code follows.

    Attributes
    ----------
    expression
        A function by which the engine computes the number of each row, from 0 to `size` - 1.
    size
        How many numbers are possible.
    numbers, codes
        The numbers that stand for values, ascending, and the code of each.
    """

    expression: Callable[[ir.Table], ir.IntegerValue]
    size: int
    numbers: Ints
    codes: Ints

    def decode(self, written: Ints) -> Ints:
        """Return the code of each of N numbers, shape (N,)."""
        position = np.searchsorted(self.numbers, written).clip(max=len(self.numbers) - 1)
        return np.where(self.numbers[position] == written, self.codes[position], _NOWHERE)


def _digits(
    source: Source, table: ir.Table, encodings: Mapping[str, Encoding]
) -> tuple[ir.Table, dict[str, _Digit]]:
    """Return a table, and a digit for each column by which the engine writes each row's values.

    A digit is the last bits of the engine's hash of the value, as many as keep the column's values
    apart: Spark computes them in less time than it joins a table of codes. Where values have the
    same hash, or where there are many values, the digit is the code from such a join.
    """
    few = {code: of for code, of in encodings.items() if len(of[1]) <= _MOST_HASHED}
    hashes, digits = _hashes(source, table, few), {}
    for code, (column, values, codes) in encodings.items():
        bits = next((b for b in range(_HASH_BITS) if _differ(hashes.get(code), b)), None)
        if bits is None:
            table, of = _with_codes(source, table, code, column, values, codes)
            numbers = np.arange(_NOWHERE, codes.max(initial=0) + 1)
            digits[code] = _Digit(_next(of), len(numbers), numbers + 1, numbers)
            continue
        numbers = hashes[code] & ((1 << bits) - 1)
        order = np.argsort(numbers)
        digits[code] = _Digit(_last_bits(column, bits), 1 << bits, numbers[order], codes[order])
    return table, digits


def _differ(hashes: Ints | None, bits: int) -> bool:
    """Return whether the last `bits` bits of these hashes differ; False if there are none."""
    return hashes is not None and len(np.unique(hashes & ((1 << bits) - 1))) == len(hashes)


def _last_bits(column: str, bits: int) -> Callable[[ir.Table], ir.IntegerValue]:
    return lambda table: _wide(table[column].hash() & ((1 << bits) - 1))


def _next(code: Callable[[ir.Table], ir.Value]) -> Callable[[ir.Table], ir.IntegerValue]:
    return lambda table: code(table).cast("int64") + 1


def _hashes(source: Source, table: ir.Table, encodings: Mapping[str, Encoding]) -> dict[str, Ints]:
    """Return the engine's hash of each value, by code. All values are uploaded in one table."""
    longest = max((len(values) for _, values, _ in encodings.values()), default=0)
    padded = {
        code: pa.concat_arrays([values, pa.nulls(longest - len(values), values.type)])
        for code, (_, values, _) in encodings.items()
    }
    uploaded = source.upload(pa.table({**padded, "position": np.arange(longest)}))
    computed = {
        code: uploaded[code].cast(table[column].type()).hash()
        for code, (column, _, _) in encodings.items()
    }
    collected = source.collect(uploaded.select("position", **computed)).sort_by("position")
    return {
        code: collected[code].to_numpy().astype(np.int64)[: len(values)]
        for code, (_, values, _) in encodings.items()
    }


def _key(table: ir.Table, columns: Sequence[str], sizes: Sequence[int]) -> ir.IntegerValue:
    """Return an expression for one whole number whose digits are the values of these columns, which
    are below `sizes`.
    """
    key: ir.IntegerValue = ibis.literal(0, type="int64")
    for name, size in zip(columns, sizes, strict=True):
        key = key * size + table[name].cast("int64")
    return key


def _counted(table: ir.Table) -> ir.Value:
    """Return an expression for the number of rows, or for the sum of their weights `w`."""
    return table["w"].sum().cast("int64") if "w" in table.columns else table.count()


def _weights(source: Source, small_table: ir.Table) -> tuple[int, WeightSums]:
    """Return the number of rows and the sums of their weights `w`."""
    result = source.collect(small_table.group_by("w").aggregate(n=small_table.count()))
    pairs = list(zip(result["w"].to_pylist(), result["n"].to_pylist(), strict=True))
    rows = sum(int(n) for _, n in pairs)
    total, squares = (sum(int(w) ** power * int(n) for w, n in pairs) for power in (1, 2))
    return rows, WeightSums(total, squares)


def _atoms(
    source: Source,
    labelled: ir.Table,
    attributes: Mapping[str, AttributeSummary],
    classes: pa.Array,
) -> ir.Table:
    """Return the temporary table without folds, from a table with `aegis_y`, and possibly
    `aegis_u`, `aegis_r` and `aegis_w`.
    """
    joined, codes = labelled, {}
    for code, of_column in _encodings(attributes, classes).items():
        joined, codes[code] = _with_codes(source, joined, code, *of_column)
    more = [name for name in ("u", "r", "w") if f"aegis_{name}" in labelled.columns]
    columns = {name: joined[f"aegis_{name}"] for name in more}
    table = joined.select(**columns, **{code: value(joined) for code, value in codes.items()})
    return table.filter(table["y"] != _NOWHERE)


def _encodings(
    attributes: Mapping[str, AttributeSummary], classes: pa.Array
) -> dict[str, Encoding]:
    """Return the columns to be coded. The code of a row without a class is `_NOWHERE`."""
    labels = pa.concat_arrays([classes, pa.nulls(1, classes.type)])
    return {
        **{f"a{i}": (a.name, a.values, a.atoms) for i, a in enumerate(attributes.values())},
        "y": ("aegis_y", labels, np.append(np.arange(len(classes)), _NOWHERE)),
    }


def dealt(table: ir.Table, dealer: Dealer) -> ir.Table:
    """Add the fold `f` to the temporary table. If it has a column `u`, all rows with the same `u`
    get the same fold.
    """
    columns = [name for name in table.columns if name != "u"]
    if dealer.folds == 1:
        return table.select(*columns, f=ibis.literal(0, "int16"))
    if "u" in table.columns:
        return table.select(*columns, f=dealer.units(_wide(table["u"])).cast("int16"))
    wide = [table[name].cast("int64") for name in columns if name.startswith("a")]
    number = table["r"].cast("int64") if "r" in columns else None
    weight = table["w"].cast("int64") if "w" in columns else None
    first, second = dealer.sums(wide, table["y"].cast("int64"), number, weight)
    summed = table.select(*columns, first=first, second=second)
    equal = ibis.row_number().over(
        group_by=[summed["first"], summed["second"]], order_by=summed["second"]
    )
    numbered = summed.mutate(turn=_wide(equal))
    fold = dealer.fold(numbered["first"], numbered["second"], numbered["turn"])
    return numbered.select(*columns, f=fold.cast("int16"))


def _wide(rank: ir.IntegerValue) -> ir.IntegerValue:
    """Return a rank or hash as a 64-bit integer; Ibis assumes that it is one, but Spark's have 32
    bits.
    """
    return rank.cast("int32").cast("int64")


def _with_codes(
    source: Source, table: ir.Table, code: str, column: str, values: pa.Array, codes: Array
) -> tuple[ir.Table, Callable[[ir.Table], ir.Value]]:
    """Return a table, and a function that computes the code of the value of `column` in each row
    from this table or from any table with all its columns. `values` has the distinct values, and
    `codes` the code of each.

    If there are few values, the returned table is `table`. If there are many, it is `table` joined
    with an uploaded table of values and codes, whose column names end in `code`.
    """
    dtype = table[column].type()
    present = values.is_valid().to_numpy(zero_copy_only=False)
    null = int(codes[~present][0]) if not present.all() else _NOWHERE
    kind = "int16" if len(codes) < 1 << 15 else "int32"
    values, codes = values.drop_null(), codes[present]
    written = dtype.is_string() or dtype.is_integer() or dtype.is_boolean()
    if written and len(values) <= _LONGEST_CASE:
        targets = {
            str(text_of(value)): int(atom)
            for value, atom in zip(values.to_pylist(), codes.tolist(), strict=True)
        }
        nowhere = ibis.literal(_NOWHERE, type="int32")
        return table, lambda t: mapped(t[column], targets, nowhere).fill_null(null).cast(kind)
    # Engines do not agree on whether NaN equals itself, least of all in joins.
    nan = [isinstance(value, float) and isnan(value) for value in values.to_pylist()]
    valid = pa.array([not is_nan for is_nan in nan])
    arrow_codes = pa.array(codes.tolist(), pa.int32())
    lookup = source.upload(
        pa.table(
            {f"aegis_v_{code}": values.filter(valid), f"aegis_c_{code}": arrow_codes.filter(valid)}
        )
    )

    def of(joined: ir.Table) -> ir.Value:
        position = joined[f"aegis_c_{code}"].fill_null(null)
        if any(nan):
            position = ibis.ifelse(joined[column].isnan(), int(codes[nan.index(True)]), position)
        return position.cast(kind)

    return table.left_join(lookup, [table[column] == lookup[f"aegis_v_{code}"]]), of


def _responses(
    source: Source, small_table: ir.Table, sizes: Sequence[int], folds: int
) -> ResponseSums:
    """Return the sums of a numeric label by fold and atom."""
    weighted = "w" in small_table.columns
    total = small_table["r"].sum().cast("int64")
    if weighted:  # sums may take more than 64 bits
        product = small_table["r"].cast("int64") * small_table["w"].cast("int64")
        total = product.cast("decimal(38, 0)").sum().cast("string")
    sums = []
    for i, size in enumerate(sizes):
        grouped = small_table.group_by(a=small_table[f"a{i}"], f=small_table["f"])
        result = source.collect(grouped.aggregate(s=total))
        fold, atom = (result[name].to_numpy().astype(np.int64) for name in "fa")
        by_fold = np.zeros((folds, size), dtype=object if weighted else np.int64)
        by_fold[fold, atom] = [int(number) for number in result["s"].to_pylist()]
        sums.append(by_fold)
    grouped = small_table.group_by(r=small_table["r"], f=small_table["f"])
    result = source.collect(grouped.aggregate(n=_counted(small_table)))
    squares = [0] * folds
    for value, number, count in zip(*(result[name].to_pylist() for name in "rfn"), strict=True):
        squares[number] += int(value) ** 2 * int(count)
    return ResponseSums(tuple(sums), sums[0].sum(axis=1), tuple(squares))


def _spread(attribute: AttributeSummary) -> float:
    """Return the effective number of atoms of an attribute: so many equally frequent atoms would
    give about as many combinations with other attributes. It is smaller than the number of atoms if
    some are rare.
    """
    shares = np.bincount(attribute.atoms, attribute.counts) / max(attribute.counts.sum(), 1)
    return float(np.sqrt(shares).sum() ** 2)


def joint_sets(
    sizes: Sequence[int], spread: Sequence[float], most: int, largest: int
) -> list[tuple[int, ...]]:
    """Return sets of attributes such that each attribute, and each pair of attributes, is in at
    least one set. Sets of more than two attributes have a limited number of combinations of atoms
    (sets of values).

    Each new set starts with the pair that has the most combinations among the pairs in no set. Then
    attributes are added as long as there are not too many combinations: first the attribute that
    adds the most missing pairs, relative to the logarithm of its number of atoms.

    Parameters
    ----------
    sizes, spread
        For each attribute, its number of atoms, and its effective number of atoms, which is smaller
        if some are rare.
    most, largest
        In a set of more than two attributes: the largest product of `spread`, and the largest
        product of `sizes`.
    """
    size, counted = np.asarray(sizes, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    missing_pairs = np.ones((len(size), len(size)), dtype=bool)
    sets = []
    while missing_pairs.any():
        first = int(np.argmax(np.where(missing_pairs, np.multiply.outer(counted, counted), 0)))
        members = sorted(set(divmod(first, len(size))))
        while True:
            room = counted * counted[members].prod() <= most
            room &= size * size[members].prod() <= largest
            room[members] = False
            gain = np.where(room, missing_pairs[members].sum(axis=0) / np.log1p(counted), 0)
            if not gain.max():
                break
            members.append(int(np.argmax(gain)))
        missing_pairs[np.ix_(members, members)] = False
        sets.append(tuple(sorted(members)))
    return sets


@dataclass(frozen=True, eq=False)
class _JointCounts:
    """The number of rows by the atoms of several attributes, by class and by fold, for the cells
    that have rows.

    Attributes
    ----------
    members, sizes
        The attributes that are counted together, by their index, and their numbers of atoms.
    width
        Number of classes times number of folds.
    index, count
        Flat index and number of rows of each cell. Atoms, class and fold are the digits of the
        index.
    """

    members: tuple[int, ...]
    sizes: tuple[int, ...]
    width: int
    index: Ints
    count: Ints

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of the members, including each member with itself."""
        return [(i, j) for i in self.members for j in self.members if i <= j]

    def of(self, pair: tuple[int, int]) -> tuple[Ints, Ints]:
        """Return the cells of a pair that have rows: flat index, ascending, and number of rows. The
        index is that of the pair of atoms times `width`, plus class times folds, plus fold.
        """
        if self.index.min(initial=0) < 0:  # a value without a code
            raise table_changed()
        cell, last = np.divmod(self.index, self.width)
        digits = np.unravel_index(cell, self.sizes)
        a, b = (self.members.index(attribute) for attribute in pair)
        index = (digits[a] * self.sizes[b] + digits[b]) * self.width + last
        return counts_by_key(index, self.count, self.sizes[a] * self.sizes[b] * self.width)


def _count(
    source: Source,
    small_table: ir.Table,
    together: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    width: int,
    folds: int,
) -> Iterator[_JointCounts]:
    """Yield the counts of each set of attributes in `together`, all from one query."""
    # A key of one number: PostgreSQL takes longer to group by four columns.
    last = small_table["y"].cast("int64") * folds + small_table["f"]
    queries = []
    for index, members in enumerate(together):
        key = _key(small_table, [f"a{i}" for i in members], [sizes[i] for i in members])
        grouped = small_table.group_by(k=key * width + last).aggregate(n=_counted(small_table))
        queries.append(grouped.select(p=ibis.literal(index, type="int32"), k="k", n="n"))
    result = source.collect(ibis.union(*queries) if len(queries) > 1 else queries[0])
    columns = {name: result[name].to_numpy().astype(np.int64) for name in result.column_names}
    for index, members in enumerate(together):
        in_set = (columns["p"] == index) & (columns["n"] > 0)  # weights of 0 make no cell
        counted = tuple(sizes[i] for i in members)
        yield _JointCounts(members, counted, width, columns["k"][in_set], columns["n"][in_set])
