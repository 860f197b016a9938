"""Lookups in a table, against the expression that they stand for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.masking import count_unseen, masked_table
from aegis.masks import Hierarchy, evaluate, hierarchy
from aegis.masks.hierarchy import Level
from aegis.policy import load_policy
from aegis.sources import open_table
from aegis.summary import summarize

TEXTS = [*"abcde", "", "A", "é", "7", None]
NUMBERS = [*range(-2, 8), None]


def level(known: list[Any], number: int) -> Level:
    """Return a level of a hierarchy of known values, null among them or not."""
    groups = {value: [f"g{i % 3}", f"h{(i % 3) % 2}"] for i, value in enumerate(known)}
    return Level(number, Hierarchy.from_levels(groups))


def columns(kind: pa.DataType, values: list[Any]) -> Any:
    return st.tuples(
        st.lists(st.sampled_from(values), min_size=1, max_size=9, unique=True),
        st.lists(st.sampled_from(values), min_size=1, max_size=12),
        st.just(kind),
    )


CASES = st.one_of(
    columns(pa.string(), TEXTS), columns(pa.int64(), NUMBERS), columns(pa.int8(), NUMBERS)
)


@pytest.fixture(autouse=True)
def _never_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy, "MANY", 10**9)


def both(work: Any) -> tuple[Any, Any]:
    """Return what work gives by expressions, and by lookups however few the values."""
    by_expression = work()
    hierarchy.MANY, before = 0, hierarchy.MANY
    try:
        return by_expression, work()
    finally:
        hierarchy.MANY = before


@settings(max_examples=16)
@given(CASES, st.integers(1, 2))
def test_values_are_grouped_alike(case, number):
    known, held, kind = case
    mask, values = level(known, number), pa.array(list(dict.fromkeys(held)), kind)
    [expected], [found] = both(lambda: evaluate([mask], values))
    assert found.codes.tolist() == expected.codes.tolist()
    assert found.masked_values.to_pylist() == expected.masked_values.to_pylist()


@settings(max_examples=16)
@given(CASES, st.integers(1, 2))
def test_rows_are_masked_alike_and_in_order(case, number):
    known, held, kind = case
    mask = level(known, number)
    source = open_table(
        pa.table({"v": pa.array(held, kind), "w": pa.array(held, kind), "i": range(len(held))})
    )
    masks = {"v": mask, "w": level(known, 3 - number), "i": None}
    expected, found = both(lambda: source.collect(masked_table(source, masks)).to_pylist())
    assert found == expected
    for unknown in both(lambda: count_unseen(source, masks)):
        missing = sum(v is not None and v not in known for v in held)
        assert unknown == ({"v": missing, "w": missing} if missing else {})


@settings(max_examples=10)
@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=2, max_size=20))
def test_cells_are_counted_alike(held):
    tree = {"levels": {v: [g, "all"] for v, g in zip("abcd", "xxyy", strict=True)}}
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                "v": {
                    "role": "quasi-identifier",
                    "hierarchy": tree,
                    "masks": [{"level": 1}, {"level": 2}],
                }
            },
        }
    )
    table = pa.table({"v": pa.array(held, pa.string()), "y": ["p", *["q"] * (len(held) - 1)]})
    expected, found = both(lambda: summarize(table, policy).frequency)
    assert found.counts.tolist() == expected.counts.tolist()
    for name, codes in expected.codes.items():
        assert found.codes[name].tolist() == codes.tolist()


def test_a_level_of_few_values_keeps_its_expression(monkeypatch):
    monkeypatch.setattr(hierarchy, "MANY", 3)
    kind = open_table(pa.table({"v": ["a"]})).table["v"].type()
    assert hierarchy.lookup_of(level(["a", "b"], 1), kind) is None
    assert hierarchy.lookup_of(level(["a", "b", "c"], 1), kind) is not None
    assert hierarchy.lookup_of(level(["a", "b", "c"], 0), kind) is None
