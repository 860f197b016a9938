"""A protected summary with fewer candidates scores what is left as the whole one does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import aegis
from aegis.errors import PolicyError
from aegis.safe.protect import ProtectedScorer, narrowed, protect, rank_protected

POLICY = {
    "version": 1,
    "label": "y",
    "attributes": {
        name: {
            "role": "feature",
            "masks": ["identity", {"keep_frequent": {"count": 2}}, "suppress"],
        }
        for name in "abc"
    },
}


@pytest.fixture(scope="module", params=["noise", "counts"])
def summary(request):
    draw = np.random.default_rng(5)
    table = pd.DataFrame({name: draw.choice(list("uvwx"), 2000) for name in "abc"})
    table["y"] = np.where((table.a == "u") ^ (draw.random(2000) < 0.2), "p", "n")
    how = {"epsilon": 4.0, "delta": 1e-6} if request.param == "noise" else {"key": b"k" * 32}
    return protect(table, aegis.load_policy(POLICY), level=request.param, **how)


def test_what_stays_is_scored_as_before(summary):
    masks = {name: [c.declared for c in a.candidates] for name, a in summary.attributes.items()}
    some = narrowed(summary, {"a": masks["a"][1:], "b": masks["b"], "c": masks["c"][:1]})
    assert some.combinations == 2 * 3 * 1
    whole, part = ProtectedScorer(summary), ProtectedScorer(some)
    for a, b in product(range(2), range(3)):
        assert part.score((a, b, 0)) == pytest.approx(whole.score((a + 1, b, 0)))


def test_an_attribute_that_goes_is_as_if_it_was_never_there(summary):
    masks = {name: [c.declared for c in a.candidates] for name, a in summary.attributes.items()}
    without = narrowed(summary, {"a": masks["a"], "c": masks["c"]})
    assert list(without.attributes) == ["a", "c"]
    assert len(rank_protected(without, generate_count=9).ranking) == 9
    twice = narrowed(narrowed(summary, masks), {"a": masks["a"], "c": masks["c"]})
    one, other = ProtectedScorer(without), ProtectedScorer(twice)
    assert one.score((0, 0)) == pytest.approx(other.score((0, 0)))


def test_nothing_left_is_said(summary):
    with pytest.raises(PolicyError, match="No candidate"):
        narrowed(summary, {"other": []})
