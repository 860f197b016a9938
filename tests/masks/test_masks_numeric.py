"""Numeric masks on the embedded engine against their plain definitions, in exact arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masks_support import (
    GREATEST,
    LEAST,
    counted,
    decimal_floats,
    floats,
    integers,
    lists,
    masked,
    small_integers,
)

from aegis.masks import (
    BottomCode,
    Bucketize,
    EqualWidth,
    EraseDigits,
    Kind,
    Quantiles,
    Round,
    TopCode,
)
from aegis.masks.base import SHARED_ROWS, ValueCounts
from aegis.masks.numeric import MOST_MOVED
from aegis.sources import embedded

NAN, INF = math.nan, math.inf
widths = st.sampled_from([1, 2, 7, 10, 1000, 10**12]) | st.integers(1, 500)


def number(value: float | Decimal) -> Fraction:
    return Fraction(value if isinstance(value, (int, Decimal)) else repr(value))


def floors(value: float | Decimal, width: float, origin: float = 0, shift: float = 0) -> set[int]:
    """Numbers of the cells that the documented tolerance allows; one when the value is on a cut."""
    place = (number(value) - number(origin)) / number(width) + Fraction(shift)
    if place.denominator == 1:
        return {int(place)}
    slack = Fraction(2, 10**9) + abs(place) / 2**49
    return {math.floor(place), math.floor(place + slack)}


def interval(cell: int, width: float, origin: float, digits: int) -> str:
    low = cell * number(width) + number(origin)
    texts = [
        f"{Decimal(int(b * 10**digits)).scaleb(-digits):f}" for b in (low, low + number(width))
    ]
    return f"[{texts[0]}, {texts[1]}["


@given(lists(integers), widths, st.integers(-1000, 1000))
def test_bucketize_of_64_bit_integers_is_exact(values, width, origin):
    shown = masked(Bucketize(width, origin), values, pa.int64())
    lows = [None if v is None else (v - origin) // width * width + origin for v in values]
    assert shown == [None if low is None else f"[{low}, {low + width}[" for low in lows]
    lower = masked(Bucketize(width, origin, "lower"), values, pa.int64())
    assert lower == [None if low is None else max(low, LEAST) for low in lows]


@given(lists(st.integers(-128, 127)), widths, st.integers(-5, 5))
def test_bucketize_of_8_bit_integers_does_not_overflow(values, width, origin):
    lows = [None if v is None else (v - origin) // width * width + origin for v in values]
    shown = masked(Bucketize(width, origin), values, pa.int8())
    assert shown == [None if low is None else f"[{low}, {low + width}[" for low in lows]
    assert masked(Bucketize(width, origin, "lower"), values, pa.int8()) == lows


@given(lists(st.integers(0, 2**64 - 1) | st.integers(0, 50)), st.integers(1, 99), st.integers(0, 9))
def test_bucketize_of_unsigned_integers(values, width, origin):
    lows = [None if v is None else (v - origin) // width * width + origin for v in values]
    shown = masked(Bucketize(width, origin), values, pa.uint64())
    assert shown == [None if low is None else f"[{low}, {low + width}[" for low in lows]
    lower = masked(Bucketize(width, origin, "lower"), values, pa.uint64())
    assert lower == [None if low is None else max(low, 0) for low in lows]


@given(
    lists(floats),
    st.sampled_from([(0.1, 0, 1), (0.25, 0.5, 2), (10, 0, 0), (3, -1, 0), (2.5, 0.25, 2)]),
)
def test_bucketize_of_floats(values, grid):
    width, origin, digits = grid
    shown = masked(Bucketize(width, origin), values, pa.float64())
    lower = masked(Bucketize(width, origin, "lower"), values, pa.float64())
    for value, text, low in zip(values, shown, lower, strict=True):
        if value is None:
            assert text is None
            assert low is None
            continue
        cells = floors(value, width, origin)
        assert text in {interval(cell, width, origin, digits) for cell in cells}
        assert low in {float(cell * number(width) + number(origin)) for cell in cells}


def test_bucketize_puts_decimal_fractions_where_they_read():
    steps = [n / 10 for n in range(-300, 300)]
    shown = masked(Bucketize(0.1), steps, pa.float64())
    assert shown == [interval(n, 0.1, 0, 1) for n in range(-300, 300)]
    assert masked(Bucketize(0.1), steps, pa.float32()) == shown


def test_bucketize_of_special_and_very_large_floats():
    values = [NAN, INF, -INF, 1e300, -1e300, -0.0, None]
    assert masked(Bucketize(10), values, pa.float64()) == [
        "NaN", "inf", "-inf", "[9007199254740970, inf[", "]-inf, -9007199254740970[", "[0, 10[", None,
    ]  # fmt: skip
    lower = masked(Bucketize(10, show="lower"), values, pa.float64())
    assert math.isnan(lower[0])
    assert lower[1:] == [INF, -INF, 9007199254740970.0, -INF, 0.0, None]


@given(lists(st.decimals(-(10**14), 10**14, places=2)), st.sampled_from([1, 10, 365]))
def test_bucketize_of_decimals_is_exact_for_whole_widths(values, width):
    expected = [None if v is None else interval(math.floor(v / width), width, 0, 0) for v in values]
    for dtype in (pa.decimal128(17, 2), pa.decimal128(38, 2)):
        assert masked(Bucketize(width), values, dtype) == expected


def test_decimals_beyond_64_bits_share_the_outer_interval():
    values = [Decimal("9" * 30), -Decimal("9" * 30), Decimal("9999999999999999.99")]
    assert masked(Bucketize(10), values, pa.decimal128(38, 2)) == [
        "[9000000000000000000, inf[",
        "]-inf, -9000000000000000000[",
        "[9999999999999990, 10000000000000000[",
    ]


def test_bucketize_of_integers_under_a_fractional_width():
    assert masked(Bucketize(2.5), [-1, 0, 2, 3, None], pa.int64()) == [
        "[-2.5, 0.0[", "[0.0, 2.5[", "[0.0, 2.5[", "[2.5, 5.0[", None,
    ]  # fmt: skip


def binned(value: float, edges: list[float]) -> str:
    below = [e for e in edges if e <= value]
    above = [e for e in edges if e > value]
    low = f"[{below[-1]:g}" if below else "]-inf"
    return f"{low}, {f'{above[0]:g}' if above else 'inf'}["


@given(lists(small_integers), st.sets(st.integers(-50, 50), max_size=9).map(sorted))
def test_cut_points_on_integers_and_floats(values, edges):
    mask = Quantiles(10, tuple(edges))
    expected = [None if v is None else binned(v, edges) for v in values]
    assert masked(mask, values, pa.int64()) == expected
    assert masked(mask, values, pa.float64()) == expected
    halves = tuple(edge + 0.5 for edge in edges)
    expected = [None if v is None else binned(v, list(halves)) for v in values]
    assert masked(EqualWidth(10, halves), values, pa.int32()) == expected


def test_cut_points_and_special_floats():
    shown = masked(EqualWidth(3, (0, 0.5)), [NAN, INF, -INF, 0.5, -0.0], pa.float64())
    assert shown == ["NaN", "[0.5, inf[", "]-inf, 0[", "[0.5, inf[", "[0, 0.5["]


def test_equal_width_fits_least_and_greatest_finite_value_of_many_rows():
    """Values of fewer rows are rounded outward: `test_masks_bounds`."""

    def many(data):
        return ValueCounts(data.kind, data.values, data.counts * SHARED_ROWS)

    data = many(counted(Kind.INTEGER, [17, 90, 40, None], pa.int64()))
    assert EqualWidth(5).fit(data).edges == (32, 47, 61, 76)
    data = many(counted(Kind.NUMBER, [0.1, 0.4, INF, -INF, None], pa.float64()))
    assert EqualWidth(3).fit(data).edges == (0.2, 0.3)
    data = many(counted(Kind.NUMBER, [Decimal("1.00"), Decimal("2.00")], pa.decimal128(5, 2)))
    assert EqualWidth(2).fit(data).edges == (2,)
    for values in ([7], [None], [7, None]):
        fitted = EqualWidth(4).fit(counted(Kind.INTEGER, values, pa.int64()))
        assert fitted.edges == ()
        assert masked(fitted, [1, None], pa.int64()) == ["]-inf, inf[", None]


@given(
    st.lists(st.integers(-9999, 9999), min_size=2, max_size=30, unique=True).map(sorted),
    st.integers(0, 4),
    st.integers(2, 7),
)
def test_equal_width_cuts_have_the_digits_of_the_column(values, digits, count):
    numbers = [value / 10**digits for value in values]
    data = counted(Kind.NUMBER, numbers, pa.float64())
    fitted = EqualWidth(count).fit(ValueCounts(data.kind, data.values, data.counts * SHARED_ROWS))
    low, span = Fraction(values[0]), Fraction(values[-1] - values[0])
    exact = [low + span * i / count for i in range(1, count)]
    cells = [sum(cut <= value for cut in exact) for value in values]
    shown = masked(fitted, numbers, pa.float64())
    assert len(set(zip(cells, shown, strict=True))) == len(set(cells)) == len(set(shown))
    assert all(round(edge, digits) == edge for edge in fitted.edges)
    assert all(fitted.shows(text) for text in shown)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20),
    st.sampled_from([(10, 0), (0.1, 0), (0.25, 0.05), (1e-7, 3), (3, 1), (1e6, -7)]),
    st.sampled_from(["interval", "lower"]),
)
def test_bucketize_knows_what_it_shows(values, grid, show):
    mask = Bucketize(*grid, show)
    shown = [str(text) for text in masked(mask, [*values, NAN, INF, -INF], pa.float64())]
    assert all(map(mask.shows, shown)), [text for text in shown if not mask.shows(text)]
    other = Bucketize(grid[0], grid[1] + grid[0] / 2, show)
    assert not any(map(other.shows, shown[:-3]))


def roundness(number: int) -> float:
    """The largest of 1, 5, 10, 50, ... that divides a whole number."""
    steps = [factor * 10**power for power in range(20) for factor in (1, 5)]
    return float("inf") if number == 0 else max(s for s in steps if number % s == 0)


def rounded_cuts(values: list[int], count: int) -> tuple[int, ...]:
    """The cut points by their definition, tried on every whole number."""
    different = sorted(set(values))

    def below(edge: int) -> int:
        return sum(v < edge for v in values)

    exact: list[int] = []
    for j in range(1, count):
        if different[1:]:
            goal = Fraction(j * len(values), count)
            best = min(different[1:], key=lambda c: (abs(below(c) - goal), c))
            exact += [] if best in exact else [best]
    edges: list[int] = []
    for cut, following in zip(exact, [*exact[1:], different[-1] + 1], strict=False):
        first = min(v for v in different if not edges or v >= edges[-1])
        last = max(v for v in different if v < following)
        near = [
            edge
            for edge in range(first + 1, last + 1)
            if abs(below(edge) - below(cut)) * MOST_MOVED * count <= len(values)
        ]
        edges.append(min(near, key=lambda e: (-roundness(e), abs(e - cut), e)))
    return tuple(edges)


RUNS = st.lists(st.tuples(st.integers(-40, 230), st.integers(1, 30)), min_size=1, max_size=40)


@given(RUNS, st.integers(2, 6))
def test_quantiles_cut_at_the_roundest_number_that_moves_few_rows(runs, count):
    values = [value for value, rows in runs for _ in range(rows)]
    fitted = Quantiles(count).fit(counted(Kind.INTEGER, values, pa.int64()))
    assert fitted.edges == rounded_cuts(values, count)
    assert fitted.fit(counted(Kind.INTEGER, [1, 2, 3], pa.int64())) is fitted
    hundredths = Quantiles(count).fit(
        counted(Kind.NUMBER, [value / 100 for value in values], pa.float64())
    )
    assert hundredths.edges == tuple(edge / 100 for edge in fitted.edges)


@given(st.lists(st.floats(-1e300, 1e300) | st.floats(1, 1.0000001), min_size=1, max_size=60))
def test_quantiles_of_any_floats_leave_no_interval_empty(values):
    fitted = Quantiles(3).fit(counted(Kind.NUMBER, values, pa.float64()))
    assert list(fitted.edges) == sorted(set(fitted.edges))
    inside = np.searchsorted(fitted.edges, values, side="right")
    assert set(inside) == set(range(len(fitted.edges) + 1))


def test_quantiles_of_measurements_show_no_measurement():
    generator = np.random.default_rng(1)
    values = generator.lognormal(10, 1, 5_000).tolist()
    edges = Quantiles(4).fit(counted(Kind.NUMBER, values, pa.float64())).edges
    assert not {*edges} & {*values}
    assert all(edge % 500 == 0 for edge in edges), edges
    below = np.searchsorted(np.sort(values), edges) / len(values)
    assert below == pytest.approx([0.25, 0.5, 0.75], abs=1 / 4 / MOST_MOVED + 1e-3)


@given(lists(integers), widths)
def test_round_of_integers_to_a_step(values, step):
    expected = [None if v is None else (2 * v + step) // (2 * step) * step for v in values]
    expected = [
        v if e is None or not LEAST <= e <= GREATEST else e
        for v, e in zip(values, expected, strict=True)
    ]
    assert masked(Round(step=step), values, pa.int64()) == expected


@given(lists(integers), st.integers(1, 15))
def test_round_of_integers_to_significant_digits(values, digits):
    def rounded(value: int) -> int:
        step = 10 ** max(0, len(str(abs(value))) - digits)
        nearest = (2 * value + step) // (2 * step) * step
        return nearest if LEAST <= nearest <= GREATEST else value

    shown = masked(Round(digits=digits), values, pa.int64())
    assert shown == [None if v is None else rounded(v) for v in values]


@given(lists(floats), st.sampled_from([0.1, 0.25, 5, 2.5]))
def test_round_of_floats_to_a_step(values, step):
    for value, shown in zip(values, masked(Round(step=step), values, pa.float64()), strict=True):
        if value is None:
            assert shown is None
        else:
            nearest = floors(value, step, shift=0.5)
            assert shown in {float(cell * number(step)) for cell in nearest}


@given(lists(decimal_floats.filter(bool)), st.integers(1, 6))
def test_round_of_floats_to_significant_digits(values, digits):
    for value, shown in zip(
        values, masked(Round(digits=digits), values, pa.float64()), strict=True
    ):
        if value is None:
            assert shown is None
            continue
        place = Decimal(repr(value)).adjusted() - digits + 1
        unit = Fraction(10) ** place
        assert shown == float(math.floor(number(value) / unit + Fraction(1, 2)) * unit)


def test_round_leaves_special_floats():
    values = [INF, -INF, 1e300, -1e300, None, -0.0]
    for mask in (Round(step=5), Round(digits=2)):
        assert masked(mask, values, pa.float64()) == [*values[:5], 0.0]
        assert math.isnan(masked(mask, [NAN], pa.float64())[0])
    assert masked(Round(step=0.5), [1, 2], pa.int32()) == [1.0, 2.0]
    assert masked(Round(step=5), [Decimal("12.50")], pa.decimal128(6, 2)) == [15.0]


@given(lists(integers), integers)
def test_top_and_bottom_coding_of_integers(values, at):
    top = [None if v is None else min(v, at) for v in values]
    assert masked(TopCode(at), values, pa.int64()) == top
    bottom = [None if v is None else max(v, at) for v in values]
    assert masked(BottomCode(at), values, pa.int64()) == bottom


@given(lists(st.integers(0, 255)), st.integers(-10, 300))
def test_top_and_bottom_coding_beyond_the_type(values, at):
    top = [None if v is None else min(v, at) for v in values]
    assert masked(TopCode(at), values, pa.uint8()) == top
    bottom = [None if v is None else max(v, at) for v in values]
    assert masked(BottomCode(at), values, pa.uint8()) == bottom


@given(lists(floats | st.sampled_from([INF, -INF])), floats)
def test_top_and_bottom_coding_of_floats(values, at):
    assert masked(TopCode(at), values, pa.float64()) == [
        v if v is None else min(v, at) for v in values
    ]
    assert masked(BottomCode(at), values, pa.float64()) == [
        v if v is None else max(v, at) for v in values
    ]


def test_coding_leaves_nan_and_the_digits_of_decimals():
    for mask in (TopCode(1), BottomCode(1)):
        assert math.isnan(masked(mask, [NAN], pa.float64())[0])
    values = [Decimal("1234567890123456.78"), Decimal("-0.01"), None]
    dtype = pa.decimal128(18, 2)
    assert masked(TopCode(90.5), values, dtype) == [Decimal("90.50"), Decimal("-0.01"), None]
    assert masked(BottomCode(0), values, dtype) == [values[0], Decimal(0), None]


@given(lists(integers), st.integers(1, 18))
def test_erase_digits_of_integers(values, digits):
    def erased(value: int) -> int:
        kept = abs(value) // 10**digits * 10**digits
        return -kept if value < 0 else kept

    shown = masked(EraseDigits(digits), values, pa.int64())
    assert shown == [None if v is None else erased(v) for v in values]


@given(lists(st.decimals(-(10**6), 10**6, places=2)), st.integers(1, 4))
def test_erase_digits_of_decimals_and_floats(values, digits):
    expected = [None if v is None else int(v / 10**digits) * 10**digits for v in values]
    assert masked(EraseDigits(digits), values, pa.decimal128(10, 2)) == expected
    as_floats = [None if v is None else float(v) for v in values]
    assert masked(EraseDigits(digits), as_floats, pa.float64()) == expected


def test_erase_digits_leaves_special_floats():
    assert masked(EraseDigits(1), [INF, -INF, 1e300, None], pa.float64()) == [
        INF,
        -INF,
        1e300,
        None,
    ]
    assert math.isnan(masked(EraseDigits(1), [NAN], pa.float64())[0])
    assert masked(EraseDigits(1), [2**64 - 1], pa.uint64()) == [18446744073709551610]


@pytest.mark.parametrize(
    ("mask", "value", "dtype"),
    [
        (Bucketize(10, 3, "lower"), 2**64 - 1, pa.uint64()),
        (Round(step=5), 2**63, pa.uint64()),
        (Round(digits=2), 2**63, pa.uint64()),
        (EraseDigits(2), 2**64 - 1, pa.uint64()),
        (TopCode(2**63), 2**64 - 1, pa.uint64()),
        (Round(digits=3), 100, pa.int8()),
        (Bucketize(10, 0, "lower"), 100, pa.int16()),
    ],
    ids=str,
)
def test_the_engine_holds_the_declared_type(mask, value, dtype):
    """What the engine writes to a file has the type that Ibis declares, not a wider one."""
    table = ibis.memtable(pa.table({"v": pa.array([value], dtype)}))
    shown = table.select(x=mask.expression(table.v))
    connection = embedded()
    connection.to_pyarrow(shown)  # makes the table in memory known to the engine
    [created] = connection.raw_sql(f"DESCRIBE {connection.compile(shown)}").fetchall()
    names = {"uint64": "UBIGINT", "int64": "BIGINT"}
    assert created[1] == names[str(shown.schema()["x"])]
