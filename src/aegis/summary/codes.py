"""Prepare the columns of a table for counting: checks, integer codes, and the fold of each row.

Values are encoded in a fixed order; null and NaN are one value each.

Rows are assigned to folds by a hash of their content, so that scores do not depend on the order of
rows. The hash of a row is computed from its label and its atoms (sets of values that no candidate
mask distinguishes), as two sums modulo the prime P = 2^31 - 1. Equal rows are numbered, and the
hash includes the number, so that equal rows get different random folds. All integers are below
2^62, so every engine computes the same folds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Floats, Integers, Ints, ranks
from aegis.errors import DataError, PolicyError
from aegis.masks import Kind, Mask, Quantiles, ValueCounts, evaluate
from aegis.masks.base import usable
from aegis.policy import Attribute, Label, Policy, Role
from aegis.sources import Source
from aegis.words import brief, counted

_NUMBER = re.compile(r"[\[\]]?(-?(?:inf|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))")
"""The number that a shown value starts with: 39, 39.5, "[30, 40[", "]-inf, 28["."""
_WRITTEN_NUMBER = r"^[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?$"
_MOST_OTHERS = 0.1
"""A column counts as one of numbers if at most this share of its texts are no numbers."""


def settle(values: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, and all NaN by the same NaN, because engines group them so, but Arrow
    distinguishes them.
    """
    if not pa.types.is_floating(values.type):
        return values
    values = pc.add(values, pa.scalar(0.0, values.type))
    nan = pc.is_nan(values)
    if not pc.any(nan).as_py():
        return values
    return pc.if_else(nan, pa.scalar(float("nan"), values.type), values)


def sorted_values(values: pa.Array) -> tuple[pa.Array, Ints]:
    """Sort distinct values, with NaN before null and null last. Also return the indices that sort
    them.
    """
    values = settle(values)
    order = pc.array_sort_indices(values, null_placement="at_end")
    return values.take(order), order.to_numpy().astype(np.int64)


def encode(values: pa.Array) -> tuple[Ints, pa.Array]:
    """Return the code of each entry, its index in the distinct values, and these values in
    ascending order, with NaN before null and null last.
    """
    encoded = settle(values).dictionary_encode(null_encoding="encode")
    distinct, order = sorted_values(encoded.dictionary)
    return ranks(order)[encoded.indices.to_numpy(zero_copy_only=False)], distinct


def stored_codes(column: pa.Array) -> tuple[npt.NDArray[np.unsignedinteger], pa.Array]:
    """Return the code of each row in a small integer type, and the value of each code, not sorted.
    If the column is dictionary-encoded, there may be duplicate values, and values that no row has.
    """
    if not pa.types.is_dictionary(column.type):
        column = settle(column).dictionary_encode(null_encoding="encode")
    values, indices = column.dictionary, column.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return narrow(indices.to_numpy(zero_copy_only=False), len(values)), values


def narrow(codes: Integers, size: int) -> npt.NDArray[np.unsignedinteger]:
    """Convert codes below `size` to the smallest unsigned integer type in which they fit."""
    return codes.astype(np.min_scalar_type(max(size - 1, 0)))


def code_values(column: pa.Array, values: pa.Array) -> Ints:
    """Return the position of each entry of `column` in `values`.

    Raises
    ------
    DataError
        An entry is not among the values, because the table changed while it was read.
    """
    positions = pc.index_in(settle(column), value_set=values)
    if positions.null_count:
        raise table_changed()
    codes: Ints = positions.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def table_changed() -> DataError:
    """Return the error for a table that changed while it was read."""
    return DataError(
        "The table has a value that it did not have when Aegis counted its values.",
        hint="Is a program writing to the table, or does a view draw values at random? Copy the rows "
        "into a table that nobody changes. If nothing changes it, this is a bug: please report it.",
    )


def numbers_of(values: pa.Array) -> Floats:
    """Convert numbers, dates or times to floats that have the same order; null becomes NaN."""
    scale = 1.0
    if pa.types.is_temporal(values.type):  # converted as floats, because integers may overflow
        scale = _MICROSECONDS[_unit(values.type)]
        values = values.view(pa.int64() if values.type.bit_width == 64 else pa.int32())
    floats: Floats
    floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats if scale == 1.0 else floats * scale


_MICROSECONDS = {"day": 86_400e6, "s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
"""Number of microseconds in each unit of dates and times."""


def _unit(kind: pa.DataType) -> str:
    if pa.types.is_date(kind):
        return "day" if pa.types.is_date32(kind) else "ms"
    return str(kind.unit)


def show(value: Any) -> str:
    """Return a value as text for people: null becomes "null", any other value `str`."""
    return "null" if value is None else str(value)


def shown_values(mask: Mask, values: pa.Array) -> pa.Array:
    """Return the masked value of each entry of `values`, in the type of the mask's output."""
    [grouping] = evaluate([mask], values)
    return grouping.masked_values.take(pa.array(grouping.codes))


def natural_order(labels: Sequence[str]) -> Ints:
    """Return the indices that sort masked values by the first number in their text, then by the
    whole text, with null last.

    An auditor sees only the masked values, so their order must follow from the text: 9 is before
    10, and "[5, 10[" before "[10, 20[".
    """
    return np.array(sorted(range(len(labels)), key=lambda i: _natural(labels[i])), dtype=np.int64)


def in_natural_order(labels: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Return the rank of each masked value in their natural order, and the values in this order."""
    order = natural_order(labels)
    return ranks(order), tuple(labels[i] for i in order)


def _natural(label: str) -> tuple[int, float, str]:
    if label == "null":
        return 2, 0.0, label
    start = _NUMBER.match(label)
    return (0, float(start[1]), label) if start else (1, 0.0, label)


PRIME = 2**31 - 1
"""A Mersenne prime. The product of two numbers below it fits into a signed integer of 64 bits."""
_LABEL, _TURN, _UNIT, _LABEL_NUMBER, _WEIGHT = "label", "turn", "unit", "number", "weight"


class Dealer:
    """Assigns each row to a fold by a hash of the row's content.

    Parameters
    ----------
    names
        Names of the attributes. The hash includes them, so the order of attributes does not matter.
    folds
        Number of folds F.
    seed
        With another seed, rows get other folds.
    divisor
        Greatest common divisor of the weights of the rows. Weights are divided by it, so rows with
        equal weights get the same folds as rows without weights.
    """

    def __init__(self, names: Sequence[str], folds: int, seed: int, divisor: int = 1) -> None:
        self.folds, self.divisor = folds, divisor
        self._columns = [_factors("attribute", name, seed) for name in names]
        self._label = _factors(_LABEL, "", seed)
        self._turn = _factors(_TURN, "", seed)[0]
        self._unit = _factors(_UNIT, "", seed)
        self._number = _factors(_LABEL_NUMBER, "", seed)
        self._weight = _factors(_WEIGHT, "", seed)
        self._quotient = pow(divisor, -1, PRIME)  # times a multiple of it: the quotient, modulo P
        self._numbers = _RowNumbers()

    def rows(
        self,
        codes: Sequence[Integers],
        label: Ints,
        number: Ints | None = None,
        weight: Ints | None = None,
        content: tuple[Ints, Ints] | None = None,
    ) -> Ints:
        """Return the fold of each row, shape (N,), from its atom for each attribute, its class,
        numeric label and weight, as whole numbers. `content` is `self.content(codes)`, if it is
        known.

        Equal rows are numbered, so that they are spread over the folds. The numbering continues in
        later calls.
        """
        if self.folds == 1:
            return np.zeros(len(label), dtype=np.int64)
        first, second = (
            self._with(modulo(total + _sum([(self._label, label)], index)), number, weight, index)
            for index, total in enumerate(self.content(codes) if content is None else content)
        )
        return np.asarray(self.fold(first, second, self._numbers.number(first * PRIME + second)))

    def content(self, codes: Sequence[Integers]) -> tuple[Ints, Ints]:
        """Return the two sums modulo a prime of the atoms of each row, without its label."""
        terms = list(zip(self._columns, codes, strict=True))
        return _sum(terms, 0), _sum(terms, 1)

    def chunk(
        self,
        codes: Sequence[Integers],
        label: Ints,
        number: Ints | None,
        weight: Ints | None,
        units: Ints | None,
    ) -> Ints:
        """Return the fold of each row of a chunk, as `rows`; if `units` has the unit (such as the
        person) of each row, all rows of a unit get the same fold.
        """
        if units is None:
            return self.rows(codes, label, number, weight)
        return np.asarray(self.units(units))

    def units(self, units: Any) -> Any:
        """Return the fold of each row from the number of its unit, in an array or an expression of
        an engine.
        """
        first, second = (units * factor % PRIME for factor in self._unit)
        return self.fold(first, second, 0)

    def sums(
        self, codes: Sequence[Any], label: Any, number: Any = None, weight: Any = None
    ) -> tuple[Any, Any]:
        """Return the two sums modulo a prime from which a row's fold is computed, as 64-bit
        expressions of its atoms, class, numeric label and weight.
        """
        terms = list(zip((*self._columns, self._label), (*codes, label), strict=True))
        first, second = (
            self._with(
                sum(code * factors[index] % PRIME for factors, code in terms) % PRIME,
                number,
                weight,
                index,
            )
            for index in (0, 1)
        )
        return first, second

    def _with(self, total: Any, number: Any, weight: Any, index: int) -> Any:
        """Add the numeric label, which may be negative, and the weight of each row to the first or
        the second (`index`) of the two sums. Because the weight is added, rows that differ only in
        weight get the same folds in any order.
        """
        if number is not None:
            positive = (number % PRIME + PRIME) % PRIME  # engines differ in the sign of a remainder
            total = modulo(total + modulo(positive * self._number[index]))
        if weight is not None:
            more = (weight % PRIME * self._quotient + (PRIME - 1)) % PRIME  # 0 of the lowest weight
            total = (total + more * self._weight[index] % PRIME) % PRIME
        return total

    def fold(self, first: Any, second: Any, turn: Any) -> Any:
        """Return the fold of a row from the two sums of its content and the number of equal rows
        before it. The combined sum is squared, so that similar rows get unrelated folds.
        """
        mixed = modulo(first + modulo(turn) * self._turn)
        mixed = modulo(mixed * mixed + second)
        return modulo(mixed * mixed) % self.folds


def modulo(numbers: Any) -> Any:
    """Return whole numbers modulo the prime P = 2^31 - 1: an array, an expression of an engine, or
    a number. Arrays must have numbers from 0 to 2^63 - 1. Because 2^31 = 1 modulo P, their upper
    bits are added to the lower 31 bits, which takes a third of the time of a division.
    """
    if not isinstance(numbers, np.ndarray):
        return numbers % PRIME
    rest = numbers & PRIME
    rest += numbers >> 31
    upper = rest >> 31
    rest &= PRIME
    rest += upper
    np.subtract(rest, PRIME, out=rest, where=rest >= PRIME)
    return rest


def _sum(terms: Iterable[tuple[tuple[int, int], Any]], index: int) -> Ints:
    """Return, for each row, the sum over columns of a factor times the row's atom, modulo the
    prime. `terms` has two factors and the atoms for each column; `index` says which factor to use.
    Atom 0 adds nothing, so that a column with a single value changes no fold.
    """
    total: Any = 0
    for factors, code in terms:
        products = np.arange(int(code.max(initial=0)) + 1, dtype=np.int64) * factors[index]
        total = total + (products % PRIME)[code]
    return np.asarray(modulo(total), dtype=np.int64)


def stable_order(keys: Ints) -> Ints:
    """Return the positions of keys from 0 to 2^62 - 1 in ascending order; equal keys stay in their
    order.

    >>> stable_order(np.array([7, 3, 7, 1])).tolist()
    [3, 1, 0, 2]
    """
    # Sorting integers is several times faster than sorting positions: each integer joins the first
    # bits of a key with its position.
    bits = max(len(keys) - 1, 1).bit_length()
    packed = (keys >> (bits - 1)) << bits | np.arange(len(keys))
    packed.sort()
    order: Ints = packed & ((1 << bits) - 1)
    ordered = keys[order]
    if (ordered[1:] < ordered[:-1]).any():
        return np.argsort(keys, kind="stable")
    return order


class _RowNumbers:
    """Gives each row the number of equal rows before it, over all chunks of a table."""

    def __init__(self) -> None:
        self._chunks: list[tuple[Ints, Ints]] = []

    def number(self, keys: Ints) -> Ints:
        """Return how many equal keys come before each key, in this and in earlier calls, shape
        (N,).
        """
        order = stable_order(keys)
        ordered = keys[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        counts = np.diff(first, append=len(keys))
        before = self._before(ordered[first])
        number = np.empty(len(keys), dtype=np.int64)
        turns = np.arange(len(keys))
        turns -= np.repeat(first - before, counts)
        number[order] = turns
        self._chunks.append((ordered[first], counts))
        return number

    def _before(self, keys: Ints) -> Ints:
        """Return how often each of N keys occurred in earlier calls, shape (N,)."""
        if not self._chunks:
            return np.zeros(len(keys), dtype=np.int64)
        if len(self._chunks) > 1:
            earlier, position = np.unique(
                np.concatenate([distinct for distinct, _ in self._chunks]), return_inverse=True
            )
            counts = np.concatenate([numbers for _, numbers in self._chunks])
            self._chunks = [(earlier, np.bincount(position, weights=counts).astype(np.int64))]
        earlier, counts = self._chunks[0]
        if not len(earlier):
            return np.zeros(len(keys), dtype=np.int64)
        position = np.minimum(np.searchsorted(earlier, keys), len(earlier) - 1)
        return np.where(earlier[position] == keys, counts[position], 0)


def _factors(kind: str, name: str, seed: int) -> tuple[int, int]:
    """Return two pseudo-random factors from 1 to P - 1 that depend on the seed and on what they
    hash.
    """
    digest = blake2b(f"{seed}\0{kind}\0{name}".encode(), digest_size=16).digest()
    first, second = (int.from_bytes(half) % (PRIME - 1) + 1 for half in (digest[:8], digest[8:]))
    return first, second


MAX_CLASSES = 1_024
"""Largest number of classes of a label."""


def check_columns(source: Source, policy: Policy) -> None:
    """Raise `DataError` if the table does not have a column that the policy names."""
    named = [a.name for a in policy.attributes.values() if a.role is not Role.IGNORE]
    source.refuse_other_table([*policy.label.columns, *named])
    for column in policy.label.columns:
        source.require(column, where="the policy's label")
    if policy.person is not None:
        source.require(policy.person, where="the policy's person")
    if policy.weight is not None:
        source.require(policy.weight, where="the policy's weight")
    for name in named:
        source.require(name, where="named in the policy")


def kind_of(column: ir.Column, attribute: Attribute) -> Kind:
    """Return the kind of values of a column; raise `DataError` if no mask accepts them."""
    kind = Kind.of(column.type())
    if kind is None:
        raise DataError(
            f"Attribute {attribute.name!r} has type {column.type()}, which no mask works on.",
            hint=f"{usable(column.type())}, or give it the role ignore.",
        )
    return kind


def check_masks(masks: Iterable[Mask], kind: Kind, name: str, source: Source) -> None:
    """Raise `PolicyError` if a mask does not accept the kind of a column. If nearly all texts of
    the column are numbers, the error names an example of the others.
    """
    try:
        for mask in masks:
            mask.check(kind, name)
    except PolicyError as error:
        others = _other_than_numbers(source, name) if kind is Kind.TEXT else ""
        if not others:
            raise
        raise PolicyError(error.message, hint=others) from error


def _other_than_numbers(source: Source, name: str) -> str:
    """Return sentences on the few texts of a column that are no numbers; empty if most are none."""
    text = source.table[name].strip()
    written = source.table.select(text=text).filter(text.notnull() & (text != ""))
    number = written["text"].re_search(_WRITTEN_NUMBER)
    figures = written.aggregate(
        rows=written.count(),
        others=written.count(where=~number),
        example=written["text"].min(where=~number),
    )
    (row,) = source.collect(figures).to_pylist()
    if not row["others"] or row["others"] > _MOST_OTHERS * row["rows"]:
        return ""
    numbers, all_texts = row["rows"] - row["others"], row["rows"]
    return (
        f"{numbers:,} of {counted(all_texts, 'value')} are numbers, but {brief(row['example'])} is not. "
        "Correct or empty such values in the table; then Aegis reads the column as numbers."
    )


def check_label(column: ir.Column) -> None:
    """Raise `DataError` if values of the label's type cannot be classes."""
    dtype = column.type()
    if Kind.of(dtype) is None and not dtype.is_null():
        raise DataError(
            f"The label {column.get_name()!r} has type {dtype}, which cannot be a class or a "
            "number to predict.",
            hint=f"{usable(dtype)}.",
        )


def label_bins(column: ir.Column, values: pa.Array, counts: Ints, label: Label) -> Mask:
    """Return the mask that cuts a numeric label into ranges, at the cut points that the policy
    declares or at quantiles of its values.
    """
    kind = Kind.of(column.type())
    bins = label.bins or len(label.cuts) + 1
    if kind is None or not kind.numeric:
        raise DataError(
            f"The label {column.get_name()!r} is cut into {bins} bins but has type {column.type()}.",
            hint="Bins are for numeric labels; leave them out.",
        )
    return Quantiles(bins, label.cuts or None).fit(ValueCounts(kind, values, counts))


def check_values(name: str, values: int, most: int) -> None:
    """Raise `DataError` if the number of distinct `values` of an attribute is above `most`."""
    if values > most:
        raise DataError(
            f"Attribute {name!r} has more than {most:,} distinct values.",
            hint="Give it the role identifier or ignore, or round it before.",
        )


def check_classes(column: str, classes: pa.Array) -> None:
    """Raise `DataError` if the label has fewer classes or more classes than Aegis allows."""
    if len(classes) == 0:
        raise DataError(
            f"The label {column!r} is null in every row.", hint="Choose a label with values."
        )
    if len(classes) == 1:
        raise DataError(
            f"The label {column!r} has one class only: {classes[0].as_py()!r}.",
            hint="Advice needs a label with at least two classes.",
        )
    if len(classes) > MAX_CLASSES:
        raise DataError(
            f"The label {column!r} has {len(classes):,} classes; at most {MAX_CLASSES} are allowed.",
            hint="For a numeric label, write `label: {column: NAME, bins: 5}`.",
        )


def check_hierarchy(attribute: Attribute, data: ValueCounts) -> None:
    """Raise `DataError` if the hierarchy of an attribute lacks some of the attribute's values."""
    if attribute.hierarchy is None:
        return
    missing = attribute.hierarchy.uncovered_values(data.values)
    if missing:
        examples = ", ".join(repr(v) for v in missing[:5])
        raise DataError(
            f"The hierarchy of {attribute.name!r} does not cover {len(missing)} of its values: {examples}"
            + (", ..." if len(missing) > 5 else "."),
            hint="Add a row for each of them to the hierarchy.",
        )
