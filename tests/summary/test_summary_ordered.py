"""Levels in the order of their values, against the rows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.policy import load_policy
from aegis.summary import AttributeSummary, Candidate, ordered_levels, summarize

MASKS = [
    "identity",
    {"bucketize": {"width": 3}},
    {"bucketize": {"width": 6}},
    {"bucketize": {"width": 12}},
    {"keep_frequent": {"count": 4}},
    "suppress",
]
values = st.lists(st.none() | st.integers(0, 40), min_size=12, max_size=80)


def attribute_of(given_values: list[int | None], max_levels: int, masks: Any = MASKS) -> Any:
    label = ["p" if i % 3 else "q" for i in range(len(given_values))]
    table = pa.table({"a": pa.array(given_values, pa.int64()), "y": label})
    policy = load_policy(
        {"version": 1, "label": "y", "attributes": {"a": {"role": "feature", "masks": masks}}}
    )
    return summarize(table, policy, max_levels=max_levels).attributes["a"]


def by_value(attribute: AttributeSummary, candidate: Candidate, most: int) -> dict[Any, int]:
    """Return the level that each value ends up on."""
    level = ordered_levels(attribute, candidate, most)[attribute.atoms]
    return dict(zip(attribute.values.to_pylist(), level.tolist(), strict=True))


@given(given_values=values)
def test_groups_that_have_levels_of_their_own_keep_them_in_order(given_values):
    attribute = attribute_of(given_values, 128)
    for candidate in (*attribute.candidates, attribute.unmasked):
        level = by_value(attribute, candidate, 128)
        shown = dict(zip(attribute.values.to_pylist(), candidate.groups.tolist(), strict=True))
        rank = {value: i for i, value in enumerate(attribute.values.to_pylist())}
        place = {
            group: np.mean([rank[v] for v in rank if shown[v] == group])
            for group in set(shown.values())
        }
        assert len(set(level.values())) == candidate.size
        for one in level:
            for two in level:
                if place[shown[one]] < place[shown[two]] - 1e-12:
                    assert level[one] < level[two]
                assert (level[one] == level[two]) == (shown[one] == shown[two])


@given(given_values=values, most=st.integers(2, 6))
def test_no_more_is_told_than_the_mask_shows(given_values, most):
    attribute = attribute_of(given_values, most)
    for candidate in (*attribute.candidates, attribute.unmasked):
        level = by_value(attribute, candidate, most)
        shown = dict(zip(attribute.values.to_pylist(), candidate.groups.tolist(), strict=True))
        told: dict[int, int] = {}
        for value, group in shown.items():
            assert told.setdefault(group, level[value]) == level[value]
        assert len(set(level.values())) <= most
        assert set(level.values()) == set(range(len(set(level.values()))))


def test_rare_values_are_told_apart_by_coarser_masks_only():
    # 0 and 30 are frequent; identity pools the rest, which a width of 20 cuts in two.
    given_values = [0] * 20 + [30] * 20 + list(range(1, 30)) + list(range(31, 40))
    masks = ["identity", {"bucketize": {"width": 20}}]
    attribute = attribute_of(given_values, 3, masks)
    level = by_value(attribute, attribute.candidates[0], 128)
    assert (level[0], level[30]) == (0, 3)
    assert {level[v] for v in range(1, 20)} == {1}
    assert {level[v] for v in (*range(20, 30), *range(31, 40))} == {2}
    alone = attribute_of(given_values, 3, ["identity"])
    assert len(set(by_value(alone, alone.candidates[0], 128).values())) == 3


def test_more_levels_than_allowed_share_with_their_neighbours():
    attribute = attribute_of(list(range(40)) * 2, 128, ["identity"])
    level = by_value(attribute, attribute.candidates[0], 8)
    assert [level[v] for v in range(40)] == pytest.approx(np.repeat(np.arange(8), 5))
