"""Exact arithmetic in Ibis expressions, shared by the numeric masks, and the rounding of bounds
that masks learn.

Engines differ in the sign of a remainder, in how they print floats, and in casts of values that are
out of range. The functions here avoid all three differences: remainders are made non-negative,
numbers are printed from integers, and no value is cast to a type that it does not fit.

A width, step or origin with d decimal places is stored as an integer in units of 10**-d ("scaled").

Bounds and cut points that masks learn are rounded so that they reveal no single value. Often, only
one person has the smallest value of a column, and only one has the largest, but a mask shows its
bounds to everyone. So a bound is the smallest or largest value itself only if enough rows have this
value. Otherwise the bound is the end of an interval that contains enough rows. The width of the
interval is 1, 2 or 5 times a power of ten, and the interval starts at a multiple of its width; of
all such intervals, the narrowest is used. A cut point is the roundest number in a range
(`roundest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np

from aegis.arrays import Array, Floats
from aegis.masks.base import as_fraction, decimals, plain

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

TOLERANCE = 1e-9
"""A quotient at most this much below a whole number counts as that number: 0.3 / 0.1 is 3."""
EXACT = 2**53
"""Whole numbers up to here are exact as floats."""
SAFE_INT64 = 9 * 10**18
"""Decimals up to this size fit into 64 bits after rounding to whole numbers."""


@dataclass(frozen=True)
class Grid:
    """Evenly spaced interval bounds: all multiples of `width`, shifted by `origin`.

    Width and origin are integers in units of 10**-digits, and 0 <= origin < width.
    """

    width: int
    origin: int
    digits: int

    @classmethod
    def of(cls, width: float, origin: float = 0) -> Grid:
        """Return the interval bounds for a width and an origin as a policy states them."""
        digits = max(decimals(width), decimals(origin))
        scaled = int(as_fraction(width) * 10**digits)
        return cls(scaled, int(as_fraction(origin) * 10**digits) % scaled, digits)

    @property
    def scale(self) -> int:
        """The number of units that make 1, which is 10**digits."""
        return int(10**self.digits)

    @property
    def outermost(self) -> int:
        """Number of intervals on either side of the origin whose bounds are exact as 64-bit floats."""
        return (EXACT - self.origin) // self.width - 2


def keep_null(column: ir.Value, value: ir.Value) -> ir.Value:
    """Return `value`, but null in rows in which `column` is null."""
    return ibis.ifelse(column.isnull(), ibis.null(value.type()), value)


def limits(dtype: dt.DataType) -> tuple[int, int]:
    """Return the least and greatest value of an integer type."""
    bounds = dtype.bounds
    return int(bounds.lower), int(bounds.upper)


def numbers_that(column: ir.NumericValue, condition: ir.BooleanValue) -> ir.BooleanValue:
    """Return `condition`, but false for NaN, so that it has the same result on every engine.

    If it can, the embedded engine decides a comparison from the statistics of a Parquet file. These
    statistics ignore NaN, so the engine can be wrong about NaN.
    """
    return ~column.isnan() & condition if column.type().is_floating() else condition


def constant(value: int, column: ir.IntegerValue) -> ir.IntegerValue:
    """Return `value` as a literal of the column's type, which may be unsigned and of 64 bits."""
    return ibis.literal(value, type=column.type())


def widened(column: ir.IntegerValue) -> ir.IntegerValue:
    """Convert an integer column to 64 bits, so that small types do not overflow."""
    dtype = column.type()
    return column if dtype.nbytes == 8 else column.cast("int64")


def settled(value: ir.IntegerValue, dtype: dt.DataType) -> ir.IntegerValue:
    """Convert `value` to the integer type `dtype`, for the engine as well as for Ibis.

    The embedded engine computes with unsigned 64-bit numbers in 128 bits. Ibis does not know this
    and would omit a plain cast as superfluous.
    """
    if dtype.is_unsigned_integer():
        value = value.cast("decimal(38,0)")
    return value.cast(dtype)


def floor_decimal(
    column: ir.DecimalValue, low: int = -SAFE_INT64, high: int = SAFE_INT64
) -> tuple[ir.IntegerValue, ir.BooleanValue | None]:
    """Round a decimal column down to int64; also return whether the number is in [low, high).

    The second result is None if the type guarantees that the number fits. If it is false for a
    number, the function rounds 0 instead. The result does not depend on whether the engine's cast
    rounds or truncates.
    """
    dtype = column.type()
    inside = None
    if dtype.precision is None or dtype.precision - (dtype.scale or 0) > 18:
        inside = (column >= low) & (column < high)
        column = ibis.ifelse(inside, column, ibis.literal(0).cast(dtype))
    near = column.cast("int64")
    return ibis.ifelse(near > column, near - 1, near), inside


def remainder(value: ir.IntegerValue, width: int, origin: int = 0) -> ir.IntegerValue:
    """Return (value - origin) modulo `width`, in [0, width), for any sign of the engine's %.

    `width` must be at most 2**61 and 0 <= origin < width, so that nothing overflows.
    """
    rest = value % width
    shift = -origin % width
    if not value.type().is_unsigned_integer():
        shift += width
    return (rest + shift) % width if shift else rest


def quotient(column: ir.NumericValue, grid: Grid, *, half: bool = False) -> ir.IntegerValue:
    """Return the index of the interval that contains each number v, floor((v - origin) / width), as
    int64; with `half`, floor((v - origin) / width + 1/2).

    Floats are divided with a tolerance of 1e-9 plus four units in the last place (of 32 bits for a
    32-bit column), so that decimal fractions give the expected result: 0.3 with width 0.1 gives 3.
    Every engine performs the same IEEE operations. The caller must keep |v| within `grid.outermost`
    intervals of the origin.
    """
    relative = 2.0**-22 if column.type().is_float32() else 2.0**-51
    x = column.cast("float64")
    if grid.scale > 1:
        x = x * grid.scale
    if grid.origin:
        x = x - grid.origin
    if grid.width > 1:
        x = x / grid.width
    return (x + (x.abs() * relative + (TOLERANCE + 0.5 if half else TOLERANCE))).floor()


def scaled_text(value: ir.IntegerValue, digits: int) -> ir.StringValue:
    """Return `value` * 10**-digits as text, with `digits` decimal places; |value| <= 2**53."""
    if digits == 0:
        return value.cast("string")
    scale = 10**digits
    size = value.abs()
    fraction = (size % scale + scale).cast("string").right(digits)
    return ibis.ifelse(value < 0, "-", "") + (size // scale).cast("string") + "." + fraction


def interval(low: ir.Value | str, high: ir.Value | str) -> ir.StringValue:
    """Return the text of the interval from `low` to below `high`, such as "[20, 30["."""
    return "[" + low + ibis.literal(", ") + high + "["


def by_bisection(column: ir.Value, starts: Sequence[ir.Value], values: Sequence[Any]) -> Any:
    """Return the entry of `values` for the interval of each number. `starts` lists where all
    intervals but the first begin.
    """
    if not starts:
        return values[0]
    middle = len(starts) // 2
    return ibis.ifelse(
        column < starts[middle],
        by_bisection(column, starts[:middle], values[: middle + 1]),
        by_bisection(column, starts[middle + 1 :], values[middle + 1 :]),
    )


LEARNS = (
    "bounds that are learnt under this rule are values that at least {rows} rows hold, or rounded "
    "outward to the end of an interval that as many rows share"
)
"""Text in a certificate about a mask whose bounds come from `shared_range`."""
_FINEST = 1000
"""The narrowest interval is about this fraction of the range: one in so many."""


def shared_range(numbers: Floats, counts: Array, rows: int) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound of the numbers, each rounded outward so that at least
    `rows` rows share it.

    If no interval narrower than the range of the numbers contains `rows` rows, the bound is a
    multiple of a step that is at least as large as this range. The step is 1, 2 or 5 times a power
    of ten.

    Parameters
    ----------
    numbers
        V finite numbers in ascending order, shape (V,), at least one.
    counts
        Number of rows with each of the V numbers, shape (V,).
    rows
        Number of rows that share a bound.
    """
    low = _lower(numbers, counts, rows)
    return low, -_lower(-numbers[::-1], counts[::-1], rows)


def _lower(numbers: Floats, counts: Array, rows: int) -> Fraction:
    least = as_fraction(float(numbers[0]))
    if counts[0] >= rows:
        return least
    span = as_fraction(float(numbers[-1])) - least or max(abs(least), Fraction(1))
    exponent = int(np.floor(np.log10(float(span) / _FINEST)))
    if (numbers == np.floor(numbers)).all():
        exponent = max(exponent, 0)
    while True:
        for factor in (1, 2, 5):
            step = factor * Fraction(10) ** exponent
            bound = least // step * step
            inside = np.searchsorted(numbers, float(bound + step), side="left")
            if step >= span or int(counts[:inside].sum()) >= rows:
                return bound
        exponent += 1


def roundest(low: Fraction, high: Fraction, near: Fraction) -> int | float:
    """Return the roundest number above `low` and at most `high`.

    The roundest number is 0 if it is in the range. Otherwise it is a multiple of the largest step
    that has a multiple in the range; steps are 1 and 5 times the powers of ten. If several
    multiples are in the range, the one nearest to `near` is returned; if two are equally near, the
    smaller.

    Examples
    --------
    >>> from fractions import Fraction
    >>> roundest(Fraction(41_180), Fraction(41_310), Fraction(41_237))
    41200
    >>> roundest(Fraction("3.2698"), Fraction("3.2705"), Fraction("3.2704"))
    3.27
    """
    if low < 0 <= high:
        return 0
    exponent = int(np.floor(np.log10(float(max(abs(low), abs(high)))))) + 1
    while True:
        for factor in (5, 1):
            step = factor * Fraction(10) ** exponent
            first, last = low // step + 1, high // step
            if first > last:
                continue
            nearest = min(max(ceil(near / step - Fraction(1, 2)), first), last)
            rounded = plain(nearest * step)
            # A step below the precision of floats may return to `low`: take a finer one.
            if low < as_fraction(rounded) <= high or high % step == 0:
                return rounded
        exponent -= 1
