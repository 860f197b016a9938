"""Ranges: what a mask shows in the order of its values, against the values themselves."""

from __future__ import annotations

from datetime import date, timedelta
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.policy import load_policy
from aegis.summary import RANGES, AttributeSummary, Candidate, merge, summarize
from aegis.summary.attributes import cut_further, neighbours, share_within

MASKS = [
    "identity",
    {"bucketize": {"width": 3}},
    {"bucketize": {"width": 6}},
    {"bucketize": {"width": 12}},
    {"keep_frequent": {"count": 4}},
    "suppress",
]
values = st.lists(st.none() | st.integers(0, 40), min_size=12, max_size=80)


def table_of(column: list[Any]) -> pa.Table:
    numeric = column[0] is None or isinstance(column[0], int)
    return pa.table(
        {
            "a": pa.array(column, pa.int64() if numeric else None),
            "y": ["p" if i % 3 else "q" for i in range(len(column))],
        }
    )


def policy_of(masks: Any) -> Any:
    attributes = {"a": {"role": "feature", "masks": masks}}
    return load_policy({"version": 1, "label": "y", "attributes": attributes})


def attribute_of(column: list[Any], max_levels: int, masks: Any = MASKS) -> AttributeSummary:
    return summarize(table_of(column), policy_of(masks), max_levels=max_levels).attributes["a"]


def by_value(attribute: AttributeSummary, candidate: Candidate) -> dict[Any, int]:
    """Return the range that each value ends up in."""
    assert candidate.ranges is not None
    ranges = candidate.ranges[attribute.atoms]
    return dict(zip(attribute.values.to_pylist(), ranges.tolist(), strict=True))


@given(column=values)
def test_few_groups_keep_ranges_of_their_own_in_order(column):
    # Of 42 values a mask of width 3 shows 15 groups at most, which is below 32.
    attribute = attribute_of(column, 128, MASKS[1:])
    for candidate in attribute.candidates:
        told = by_value(attribute, candidate)
        shown = dict(zip(attribute.values.to_pylist(), candidate.groups.tolist(), strict=True))
        rank = {value: i for i, value in enumerate(attribute.values.to_pylist())}
        place = {
            group: np.mean([rank[v] for v in rank if shown[v] == group])
            for group in set(shown.values())
        }
        assert len(set(told.values())) == candidate.size
        for one in told:
            for two in told:
                if place[shown[one]] < place[shown[two]] - 1e-12:
                    assert told[one] < told[two]
                assert (told[one] == told[two]) == (shown[one] == shown[two])


@given(column=values, most=st.integers(2, 6))
def test_no_more_is_told_than_the_mask_shows(column, most):
    attribute = attribute_of(column, most)
    for candidate in (*attribute.candidates, attribute.unmasked):
        told = by_value(attribute, candidate)
        shown = dict(zip(attribute.values.to_pylist(), candidate.groups.tolist(), strict=True))
        known: dict[int, int] = {}
        for value, group in shown.items():
            assert known.setdefault(group, told[value]) == told[value]
        assert set(told.values()) == set(range(min(most, len(set(told.values())))))


@given(column=values, most=st.integers(2, 40), others=st.lists(st.sampled_from(MASKS), max_size=3))
def test_ranges_do_not_depend_on_other_candidates(column, most, others):
    alone = attribute_of(column, most, ["identity"])
    among = attribute_of(column, most, ["identity", *(m for m in others if m != "identity")])
    wanted = by_value(alone, alone.candidates[0])
    assert by_value(among, among.candidates[0]) == wanted
    assert by_value(among, among.unmasked) == wanted


def test_text_has_no_ranges():
    attribute = attribute_of(["x", "y", "x", "z"], 128, ["identity"])
    assert attribute.candidates[0].ranges is None


def test_dates_are_cut_as_numbers_are():
    days = [date(2026, 1, 1) + timedelta(days=i) for i in range(100)]
    attribute = attribute_of(days, 128, ["identity"])
    told = list(by_value(attribute, attribute.candidates[0]).values())
    assert sorted(told) == told
    assert max(told) == RANGES - 1


counts = st.lists(st.integers(0, 6).map(lambda n: n**4), min_size=1, max_size=60)


@given(rows=counts, most=st.integers(1, 40))
def test_neighbours_share_levels_in_their_order(rows, most):
    level = neighbours(np.array(rows), most)
    assert level[0] == 0
    assert set(np.diff(level).tolist()) <= {0, 1}
    assert level[-1] < most
    if len(rows) <= most:
        assert level.tolist() == list(range(len(rows)))


def test_a_frequent_value_has_a_level_of_its_own_and_costs_the_others_none():
    rows = np.array([9, 2, 9_000, 3, 1, 4, 1, 5, 2, 6])
    assert neighbours(rows, 5).tolist() == [0, 0, 1, 2, 2, 2, 2, 3, 3, 3]


def test_equal_values_are_cut_into_equal_parts():
    assert neighbours(np.full(40, 2), 8).tolist() == np.repeat(np.arange(8), 5).tolist()


def test_a_part_follows_the_ranges_of_another():
    whole = [v % 97 for v in range(0, 400, 3)]
    policy = policy_of(["identity", {"bucketize": {"width": 2}}])
    first = summarize(table_of(whole), policy, max_levels=8)
    # 100 to 104 follow the last range, and -5 the first; all others are where they were.
    second = summarize(table_of([-5, *range(0, 105)]), policy, max_levels=8, like=first)
    own, other = first.attributes["a"], second.attributes["a"]
    for one, two in zip(own.candidates, other.candidates, strict=True):
        wanted, told = by_value(own, one), by_value(other, two)
        assert all(told[value] == wanted[value] for value in wanted)
        assert told[-5] == wanted[0] == 0
        assert told[104] == max(wanted.values())
    both = merge(first, second)
    assert both.rows == first.rows + second.rows
    joined = both.attributes["a"]
    for one, two in zip(other.candidates, joined.candidates, strict=True):
        assert by_value(joined, two) == pytest.approx(by_value(other, one))


def test_what_is_missing_is_a_range_of_its_own():
    column = [float(v) for v in range(200)] * 5
    attribute = attribute_of([*column, None, None, float("nan")], 128, ["identity"])
    ranges = list(by_value(attribute, attribute.unmasked).values())
    assert len(set(ranges[:200])) == 31
    assert ranges[200:] == [31, 31]  # NaN and null


skewed = st.lists(st.integers(0, 30).map(lambda n: n**5), min_size=2, max_size=12, unique=True)


@given(numbers=skewed, data=st.data())
def test_each_further_cut_is_the_best_of_all(numbers, data):
    x = np.sort(np.array(numbers, dtype=np.float64))
    rows = np.array([data.draw(st.integers(1, 9)) for _ in numbers], dtype=np.float64)
    ranges = np.zeros(len(x), dtype=np.int32)

    def missed(of):
        means = np.bincount(of, rows * x) / np.bincount(of, rows)
        return float(rows @ (x - means[of]) ** 2)

    for most in range(2, len(x) + 1):
        cuts = [i for i in range(1, len(x)) if ranges[i] == ranges[i - 1]]
        best = min(missed(ranges + (np.arange(len(x)) >= i)) for i in cuts)
        ranges = cut_further(ranges, rows, x, most)
        assert ranges.max() == most - 1
        assert missed(ranges) == pytest.approx(best, rel=1e-9, abs=1e-6)


def test_the_largest_numbers_are_told_apart():
    column = [*range(2_000), 10_000, 20_000, 40_000, 80_000]
    attribute = attribute_of(column, 128, ["identity"])
    told = by_value(attribute, attribute.unmasked)
    assert len({told[value] for value in column[-4:]} | {told[1_999]}) == 5
    assert max(told.values()) == RANGES - 1


@pytest.mark.parametrize("shape", ["uniform", "normal", "exponential"])
def test_ranges_of_the_usual_distributions_lose_little_variance(shape):
    shares = (np.arange(2_000) + 0.5) / 2_000
    numbers = {
        "uniform": shares,
        "normal": np.array([NormalDist(100, 15).inv_cdf(share) for share in shares]),
        "exponential": -np.log(1 - shares),
    }[shape]
    attribute = attribute_of(numbers.tolist(), 128, ["identity"])
    ranges = np.array(list(by_value(attribute, attribute.unmasked).values()), dtype=np.int32)
    assert share_within(ranges, np.ones(2_000), numbers) < 0.003


@given(column=values.filter(lambda of: any(v is not None for v in of)), seed=st.integers(0, 9))
def test_ranges_do_not_depend_on_the_order_of_rows_or_on_infinities(column, seed):
    numbers = [None if v is None else float(v) ** 3 for v in column] + [float("inf")]
    other = np.random.default_rng(seed).permutation(len(numbers))
    first, second = (
        summarize(
            pa.table({"a": of, "y": ["p", *["q"] * (len(of) - 1)]}),
            policy_of(["identity"]),
            max_levels=6,
        ).attributes["a"]
        for of in (
            pa.array(numbers, pa.float64()),
            pa.array([numbers[i] for i in other], pa.float64()),
        )
    )
    assert by_value(first, first.unmasked) == by_value(second, second.unmasked)
