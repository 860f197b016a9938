"""Sum a numeric label by atom and fold. Least squares needs only these sums and the counts of
pairs.

For least squares, a label is one or more response columns. If the label has classes, these columns
are indicators, and their sums are counts. A numeric label is one column, and this module computes
its sums. The sums are integers, because labels are stored in a unit: the last decimal, or a power
of two if there is no last decimal. So sums are exact and do not depend on the engine, nor on the
order of rows and parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Array, Floats, Integers, Ints, exact_sums, halves, joined_halves
from aegis.errors import DataError
from aegis.masks import Kind
from aegis.summary.codes import numbers_of
from aegis.words import brief

MOST_DECIMALS = 9
"""Largest number of decimals for which the unit of a label is its last decimal."""
MOST_BITS = 40
"""Largest number of bits of a label in units. A label without a last decimal is rounded to its
leading bits.
"""
_SUM_BITS = 62
"""Bits that a sum of labels may take."""
_HALF = 20
"""Bits of the lower half of a label whose square is added up."""


@dataclass(frozen=True)
class NumberUnit:
    """The unit of a numeric label, `base ** -exponent`. Every label is a whole multiple of the
    unit.

    Attributes
    ----------
    base
        10 for decimal numbers; 2 for numbers that are rounded to binary digits.
    exponent
        Number of digits after the point; negative if the unit is larger than 1.

    Examples
    --------
    >>> NumberUnit(10, 2).size
    0.01
    """

    base: int
    exponent: int

    @property
    def exact(self) -> Fraction:
        """The size of the unit as an exact fraction."""
        return Fraction(self.base) ** -self.exponent

    @property
    def size(self) -> float:
        """The size of the unit as a float."""
        return float(self.exact)

    @classmethod
    def of(cls, numbers: Floats, rows: int, most_bits: int = MOST_BITS) -> NumberUnit:
        """Return the unit in which finite numbers are stored: the last decimal place, if they have
        decimals. Each number needs at most `most_bits` bits, and the sum over `rows` rows fits into
        64 bits.

        Examples
        --------
        >>> import numpy as np
        >>> NumberUnit.of(np.array([1.5, 2.25]), 2), NumberUnit.of(np.array([1 / 3]), 1)
        (NumberUnit(base=10, exponent=2), NumberUnit(base=2, exponent=41))
        """
        bits = min(most_bits, _SUM_BITS - int(rows).bit_length())
        largest = float(np.abs(numbers).max(initial=0.0))
        for decimals in range(MOST_DECIMALS + 1):
            power = 10.0**decimals
            if largest * power >= 2.0**bits:
                break
            if np.array_equal(np.rint(numbers * power) / power, numbers):
                return cls(10, decimals)
        return cls(2, bits - int(np.frexp(largest)[1]))

    def in_units(self, numbers: Floats) -> Ints:
        """Convert numbers to whole numbers of units by rounding."""
        scaled = numbers * float(self.base) ** self.exponent
        return np.floor(scaled + 0.5).astype(np.int64)

    def of_values(
        self, values: pa.Array, what: str = "number to predict", most_bits: int = MOST_BITS
    ) -> Ints:
        """Convert the values of a column to whole numbers of units of at most `most_bits` bits;
        missing values become 0. `what` names the values in errors.

        Raises
        ------
        DataError
            A value has more decimals than the unit, or is too large for it. This happens if the
            unit comes from another part of the data.
        """
        numbers = np.nan_to_num(numbers_of(values), nan=0.0)
        if np.abs(numbers).max(initial=0.0) < self.size * 2.0 ** (most_bits + 1):
            units = self.in_units(numbers)
            if self.base == 2 or np.array_equal(units / 10.0**self.exponent, numbers):
                return units
        raise DataError(
            f"The other summary stores the {what} in units of {self.size:g}. These units cannot hold "
            "the values of this part.",
            hint="Summarise the part with most decimals and the largest numbers first, and the "
            "others like it.",
        )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return an expression by which the engine converts a column to units; null if it is
        missing.
        """
        scaled = column.cast("float64") * (float(self.base) ** self.exponent)
        return (scaled + 0.5).floor().cast("int64")


def present(column: ir.Column) -> ir.BooleanValue:
    """Return an expression that is true if a number is neither null nor NaN."""
    there = column.notnull()
    return there & ~column.isnan() if column.type().is_floating() else there


def check_number(column: ir.Column, values: pa.Array, masked: str = "") -> Floats:
    """Return the values of a numeric label as floats; missing values become NaN. If the values are
    masked, errors end with the text `masked`.

    Raises
    ------
    DataError
        The column is not numeric, contains infinities, or does not contain two different numbers.
    """
    name, dtype = column.get_name(), column.type()
    kind = Kind.of(dtype)
    if kind is None or not kind.numeric:
        raise DataError(
            f"The label {name!r} is declared a number but has type {dtype}{_no_number(values)}.",
            hint="Convert the column to a number, or leave `kind: number` out to predict classes.",
        )
    numbers = numbers_of(values)
    if np.isinf(numbers).any():
        raise DataError(
            f"The label {name!r} has infinite values, so it has no mean.",
            hint="Replace them by null, or leave these rows out.",
        )
    valid = numbers[~np.isnan(numbers)]
    if not len(valid):
        raise DataError(
            f"The label {name!r} is null in every row.", hint="Choose a label with values."
        )
    if valid.min() == valid.max():
        raise DataError(
            f"The label {name!r} is {valid[0]:g} in every row{masked}.",
            hint="Advice needs a number that differs between rows."
            + (" Give the label a finer mask." if masked else ""),
        )
    return numbers


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _no_number(values: pa.Array) -> str:
    """Name a text that is not a number, for the end of an error message; empty if none is."""
    texts = values.drop_null().to_pylist()
    wrong = sorted(v for v in texts if isinstance(v, str) and not is_number(v))
    return f": {brief(wrong[0])} is not a number" if wrong else ""


@dataclass(frozen=True, eq=False)
class ResponseSums:
    """The sums of a numeric label over the labelled rows of each fold, in units of the label.

    If rows have weights, the label is multiplied by the weight. The sums may then need more than 64
    bits, so the arrays contain Python's integers.

    Attributes
    ----------
    sums
        For each attribute i, the sum of the labels by fold and by its A_i atoms (sets of values
        that no mask distinguishes), shape (F, A_i).
    total
        Sum of the labels in each of F folds, shape (F,).
    squares
        Sum of the squared labels by fold, as F exact integers.
    """

    sums: tuple[Array, ...]
    total: Array
    squares: tuple[float, ...]

    @property
    def folds(self) -> int:
        """The number of folds, F."""
        return len(self.total)

    def centre(self, rows: int) -> int:
        """Return the mean of the label over `rows` rows, as a whole number of units."""
        return round(Fraction(int(self.total.sum()), rows))

    def deviation(self, rows: int) -> float:
        """Return the standard deviation of the label over `rows` rows, in units."""
        total, square = int(self.total.sum()), int(sum(self.squares))
        return math.sqrt(Fraction(square * rows - total**2, rows**2))

    def regrouped(self, moved: Sequence[Integers], sizes: Sequence[int]) -> ResponseSums:
        """Return the sums by coarser atoms: `moved` has the new atom of each old one, and `sizes`
        their number.
        """
        sums = [np.zeros((self.folds, size), dtype=self.total.dtype) for size in sizes]
        for old, new, atoms in zip(self.sums, sums, moved, strict=True):
            for fold, of_fold in zip(new, old, strict=True):
                np.add.at(fold, atoms, of_fold)
        return ResponseSums(tuple(sums), self.total, self.squares)

    def plus(self, other: ResponseSums) -> ResponseSums:
        """Return the sums over these and other rows, with the same atoms and folds."""
        return ResponseSums(
            tuple(mine + theirs for mine, theirs in zip(self.sums, other.sums, strict=True)),
            self.total + other.total,
            tuple(mine + theirs for mine, theirs in zip(self.squares, other.squares, strict=True)),
        )

    def together(self) -> ResponseSums:
        """Return the sums over the rows of all folds together."""
        return ResponseSums(
            tuple(by_fold.sum(axis=0, keepdims=True) for by_fold in self.sums),
            self.total.sum(keepdims=True),
            (sum(self.squares),),
        )

    def in_rows(self, atom_weights: Sequence[Array], rows: Array, scale: float) -> ResponseSums:
        """Return the sums of the label minus its mean, rounded to a whole unit, as floats, with
        each row counted by its weight times `scale`. `atom_weights` has the weights of each
        attribute by fold and atom, shape (F, A_i), and `rows` those by fold, (F,), in units.
        """
        weights = [int(weight) for weight in rows]
        centre = self.centre(sum(weights))
        total = [int(summed) - centre * n for summed, n in zip(self.total, weights, strict=True)]
        squares = [
            square - 2 * centre * int(summed) + centre**2 * n
            for square, summed, n in zip(self.squares, self.total, weights, strict=True)
        ]
        sums = [
            (atom_sums - centre * joint.astype(object)).astype(np.float64) * scale
            for atom_sums, joint in zip(self.sums, atom_weights, strict=True)
        ]
        of_fold = np.array([float(summed) * scale for summed in total])
        scaled = tuple(float(square) * scale for square in squares)
        return ResponseSums(tuple(sums), of_fold, scaled)

    def scaled(self, factor: int) -> ResponseSums:
        """Return the sums in a unit that is `factor` times smaller.

        Raises
        ------
        DataError
            The sums would be too large to be stored exactly.
        """
        if factor == 1:
            return self
        largest = max(int(np.abs(array).max(initial=0)) for array in (*self.sums, self.total))
        if self.total.dtype != object and largest * factor >= 2**_SUM_BITS:
            raise DataError(
                "The numbers to predict of the parts have so different decimals that their sums would "
                "not be exact.",
                hint="Round the label to the same decimals in all parts, and summarise them again.",
            )
        return replace(self.times(factor), squares=tuple(n * factor**2 for n in self.squares))

    def times(self, factor: int) -> ResponseSums:
        """Return the sums that result if each row is counted `factor` times."""
        return ResponseSums(
            tuple(array * factor for array in self.sums),
            self.total * factor,
            tuple(square * factor for square in self.squares),
        )


class ResponseCounter:
    """Adds up a numeric label over the rows of a table, chunk by chunk. `sizes` has the number of
    atoms of each attribute.
    """

    def __init__(self, sizes: Sequence[int], folds: int, *, weighted: bool = False) -> None:
        dtype = object if weighted else np.int64
        self._sums: list[Array] = [np.zeros((folds, size), dtype=dtype) for size in sizes]
        self._total: Array = np.zeros(folds, dtype=dtype)
        self._squares = [0] * folds
        self._sizes, self._folds = sizes, folds

    def add(
        self, codes: Sequence[Integers], fold: Ints, response: Ints, weights: Ints | None = None
    ) -> None:
        """Add a chunk of rows: the atom of each row for each attribute, its fold, label in units,
        and weight.
        """
        of_rows = response if weights is None else response * weights
        for sums, code, size in zip(self._sums, codes, self._sizes, strict=True):
            key = fold * size + code
            sums += self._summed(key, of_rows, self._folds * size).reshape(sums.shape)
        self._total += self._summed(fold, of_rows, self._folds)
        for number in range(self._folds):
            here = fold == number
            if weights is None:
                self._squares[number] += exact_squares(response[here])
            else:
                self._squares[number] += int((of_rows[here].astype(object) * response[here]).sum())

    def _summed(self, key: Ints, values: Ints, size: int) -> Array:
        """Sum `values` by `key`, shape (size,). If rows have weights, the sums are Python's
        integers.
        """
        if self._total.dtype != object:
            return exact_sums(key, values, size)
        high, low = halves(values)
        return joined_halves(exact_sums(key, high, size), exact_sums(key, low, size))

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        folds: int,
        codes: Sequence[Integers],
        fold: Ints,
        response: Ints | None,
        weights: Ints | None = None,
    ) -> ResponseSums | None:
        """Return the sums of the numeric label over these rows; None if the label is not a number.
        The arguments are as in `add`.
        """
        if response is None:
            return None
        counter = cls(sizes, folds, weighted=weights is not None)
        counter.add(codes, fold, response, weights)
        return counter.sums()

    def sums(self) -> ResponseSums:
        """Return the sums over all rows that have been added so far."""
        return ResponseSums(tuple(self._sums), self._total, tuple(self._squares))


def exact_squares(values: Ints) -> int:
    """Return the exact sum of squares of integers of at most 41 bits."""
    total = 0
    for start in range(0, len(values), 1 << 20):
        some = values[start : start + (1 << 20)]
        high, low = some >> _HALF, some & ((1 << _HALF) - 1)
        squares = int((high * high).sum()), int((high * low).sum()), int((low * low).sum())
        total += (squares[0] << 2 * _HALF) + (squares[1] << _HALF + 1) + squares[2]
    return total


def rows_with_number(column: ir.Column, name: str) -> ir.Value:
    """Return an expression for the class of a row: `name`, the only class, or null without a
    number.
    """
    return ibis.cases((present(column), ibis.literal(name)), else_=ibis.null("string"))
