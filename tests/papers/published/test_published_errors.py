"""Standard errors of rankings of masked tables: those of each table as it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import confidence
from aegis.papers.published import publish, rank_published
from aegis.papers.published.rank import TOO_MANY_VALUES

ROWS = 900
POLICY = {
    "version": 1,
    "label": "bought",
    "privacy": {},
    "attributes": {
        "age": {
            "role": "feature",
            "masks": [{"bucketize": {"width": 10}}, {"bucketize": {"width": 40}}],
        },
        "sex": {"role": "feature"},
    },
}
NAMES = {"M1": 10, "M2": 40}


@pytest.fixture(scope="module")
def raw():
    random = np.random.default_rng(3)
    age = random.integers(20, 60, ROWS)
    sex = random.choice(["F", "M"], ROWS)
    return pa.table(
        {"age": age, "sex": sex, "bought": (random.random(ROWS) < age / 80).astype(int)}
    )


def masked(raw, width, order=None):
    age = np.array(raw["age"]) // width * width
    table = raw.set_column(0, "age", pa.array([f"from {a}" for a in age]))
    return table if order is None else table.take(order)


def by_name(advice):
    return {r.name: r for r in advice.ranking}


@pytest.mark.parametrize("measure", ["mi", "adjusted-pillai", "held-out-pillai-values"])
def test_errors_are_those_of_the_table_as_it_is(raw, measure):
    held = publish({name: masked(raw, width) for name, width in NAMES.items()}, POLICY)
    told = by_name(rank_published(held, POLICY, measure=measure))
    policy = {
        **POLICY,
        "attributes": {name: {"role": "feature"} for name in ("age", "sex")},
        "configurations": {"plain": {"age": "identity", "sex": "identity"}},
    }
    for name, width in NAMES.items():
        truth = by_name(aegis.advise(masked(raw, width), policy, measure=measure))["plain"]
        assert told[name].stderr > 0
        assert told[name].stderr == pytest.approx(truth.stderr)


def test_rows_in_another_order_have_the_same_errors_and_tie(raw):
    order = np.random.default_rng(5).permutation(ROWS)
    held = publish({"M1": masked(raw, 10), "M2": masked(raw, 10, order)}, POLICY)
    told = by_name(rank_published(held, POLICY, measure="mi"))
    assert told["M1"].score == pytest.approx(told["M2"].score)
    assert told["M2"].stderr == pytest.approx(told["M1"].stderr)
    assert told["M1"].tied_with_best
    assert told["M2"].tied_with_best


def test_an_order_by_estimates_has_none(raw):
    ages = sorted(set(raw["age"].to_pylist()))
    mapping = {
        name: {
            "age": {
                f"from {low}": tuple(str(a) for a in ages if a // width * width == low)
                for low in sorted({a // width * width for a in ages})
            },
            "sex": {"F": ("F",), "M": ("M",)},
        }
        for name, width in NAMES.items()
    }
    held = publish(
        {name: masked(raw, width) for name, width in NAMES.items()}, POLICY, mappings=mapping
    )
    advice = rank_published(held, POLICY, measure="mi", estimate="all-evidence")
    assert {r.stderr for r in advice.ranking} == {None}


def test_why_there_are_none_is_said(raw, monkeypatch):
    monkeypatch.setattr(confidence, "EFFORT", 0)
    held = publish({name: masked(raw, width) for name, width in NAMES.items()}, POLICY)
    advice = rank_published(held, POLICY, measure="adjusted-pillai")
    assert {r.stderr for r in advice.ranking} == {None}
    assert TOO_MANY_VALUES in advice.warnings
