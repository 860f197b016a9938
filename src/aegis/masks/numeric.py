"""Define masks that show a coarser number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import ibis

from aegis.errors import PolicyError
from aegis.masks import arithmetic, parameters
from aegis.masks.arithmetic import Grid
from aegis.masks.base import Kind, Mask, described
from aegis.masks.intervals import NUMERIC

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Round(Mask):
    """Shows the nearest multiple of a step, or the number rounded to some significant digits.

    Halves go up, towards plus infinity. With an integer step, or with significant digits, integers
    stay integers and are exact. An integer stays as it is if the nearest multiple would not fit
    into 64 bits. All other results are 64-bit floats, with the tolerance of `arithmetic.quotient`.
    NaN and the infinities do not change. Floats beyond 2**53 steps do not change either. With
    `digits`, floats outside 1e-290 .. 1e290 stay as they are, too.
    """

    name: ClassVar[str] = "round"
    summary: ClassVar[str] = "Rounds a number to a step or to significant digits."
    fits: ClassVar[frozenset[Kind]] = NUMERIC
    example: ClassVar[str] = "{round: {step: 5}}"
    idempotent: ClassVar[bool] = True

    step: int | float | None = described(
        "Aegis rounds to multiples of this step, above 0 (or give digits)", None
    )
    digits: int | None = described("number of significant digits, 1 to 15 (or give step)", None)

    def __post_init__(self) -> None:
        example = "{round: {step: 5}} or {round: {digits: 2}}"
        parameters.either(self.name, example, step=self.step, digits=self.digits)
        if self.step is not None:
            parameters.exact(self.name, "step", self.step, positive=True)
        if self.digits is not None:
            parameters.whole(self.name, "digits", self.digits, at_least=1, at_most=15)

    def output_kind(self, kind: Kind) -> Kind:
        """Return `kind`, or a number if whole numbers are rounded to a fractional step."""
        whole = self.step is None or parameters.decimals(self.step) == 0
        return kind if whole else Kind.NUMBER

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the rounded number."""
        if self.step is None:
            return self._significant(column, self.digits or 1)
        grid = Grid.of(self.step)
        if grid.digits == 0 and column.type().is_integer():
            return _nearest(column, grid.width)
        return _nearest_float(column, grid)

    @staticmethod
    def _significant(column: ir.NumericValue, digits: int) -> ir.Value:
        if not column.type().is_integer():
            return _significant_float(column.cast("float64"), digits)
        value = arithmetic.widened(column)
        low, high = arithmetic.limits(column.type())
        longest = len(str(high))
        steps: list[tuple[Any, Any]] = []
        for length in range(digits, longest):
            largest = 10**length - 1
            short = value <= arithmetic.constant(largest, value)
            if low < 0:
                short = short & (value >= -largest)
            steps.append((short, _nearest_inside(value, 10 ** (length - digits))))
        if digits >= longest:
            return value
        otherwise = _nearest(column, 10 ** (longest - digits))
        return ibis.cases(*steps, else_=otherwise)


def _nearest(column: ir.IntegerValue, step: int) -> ir.IntegerValue:
    """Return the multiple of `step` nearest to each integer, or the integer if the multiple would
    overflow.
    """
    value = arithmetic.widened(column)
    if column.type().nbytes < 8:
        return _nearest_inside(value, step)
    least, greatest = arithmetic.limits(value.type())
    rest = arithmetic.remainder(value, step)
    up = rest * 2 >= step
    most = arithmetic.constant(greatest, value)
    nearest = ibis.cases(
        (up & (value <= most - (step - rest)), value + (step - rest)),
        (~up & (value >= rest + least), value - rest),
        else_=value,
    )
    return arithmetic.settled(nearest, value.type())


def _nearest_inside(value: ir.IntegerValue, step: int) -> ir.IntegerValue:
    """Return the multiple of `step` nearest to each 64-bit integer that is not near the ends of the
    range.
    """
    if step == 1:
        return value
    moved = value + step // 2
    nearest = moved - arithmetic.remainder(moved, step)
    return arithmetic.settled(nearest, value.type())


def _nearest_float(column: ir.NumericValue, grid: Grid) -> ir.FloatingValue:
    value = column.cast("float64")
    most = grid.outermost * grid.width / grid.scale
    inside = arithmetic.numbers_that(column, column.between(-most, most))
    safe = ibis.ifelse(inside, column, ibis.literal(0).cast(column.type()))
    multiple = (arithmetic.quotient(safe, grid, half=True) * grid.width).cast("float64")
    if grid.scale > 1:
        multiple = multiple / grid.scale
    return ibis.ifelse(inside, multiple, value)


def _significant_float(value: ir.FloatingValue, digits: int) -> ir.FloatingValue:
    """Return the number with `digits` significant digits.

    Just next to a power of ten, the engine's logarithm may give an exponent that is wrong by one.
    This does no harm: with at most 15 digits both units round such a number to that power.
    """
    size = value.abs()
    inside = arithmetic.numbers_that(value, size.between(1e-290, 1e290))
    safe = ibis.ifelse(inside, value, 1.0)
    place = safe.abs().log10().floor() - (digits - 1)
    ten = ibis.literal(10.0)
    unit_grid = Grid(1, 0, 0)
    # Powers up to 10**22 are exact floats, so dividing by one gives the nearest float, as multiplying
    # by 0.01 would not.
    large = arithmetic.quotient(safe / ten**place, unit_grid, half=True) * ten**place
    small = arithmetic.quotient(safe * ten ** (-place), unit_grid, half=True) / ten ** (-place)
    return ibis.ifelse(inside, ibis.ifelse(place > 0, large, small), value)


@dataclass(frozen=True)
class _Coding(Mask):
    """Base class of top and bottom coding."""

    at: int | float = described("the bound")

    fits: ClassVar[frozenset[Kind]] = NUMERIC
    top: ClassVar[bool]
    idempotent: ClassVar[bool] = True
    keeps_kind: ClassVar[bool] = True

    def __post_init__(self) -> None:
        parameters.number(self.name, "at", self.at)

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError` if the mask does not fit, or would turn whole numbers into fractions."""
        super().check(kind, attribute)
        if kind is Kind.INTEGER and parameters.decimals(self.at):
            raise PolicyError(
                f"Mask {str(self)!r} of attribute {attribute!r}: the column holds whole numbers.",
                hint="Give a whole number as 'at'.",
            )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the number, or the bound if the number is beyond it; NaN and null stay unchanged."""
        dtype = column.type()
        if dtype.is_integer() and not parameters.decimals(self.at):
            return self._whole(column)
        value = column.cast("float64") if dtype.is_floating() else column
        bound = _bound(value, self.at)
        beyond = value > bound if self.top else value < bound
        if dtype.is_floating():
            # Engines order NaN above everything.
            beyond = beyond & ~value.isnan()
        return ibis.ifelse(beyond, bound, value)

    def _whole(self, column: ir.IntegerValue) -> ir.Value:
        low, high = arithmetic.limits(column.type())
        at = int(self.at)
        if (self.top and at >= high) or (not self.top and at <= low):
            return column
        if not low <= at <= high:
            return arithmetic.keep_null(column, ibis.literal(at))
        bound = arithmetic.constant(at, column)
        return ibis.ifelse(column > bound if self.top else column < bound, bound, column)


def _bound(column: ir.NumericValue, at: float) -> ir.NumericValue:
    """Return the bound as a literal that can be compared with `column` without loss of digits."""
    dtype = column.type()
    if dtype.is_decimal():
        scale = dtype.scale or 0
        room = (dtype.precision or 38) - scale
        if parameters.decimals(at) <= scale and len(str(int(abs(at)))) <= room:
            return ibis.literal(at).cast(dtype)
    return ibis.literal(float(at))


@dataclass(frozen=True)
class TopCode(_Coding):
    """Replaces numbers above the bound by the bound: `at: 90` shows ages over 90 as 90."""

    name: ClassVar[str] = "top_code"
    summary: ClassVar[str] = "Replaces numbers above a bound by the bound."
    example: ClassVar[str] = "{top_code: {at: 90}}"
    top: ClassVar[bool] = True


@dataclass(frozen=True)
class BottomCode(_Coding):
    """Replaces numbers below the bound by the bound."""

    name: ClassVar[str] = "bottom_code"
    summary: ClassVar[str] = "Replaces numbers below a bound by the bound."
    example: ClassVar[str] = "{bottom_code: {at: 10}}"
    top: ClassVar[bool] = False


@dataclass(frozen=True)
class EraseDigits(Mask):
    """Sets the last digits before the decimal point to 0 and drops the decimal places.

    The number moves towards 0, to a multiple of 10**digits. With `digits: 1`, the mask shows 1987
    as 1980, and -29.5 as -20. Whole numbers and decimals become whole numbers, exactly; floats stay
    floats. NaN and the infinities do not change. Very large numbers do not change either: floats
    from 2**53 * 10**digits, and decimals from 9 * 10**18.

    Reference: "erase the last n digits" of the AEGIS paper (Laskar et al., SIGMOD 2025).
    """

    name: ClassVar[str] = "erase_digits"
    summary: ClassVar[str] = "Sets the last digits of a number to 0."
    fits: ClassVar[frozenset[Kind]] = NUMERIC
    example: ClassVar[str] = "{erase_digits: {digits: 1}}"
    idempotent: ClassVar[bool] = True
    keeps_kind: ClassVar[bool] = True

    digits: int = described("how many digits, 1 to 18")

    def __post_init__(self) -> None:
        parameters.whole(self.name, "digits", self.digits, at_least=1, at_most=18)

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the number with its last digits erased."""
        unit = 10**self.digits
        if column.type().is_integer():
            return _towards_zero(arithmetic.widened(column), unit)
        if column.type().is_decimal():
            # Digits before the point of v and of -v are erased, and floor is exact for v >= 0.
            whole, inside = arithmetic.floor_decimal(column.abs())
            truncated = _towards_zero(whole, unit)
            shown = ibis.ifelse(column < 0, -truncated, truncated)
            return (
                shown if inside is None else ibis.ifelse(inside, shown.cast(column.type()), column)
            )
        value = column.cast("float64")
        most = float(arithmetic.EXACT) * unit
        inside = (value > -most) & (value < most)
        whole = (ibis.ifelse(inside, value, 0.0).abs() / unit).floor()
        truncated = ibis.ifelse(value < 0, -whole, whole).cast("float64") * float(unit)
        return ibis.ifelse(inside, truncated, value)


def _towards_zero(value: ir.IntegerValue, unit: int) -> ir.IntegerValue:
    rest = arithmetic.remainder(value, unit)
    if not value.type().is_unsigned_integer():
        rest = ibis.ifelse((value < 0) & (rest > 0), rest - unit, rest)
    return arithmetic.settled(value - rest, value.type())
