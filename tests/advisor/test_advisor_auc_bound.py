"""Bounds of boxes for numbers of more values than the 32 ranges that scores read of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor.search.objective import FinestBound
from aegis.advisor.search.objectives import BelowBound
from aegis.measures import MEASURES
from aegis.measures.number import explained_share
from aegis.summary import Summary, summarize
from search_support import assert_bounded, searcher_of

MASKS: dict[str, list[Any]] = {
    "age": ["identity", {"bucketize": {"width": 3}}, {"quantiles": {"count": 4}}, "suppress"],
    "town": ["identity", {"keep_frequent": {"count": 1}}, "suppress"],
}


def summary_of(age: npt.ArrayLike, town: list[str], label: list[Any]) -> Summary:
    kind = {"kind": "number"} if isinstance(label[0], float) else {}
    attributes = {n: {"role": "quasi-identifier", "masks": own} for n, own in MASKS.items()}
    policy = {"version": 1, "label": {"column": "y", **kind}, "attributes": attributes}
    return summarize(pa.table({"age": age, "town": town, "y": label}), policy)


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(60, 150),
    name=st.sampled_from(["held-out-auc", "held-out-auc(nb)", "held-out-auc(lr)", "held-out-r2"]),
)
def test_no_configuration_is_above_the_bound_of_its_box(seed: int, rows: int, name: str) -> None:
    random = np.random.default_rng(seed)
    age = random.permutation(rows)
    town = [f"t{v}" for v in random.integers(0, 4, rows)]
    number = age / 10 + random.normal(0, 4, rows)
    classes = [f"c{int(v)}" for v in number > np.median(number)]
    label = number.tolist() if name == "held-out-r2" else classes
    measure = MEASURES.get(name)
    objective = searcher_of(summary_of(age, town, label), measure, {"k": 1}).objective
    assert isinstance(objective, BelowBound)
    assert_bounded(objective, boxes=12)


def test_naive_bayes_reads_each_value_of_a_number() -> None:
    age = np.tile(np.arange(64), 20)
    label = [f"c{v % 2}" for v in age]
    summary = summary_of(age, ["t"] * len(age), label)
    found = {}
    for name in ("held-out-auc(nb)", "held-out-auc"):
        searcher = searcher_of(summary, MEASURES.get(name), {"k": 1})
        found[name] = searcher.objective.bound(searcher.problem.root), searcher.unmasked()
    bound, reached = found["held-out-auc(nb)"]
    assert bound >= reached > 0.99
    bound, reached = found["held-out-auc"]
    assert 0.9 > bound >= reached  # two neighbours share a range


def test_the_bound_of_an_r2_reads_the_ranges_of_a_number() -> None:
    random = np.random.default_rng(1)
    age = random.permutation(300)
    town, y = ["a", "b", "c"] * 100, age / 50 + random.normal(0, 2, 300)
    summary = summary_of(age, town, y.tolist())
    own = summary.attributes["age"]
    assert own.unmasked.ranges is not None
    place = {value: i for i, value in enumerate(own.values.to_pylist())}
    ranges = own.unmasked.ranges[own.atoms][[place[v] for v in age.tolist()]]
    x = np.column_stack([np.eye(int(ranges.max()) + 1)[ranges], np.eye(3)[np.arange(300) % 3]])
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    expected = 1 - (left**2).sum() / ((y - y.mean()) ** 2).sum()
    problem = searcher_of(summary, MEASURES.get("held-out-r2"), {"k": 1}).problem
    assert FinestBound(problem, explained_share).bound((1, 1)) == pytest.approx(expected, abs=1e-6)
