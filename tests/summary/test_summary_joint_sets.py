"""Attributes that a server counts together: every pair is in a set, and sums give the pair's counts."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError
from aegis.sources import open_table
from aegis.summary import pairs_in_engine, summarize
from aegis.summary.codes import code_values
from aegis.summary.pairs_in_engine import _count, _with_codes, joint_sets, read_combinations


@given(
    st.lists(st.tuples(st.integers(1, 40), st.floats(0.1, 1)), min_size=1, max_size=9),
    st.integers(0, 4000),
    st.integers(0, 40_000),
)
def test_every_pair_is_in_a_set_that_is_small_enough(
    columns: list[tuple[int, float]], most: int, largest: int
) -> None:
    sizes = [size for size, _ in columns]
    spread = [max(1, size * share) for size, share in columns]
    sets = joint_sets(sizes, spread, most, largest)
    for pair in combinations_with_replacement(range(len(sizes)), 2):
        assert any(set(pair) <= set(members) for members in sets)
    for members in sets:
        assert len(members) <= 2 or prod(sizes[i] for i in members) <= largest
        assert len(members) <= 2 or prod(spread[i] for i in members) <= most * (1 + 1e-9)
    assert len(set(sets)) == len(sets)


def test_rare_values_leave_room_for_more_attributes() -> None:
    assert len(joint_sets([100] * 6, [100] * 6, 1000, 1 << 40)) > 10
    assert joint_sets([100] * 6, [3] * 6, 1000, 1 << 40) == [(0, 1, 2, 3, 4, 5)]


@pytest.mark.parametrize("most", [0, 12, 10_000])
@given(seed=st.integers(0, 50))
def test_pairs_are_sums_of_the_counts_of_their_set(most: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    sizes, classes, folds = (3, 2, 4, 1), 2, 3
    codes = {f"a{i}": draw.integers(0, size, 60) for i, size in enumerate(sizes)}
    own = codes | {"y": draw.integers(0, classes, 60), "f": draw.integers(0, folds, 60)}
    source = open_table(pa.table({name: pa.array(v, pa.int16()) for name, v in own.items()}))
    sets = joint_sets(sizes, sizes, most, most)
    counted = set()
    for joint in _count(source, source.table, sets, sizes, classes * folds, folds):
        for i, j in joint.pairs:
            counted.add((i, j))
            rows = zip(own[f"a{i}"], own[f"a{j}"], own["y"], own["f"], strict=True)
            cells = [((a * sizes[j] + b) * classes + y) * folds + f for a, b, y, f in rows]
            index, count = np.unique(cells, return_counts=True)
            shown = joint.of((i, j))
            assert shown[0].tolist() == index.tolist()
            assert shown[1].tolist() == count.tolist()
    assert counted == set(combinations_with_replacement(range(len(sizes)), 2))


@pytest.mark.parametrize("largest", [1, 30, 1 << 62])
@pytest.mark.parametrize(("bits", "most"), [(32, 10_000), (2, 10_000), (32, 2)])
def test_combinations_are_those_of_the_labelled_rows(
    monkeypatch: pytest.MonkeyPatch, largest: int, bits: int, most: int
) -> None:
    monkeypatch.setattr(pairs_in_engine, "_LARGEST_KEY", largest)
    monkeypatch.setattr(pairs_in_engine, "_HASH_BITS", bits)
    monkeypatch.setattr(pairs_in_engine, "_MOST_HASHED", most)
    joined: list[str] = []

    def with_codes(*given: Any) -> Any:
        joined.append(given[3])
        return _with_codes(*given)

    monkeypatch.setattr(pairs_in_engine, "_with_codes", with_codes)
    draw = np.random.default_rng(1)
    texts = [["a", "b", None][i] for i in draw.integers(0, 3, 200)]
    table = pa.table(
        {
            "text": pa.array(texts),
            "number": pa.array(draw.integers(-3, 4, 200)),
            "half": pa.array([[0.5, float("nan"), None][i] for i in draw.integers(0, 3, 200)]),
            "y": pa.array([["yes", "no", None][i] for i in draw.integers(0, 3, 200)]),
        }
    )
    masks = {"role": "quasi-identifier", "masks": ["identity", "suppress"]}
    rules = {"version": 1, "label": "y", "attributes": dict.fromkeys(table.column_names[:3], masks)}
    attributes, source = summarize(table, rules).attributes, open_table(table)
    classes = pa.array(["no", "yes"])
    chunk = read_combinations(source, source.table, attributes, lambda t: t["y"], classes)
    assert bool(joined) == (bits < 32 or most < 10_000)
    labelled = table.filter(table["y"].is_valid())
    places = [
        attribute.atoms[code_values(labelled[name].combine_chunks(), attribute.values)]
        for name, attribute in attributes.items()
    ]
    expected = zip(*(p.tolist() for p in places), labelled["y"].to_pylist(), strict=True)
    shown = zip(*(c.tolist() for c in chunk.codes), chunk.label.tolist(), strict=True)
    assert Counter(shown) == Counter((*codes, int(y == "yes")) for *codes, y in expected)


@pytest.mark.parametrize("most", [10_000, 0])
def test_a_value_that_was_not_counted_is_an_error(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(pairs_in_engine, "_MOST_HASHED", most)
    rules = {
        "version": 1,
        "label": "y",
        "attributes": {"number": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
    counted = pa.table({"number": [0, 1, 2, 3] * 5, "y": ["a", "b"] * 10})
    attributes = summarize(counted, rules).attributes
    source = open_table(pa.table({"number": list(range(20)), "y": ["a", "b"] * 10}))
    with pytest.raises(DataError, match="a value that it did not have"):
        read_combinations(source, source.table, attributes, lambda t: t["y"], pa.array(["a", "b"]))
