"""Exact arithmetic in Ibis expressions, shared by the numeric masks.

Engines differ in the sign of a remainder, in how they print floats and in what a cast of a value
out of range does. The functions here avoid all three: remainders are made non-negative, numbers
are printed from integers, and a cast never sees a value that does not fit.

A width, step or origin with d decimal places is used as an integer in units of 10**-d ("scaled").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import ibis

from aegis.masks.parameters import as_fraction, decimals

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

TOLERANCE = 1e-9
"""A quotient this close below a whole number counts as that number: 0.3 / 0.1 is 3."""
EXACT = 2**53
"""Whole numbers up to here are exact as floats."""
SAFE_INT64 = 9 * 10**18
"""Decimals up to here fit into 64 bits after rounding to whole numbers."""


@dataclass(frozen=True)
class Grid:
    """Multiples of `width`, shifted by `origin`; both in units of 10**-digits, 0 <= origin < width."""

    width: int
    origin: int
    digits: int

    @classmethod
    def of(cls, width: float, origin: float = 0) -> Grid:
        """Return the grid of a width and origin as a policy writes them."""
        digits = max(decimals(width), decimals(origin))
        scaled = int(as_fraction(width) * 10**digits)
        return cls(scaled, int(as_fraction(origin) * 10**digits) % scaled, digits)

    @property
    def scale(self) -> int:
        """10**digits."""
        return int(10**self.digits)

    @property
    def outermost(self) -> int:
        """Number of the cells on either side of the origin whose bounds are exact as floats."""
        return (EXACT - self.origin) // self.width - 2


def keep_null(column: ir.Value, value: ir.Value) -> ir.Value:
    """Return `value`, but null if `column` is null."""
    return ibis.ifelse(column.isnull(), ibis.null(value.type()), value)


def limits(dtype: dt.DataType) -> tuple[int, int]:
    """Return the least and greatest value of an integer type."""
    bounds = dtype.bounds
    return int(bounds.lower), int(bounds.upper)


def numbers_that(column: ir.NumericValue, condition: ir.BooleanValue) -> ir.BooleanValue:
    """Return `condition`, but false for NaN in every engine.

    The embedded engine takes a comparison for settled when the statistics of a Parquet file say
    so, and they leave NaN out.
    """
    return ~column.isnan() & condition if column.type().is_floating() else condition


def constant(value: int, column: ir.IntegerValue) -> ir.IntegerValue:
    """Return a literal of the column's type, which may exceed 63 bits."""
    return ibis.literal(value, type=column.type())


def widened(column: ir.IntegerValue) -> ir.IntegerValue:
    """Return an integer column in 64 bits, so that small types do not overflow."""
    dtype = column.type()
    return column if dtype.nbytes == 8 else column.cast("int64")


def settled(value: ir.IntegerValue, dtype: dt.DataType) -> ir.IntegerValue:
    """Return `value` as the integer type `dtype`, in the engine as well as in Ibis.

    The embedded engine computes with unsigned 64-bit numbers in 128 bits, of which Ibis does not
    know, so that a plain cast would be left out as superfluous.
    """
    if dtype.is_unsigned_integer():
        value = value.cast("decimal(38,0)")
    return value.cast(dtype)


def floor_decimal(
    column: ir.DecimalValue, low: int = -SAFE_INT64, high: int = SAFE_INT64
) -> tuple[ir.IntegerValue, ir.BooleanValue | None]:
    """Return a decimal column rounded down to int64, and the condition that it is in [low, high).

    The condition is None if the type guarantees that it fits; where it does not hold, the
    value is that of 0. Whether the engine's cast rounds or truncates does not matter.
    """
    dtype = column.type()
    inside = None
    if dtype.precision is None or dtype.precision - (dtype.scale or 0) > 18:
        inside = (column >= low) & (column < high)
        column = ibis.ifelse(inside, column, ibis.literal(0).cast(dtype))
    near = column.cast("int64")
    return ibis.ifelse(near > column, near - 1, near), inside


def remainder(value: ir.IntegerValue, width: int, origin: int = 0) -> ir.IntegerValue:
    """Return (value - origin) modulo `width`, in [0, width), in every engine.

    `width` at most 2**61 and 0 <= origin < width, so that nothing overflows.
    """
    rest = value % width
    shift = -origin % width
    if not value.type().is_unsigned_integer():
        shift += width
    return (rest + shift) % width if shift else rest


def quotient(column: ir.NumericValue, grid: Grid, *, half: bool = False) -> ir.IntegerValue:
    """Return floor((v - origin) / width), or the same of (v - origin) / width + 1/2, as int64.

    Division of floats, with a tolerance of 1e-9 plus four units in the last place (of a 32-bit
    column: of 32 bits), so that decimal fractions fall where they read: 0.3 with width 0.1 gives
    3. The same IEEE operations on every engine. The caller keeps |v| within `grid.outermost`
    cells.
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
    """Return the text of a half-open interval: "[20, 30["."""
    return "[" + low + ibis.literal(", ") + high + "["
