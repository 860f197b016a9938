"""Masks of text, dates, categories and identifiers against their plain definitions."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from datetime import date, datetime, timedelta

import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masks_support import counted, huge_integers, lists, masked, small_integers, texts

from aegis.errors import InternalError, PolicyError
from aegis.masks import (
    Blur,
    Group,
    Identity,
    KeepFrequent,
    Kind,
    Suppress,
    Tokenise,
    Truncate,
)
from aegis.sources import embedded

KEY = "correct horse battery staple"


@given(lists(texts))
def test_identity_and_suppress(values):
    assert masked(Identity(), values, pa.string()) == values
    assert masked(Suppress(), values, pa.string()) == ["*"] * len(values)


def blurred(text: str, mask: Blur) -> str:
    shown = mask.keep if mask.hide is None else max(0, len(text) - mask.hide)
    side = mask.side or ("leading" if mask.hide is None else "trailing")
    if (side == "leading") == (mask.hide is None):
        return text[:shown] + mask.symbol
    return mask.symbol + text[max(0, len(text) - shown) :]


blurs = st.builds(
    lambda keep, n, side, symbol: Blur(
        keep=n if keep else None, hide=None if keep else n + 1, side=side, symbol=symbol
    ),
    st.booleans(),
    st.integers(0, 5),
    st.sampled_from([None, "leading", "trailing"]),
    st.sampled_from(["*", "#", "'", "é"]),
)


@given(lists(texts), lists(small_integers | huge_integers), blurs)
def test_blur_of_text_and_integers(values, numbers, mask):
    assert masked(mask, values, pa.string()) == [
        v if v is None else blurred(v, mask) for v in values
    ]
    expected = [v if v is None else blurred(str(v), mask) for v in numbers]
    assert masked(mask, numbers, pa.int64()) == expected


def test_blur_examples():
    assert masked(Blur(keep=3), ["12345", "12"], pa.string()) == ["123*", "12*"]
    assert masked(Blur(hide=2), ["12345", "1"], pa.string()) == ["123*", "*"]
    assert masked(Blur(keep=2, side="trailing"), ["12345"], pa.string()) == ["*45"]
    assert masked(Blur(hide=2, side="leading"), ["12345"], pa.string()) == ["*345"]
    assert Blur(keep=3, side="leading") == Blur(keep=3)


def test_blur_keeps_no_length():
    codes = ["E11", "E11.9", "E11.65", "E12.1"]
    assert masked(Blur(keep=3), codes, pa.string()) == ["E11*", "E11*", "E11*", "E12*"]


def truncated(day: date, unit: str) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "day":
        return day
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return date(day.year, month, 1)


units = st.sampled_from(["day", "week", "month", "quarter", "year"])


@given(lists(st.dates(min_value=date(1, 1, 8))), units)
def test_truncate_of_dates(values, unit):
    expected = [v if v is None else truncated(v, unit) for v in values]
    assert masked(Truncate(unit), values, pa.date32()) == expected


@given(lists(st.dates()), st.sampled_from([2, 5, 10, 100]))
def test_truncate_to_several_years(values, count):
    years = [v if v is None else max(1, v.year // count * count) for v in values]
    shown = masked(Truncate("year", count, "year"), values, pa.date32())
    assert shown == years
    days = [y if y is None else date(y, 1, 1) for y in years]
    assert masked(Truncate("year", count), values, pa.date32()) == days
    plain = [v if v is None else v.year for v in values]
    assert masked(Truncate("year", show="year"), values, pa.date32()) == plain


@given(lists(st.dates()))
def test_a_date_cut_to_its_decade_reads_as_one(values):
    mask = Truncate("year", 10, "decade")
    shown = masked(mask, values, pa.date32())
    assert shown == [v if v is None else f"{v.year // 10 * 10}s" for v in values]
    assert all(mask.shows(text) for text in shown if text is not None)
    assert not any(map(mask.shows, ("1955s", "1950", "1950-01-01", "01950s", "s", "*")))


def test_a_decade_is_ten_years():
    assert masked(Truncate("year", 10, "decade"), [date(1957, 3, 1)], pa.date32()) == ["1950s"]
    assert Truncate("year", 10, "decade").output_kind(Kind.DATE) is Kind.TEXT
    assert Truncate("year", 10).shows("1950s") is None
    for wrong in ({}, {"count": 5}):
        with pytest.raises(PolicyError, match="'show' is 'decade', but 'count' is"):
            Truncate("year", show="decade", **wrong)


def test_only_years_are_counted_together():
    assert Truncate("year", 5).output_kind(Kind.DATE) is Kind.DATE
    assert Truncate("year", 5, "year").output_kind(Kind.DATE) is Kind.INTEGER
    for wrong in ({"count": 2}, {"show": "year"}):
        with pytest.raises(PolicyError, match="go with unit year, not month"):
            Truncate("month", **wrong)
    with pytest.raises(PolicyError, match="'count' is 0"):
        Truncate("year", 0)


@given(lists(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))), units)
def test_truncate_of_timestamps_with_and_without_zone(values, unit):
    expected = [v if v is None else truncated(v.date(), unit) for v in values]
    for zone in (None, "America/New_York"):
        assert masked(Truncate(unit), values, pa.timestamp("us", tz=zone)) == expected


@given(lists(st.sampled_from(["a", "b", "c", "d", "*", ""])), st.integers(1, 4))
def test_keep_frequent_keeps_the_most_frequent_then_the_least(values, count):
    mask = KeepFrequent(count, "rest").fit(counted(Kind.TEXT, values, pa.string()))
    present = [v for v in values if v is not None]
    kept = sorted(set(present), key=lambda v: (-present.count(v), v))[:count]
    assert mask.values == tuple(sorted(kept))
    expected = [v if v is None or v in kept else "rest" for v in values]
    assert masked(mask, values, pa.string()) == expected


@given(lists(huge_integers | st.integers(0, 3)), st.integers(1, 5))
def test_keep_frequent_of_integers(values, count):
    mask = KeepFrequent(count).fit(counted(Kind.INTEGER, values, pa.int64()))
    expected = [None if v is None else str(v) if v in mask.values else "other" for v in values]
    assert masked(mask, values, pa.int64()) == expected


def test_a_value_called_other_belongs_to_the_others():
    region = ["other"] * 9 + ["south"] * 6 + ["north"] * 4 + ["west"]
    mask = KeepFrequent(2).fit(counted(Kind.TEXT, region, pa.string()))
    assert mask.spec() == {"keep_frequent": {"count": 2, "values": ["north", "south"]}}
    assert set(masked(mask, region, pa.string())) == {"south", "north", "other"}


def test_keep_frequent_of_booleans_and_before_fitting():
    mask = KeepFrequent(1).fit(counted(Kind.BOOLEAN, [True, True, False, None], pa.bool_()))
    assert mask.spec() == {"keep_frequent": {"count": 1, "values": [True]}}
    assert masked(mask, [True, False, None], pa.bool_()) == ["true", "other", None]
    with pytest.raises(InternalError, match="not been fitted"):
        masked(KeepFrequent(1), ["a"], pa.string())


def known(mask, values, dtype):
    """Return for each value whether the mask knows it, as the engine finds it."""
    table = ibis.memtable(pa.table({"n": range(len(values)), "v": pa.array(values, dtype)}))
    found = embedded().to_pyarrow(table.select("n", known=mask.known(table.v)).order_by("n"))
    return found["known"].to_pylist()


groups_of_texts = st.dictionaries(
    st.sampled_from(["a", "b", "c", "", "39", "é"]), st.sampled_from(["g", "h", "*"]), min_size=1
)


def grouped(owner):
    found = {}
    for value, name in owner.items():
        found.setdefault(name, []).append(value)
    return found


@given(lists(st.sampled_from(["a", "b", "c", "", "39", "é", "z"])), groups_of_texts)
def test_group_of_texts(values, owner):
    for rest, other in (("error", "*"), ("other", "other"), ("keep", None)):
        mask = Group(grouped(owner), rest)
        expected = [v if v is None else owner.get(v, other or v) for v in values]
        assert masked(mask, values, pa.string()) == expected
        if rest == "error":
            assert known(mask, values, pa.string()) == [v is None or v in owner for v in values]
        else:
            assert mask.known(ibis.table({"v": "string"}).v) is None


@given(
    lists(st.integers(-12, 12) | huge_integers),
    st.dictionaries(st.integers(-10, 10), st.sampled_from(["g", "h", "i"]), min_size=1),
)
def test_group_of_integers_by_runs_equals_lookup(values, owner):
    mask = Group(grouped(owner))
    assert masked(mask, values, pa.int64()) == [
        v if v is None else owner.get(v, "*") for v in values
    ]
    as_text = Group({name: [str(v) for v in vs] for name, vs in grouped(owner).items()})
    assert masked(as_text, values, pa.int64()) == masked(mask, values, pa.int64())
    assert known(mask, values, pa.int64()) == [v is None or v in owner for v in values]


def test_group_at_the_ends_of_the_type_and_of_booleans():
    mask = Group({"low": [-128, -127], "high": [127], "no number": ["x"], "no byte": [4000]})
    assert masked(mask, [-128, -126, 127, None], pa.int8()) == ["low", "*", "high", None]
    assert masked(Group({"yes": [True]}, "keep"), [True, False], pa.bool_()) == ["yes", "false"]
    assert masked(Group({"g": ["x"]}), [1, None], pa.int64()) == ["*", None]


def test_a_mapping_keeps_the_order_of_the_rows():
    """Lists of values may become joins inside the engine, which would shuffle the rows."""
    many = {f"g{i % 7}": [f"k{j}" for j in range(i, 300, 7)] for i in range(7)}
    table = ibis.memtable(pa.table({"v": pa.array(["k1"])}))
    sql = ibis.to_sql(table.select(x=Group(many).expression(table.v)), dialect="duckdb")
    assert " IN (" not in str(sql)


@given(
    lists(texts),
    st.integers(8, 64),
    st.binary(min_size=16, max_size=150).filter(lambda b: b.strip(b"\r\n") == b),
)
def test_tokens_equal_hmac(tmp_path_factory, values, length, key):
    path = tmp_path_factory.getbasetemp() / "masks_token_key"
    path.write_bytes(key + b"\n")
    mask = Tokenise(key_file=str(path), length=length)
    expected = [
        None if v is None else hmac.new(key, v.encode(), hashlib.sha256).hexdigest()[:length]
        for v in values
    ]
    assert masked(mask, values, pa.string()) == expected


def test_tokens_of_integers_and_uuids(monkeypatch):
    monkeypatch.setenv("MASKS_KEY", KEY)
    mask = Tokenise(key_env="MASKS_KEY")

    def token(text):
        return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]

    assert masked(mask, [-5, 2**62, None], pa.int64()) == [token("-5"), token(str(2**62)), None]
    value = uuid.UUID(int=7)
    table = ibis.memtable(pa.table({"v": pa.array([str(value)])}))
    column = table.v.cast("uuid")
    assert Kind.of(column.type()) is Kind.TEXT
    assert str(mask.expression(column).type()) == "string"


def test_the_key_is_never_part_of_the_mask(monkeypatch):
    monkeypatch.setenv("MASKS_KEY", KEY)
    mask = Tokenise(key_env="MASKS_KEY")
    mask.expression(ibis.table({"v": "string"}, name="t").v)
    assert KEY not in f"{mask!r} {mask} {mask.spec()} {vars(mask)}"


@pytest.mark.parametrize(("key", "trouble"), [(None, "no key"), ("", "no key")])
def test_a_missing_key_is_a_policy_error(monkeypatch, tmp_path, key, trouble):
    monkeypatch.delenv("MASKS_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("MASKS_KEY", key)
    column = ibis.table({"v": "string"}, name="t").v
    with pytest.raises(PolicyError, match="no key in environment variable 'MASKS_KEY'"):
        Tokenise(key_env="MASKS_KEY").expression(column)
    with pytest.raises(PolicyError, match="cannot read the key"):
        Tokenise(key_file=str(tmp_path / "absent")).expression(column)
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(PolicyError, match=trouble):
        Tokenise(key_file=str(tmp_path / "empty")).expression(column)
