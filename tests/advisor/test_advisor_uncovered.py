"""What a rule does not cover: rows that other columns single out, near keys, the label in disguise."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.advisor.uncovered import label_share
from aegis.errors import PolicyError
from aegis.sources import open_table

ROWS = 120


def table() -> pa.Table:
    random = np.random.default_rng(4)
    y = random.integers(0, 2, ROWS)
    return pa.table(
        {
            "age": random.integers(20, 40, ROWS),
            "twin": [f"code-{v}" for v in y],
            "note": [f"n{i}" for i in range(ROWS)],
            "y": y,
        }
    )


def policy(**changes: Any) -> aegis.Policy:
    masks = ["identity", {"bucketize": {"width": 5}}, "suppress"]
    return aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 3, "suppression": 0.1},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": masks},
                "twin": {"role": "feature"},
                "note": {"role": "feature"},
            },
        }
        | changes
    )


def test_what_stands_outside_the_rule_is_named() -> None:
    study = aegis.Study(table(), policy())
    advice = study.search()
    told = advice.uncovered
    assert told.near_keys == {"note": ROWS}
    assert set(told.leaks) == {"twin"}
    assert told.leaks["twin"] == pytest.approx(1)
    assert told.unique_rows == told.released_rows == study.apply(advice).released_rows
    assert all(sentence in advice.warnings for sentence in told.sentences)
    assert "may hold the label in other words" in aegis.render_report(advice)
    assert advice.to_dict()["uncovered"]["unique_rows"] == told.unique_rows


def test_what_is_left_out_is_neither_scored_nor_released() -> None:
    left = policy().without(["note", "twin"])
    study = aegis.Study(table(), left)
    advice = study.search()
    assert set(advice.best.attributes) == {"age"}
    assert not advice.uncovered.near_keys
    assert not advice.uncovered.leaks
    assert study.apply(advice).data.column_names == ["age", "y"]
    with pytest.raises(PolicyError, match="Did you mean 'twin'"):
        policy().without(["twim"])


def test_listed_configurations_lose_what_is_left_out() -> None:
    listed = {"c": {"age": "suppress", "twin": "identity", "note": "suppress"}}
    left = policy(configurations=listed).without(["note"])
    assert set(left.configurations["c"].masks) == {"age", "twin"}
    assert aegis.advise(table(), left).best.name == "c"


def test_a_summary_alone_names_columns_but_no_rows() -> None:
    advice = aegis.search(aegis.summarize(table(), policy()), policy())
    assert advice.uncovered.unique_rows is None
    assert set(advice.uncovered.near_keys) == {"note"}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 1)), min_size=4))
def test_unique_rows_are_those_that_nothing_equals(rows: list[tuple[int, int, int]]) -> None:
    rows = [*rows, (0, 0, 0), (1, 1, 1)]
    given_table = pa.table(
        dict(zip(("a", "b", "y"), map(list, zip(*rows, strict=True)), strict=True))
    )
    given_policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 0.9},
            "attributes": {
                "a": {"role": "quasi-identifier", "masks": ["identity"]},
                "b": {"role": "feature"},
            },
        }
    )
    study = aegis.Study(open_table(given_table), given_policy)
    sizes = Counter(a for a, _, _ in rows)
    left = Counter(row for row in rows if sizes[row[0]] >= 2)
    told = study.rank().uncovered
    if not study.rank().best:
        assert told.unique_rows is None
        return
    assert told.released_rows == sum(left.values())
    assert told.unique_rows == sum(n for n in left.values() if n == 1)


@pytest.mark.parametrize("person", [None, "who"])
def test_columns_may_have_the_names_of_counts(person: str | None) -> None:
    columns = {"n": [1, 1, 2, 2, 1], "p": [0, 0, 0, 1, 1], "y": [0, 0, 0, 1, 1]}
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                "n": {"role": "quasi-identifier", "masks": ["identity"]},
                "p": {"role": "feature"},
            },
            "privacy": {"k": 2},
        }
        | ({} if person is None else {"person": person})
    )
    given_table = pa.table(columns | {"who": [1, 2, 3, 4, 5]})
    told = aegis.Study(given_table, rules).search().uncovered
    assert (told.released_rows, told.unique_rows) == (5, 3)


@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_share_lies_between_nothing_and_all(joint: list[list[int]]) -> None:
    assert 0 <= label_share(np.array(joint)) <= 1 + 1e-12


def test_the_share_of_a_key_is_nothing_and_of_a_copy_all() -> None:
    assert label_share(np.eye(2, dtype=int) * 50) == pytest.approx(1)
    assert label_share(np.ones((5, 2), dtype=int)) == 0
    alone = np.zeros((60, 2), dtype=int)
    alone[np.arange(60), np.arange(60) % 2] = 1
    assert label_share(alone) == 0  # one row per value: all of it is chance
