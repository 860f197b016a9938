"""Define masks that show a coarser number.

Define masks that show the interval in which a number falls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, log10
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Floats, Ints
from aegis.errors import PolicyError
from aegis.masks import arithmetic, base
from aegis.masks.arithmetic import LEARNS, Grid, roundest, shared_range
from aegis.masks.base import Kind, Mask, ValueCounts, described

if TYPE_CHECKING:
    import ibis.expr.types as ir

NUMERIC = frozenset({Kind.INTEGER, Kind.NUMBER})
MOST_BINS = 1000
MOST_MOVED = 20
"""Rounding a cut point moves at most one in this many rows of an interval."""


@dataclass(frozen=True)
class Bucketize(Mask):
    """Shows intervals of equal width, [start, start + width).

    For the value v, start is floor((v - origin) / width) * width + origin. Intervals are shown as
    text, "[20, 30[", with as many decimal places as width and origin have. With `show: lower`, the
    mask shows only the lower bound, as a number.

    Integers with an integer width are exact over the full range of their type. All other numbers
    are computed as 64-bit floats, with a tolerance that puts 0.3 into [0.3, 0.4[
    (`arithmetic.quotient`). Such numbers share two outer intervals, "]-inf, a[" and "[b, inf[", if
    they are more than 2**53 units of the last decimal place from 0. NaN and the infinities are
    separate values, shown as "NaN", "inf" and "-inf". With `show: lower` they stay as they are, and
    the lower bound of a 64-bit integer is never below the smallest value of its type.

    Reference: "bucketize" of the AEGIS paper (Laskar et al., SIGMOD 2025).
    """

    name: ClassVar[str] = "bucketize"
    shows_intervals: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "Shows an interval of fixed width instead of a number, such as [30, 40[."
    )
    fits: ClassVar[frozenset[Kind]] = NUMERIC
    example: ClassVar[str] = "{bucketize: {width: 10}}"

    width: int | float = described("width of an interval, above 0")
    origin: int | float = described("a number at which one of the intervals starts", 0)
    show: str = described('"interval" ("[20, 30[") or "lower" (the number 20)', "interval")

    def __post_init__(self) -> None:
        base.exact(self.name, "width", self.width, positive=True)
        base.exact(self.name, "origin", self.origin)
        base.one_of(self.name, "show", self.show, ("interval", "lower"))
        grid = Grid.of(self.width, self.origin)
        if grid.width > base.MOST_SCALED or grid.outermost < 1:
            raise base.wrong(
                self.name, "width", self.width, "fewer decimal places in width and origin together"
            )

    def output_kind(self, kind: Kind) -> Kind:
        """Return text for intervals; for lower bounds a number, or an integer if width and origin
        are whole.
        """
        if self.show == "interval":
            return Kind.TEXT
        return (
            kind
            if kind is Kind.INTEGER and Grid.of(self.width, self.origin).digits == 0
            else Kind.NUMBER
        )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the interval, or its lower bound, of each number."""
        grid = Grid.of(self.width, self.origin)
        dtype = column.type()
        if grid.digits == 0 and dtype.is_integer():
            value = arithmetic.widened(column)
            masked = self._of_integers(value, grid, wide=dtype.nbytes == 8)
        elif grid.digits == 0 and dtype.is_decimal():
            outer = _outer(grid, (arithmetic.SAFE_INT64 - grid.origin) // grid.width)
            value, inside = arithmetic.floor_decimal(column, *outer)
            masked = self._of_integers(value, grid, wide=False)
            if inside is not None:
                masked = self._fallback(column, masked, inside, outer, 0)
        else:
            masked = self._floating(column, grid)
        return arithmetic.keep_null(column, masked)

    def shows(self, text: str) -> bool:
        """Return whether a text is an interval of the mask, an outer interval, NaN or an infinity."""
        if text in ("NaN", "nan", "inf", "-inf"):
            return True
        grid = Grid.of(self.width, self.origin)
        if self.show == "lower":
            low = _number(text)
            return low is not None and _on_grid(low, grid) is not None
        left, _, right = text.removesuffix("[").partition(", ")
        low, high = _number(left[1:]), _number(right)
        if left == "]-inf" or right == "inf":
            return all(n is None or _on_grid(n, grid) is not None for n in (low, high))
        if low is None or high is None or left[:1] != "[" or not text.endswith("["):
            return False
        start, end = _on_grid(low, grid), _on_grid(high, grid)
        return start is not None and end is not None and end - start == grid.width

    def _of_integers(self, value: ir.IntegerValue, grid: Grid, *, wide: bool) -> ir.Value:
        """Return the mask's expression for integers. `grid` holds the interval bounds; `wide` means
        that the integers may be near the ends of the 64-bit range.
        """
        rest = arithmetic.remainder(value, grid.width, grid.origin)
        least, most = arithmetic.limits(value.type())
        if self.show == "lower":
            start = (rest + least).cast(value.type())
            safe = ibis.ifelse(value < start, start, value) if wide else value
            return arithmetic.settled(safe - rest, value.type())
        low = value - rest
        text = arithmetic.interval(low.cast("string"), (low + grid.width).cast("string"))
        if not wide:
            return text
        far = value.cast("decimal(38,0)") - rest.cast("decimal(38,0)")
        return ibis.ifelse(
            value.between(
                arithmetic.constant(least + grid.width, value),
                arithmetic.constant(most - grid.width, value),
            ),
            text,
            arithmetic.interval(far.cast("string"), (far + grid.width).cast("string")),
        )

    def _floating(self, column: ir.NumericValue, grid: Grid) -> ir.Value:
        outer = _outer(grid, grid.outermost)
        low, high = (bound / grid.scale for bound in outer)
        inside = arithmetic.numbers_that(column, (column >= low) & (column < high))
        safe = ibis.ifelse(inside, column, ibis.literal(0).cast(column.type()))
        start = arithmetic.quotient(safe, grid) * grid.width + grid.origin
        if self.show == "lower":
            masked = start.cast("float64")
            if grid.scale > 1:
                masked = masked / grid.scale
        else:
            masked = arithmetic.interval(
                arithmetic.scaled_text(start, grid.digits),
                arithmetic.scaled_text(start + grid.width, grid.digits),
            )
        return self._fallback(column, masked, inside, outer, grid.digits)

    def _fallback(
        self,
        column: ir.NumericValue,
        masked: ir.Value,
        inside: ir.BooleanValue,
        outer: tuple[int, int],
        digits: int,
    ) -> ir.Value:
        """Return `masked`, the masked values, where `inside` is true. Return other numbers as the
        outermost intervals, such as [1000, inf[, and NaN and infinities as they are.

        `outer` has the lower and upper bound beyond which these intervals extend, as integers in
        units of 10**-`digits`.
        """
        low, high = outer
        floating = column.type().is_floating()
        number = column.cast("float64")
        if self.show == "lower":
            cases = [(inside, masked.cast("float64"))]
            if floating:
                cases.append((number.isnan() | number.isinf(), number))
            return ibis.cases(
                *cases,
                (number > 0, float(high / 10**digits)),
                else_=ibis.literal(float("-inf")),
            )
        texts: list[tuple[Any, Any]] = [(inside, masked)]
        if floating:
            infinity = ibis.ifelse(number > 0, "inf", "-inf")
            texts += [(number.isnan(), "NaN"), (number.isinf(), infinity)]
        return ibis.cases(
            *texts,
            (number > 0, f"[{base.scaled_text(high, digits)}, inf["),
            else_=f"]-inf, {base.scaled_text(low, digits)}[",
        )


def _number(text: str) -> Fraction | None:
    """Parse a text as a finite number; return None if it is not one."""
    try:
        return Fraction(Decimal(text))
    except (ArithmeticError, ValueError):
        return None


def _on_grid(number: Fraction, grid: Grid) -> int | None:
    """Return `number` in units of 10**-digits (the last decimal place of the grid) if an interval
    of the grid starts there; otherwise None.
    """
    scaled = number * grid.scale
    on_grid = scaled.denominator == 1 and (int(scaled) - grid.origin) % grid.width == 0
    return int(scaled) if on_grid else None


def _outer(grid: Grid, cells: int) -> tuple[int, int]:
    """Return the bounds that are `cells` intervals below and above the origin of `grid`, as
    integers in units of 10**-digits (the last decimal place of the grid).
    """
    return -cells * grid.width + grid.origin, cells * grid.width + grid.origin


@dataclass(frozen=True)
class _Cuts(Mask):
    """Base class of masks that show the interval between two cut points (`edges`) that contains a
    number.
    """

    count: int = described("number of intervals, at least 2")
    edges: tuple[int | float, ...] | None = described(
        "cut points between the intervals. Aegis learns them from the data", None
    )

    fits: ClassVar[frozenset[Kind]] = NUMERIC
    shows_intervals: ClassVar[bool] = True
    fitted_by: ClassVar[str | None] = "edges"

    def __post_init__(self) -> None:
        base.whole(self.name, "count", self.count, at_least=2, at_most=MOST_BINS)
        if self.edges is not None:
            cuts = base.edges(self.name, self.edges)
            if len(cuts) >= self.count:
                raise base.wrong(
                    self.name, "edges", list(cuts), f"at most {self.count - 1} cut points"
                )
            object.__setattr__(self, "edges", cuts)

    def shows(self, text: str) -> bool | None:
        """Return whether a text is NaN or one of the intervals, which may be open at either end."""
        if self.edges is None:
            return None
        start, _, end = text.partition(", ")
        return text == "NaN" or any(
            text == label
            or (end == "inf[" and label.startswith(f"{start}, "))
            or (start == "]-inf" and label.endswith(f", {end}"))
            for label in _labels(self.edges)
        )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the interval of each number as text; raise `InternalError` before fitting."""
        self.require_fitted()
        edges = self.edges or ()
        starts = [_edge(column, edge) for edge in edges]
        texts = arithmetic.by_bisection(column, starts, [ibis.literal(t) for t in _labels(edges)])
        if column.type().is_floating():
            texts = ibis.ifelse(column.isnan(), "NaN", texts)
        return arithmetic.keep_null(column, texts)


def _labels(edges: tuple[int | float, ...]) -> Iterator[str]:
    """Yield the texts of the intervals between `edges`, open at both ends."""
    texts = [base.number_text(edge) for edge in edges]
    for low, high in zip([None, *texts], [*texts, None], strict=True):
        opening = "]-inf" if low is None else f"[{low}"
        yield f"{opening}, {'inf' if high is None else high}["


def _edge(column: ir.NumericValue, edge: float) -> ir.Value:
    """Return the cut point `edge` as a literal to compare with a column; for an integer column, it
    is rounded up to an integer, so that no digits are lost.
    """
    if column.type().is_integer():
        low, high = arithmetic.limits(column.type())
        if low <= ceil(edge) <= high:
            return arithmetic.constant(ceil(edge), column)
    return ibis.literal(float(edge))


def _digits(numbers: Floats) -> int:
    """Return the number of decimal places of finite numbers, at most as many as a 64-bit float
    represents.
    """
    largest = float(np.abs(numbers).max(initial=1.0))
    most = max(15 - ceil(log10(largest)), 0)
    few = (d for d in range(most) if np.array_equal(np.round(numbers, d), numbers))
    return next(few, most)


def _finite(data: ValueCounts) -> tuple[pa.Array, Ints]:
    """Return the values that are neither null, NaN nor infinite, ascending, and their counts."""
    finite = pc.fill_null(pc.is_finite(data.values), False)
    return data.values.filter(finite), data.counts[finite.to_numpy(zero_copy_only=False)]


@dataclass(frozen=True)
class EqualWidth(_Cuts):
    """Shows which of `count` intervals of equal width, between two bounds, contains the value.

    Fitting sets `edges`, the count - 1 inner cut points. The outer intervals have no outer end, so
    every later value falls into an interval; the infinities do, too. NaN is shown as "NaN". A
    column without two different finite values gets one interval.

    The cut points reveal the bounds. So a bound is the smallest or the largest value itself only if
    at least 11 rows have this value, or k rows if the rule requires a k above 11. Otherwise the
    bound is rounded outward to a bound that at least this many rows share (`aegis.masks.arithmetic`).

    Reference: equal-width generalisation of the AEGIS paper (Laskar et al., SIGMOD 2025).
    """

    name: ClassVar[str] = "equal_width"
    summary: ClassVar[str] = (
        "Divides the range of a column into intervals of equal width, and shows the interval."
    )
    example: ClassVar[str] = "{equal_width: {count: 5}}"
    learns: ClassVar[str | None] = LEARNS

    def _learn(self, data: ValueCounts) -> EqualWidth:
        """Return the mask with cut points that divide the range of `data` into equal widths."""
        values, counts = _finite(data)
        if len(values) < 2:
            return EqualWidth(self.count, ())
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        low, high = shared_range(numbers, counts, data.shared_rows)
        span = high - low
        scale = 10 ** _digits(numbers)
        even = (low + span * i / self.count for i in range(1, self.count))
        # Rounded up to the digits of the column: the same values are below, and the text is short.
        cuts = (base.plain(Fraction(ceil(cut * scale), scale)) for cut in even)
        return EqualWidth(self.count, tuple(dict.fromkeys(cuts)))


@dataclass(frozen=True)
class Quantiles(_Cuts):
    """Shows intervals with about equally many rows.

    Fitting sets `edges`. For each j = 1 .. count - 1, the exact cut is the value for which the
    share of rows below it is nearest to j / count (the smaller value if two are equally near). It
    is never the smallest value of the column. Duplicate cuts are dropped, so a frequent value may
    cause fewer intervals. Null, NaN and the infinities do not count. The outer intervals have no
    outer end; NaN is shown as "NaN".

    Each cut point is then rounded, so that it reveals no value of the table. The rounding moves at
    most `rows / count / 20` of the `rows` rows across a cut point, and no interval becomes empty.
    """

    name: ClassVar[str] = "quantiles"
    summary: ClassVar[str] = (
        "Divides a column into intervals with about equally many rows, and shows the interval."
    )
    example: ClassVar[str] = "{quantiles: {count: 4}}"
    learns: ClassVar[str | None] = (
        "cut points that are learnt are the roundest numbers for which at most one row in 20 of an "
        "interval changes sides"
    )

    def _learn(self, data: ValueCounts) -> Quantiles:
        """Return the mask with cut points between about equally many rows of `data`."""
        values, counts = _finite(data)
        below, total = np.cumsum(counts) - counts, int(counts.sum())
        if len(values) < 2:
            return Quantiles(self.count, ())
        # Whole numbers throughout, so that ties are ties: rows below * count against j * rows.
        goals, shares = np.arange(1, self.count) * total, below * self.count
        above = np.clip(np.searchsorted(shares, goals), 1, len(shares) - 1)
        before = np.maximum(above - 1, 1)
        nearest = np.where(goals - shares[before] <= shares[above] - goals, before, above)
        exact = list(dict.fromkeys(nearest.tolist()))
        return Quantiles(self.count, tuple(_rounded(values, below, exact, total // self.count)))


def _rounded(
    values: pa.Array, below: Ints, exact: Sequence[int], rows: int
) -> Iterator[int | float]:
    """Yield, for each exact cut point, the roundest number near it.

    Parameters
    ----------
    values, below
        The distinct values, ascending, and the number of rows below each.
    exact
        Indices of the exact cut points among the values, ascending.
    rows
        Number of rows that an interval should have.
    """

    def at(index: int) -> Fraction:
        return base.as_fraction(values[index].as_py())

    start = 0
    for index, following in pairwise([*exact, len(values)]):
        moved = rows // MOST_MOVED
        low = int(np.searchsorted(below, below[index] - moved, side="left")) - 1
        high = int(np.searchsorted(below, below[index] + moved, side="right")) - 1
        low, high = max(low, start), min(high, following - 1)
        edge = roundest(at(low), at(high), at(index))
        yield edge
        # The next cut lies above the first value of its interval, so that none is empty.
        start = bisect_left(range(high), base.as_fraction(edge), lo=low, key=at)


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
        base.either(self.name, example, step=self.step, digits=self.digits)
        if self.step is not None:
            base.exact(self.name, "step", self.step, positive=True)
        if self.digits is not None:
            base.whole(self.name, "digits", self.digits, at_least=1, at_most=15)

    def output_kind(self, kind: Kind) -> Kind:
        """Return `kind` (of the original column), or the kind `number` if `step` has a fraction."""
        integral = self.step is None or base.decimals(self.step) == 0
        return kind if integral else Kind.NUMBER

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
    """Return the number rounded to `digits` significant digits; numbers outside 1e-290 .. 1e290
    stay unchanged.
    """
    size = value.abs()
    inside = arithmetic.numbers_that(value, size.between(1e-290, 1e290))
    safe = ibis.ifelse(inside, value, 1.0)
    power = safe.abs().log10().floor() - (digits - 1)
    ten = ibis.literal(10.0)
    unit_grid = Grid(1, 0, 0)
    # Powers up to 10**22 are exact floats, so dividing by one gives the nearest float, as multiplying
    # by 0.01 would not.
    large = arithmetic.quotient(safe / ten**power, unit_grid, half=True) * ten**power
    small = arithmetic.quotient(safe * ten ** (-power), unit_grid, half=True) / ten ** (-power)
    return ibis.ifelse(inside, ibis.ifelse(power > 0, large, small), value)


@dataclass(frozen=True)
class _Coding(Mask):
    """Base class of masks that replace numbers beyond a bound by it: top and bottom coding."""

    at: int | float = described("the bound")

    fits: ClassVar[frozenset[Kind]] = NUMERIC
    top: ClassVar[bool]
    idempotent: ClassVar[bool] = True
    keeps_kind: ClassVar[bool] = True

    def __post_init__(self) -> None:
        base.number(self.name, "at", self.at)

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError`, which names the attribute, if the mask does not accept columns of
        this kind, or if its bound would turn whole numbers into fractions.
        """
        super().check(kind, attribute)
        if kind is Kind.INTEGER and base.decimals(self.at):
            raise PolicyError(
                f"Mask {str(self)!r} of attribute {attribute!r}: the column holds whole numbers.",
                hint="Give a whole number as 'at'.",
            )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the number, or the bound if the number is beyond it; NaN and null stay unchanged."""
        dtype = column.type()
        bound = self.bound(column)
        if bound is None:
            return column
        if bound.type().is_integer() and dtype.is_integer():
            low, high = arithmetic.limits(dtype)
            if not low <= self.at <= high:
                return arithmetic.keep_null(column, bound)
        value = column.cast("float64") if dtype.is_floating() else column
        beyond = value > bound if self.top else value < bound
        if dtype.is_floating():
            # Engines order NaN above everything.
            beyond = beyond & ~value.isnan()
        return ibis.ifelse(beyond, bound, value)

    def bound(self, column: ir.Column) -> ir.NumericValue | None:
        """Return the bound as a literal that can be compared with `column` without loss of digits;
        None if no number of the column's type is beyond it.
        """
        dtype = column.type()
        if dtype.is_integer() and not base.decimals(self.at):
            low, high = arithmetic.limits(dtype)
            at = int(self.at)
            if (self.top and at >= high) or (not self.top and at <= low):
                return None
            return arithmetic.constant(at, column) if low <= at <= high else ibis.literal(at)
        if dtype.is_decimal():
            scale = dtype.scale or 0
            room = (dtype.precision or 38) - scale
            if base.decimals(self.at) <= scale and len(str(int(abs(self.at)))) <= room:
                return ibis.literal(self.at).cast(dtype)
        return ibis.literal(float(self.at))


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
        base.whole(self.name, "digits", self.digits, at_least=1, at_most=18)

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the number with its last digits erased."""
        unit = 10**self.digits
        if column.type().is_integer():
            return _towards_zero(arithmetic.widened(column), unit)
        if column.type().is_decimal():
            # Digits before the point of v and of -v are erased, and floor is exact for v >= 0.
            integer, inside = arithmetic.floor_decimal(column.abs())
            truncated = _towards_zero(integer, unit)
            erased = ibis.ifelse(column < 0, -truncated, truncated)
            if inside is None:
                return erased
            return ibis.ifelse(inside, erased.cast(column.type()), column)
        value = column.cast("float64")
        most = float(arithmetic.EXACT) * unit
        inside = (value > -most) & (value < most)
        integer = (ibis.ifelse(inside, value, 0.0).abs() / unit).floor()
        truncated = ibis.ifelse(value < 0, -integer, integer).cast("float64") * float(unit)
        return ibis.ifelse(inside, truncated, value)


def _towards_zero(value: ir.IntegerValue, unit: int) -> ir.IntegerValue:
    rest = arithmetic.remainder(value, unit)
    if not value.type().is_unsigned_integer():
        rest = ibis.ifelse((value < 0) & (rest > 0), rest - unit, rest)
    return arithmetic.settled(value - rest, value.type())
