"""Sums of a numeric label, by atom and fold: with the pair counts they are all that least squares reads.

A label is a set of response columns of the rows. Of classes these are indicators, one a class, and
their sums are counts; of a number it is the number, and its sums are kept here. They are kept as whole
numbers: the label in units of its last decimal, or of a power of two where it has no last decimal. So
sums are exact, whatever the order of rows, parts and engines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.errors import DataError
from aegis.masks import Kind
from aegis.summary.codes import numbers_of

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_DECIMALS = 9
"""Most decimals of a label that is kept by its decimals."""
MOST_BITS = 40
"""Most bits of a label in units: a label without a last decimal is rounded to its leading ones."""
_SUM_BITS = 62
"""Bits that a sum of labels may take."""
_LOW = 20
"""Bits of the lower half of a label: sums of halves are exact as floats."""


@dataclass(frozen=True)
class NumberUnit:
    """The unit of numeric labels, which are multiples of `base ** -exponent`.

    Attributes
    ----------
    base
        10 for decimals, 2 for numbers that were rounded to so many binary digits.
    exponent
        Digits behind the point; negative where only multiples of a power are kept.

    Examples
    --------
    >>> NumberUnit(10, 2).size
    0.01
    """

    base: int
    exponent: int

    @property
    def exact(self) -> Fraction:
        """The size of a unit."""
        return Fraction(self.base) ** -self.exponent

    @property
    def size(self) -> float:
        """The size of a unit as a float."""
        return float(self.exact)

    @classmethod
    def of(cls, numbers: Floats, rows: int) -> NumberUnit:
        """Return the unit of finite numbers of so many rows: their last decimal, if they have one.

        Examples
        --------
        >>> import numpy as np
        >>> NumberUnit.of(np.array([1.5, 2.25]), 2), NumberUnit.of(np.array([1 / 3]), 1)
        (NumberUnit(base=10, exponent=2), NumberUnit(base=2, exponent=41))
        """
        bits = min(MOST_BITS, _SUM_BITS - int(rows).bit_length())
        largest = float(np.abs(numbers).max(initial=0.0))
        for decimals in range(MOST_DECIMALS + 1):
            power = 10.0**decimals
            if largest * power >= 2.0**bits:
                break
            if np.array_equal(np.rint(numbers * power) / power, numbers):
                return cls(10, decimals)
        return cls(2, bits - int(np.frexp(largest)[1]))

    def whole(self, numbers: Floats) -> Counts:
        """Return numbers in units, rounded to whole ones."""
        scaled = numbers * float(self.base) ** self.exponent
        return np.floor(scaled + 0.5).astype(np.int64)

    def of_values(self, values: pa.Array) -> Counts:
        """Return the values of a column in units; 0 for missing values.

        Raises
        ------
        DataError
            A value has more decimals than the unit, or is too large for it: the unit is that of
            another part of the data.
        """
        numbers = np.nan_to_num(numbers_of(values), nan=0.0)
        if np.abs(numbers).max(initial=0.0) < self.size * 2.0 ** (MOST_BITS + 1):
            whole = self.whole(numbers)
            if self.base == 2 or np.array_equal(whole / 10.0**self.exponent, numbers):
                return whole
        raise DataError(
            f"The number to predict is kept in units of {self.size:g} in the other summary, which do "
            "not hold the values here.",
            hint="Summarise the part with most decimals and the largest numbers first, and the "
            "others like it.",
        )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the column of an engine in units; null if the label is missing."""
        scaled = column.cast("float64") * (float(self.base) ** self.exponent)
        return (scaled + 0.5).floor().cast("int64")


def present(column: ir.Column) -> ir.BooleanValue:
    """Return whether a number is present: neither null nor NaN."""
    there = column.notnull()
    return there & ~column.isnan() if column.type().is_floating() else there


def check_number(column: ir.Column, values: pa.Array) -> Floats:
    """Return the values of a numeric label as floats, NaN if missing.

    Raises
    ------
    DataError
        The column is of another type, or holds infinities, or no two different numbers.
    """
    name, dtype = column.get_name(), column.type()
    kind = Kind.of(dtype)
    if kind is None or not kind.numeric:
        raise DataError(
            f"The label {name!r} is declared a number but has type {dtype}.",
            hint="Convert the column to a number, or leave `kind: number` out to predict classes.",
        )
    numbers = numbers_of(values)
    if np.isinf(numbers).any():
        raise DataError(
            f"The label {name!r} has infinite values, which no mean is taken of.",
            hint="Replace them by null, or leave these rows out.",
        )
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        raise DataError(
            f"The label {name!r} is null in every row.", hint="Choose a label that is known."
        )
    if known.min() == known.max():
        raise DataError(
            f"The label {name!r} is {known[0]:g} in every row.",
            hint="Advice needs a number that differs between rows.",
        )
    return numbers


@dataclass(frozen=True, eq=False)
class ResponseSums:
    """Sums of a numeric label in its unit, by fold of the labelled rows.

    Attributes
    ----------
    sums
        Per attribute the sum of the labels by fold and atom, shape (F, A_i).
    total
        Sum of the labels by fold, shape (F,).
    squares
        Sum of their squares by fold, F exact whole numbers.
    """

    sums: tuple[Counts, ...]
    total: Counts
    squares: tuple[int, ...]

    @property
    def folds(self) -> int:
        """F, the number of folds."""
        return len(self.total)

    def centre(self, rows: int) -> int:
        """Return the whole number next to the mean label of so many rows."""
        return round(Fraction(int(self.total.sum()), rows))

    def deviation(self, rows: int) -> float:
        """Return the standard deviation of the label in units."""
        whole, square = int(self.total.sum()), sum(self.squares)
        return math.sqrt(Fraction(square * rows - whole**2, rows**2))

    def regrouped(
        self, moved: Sequence[npt.NDArray[np.integer]], sizes: Sequence[int]
    ) -> ResponseSums:
        """Return the sums of coarser atoms; for each attribute you give the new atom of each old
        one, and their number.
        """
        sums = [np.zeros((self.folds, size), dtype=np.int64) for size in sizes]
        for own, whole, atoms in zip(self.sums, sums, moved, strict=True):
            for fold, of_fold in zip(whole, own, strict=True):
                np.add.at(fold, atoms, of_fold)
        return ResponseSums(tuple(sums), self.total, self.squares)

    def plus(self, other: ResponseSums) -> ResponseSums:
        """Return the sums of the rows of both, of the same atoms and folds."""
        return ResponseSums(
            tuple(mine + theirs for mine, theirs in zip(self.sums, other.sums, strict=True)),
            self.total + other.total,
            tuple(mine + theirs for mine, theirs in zip(self.squares, other.squares, strict=True)),
        )

    def together(self) -> ResponseSums:
        """Return the same of all folds as one."""
        return ResponseSums(
            tuple(own.sum(axis=0, keepdims=True) for own in self.sums),
            self.total.sum(keepdims=True),
            (sum(self.squares),),
        )

    def scaled(self, factor: int) -> ResponseSums:
        """Return the same in a unit that is `factor` times smaller.

        Raises
        ------
        DataError
            The sums would be too large to be kept exactly.
        """
        if factor == 1:
            return self
        largest = max(int(np.abs(own).max(initial=0)) for own in (*self.sums, self.total))
        if largest * factor >= 2**_SUM_BITS:
            raise DataError(
                "The numbers to predict of the parts have so different decimals that their sums would "
                "not be exact.",
                hint="Round the label to the same decimals in all parts, and summarise them again.",
            )
        return ResponseSums(
            tuple(own * factor for own in self.sums),
            self.total * factor,
            tuple(square * factor**2 for square in self.squares),
        )


class ResponseCounter:
    """Adds up a numeric label over chunks of rows.

    Parameters
    ----------
    sizes
        Atoms per attribute.
    folds
        Number of folds F.
    """

    def __init__(self, sizes: Sequence[int], folds: int) -> None:
        self._sums = [np.zeros((folds, size), dtype=np.int64) for size in sizes]
        self._total = np.zeros(folds, dtype=np.int64)
        self._squares = [0] * folds
        self._sizes, self._folds = sizes, folds

    def add(
        self,
        codes: Sequence[npt.NDArray[np.integer]],
        fold: Counts,
        response: Counts,
        weights: Counts | None = None,
    ) -> None:
        """Add rows: their atoms, folds and labels in units, and how often each counts."""
        response = response if weights is None else np.repeat(response, weights)
        fold = fold if weights is None else np.repeat(fold, weights)
        for own, code, size in zip(self._sums, codes, self._sizes, strict=True):
            atoms = code if weights is None else np.repeat(code, weights)
            key = fold * size + atoms
            own += exact_sums(key, response, self._folds * size).reshape(own.shape)
        self._total += exact_sums(fold, response, self._folds)
        for place in range(self._folds):
            self._squares[place] += exact_squares(response[fold == place])

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        folds: int,
        codes: Sequence[npt.NDArray[np.integer]],
        fold: Counts,
        response: Counts | None,
    ) -> ResponseSums | None:
        """Return the sums of some rows; None if no number is predicted."""
        if response is None:
            return None
        counter = cls(sizes, folds)
        counter.add(codes, fold, response)
        return counter.sums()

    def sums(self) -> ResponseSums:
        """Return the sums."""
        return ResponseSums(tuple(self._sums), self._total, tuple(self._squares))


def exact_sums(key: npt.NDArray[Any], values: Counts, size: int) -> Counts:
    """Return the sum of whole numbers by key, shape (size,), exact below 2**62."""
    high, low = values >> _LOW, values & ((1 << _LOW) - 1)
    parts = [
        np.bincount(key, weights=half, minlength=size).astype(np.int64) for half in (high, low)
    ]
    summed: Counts = (parts[0] << _LOW) + parts[1]
    return summed


def exact_squares(values: Counts) -> int:
    """Return the exact sum of the squares of whole numbers of at most 41 bits."""
    total = 0
    for start in range(0, len(values), 1 << 20):
        some = values[start : start + (1 << 20)]
        high, low = some >> _LOW, some & ((1 << _LOW) - 1)
        squares = int((high * high).sum()), int((high * low).sum()), int((low * low).sum())
        total += (squares[0] << 2 * _LOW) + (squares[1] << _LOW + 1) + squares[2]
    return total


def rows_with_number(column: ir.Column, name: str) -> ir.Value:
    """Return `name` as the class of rows with a number, and null for the others."""
    return ibis.cases((present(column), ibis.literal(name)), else_=ibis.null("string"))
