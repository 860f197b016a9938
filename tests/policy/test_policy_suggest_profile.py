"""Facts about columns, against plain Python."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import DataError
from aegis.masks import Kind
from aegis.policy.suggest import profile as suggest_profile
from aegis.policy.suggest.facts import ColumnFacts
from aegis.policy.suggest.profile import (
    FEWEST_ROWS,
    SHARES,
    SHOWN_VALUES,
    common_stem,
    estimate_distinct,
    measure_columns,
)
from aegis.sources import open_table

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5)),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "real": (
        pa.float64(),
        st.sampled_from([0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e300]),
    ),
    "money": (
        pa.decimal128(30, 2),
        st.sampled_from([Decimal("0.00"), Decimal("-12345678901234567890.25"), Decimal("9.99")]),
    ),
    "text": (pa.string(), st.sampled_from(["a", "B", "", "ä", "a b", "😀", "12345", "x@y.org"])),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "moment": (
        pa.timestamp("us", tz="Europe/Berlin"),
        st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)),
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 40))
    data = {
        name: pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), dtype)
        for name, (dtype, values) in COLUMNS.items()
    }
    return pa.table(data)


def local(value: Any) -> Any:
    """Return a time as it is read: without its zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@settings(max_examples=5)
@given(tables())
def test_wide_tables_are_asked_some_columns_at_a_time(table: pa.Table) -> None:
    """One query for all made `init` on 2,000 columns take minutes, which no signal ended."""
    whole = measure_columns(open_table(table))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suggest_profile, "_AT_ONCE", 3)
        assert repr(measure_columns(open_table(table))) == repr(whole)


@given(tables())
def test_facts_equal_plain_python(table: pa.Table) -> None:
    facts = measure_columns(open_table(table))
    check_text(table, facts["text"])
    assert list(facts) == table.column_names
    for name, one in facts.items():
        values = [local(v) for v in table[name].to_pylist() if v is not None]
        assert one.rows == table.num_rows
        assert one.nulls == table.num_rows - len(values)
        assert one.exact
        assert one.distinct == len({key(v) for v in values})
        assert one.special == sum(not is_finite(v) for v in values)
        finite = [v for v in values if is_finite(v)]
        if one.kind is not None and one.kind.ordered and finite:
            assert one.low == min(finite)
            assert one.high == max(finite)
        else:
            assert one.low is None
            assert one.high is None


def check_text(table: pa.Table, one: ColumnFacts) -> None:
    """Check the frequent values and the shapes of a column of text."""
    values = [v for v in table["text"].to_pylist() if v is not None]
    ranked = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    expected = [(v, n / table.num_rows) for v, n in ranked[:SHOWN_VALUES] if n >= FEWEST_ROWS]
    assert Counter(s for _, s in one.frequent) == Counter(s for _, s in expected)
    assert all(Counter(values)[v] / table.num_rows == s for v, s in one.frequent)
    if len(set(values)) > 1:
        assert one.lengths == (min(map(len, values)), max(map(len, values)))
        assert one.shape("digits") == pytest.approx(
            sum(v.isdecimal() for v in values) / len(values)
        )
        assert one.shape("email") == pytest.approx(values.count("x@y.org") / len(values))


@settings(max_examples=12)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=60))
def test_quantiles_equal_linear_interpolation(values: list[int]) -> None:
    one = measure_columns(open_table(pa.table({"v": values})))["v"]
    if one.distinct < 2:
        assert one.quantiles is None
        return
    ordered = sorted(values)
    assert one.quantiles is not None
    for share in SHARES:
        place = share * (len(values) - 1)
        low = math.floor(place)
        high = min(low + 1, len(values) - 1)
        expected = ordered[low] + (place - low) * (ordered[high] - ordered[low])
        assert one.quantiles[share] == pytest.approx(expected, abs=1e-6)


def test_rare_values_are_not_quoted() -> None:
    table = pa.table({"v": ["common"] * FEWEST_ROWS + ["rare"] * (FEWEST_ROWS - 1)})
    assert [v for v, _ in measure_columns(open_table(table))["v"].frequent] == ["common"]


def test_types_without_masks_are_counted_only() -> None:
    table = pa.table(
        {
            "list": pa.array([[1], None], pa.list_(pa.int64())),
            "struct": pa.array([{"a": 1}, None]),
            "binary": pa.array([b"x", None]),
            "time": pa.array([1, None], pa.time64("us")),
        }
    )
    for one in measure_columns(open_table(table)).values():
        assert one.kind is None
        assert (one.nulls, one.distinct) == (1, 0)


def test_an_empty_table_is_an_error() -> None:
    with pytest.raises(DataError, match="no rows"):
        measure_columns(open_table(pa.table({"a": pa.array([], pa.int64())})))


def test_large_tables_are_estimated_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest_profile, "EXACT_ROWS", 1000)
    monkeypatch.setattr(suggest_profile, "SAMPLE_ROWS", 4000)
    rows = 20_000
    table = pa.table(
        {
            "key": range(rows),
            "twice": [f"t{i // 2}" for i in range(rows)],
            "few": [i % 7 for i in range(rows)],
            "rare": ["odd" if i == 17 else "same" for i in range(rows)],
            "same": ["one"] * rows,
            "void": pa.nulls(rows, pa.string()),
            "nan": [math.nan] * rows,
            "flag": [i % 3 == 0 for i in range(rows)],
        }
    )
    facts = measure_columns(open_table(table))
    assert not facts["key"].exact
    assert facts["key"].unique_share > 0.95
    assert facts["twice"].distinct == pytest.approx(rows / 2, rel=0.1)
    assert facts["few"].distinct == 7
    assert (facts["few"].low, facts["few"].high) == (0, 6)
    assert facts["rare"].distinct == 2  # told by the range of the whole table
    assert facts["rare"].low is None
    assert facts["same"].distinct == 1
    assert facts["void"].distinct == 0
    assert (facts["nan"].distinct, facts["nan"].special) == (1, rows)
    assert facts["flag"].distinct == 2
    assert dict(facts["few"].frequent)["0"] == pytest.approx(1 / 7, rel=0.1)


@given(st.integers(2, 400), st.integers(1, 20), st.floats(0.05, 0.95))
def test_the_estimate_inverts_the_expected_number_of_values(
    distinct: int, each: int, share: float
) -> None:
    rows = distinct * each
    sampled = max(1, int(share * rows))
    seen = distinct * (1 - (1 - sampled / rows) ** each)
    estimate = estimate_distinct(rows, sampled, round(seen)) if round(seen) else 0
    assert estimate <= rows
    assert estimate >= round(seen)
    if 1 <= round(seen) < sampled:
        lower = estimate_distinct(rows, sampled, max(1, round(seen) - 1))
        upper = estimate_distinct(rows, sampled, round(seen) + 1)
        assert lower - 1 <= distinct <= upper + 1


def test_estimates_at_the_ends() -> None:
    assert estimate_distinct(1000, 100, 100) == 1000
    assert estimate_distinct(100, 100, 40) == 40
    assert estimate_distinct(10**7, 200_000, 41) == 41


def test_the_stem_that_all_names_share() -> None:
    assert common_stem(["iage", "isex", "irace", "iinjury"]) == "i"
    assert common_stem(["cust_age", "cust_sex", "cust_id", "cust_label"]) == "cust_"
    assert common_stem(["iage", "isex", "irace"]) == ""
    assert common_stem(["a", "ab", "ac", "ad"]) == ""
    assert common_stem(["age", "sex", "x", "y"]) == ""


def test_shared_beginnings_do_not_hide_what_a_name_says() -> None:
    table = pa.table({f"i{name}": [1, 2] for name in ("age", "sex", "race", "label")})
    facts = measure_columns(open_table(table))
    assert facts["iage"].concept is not None
    assert facts["iage"].concept.name == "age"


def test_facts_of_an_empty_column_have_no_shares() -> None:
    one = ColumnFacts("x", "x", "string", Kind.TEXT, 3, 3)
    assert (one.unique_share, one.top_share, one.values) == (0.0, 0.0, 0)


def test_columns_of_wide_tables_are_stacked_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: dict[str, list[Any]] = {
        f"c{i}": [f"v{(i + 1) * j % (3 + i)}" for j in range(40)] for i in range(7)
    }
    columns |= {
        "n": list(range(40)),
        "r": [f"{10 * (j % 4)}-{10 * (j % 4) + 9}" for j in range(40)],
    }
    source = open_table(pa.table(columns))
    together = measure_columns(source)
    asked: list[int] = []
    find = suggest_profile._find_values

    def counted(source: Any, sample: Any, facts: Any) -> Any:
        asked.append(len(facts))
        return find(source, sample, facts)

    monkeypatch.setattr(suggest_profile, "_find_values", counted)
    monkeypatch.setattr(suggest_profile, "_STACKED_AT_ONCE", 4)
    assert measure_columns(source) == together
    assert asked == [4, 4, 1]
