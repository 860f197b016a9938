"""Traces solved from levels that configurations share, against those of the whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures_brute import cooccurrence, data

from aegis.advisor import Scorer, common_levels
from aegis.advisor.costs import mask_costs
from aegis.measures import UNPOOLED, OrderedCounts, common_factors, get
from aegis.measures.common_factors import Sharing
from aegis.measures.held_out import value_traces
from aegis.measures.ordered import levels_in_common
from aegis.policy import load_policy
from aegis.summary import summarize

measure = get("held-out-pillai")


def answers_of(monkeypatch, method):
    """Return a list to which whatever a method of `SharedBlock` returns is added."""
    answers = []
    asked = getattr(common_factors.SharedBlock, method)

    def told(*given_here):
        answers.append(asked(*given_here))
        return answers[-1]

    monkeypatch.setattr(common_factors.SharedBlock, method, told)
    return answers


@pytest.fixture(autouse=True)
def few_levels(monkeypatch):
    monkeypatch.setattr(common_factors, "FEWEST_LEVELS", 1)
    monkeypatch.setattr(common_levels, "FEWEST_LEVELS", 1)


def in_order(counts, ordered):
    order = OrderedCounts(counts.total, counts.joint, counts.offsets, ordered)
    return replace(counts, order=order)


@given(rows=data(), drawn=st.data())
def test_what_is_shared_changes_no_figure(rows, drawn):
    codes, label = rows
    size = codes.shape[1]
    which = drawn.draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
    ordered = drawn.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    whole = in_order(cooccurrence(codes, label), ordered)
    part = in_order(cooccurrence(codes[:, which], label), [ordered[i] for i in which])
    solved = replace(whole, sharing=Sharing(levels_in_common(lambda: part), which))
    assert value_traces(solved) == pytest.approx(value_traces(whole), abs=1e-9)
    assert measure(solved) == pytest.approx(measure(whole), abs=1e-9)


def test_it_is_solved_from_what_is_shared():
    rng = np.random.default_rng(4)
    codes, label = rng.integers(0, 9, (200, 3)), rng.integers(0, 3, 200)
    codes[:, 1] //= 3
    whole, part = cooccurrence(codes, label), cooccurrence(codes[:, [2, 0]], label)
    sharing = Sharing(levels_in_common(lambda: part), [2, 0])
    given_whole = common_factors.Centred.of(whole.total, whole.joint, whole.class_totals, whole.n)
    moments = sharing.values(whole.offsets).moments(given_whole, UNPOOLED)
    assert moments is not None
    assert [len(own) for own in moments] == [len(UNPOOLED)] * 2
    assert value_traces(replace(whole, sharing=sharing)) == pytest.approx(
        value_traces(whole), abs=1e-12
    )


def test_levels_that_are_not_the_same_are_not_shared():
    rng = np.random.default_rng(5)
    codes, label = rng.integers(0, 9, (200, 2)), rng.integers(0, 2, 200)
    whole, other = cooccurrence(codes, label), cooccurrence(codes[:, :1] // 2, label)
    sharing = Sharing(levels_in_common(lambda: other), [0])
    assert value_traces(replace(whole, sharing=sharing)).tolist() == value_traces(whole).tolist()


MASKS = ["identity", {"bucketize": {"width": 4}}, {"randomised_response": {"keep": 0.5}}]


def test_a_ranking_shares_and_scores_the_same():
    rng = np.random.default_rng(6)
    columns = {
        "a": rng.integers(0, 30, 400).tolist(),
        "b": rng.integers(0, 30, 400).tolist(),
        "c": rng.integers(0, 12, 400).tolist(),
        "y": rng.choice(["p", "q"], 400).tolist(),
    }
    attributes = {name: {"role": "feature", "masks": MASKS} for name in "abc"}
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    summary = summarize(pa.table(columns), policy)
    own = [attribute.candidates for attribute in summary.all_attributes]
    choices = [{"a": own[0][0], "b": own[1][0], "c": own[2][mask]} for mask in range(len(own[2]))]
    alone, together = Scorer(summary), Scorer(summary)
    together.common.expect(choices)
    for choice in choices:
        assert together.value(choice, measure) == pytest.approx(
            alone.value(choice, measure), abs=1e-11
        )
    assert together.cooccurrence(choices[0]).sharing is not None
    assert alone.cooccurrence(choices[0]).sharing is None
    lost = Scorer(summary).lost_alone(choices[1], measure)
    whole = alone.value(alone.unmasked, measure)
    for name in "abc":
        rest = alone.value({**alone.unmasked, name: choices[1][name]}, measure)
        assert lost[name] == pytest.approx(whole - rest, abs=1e-11)


def test_levels_beside_are_solved_once_for_all_configurations(monkeypatch):
    rng = np.random.default_rng(8)
    columns = {name: rng.integers(0, 20, 600).tolist() for name in "abcd"}
    columns["y"] = rng.choice(["p", "q", "r"], 600).tolist()
    columns["e"] = [20 * (y == "p") + a for y, a in zip(columns["y"], columns["a"], strict=True)]
    masks = ["identity", {"bucketize": {"width": 5}}, {"quantiles": {"count": 3}}, "suppress"]
    attributes = {name: {"role": "feature", "masks": masks[:1]} for name in "abe"}
    attributes |= {name: {"role": "feature", "masks": masks} for name in "cd"}
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    summary = summarize(pa.table(columns), policy)
    choices = [
        {a.name: a.candidates[pick % len(a.candidates)] for a, pick in zip(own, picks, strict=True)}
        for own in [list(summary.all_attributes)]
        for picks in product([0], [0], [0], range(4), range(4))
    ]
    solved = answers_of(monkeypatch, "_of_all")
    together = Scorer(summary)
    together.common.expect(choices)
    for choice in choices:
        mine, alone = together.cooccurrence(choice), Scorer(summary).cooccurrence(choice)
        assert mine.total.tolist() == alone.total.tolist()
        assert mine.joint.tolist() == alone.joint.tolist()
        assert value_traces(mine) == pytest.approx(value_traces(alone), abs=1e-11)
        assert together.value(choice, measure) == pytest.approx(
            Scorer(summary).value(choice, measure), abs=1e-11
        )
    assert [known is not None for known in solved] == [True]


def test_the_cost_of_a_mask_is_that_of_a_table_scored_by_itself(monkeypatch):
    rng = np.random.default_rng(7)
    columns = {
        "a": rng.integers(0, 40, 500).tolist(),
        "b": rng.integers(0, 5, 500).tolist(),
        "c": rng.integers(0, 4, 500).tolist(),
        "y": rng.choice(["p", "q"], 500).tolist(),
    }
    masks = ["identity", {"bucketize": {"width": 2}}, "suppress"]
    attributes = {name: {"role": "feature", "masks": masks} for name in "abc"}
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes, "privacy": {}})
    summary = summarize(pa.table(columns), policy)
    solved = answers_of(monkeypatch, "moments")
    costs = mask_costs(summary, measure.name)
    assert any(answer is not None for answer in solved)
    for cost in costs:
        alone = Scorer(summary)
        of_name = {str(c.declared): c for c in summary.attributes[cost.attribute].candidates}
        choice = {**alone.unmasked, cost.attribute: of_name[cost.mask]}
        assert cost.score == pytest.approx(alone.value(choice, measure), abs=1e-9)
