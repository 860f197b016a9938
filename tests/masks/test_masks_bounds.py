"""Learnt bounds name nobody: each is held by enough rows, or is the end of a round interval of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import PolicyError
from aegis.masks import SHARED_ROWS, Kind, ValueCounts, parse_mask
from aegis.masks.arithmetic import shared_range

NUMBERS = st.lists(
    st.integers(-1000, 1000) | st.floats(-1e6, 1e6).map(lambda x: round(x, 2)),
    min_size=1,
    max_size=40,
    unique=True,
)


def round_steps() -> list[Fraction]:
    return [f * Fraction(10) ** e for e in range(-8, 9) for f in (1, 2, 5)]


def shared(values: np.ndarray, counts: np.ndarray, low: Fraction, rows: int) -> bool:
    """Whether enough rows hold the bound, or lie in some round interval that starts there."""
    exact = [Fraction(repr(float(v))) for v in values]
    if low == exact[0] and counts[0] >= rows:
        return True
    span = exact[-1] - exact[0]
    for step in round_steps():
        if low % step == 0 and low <= exact[0] < low + step:
            inside = sum(int(n) for v, n in zip(exact, counts, strict=True) if v < low + step)
            if inside >= rows or step >= span:
                return True
    return False


@given(values=NUMBERS, data=st.data())
def test_bounds_lie_outside_and_are_shared(values: list[float], data: st.DataObject) -> None:
    numbers = np.array(sorted(map(float, values)))
    counts = np.array(
        data.draw(st.lists(st.integers(1, 15), min_size=len(numbers), max_size=len(numbers)))
    )
    low, high = shared_range(numbers, counts, SHARED_ROWS)
    assert float(low) <= numbers[0]
    assert float(high) >= numbers[-1]
    assert shared(numbers, counts, low, SHARED_ROWS)
    assert shared(-numbers[::-1], counts[::-1], -high, SHARED_ROWS)


def column(values: list[object], kind: Kind = Kind.INTEGER) -> ValueCounts:
    array = pa.array(values)
    return ValueCounts(kind, array, np.ones(len(values), dtype=np.int64))


def test_the_largest_salary_is_not_shown() -> None:
    """Edges gave it away: with two intervals, twice the edge less the least value."""
    salaries = [*range(30_000, 60_000, 1000), 1_234_567]
    mask = parse_mask({"equal_width": {"count": 2}}).fit(column(salaries))
    assert mask.parameters()["edges"] == [1_000_000]  # half way from 0 to 2,000,000
    other = parse_mask({"equal_width": {"count": 2}}).fit(column([*salaries[:-1], 1_999_999]))
    assert mask == other


def test_values_that_many_hold_are_bounds_themselves() -> None:
    data = ValueCounts(Kind.INTEGER, pa.array([17, 40, 90]), np.array([300, 5, 40]))
    assert parse_mask({"equal_width": {"count": 2}}).fit(data).parameters()["edges"] == [54]


def test_the_earliest_date_is_not_shown() -> None:
    days = pa.array([7123, *range(18_000, 18_400)], pa.int32()).cast(pa.date32())
    data = ValueCounts(Kind.DATE, days, np.ones(len(days), dtype=np.int64))
    lower = parse_mask({"date_noise": {"days": 14}}).fit(data).parameters()["lower"]
    moved = pa.array([9000, *range(18_000, 18_400)], pa.int32()).cast(pa.date32())
    same = ValueCounts(Kind.DATE, moved, data.counts)
    assert parse_mask({"date_noise": {"days": 14}}).fit(same).parameters()["lower"] == lower


def test_declared_bounds_stay() -> None:
    spec = {"date_noise": {"days": 3, "lower": "2020-01-01", "upper": "2021-01-01"}}
    data = column([18_000, 18_100])
    assert parse_mask(spec).fit(data) == parse_mask(spec)


def test_noise_on_numbers() -> None:
    values = [*map(float, range(100)), 1234.5]
    mask = parse_mask({"add_uniform": {"amount": 2}}).fit(column(list(values), Kind.NUMBER))
    other = parse_mask({"add_uniform": {"amount": 2}}).fit(
        column([*values[:-1], 1999.5], Kind.NUMBER)
    )
    assert mask.parameters()["upper"] == other.parameters()["upper"] >= 2002


def test_keys_that_can_be_guessed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import ibis

    text = ibis.table({"a": "string"})["a"]
    monkeypatch.setenv("SHORT_KEY", "hunter2")
    with pytest.raises(PolicyError, match="has 7 bytes, which can be guessed"):
        parse_mask({"tokenise": {"key_env": "SHORT_KEY"}}).expression(text)
    (tmp_path / "key").write_bytes(b"x" * 16 + b"\n")
    parse_mask({"tokenise": {"key_file": str(tmp_path / "key")}}).expression(text)


def test_the_certificate_says_what_is_learnt(tmp_path: Path) -> None:
    import aegis

    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {
                "a": {"role": "quasi-identifier", "masks": [{"equal_width": {"count": 2}}]},
                "b": {"role": "feature"},
            },
        }
    )
    table = pa.table({"a": list(range(40)), "b": [1] * 40, "y": ["u", "v"] * 20})
    advice = aegis.advise(table, policy, generate_count=1)
    release = aegis.apply(
        table,
        policy,
        advice.require_best().configuration,
        output=tmp_path / "m.parquet",
        certificate=tmp_path / "c.json",
    )
    assert release.certificate is not None
    said = release.certificate["learnt_bounds"]
    assert list(said) == ["a"]
    assert "at least 11 rows" in said["a"]


@pytest.mark.parametrize(("rule", "rows"), [({"k": 2}, 11), ({"k": 30}, 30)])
@pytest.mark.parametrize(
    "spec",
    [{"equal_width": {"count": 3}}, {"add_uniform": {"amount": 1}}, {"date_noise": {"days": 1}}],
)
def test_as_many_rows_share_a_bound_as_the_rule_asks_for(
    tmp_path: Path, rule: dict[str, int], rows: int, spec: dict[str, Any]
) -> None:
    """Twelve rows at one end: enough for eleven, too few for thirty."""
    import aegis

    values = [*[101] * 12, *range(150, 250), *[999] * 40]
    days = pa.array(values, pa.int32()).cast(pa.date32())
    dated = "date_noise" in spec
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": rule,
            "attributes": {
                "a": {"role": "feature", "masks": [spec]},
                "q": {"role": "quasi-identifier"},
            },
        }
    )
    table = pa.table(
        {
            "a": days if dated else values,
            "q": ["one"] * len(values),
            "y": ["u", "v"] * (len(values) // 2),
        }
    )
    summary = aegis.summarize(table, policy)
    fitted = summary.attributes["a"].candidates[0].mask
    data = ValueCounts(summary.attributes["a"].kind, *value_counts(table["a"]), rows)
    assert fitted == parse_mask(spec).fit(data)
    other = ValueCounts(data.kind, data.values, data.counts, 41 - rows)
    assert fitted != parse_mask(spec).fit(other)
    configuration = aegis.Configuration("one", {"a": parse_mask(spec), "q": parse_mask("identity")})
    release = aegis.apply(
        table, policy, configuration, output=tmp_path / "m.parquet", certificate=tmp_path / "c.json"
    )
    assert release.configuration.masks["a"] == fitted
    assert release.certificate is not None
    assert f"at least {rows} rows hold" in release.certificate["learnt_bounds"]["a"]


def value_counts(column: pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    counted = column.combine_chunks().value_counts()
    order = pa.compute.sort_indices(counted.field(0))
    return counted.field(0).take(order), counted.field(1).take(order).to_numpy()


def test_a_stricter_rule_is_no_use_of_bounds_that_fewer_rows_share() -> None:
    """A study under another rule reads the table again where masks have learnt bounds."""
    from dataclasses import replace

    import aegis
    from aegis.privacy import PrivacyRule

    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {
                "a": {"role": "quasi-identifier", "masks": [{"equal_width": {"count": 2}}]},
            },
        }
    )
    study = aegis.Study(
        pa.table({"a": [*[101] * 12, *range(150, 250)], "y": ["u", "v"] * 56}), policy
    )
    summary = study.summary
    alike = study.under(replace(policy, privacy=PrivacyRule.parse({"k": 11})))
    assert alike.summary is summary
    stricter = study.under(replace(policy, privacy=PrivacyRule.parse({"k": 13})))
    assert stricter.summary.shared_rows == 13
    [before], [after] = (s.attributes["a"].candidates for s in (summary, stricter.summary))
    assert before.mask != after.mask
