"""Sums of a number to predict: exact, the same from every way of counting, and kept in a bundle."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bundle_support import assert_same

import aegis
from aegis.arrays import exact_sums
from aegis.errors import DataError, PolicyError
from aegis.policy import dump_policy, load_policy
from aegis.summary import builder, load_bundle, merge, save_bundle, summarize, withhold
from aegis.summary.responses import NumberUnit, exact_squares
from folds_by_row import folds_of

ROWS = 300


def policy(**label: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "label": {"column": "price", "kind": "number", **label},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 10}}],
            },
            "town": {"role": "feature"},
        },
    }


def table(price: Any = None) -> pa.Table:
    draw = np.random.default_rng(1)
    own = np.round(draw.gamma(2, 100, ROWS), 2) if price is None else price
    own = pa.array(own)
    if price is None:
        own = pa.array([None if i % 50 == 7 else v for i, v in enumerate(own.to_pylist())])
    return pa.table(
        {"age": draw.integers(20, 60, ROWS), "town": draw.choice(list("abc"), ROWS), "price": own}
    )


def test_sums_are_those_of_the_rows() -> None:
    rows = table()
    summary = summarize(rows, policy())
    responses = summary.pairs.responses
    assert responses is not None
    assert summary.label.unit == NumberUnit(10, 2)
    assert (summary.label.unlabelled, summary.pairs.rows) == (6, ROWS - 6)
    known = [i for i, price in enumerate(rows["price"].to_pylist()) if price is not None]
    prices = [round(100 * rows["price"][i].as_py()) for i in known]
    fold = folds_of(summary, rows, label="price")
    attribute = summary.attributes["town"]
    for place, value in enumerate(attribute.values.to_pylist()):
        for own in range(10):
            mine = [
                p
                for i, p, f in zip(known, prices, fold, strict=True)
                if f == own and rows["town"][i].as_py() == value
            ]
            assert responses.sums[1][own, attribute.atoms[place]] == sum(mine)
    squares = [sum(p * p for p, f in zip(prices, fold, strict=True) if f == o) for o in range(10)]
    assert list(responses.squares) == squares
    assert summary.number is not None
    assert summary.number["mean"] == pytest.approx(np.mean(prices) / 100, rel=1e-15)
    assert summary.number["deviation"] == pytest.approx(np.std(prices) / 100, rel=1e-12)


def test_every_way_of_counting_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table()
    whole = summarize(rows, policy())
    monkeypatch.setattr(builder, "WIDE", 1)
    assert_same(summarize(rows, policy()), whole)
    monkeypatch.setattr(builder, "read_rows", lambda *_: None)
    assert_same(summarize(rows, policy()), whole)


def test_parts_add_up_to_the_whole_and_a_bundle_gives_back_what_went_in(folder: Path) -> None:
    rows = table()
    first = summarize(rows.slice(0, 200), policy())
    parts = [first, summarize(rows.slice(200), policy(), like=first)]
    both = merge(*parts)
    assert both.number == summarize(rows, policy()).number
    assert merge(*parts[::-1]).pairs.responses is not None
    assert_same(merge(*parts[::-1]), both)
    save_bundle(both, folder / "a.aegis", force=True)
    loaded = load_bundle(folder / "a.aegis")
    assert_same(loaded, both)
    save_bundle(loaded, folder / "b.aegis", force=True)
    assert (folder / "a.aegis").read_bytes() == (folder / "b.aegis").read_bytes()


def test_parts_of_other_decimals_add_up() -> None:
    prices = [np.arange(ROWS) % 7 + 1.0, np.arange(ROWS) % 5 + 0.25]
    parts = [summarize(table(price), policy()) for price in prices]
    assert [part.label.unit for part in parts] == [NumberUnit(10, 0), NumberUnit(10, 2)]
    both = merge(*parts)
    assert both.number is not None
    assert both.number["mean"] == pytest.approx(np.mean(prices), rel=1e-14)


def test_what_masks_do_not_show_is_left_out_of_the_sums() -> None:
    summary = summarize(table(), policy())
    coarse = withhold(summary, "nothing")
    assert summary.pairs.responses is not None
    assert coarse.pairs.responses is not None
    assert coarse.number == summary.number
    for left, right in zip(coarse.pairs.responses.sums, summary.pairs.responses.sums, strict=True):
        assert (left.sum(axis=1) == right.sum(axis=1)).all()


@pytest.mark.parametrize(
    ("price", "problem"),
    [
        (["1.5", "-2"] * 150, r"is declared a number but has type string\. Convert"),
        (["1.5", "n/a"] * 150, "has type string: 'n/a' is not a number"),
        (["1.5", "inf", "1e3"] * 100, "has type string: 'inf' is not a number"),
        ([1.0, float("inf")] * 150, "has infinite values"),
        ([2.5] * ROWS, "is 2.5 in every row"),
        (pa.nulls(ROWS, pa.float64()), "is null in every row"),
        ([True, False] * 150, "is declared a number but has type boolean"),
    ],
)
def test_a_column_that_is_no_number_to_predict_is_refused(price: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        summarize(table(price), policy())


def test_a_label_is_a_number_or_has_classes() -> None:
    for more in ({"bins": 5}, {"cuts": [1, 2]}, {"classes": [1, 2]}):
        with pytest.raises(PolicyError, match="is a number to predict"):
            load_policy(policy(**more))
    with pytest.raises(PolicyError, match=r"label\.kind"):
        load_policy(policy(kind="numeric"))
    masked = policy()
    masked["attributes"]["price"] = {"role": "sensitive"}
    with pytest.raises(PolicyError, match="is a number and has the role sensitive"):
        load_policy(masked)
    protected = policy()
    protected["privacy"] = {"k": 2, "l_diversity": {"attribute": "price", "l": 2}}
    with pytest.raises(PolicyError, match="protects it by its classes"):
        load_policy(protected)


def test_noise_is_refused_with_a_number_to_predict() -> None:
    noisy = policy()
    noisy["attributes"]["age"]["masks"] = [{"add_uniform": {"amount": 2}}]
    with pytest.raises(
        PolicyError, match="the label is a number, and Aegis cannot predict R2 under noise"
    ):
        summarize(table(), noisy)


def test_the_policy_keeps_the_kind_of_its_label(folder: Path) -> None:
    declared = load_policy(policy())
    (folder / "p.yaml").write_text(dump_policy(declared), encoding="utf-8")
    assert load_policy(folder / "p.yaml").label == declared.label
    assert declared.label.is_number


def test_units_and_sums_are_exact() -> None:
    assert NumberUnit.of(np.array([0.1, 0.25]), 10) == NumberUnit(10, 2)
    assert NumberUnit.of(np.array([1e15]), 10).base == 2
    third = NumberUnit.of(np.array([1 / 3]), 10)
    assert abs(int(third.in_units(np.array([1 / 3]))[0]) * third.exact - Fraction(1 / 3)) < 1e-12
    draw = np.random.default_rng(0)
    values = draw.integers(-(1 << 40), 1 << 40, 5000)
    key = draw.integers(0, 3, 5000)
    sums = exact_sums(key, values, 3)
    assert [int(s) for s in sums] == [sum(map(int, values[key == own])) for own in range(3)]
    assert exact_squares(values) == sum(int(v) ** 2 for v in values)


def test_the_order_of_the_rows_changes_no_sum_over_folds() -> None:
    rows = table()
    order = np.random.default_rng(5).permutation(ROWS)
    one, two = (summarize(r, policy()).pairs.responses for r in (rows, rows.take(pa.array(order))))
    assert one is not None
    assert two is not None
    for left, right in zip(one.sums, two.sums, strict=True):
        assert (left.sum(axis=0) == right.sum(axis=0)).all()
    assert sum(one.squares) == sum(two.squares)
    assert aegis.Study(rows, policy()).summary.number is not None
