"""Weight the rows of a table: counts become sums of weights, stored as whole multiples of a unit.

The unit is the last decimal of the weights, or a power of two that keeps 31 leading bits. So sums
are exact and do not depend on the engine, nor on the order of rows and parts. Scores use numbers of
effective rows instead of these integers (Kish, Survey Sampling, 1965). For weights w, the total of
effective rows is (sum of w)^2 / (sum of w^2): this many independent rows of equal weight have the
same sampling error. It does not change if all weights are multiplied by a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Array, Floats, Integers, Ints
from aegis.errors import DataError
from aegis.masks import Kind
from aegis.sources import Source
from aegis.summary.codes import code_values, numbers_of
from aegis.summary.responses import NumberUnit, exact_squares, is_number
from aegis.words import brief, counted

MOST_BITS = 31
"""Largest number of bits of a weight in units, and of a numeric label with weights. The product of
both fits into 62 bits.
"""
_SUM_BITS = 62
_TOTAL_BITS = 44
"""Bits of the sum of weights, by rows and the largest weight: what is left of 53 is for effective rows."""
_FLOAT_BITS = 53
_FEWEST_BITS = 4


@dataclass(frozen=True)
class WeightSums:
    """The sum of some rows' weights and the sum of their squares. Every weight is a whole number of
    units of weight.

    Attributes
    ----------
    total
        Sum of the weights.
    squares
        Sum of the squares of the weights, an exact whole number.
    divisor
        Greatest common divisor of the weights of the table. Weights are divided by it, so scores do
        not change if all weights are multiplied by a whole number.
    """

    total: int
    squares: int
    divisor: int = 1

    @classmethod
    def of(cls, weights: Ints, divisor: int = 1) -> WeightSums:
        """Add up the weights of some rows, and the squares of these weights. `divisor` is the
        greatest common divisor of the table's weights.

        Examples
        --------
        >>> import numpy as np
        >>> WeightSums.of(np.array([1, 1, 2])).effective
        2.6666666666666665
        """
        return cls(int(weights.sum()), exact_squares(weights), divisor)

    @property
    def effective(self) -> float:
        """The effective number of rows, (sum of w)^2 / sum of w^2; 0 if there are no rows."""
        return float(Fraction(self.total**2, self.squares)) if self.squares else 0.0

    @property
    def step(self) -> float:
        """The number of effective rows per `divisor` units of weight, with so few bits that sums of
        effective rows are exact floats.
        """
        if not self.squares:
            return 0.0
        exact = Fraction(self.total * self.divisor, self.squares)
        bits = max(_FLOAT_BITS - (self.total // self.divisor).bit_length(), _FEWEST_BITS)
        shift = bits - int(np.frexp(float(exact))[1])
        return float(round(exact * Fraction(2) ** shift) / Fraction(2) ** shift)

    def in_rows(self, counts: Array) -> Floats:
        """Convert sums of row weights w to effective rows; all rows have (sum of w)^2 / (sum of
        w^2).
        """
        return (counts // self.divisor) * self.step

    @property
    def rows(self) -> float:
        """The effective number of rows, computed with the rounded factor `step`, as all counts are."""
        return (self.total // self.divisor) * self.step

    def plus(self, other: WeightSums) -> WeightSums:
        """Return the sums of the weights of these rows and other rows together."""
        return WeightSums(
            self.total + other.total,
            self.squares + other.squares,
            math.gcd(self.divisor, other.divisor),
        )

    def scaled(self, factor: int) -> WeightSums:
        """Return the sums in a unit that is `factor` times smaller."""
        return WeightSums(self.total * factor, self.squares * factor**2, self.divisor * factor)


@dataclass(frozen=True)
class TableWeights:
    """The weights that the rows of a table have, as sums.

    Attributes
    ----------
    column
        Name of the column with the weights.
    unit
        Unit of the weights; every weight is a whole multiple of the unit.
    sums
        Sums of the weights of all rows.
    labelled
        Sums of the weights of the rows with a label; if there is no label, of all rows.
    zeros
        Number of rows with weight 0. These rows count in equivalence classes (for the privacy
        rule), but not in scores.
    """

    column: str
    unit: NumberUnit
    sums: WeightSums
    labelled: WeightSums
    zeros: int = 0

    @property
    def population(self) -> float:
        """Sum of the weights of all rows: of persons, if each weight is the number of persons of a
        row.
        """
        return float(self.sums.total * self.unit.exact)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return {
            "column": self.column,
            "sum": self.population,
            "effective_rows": self.sums.effective,
            "zeros": self.zeros,
        }


@dataclass(frozen=True, eq=False)
class RowWeights:
    """The column that contains the weights of the rows, with its distinct values and the unit of
    weight.

    Attributes
    ----------
    column
        Name of the column.
    values
        The distinct values of the column.
    unit
        Unit of the weights; every weight is a whole multiple of the unit.
    sums, zeros
        Sums of the weights of all rows, and the number of rows with weight 0.
    """

    column: str
    values: pa.Array
    unit: NumberUnit
    sums: WeightSums
    zeros: int

    @classmethod
    def read(
        cls, column: ir.Column, values: pa.Array, counts: Ints, unit: NumberUnit | None = None
    ) -> RowWeights:
        """Check the weights of a table, and express them as whole numbers of `unit`, or of one that
        is chosen. `values` are the distinct weights, and `counts` the rows of each.

        Raises
        ------
        DataError
            A weight is missing, negative or infinite, all weights are 0, or the column does not
            contain numbers.
        """
        numbers = _checked(column, values, counts)
        rows = int(counts.sum())
        if unit is None:
            bits = min(MOST_BITS, max(_TOTAL_BITS - rows.bit_length(), 1))
            unit = NumberUnit.of(numbers, rows, bits)
        weights = [int(weight) for weight in unit.of_values(values, "weight", MOST_BITS)]
        pairs = list(zip(weights, counts.tolist(), strict=True))
        total = sum(weight * n for weight, n in pairs)
        if total >= 2**_SUM_BITS:
            raise DataError(
                f"The weights {column.get_name()!r} add up to {total * unit.exact:g}, in units of "
                f"{unit.size:g}: too much to be kept exactly.",
                hint="Round the weights to fewer decimals.",
            )
        squares = sum(weight**2 * n for weight, n in pairs)
        zeros = int(counts[numbers == 0].sum())
        sums = WeightSums(total, squares, math.gcd(*weights))
        return cls(column.get_name(), values, unit, sums, zeros)

    def of(self, column: pa.Array) -> Ints:
        """Return the weight of each row as a whole number of units, from the column of weights."""
        return self.of_codes(code_values(column, self.values))

    def of_codes(self, codes: Integers) -> Ints:
        """Return the weight of each row as a whole number of units. `codes` has, for each row, the
        index of its weight among the distinct weights.
        """
        return self.unit.of_values(self.values, "weight", MOST_BITS)[codes]

    def expression(self, table: ir.Table) -> ir.Value:
        """Return an expression by which the engine computes the weight of each row as a whole
        number of units.
        """
        return self.unit.expression(table[self.column])


def refuse_text_weights(source: Source, name: str) -> None:
    """Raise `DataError` if a column of weights has texts that are not numbers; the message names
    the first one.
    """
    column = source.table[name]
    if not column.type().is_string():
        return
    row = 0
    for batch in source.batches(source.table.select(w=column)):
        for text in batch.column("w").to_pylist():
            row += 1
            if text is not None and not is_number(text):
                raise DataError(
                    f"The weight {name!r} is a column of texts: row {row:,} is {brief(text)}, which is not a number.",
                    hint="Correct this row and others like it, or leave `weight` out of the policy.",
                )


def _checked(column: ir.Column, values: pa.Array, counts: Ints) -> Floats:
    """Return the distinct weights of a column, `values`, as floats; `counts` has the rows with
    each. Raise `DataError` if the column is not numeric, a weight is missing, negative or infinite,
    or none is above 0.
    """
    name, kind = column.get_name(), Kind.of(column.type())
    if kind is None or not kind.numeric:
        raise DataError(
            f"The weight {name!r} has type {column.type()}, which is not a number.",
            hint="Convert the column to a number, or leave `weight` out of the policy.",
        )
    numbers = numbers_of(values)
    for wrong, what in (
        (np.isnan(numbers), "is null"),
        (np.isinf(numbers), "is infinite"),
        (numbers < 0, "is below 0"),
    ):
        if rows := int(counts[wrong].sum()):
            raise DataError(
                f"The weight {name!r} {what} in {counted(rows, 'row')}.",
                hint="A weight is 0 or more. Correct these rows, or leave them out.",
            )
    if not (numbers > 0).any():
        raise DataError(
            f"The weight {name!r} is 0 in every row.",
            hint="At least one row needs a weight above 0.",
        )
    return numbers
