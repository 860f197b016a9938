"""Counts that are sums of weights: those of repeated rows, the same from every way of counting."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bundle_support import assert_same
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.errors import DataError, PolicyError
from aegis.policy import dump_policy, load_policy
from aegis.policy.lines import read_yaml
from aegis.summary import builder, load_bundle, merge, save_bundle, summarize, withhold
from aegis.summary.bundle.check import check_summary
from aegis.summary.responses import NumberUnit
from aegis.summary.weights import WeightSums

ROWS = 120
WEIGHTS = st.lists(st.integers(0, 9), min_size=ROWS, max_size=ROWS).filter(any)


def policy(label: Any = "y", **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "label": label,
        "weight": "w",
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 9}}]},
            "town": {"role": "feature"},
        },
        **more,
    }


NUMBER = policy({"column": "price", "kind": "number"})
UNWEIGHTED = {key: value for key, value in policy(person="id").items() if key != "weight"}


def table(weights: Any = None) -> pa.Table:
    draw = np.random.default_rng(3)
    age, town = draw.integers(20, 50, ROWS), draw.choice(list("abc"), ROWS)
    y = [None if i % 40 == 7 else str(v) for i, v in enumerate((age > 35).tolist())]
    price = np.round(draw.gamma(2, 50, ROWS) + age, 2)
    own = draw.integers(1, 30, ROWS) / 4 if weights is None else weights
    columns = {"age": age, "town": town, "y": y, "price": price, "id": np.arange(ROWS)}
    return pa.table({**columns, "w": pa.array(own)})


def repeated(rows: pa.Table) -> pa.Table:
    times = rows["w"].to_numpy()
    return rows.take(np.repeat(np.arange(len(rows)), times))


@given(weights=WEIGHTS)
def test_a_weight_counts_as_so_many_equal_rows(weights: list[int]) -> None:
    rows = table([w + 1 for w in weights])
    one = summarize(rows, policy(person="id"))
    two = summarize(repeated(rows), UNWEIGHTED)
    assert one.rows == ROWS
    for left, right in zip(one.attributes.values(), two.attributes.values(), strict=True):
        assert np.array_equal(left.joint, right.joint)
        assert left.counts.sum() == ROWS
    assert one.label.weighted.tolist() == two.label.counts.tolist()
    for pair in one.pairs.index:
        assert np.array_equal(one.pairs.index[pair], two.pairs.index[pair])
        assert np.array_equal(one.pairs.count[pair], two.pairs.count[pair])
    left, right = one.pairs.folds, two.pairs.folds
    assert left is not None
    assert right is not None
    assert np.array_equal(left.rows, right.rows)
    for own, other in zip(left.atom_counts, right.atom_counts, strict=True):
        assert np.array_equal(own, other)


def test_sums_of_a_number_are_those_of_repeated_rows() -> None:
    rows = table(np.arange(ROWS) % 5 + 1)
    one = summarize(rows, {**NUMBER, "person": "id"})
    unweighted = {key: value for key, value in NUMBER.items() if key != "weight"}
    two = summarize(repeated(rows), {**unweighted, "person": "id"})
    left, right = one.pairs.responses, two.pairs.responses
    assert left is not None
    assert right is not None
    assert left.squares == right.squares
    assert left.total.tolist() == right.total.tolist()
    for own, other in zip(left.sums, right.sums, strict=True):
        assert own.tolist() == other.tolist()
    assert one.number is not None
    assert two.number is not None
    for name in ("mean", "deviation"):
        assert one.number[name] == two.number[name]


@given(seed=st.integers(0, 10**6))
def test_rows_of_weight_zero_count_in_classes_and_in_no_score(seed: int) -> None:
    weights = np.maximum(np.random.default_rng(seed).integers(-5, 10, ROWS), 0).tolist()
    rows = table(weights)
    one = summarize(rows, policy())
    rest = summarize(rows.filter(pa.array([w > 0 for w in weights])), policy())
    assert one.weights is not None
    assert one.weights.zeros == weights.count(0)
    assert one.frequency is not None
    assert one.frequency.rows == ROWS
    assert one.label.weighted.sum() == rest.label.weighted.sum()
    for pair in one.pairs.count:
        assert (one.pairs.count[pair] > 0).all()
        assert np.array_equal(np.sort(one.pairs.count[pair]), np.sort(rest.pairs.count[pair]))
    check_summary(one)


@pytest.mark.parametrize(
    "declared", [policy(), NUMBER, policy(None)], ids=["classes", "number", "none"]
)
def test_every_way_of_counting_gives_the_same(
    declared: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {key: value for key, value in declared.items() if value is not None}
    rows = table()
    whole = summarize(rows, declared)
    assert whole.weights is not None
    assert whole.weights.unit == NumberUnit(10, 2)
    order = np.random.default_rng(0).permutation(ROWS)
    assert_same(summarize(rows.take(order), declared), whole)
    monkeypatch.setattr(builder, "WIDE", 1)
    wide = summarize(rows, declared)
    assert_same(wide, whole)
    one, two = wide.in_effective_rows().pairs, whole.in_effective_rows().pairs
    assert np.array_equal(one.total, two.total)
    monkeypatch.setattr(builder, "read_rows", lambda *_: None)
    monkeypatch.setattr(builder, "SAMPLE_ROWS", 17)
    assert_same(summarize(rows, declared, sample_rows=ROWS), whole)


@pytest.mark.parametrize("declared", [policy(), NUMBER], ids=["classes", "number"])
def test_parts_add_up_and_a_bundle_gives_back_what_went_in(
    declared: dict[str, Any], folder: Path
) -> None:
    rows = table()
    first = summarize(rows.slice(0, 70), declared)
    parts = [first, summarize(rows.slice(70), declared, like=first)]
    both = merge(*parts)
    whole = summarize(rows, declared)
    assert whole.weights is not None
    assert both.weights == whole.weights
    assert both.number == whole.number
    for left, right in zip(both.attributes.values(), whole.attributes.values(), strict=True):
        assert np.array_equal(left.joint, right.joint)
    assert_same(merge(*parts[::-1]), both)
    save_bundle(both, folder / "a.aegis", force=True)
    loaded = load_bundle(folder / "a.aegis")
    assert_same(loaded, both)
    save_bundle(loaded, folder / "b.aegis", force=True)
    assert (folder / "a.aegis").read_bytes() == (folder / "b.aegis").read_bytes()


def test_parts_of_other_decimals_add_up() -> None:
    weights = [np.arange(ROWS) % 7 + 1.0, np.arange(ROWS) % 5 + 0.25]
    parts = [summarize(table(own), policy()) for own in weights]
    assert [p.weights.unit for p in parts if p.weights] == [NumberUnit(10, 0), NumberUnit(10, 2)]
    both = merge(*parts)
    assert both.weights is not None
    assert both.weights.population == pytest.approx(float(np.sum(weights)), rel=1e-14)
    assert both.pairs.weights is not None
    assert both.pairs.weights.total == both.weights.labelled.total
    check_summary(both)


def test_sums_of_weights_beyond_floats_add_up_exactly() -> None:
    large = np.arange(ROWS) * 2.0 + 2**30 + 1
    parts = [summarize(table(own), policy()) for own in (large, np.arange(ROWS) % 5 + 0.0000001)]
    both = merge(*parts, parts[0])
    assert both.pairs.weights is not None
    assert both.pairs.weights.total > 2**53
    for pair in both.pairs.index:
        *_, rows = both.pairs.cells(*pair)
        assert sum(rows.tolist()) == both.pairs.weights.total
    assert [int(joint.sum()) for joint in both.pairs.atom_counts] == [both.pairs.weights.total] * 2
    check_summary(both)


def test_what_masks_do_not_show_is_left_out() -> None:
    summary = summarize(table(), policy())
    coarse = withhold(summary, "nothing")
    assert coarse.pairs.weights == summary.pairs.weights
    assert coarse.in_effective_rows().pairs.n == summary.in_effective_rows().pairs.n


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([0.0] * ROWS, "is 0 in every row"),
        ([1.0, -1.0] * 60, "is below 0 in 60 rows"),
        ([1.0, None, 2.0] * 40, "is null in 40 rows"),
        ([1.0, float("inf")] * 60, "is infinite in 60 rows"),
        ([float("nan"), 1.0] * 60, "is null in 60 rows"),
        (["a"] * ROWS, "row 1 is 'a', which is not a number"),
    ],
)
def test_what_is_no_weight_is_refused(weights: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        summarize(table(weights), policy())


def test_rows_with_a_label_need_a_weight() -> None:
    with pytest.raises(DataError, match="All rows with a label have a weight 'w' of 0"):
        summarize(table([float(i % 40 == 7) for i in range(ROWS)]), policy())


def test_a_weight_has_no_other_part() -> None:
    assert load_policy(dump_policy_of(policy())).weight == "w"
    for changed, problem in (
        (policy(label="w"), "is the label and is the weight"),
        (policy(person="w"), "names persons and is the weight"),
    ):
        with pytest.raises(PolicyError, match=problem):
            load_policy(changed)
    protected = policy(privacy={"l_diversity": {"attribute": "w", "kind": "distinct", "l": 2}})
    protected["attributes"]["w"] = {"role": "sensitive", "masks": ["suppress"]}
    with pytest.raises(PolicyError, match="is protected by the rule and is the weight"):
        load_policy(protected)
    shown = policy()
    shown["attributes"]["w"] = {"role": "feature"}
    with pytest.raises(
        PolicyError, match=r"'w' contains the weights of rows, and its mask `identity`"
    ):
        load_policy(shown)
    shown["attributes"]["w"]["masks"] = [{"bucketize": {"width": 5}}, "suppress"]
    assert load_policy(shown).attributes["w"].scored
    with pytest.raises(DataError, match=r"No column 'pw' .*the policy's weight"):
        summarize(table(), policy(weight="pw"))


def dump_policy_of(declared: dict[str, Any]) -> Any:
    return read_yaml(dump_policy(load_policy(declared)), "policy").data


@given(weights=st.lists(st.integers(0, 2**31), min_size=1, max_size=30).filter(any))
def test_effective_rows(weights: list[int]) -> None:
    sums = WeightSums.of(np.array(weights, dtype=np.int64))
    assert (sums.total, sums.squares) == (sum(weights), sum(w * w for w in weights))
    exact = Fraction(sums.total**2, sums.squares)
    assert sums.effective == pytest.approx(float(exact), rel=1e-15)
    assert sums.rows == pytest.approx(sums.effective, rel=1e-4)
    rows = sums.in_rows(np.array(weights, dtype=np.int64))
    assert float(rows.sum()) == sums.rows  # exactly: counts by level add up to all rows


def test_weights_that_sum_to_one_are_kept() -> None:
    own = np.random.default_rng(1).random(ROWS)
    summary = summarize(table(own / own.sum()), policy())
    assert summary.weights is not None
    assert summary.weights.population == pytest.approx(1, rel=1e-6)
    assert aegis.Study(table(own / own.sum()), policy()).advise().best.score > 0.5
