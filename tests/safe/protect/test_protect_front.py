"""The front of privacy against utility from a protected summary, compared with all combinations."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from protect_support import POLICY, make_table

import aegis
from aegis.errors import PolicyError
from aegis.privacy.rule import rule_at
from aegis.safe.protect import ProtectedScorer, protect, search_protected
from aegis.safe.protect.model import StatedVerdict
from aegis.safe.protect.small_classes import ExpectedSmallClasses


@pytest.fixture(scope="module")
def summaries():
    policy = aegis.load_policy(yaml.safe_load(POLICY))
    table = aegis.summarize(make_table(), policy)
    counts = protect(table, policy, level="counts", key=b"k" * 32, threshold=5)
    return counts, protect(table, policy, level="noise", epsilon=8.0, delta=1e-6)


def _every(summary):
    return product(*(range(len(a.candidates)) for a in summary.attributes.values()))


def _best_of_all(summary, rule):
    """Return the highest score of all combinations that meet a rule by estimate; None if none."""
    scorer, expected = ProtectedScorer(summary), ExpectedSmallClasses(summary, rule)
    fitting = [c for c in _every(summary) if expected.under(c) <= expected.most]
    return max((scorer.score(c) for c in fitting), default=None)


@pytest.mark.parametrize("span", ["k=3,5,20,100,300", "suppression=0,0.02,0.1", "risk=0.01,0.2"])
@pytest.mark.parametrize("moments", [True, False])
@pytest.mark.parametrize("place", [0, 1])
def test_each_point_is_the_best_of_all_that_meet_its_rule_by_estimate(
    summaries, place, moments, span
):
    summary, policy = summaries[place], aegis.load_policy(yaml.safe_load(POLICY))
    summary = summary if moments else replace(summary, moments=None)
    front = search_protected(summary, policy=policy, front=span, rule_override=True).front
    assert [point.score for point in front.points] == pytest.approx(
        [
            _best_of_all(summary, rule_at(policy.privacy, front.parameter, point.value))
            for point in front.points
        ]
    )
    scorer = ProtectedScorer(summary)
    for point in front.points:
        assert point.utility_kept == scorer.utility_kept(point.score)
        assert point.score == scorer.score(summary.choose(point.configuration))
        assert (point.smallest_class, point.suppressed_rows, point.proven) == (None, None, False)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_a_stricter_rule_never_keeps_more(protected, policy, seed):
    random = np.random.default_rng(seed)
    blurred = {
        name: replace(a, table=np.rint(a.table * random.uniform(0.3, 1, a.table.shape)))
        for name, a in protected.attributes.items()
    }
    summary = replace(protected, attributes=blurred)
    front = search_protected(summary, policy=policy, front="k=3,10,50,500").front
    scores = [point.score for point in front.points if point.score is not None]
    assert scores == sorted(scores, reverse=True)


def test_the_point_of_the_policys_rule_is_the_recommendation(protected, policy):
    advice = search_protected(protected, policy=policy, front="k=3,30")
    assert advice.front.points[0].configuration.masks == advice.best.configuration.masks


def test_the_owners_statements_decide_at_the_policys_rule(protected, policy):
    """Estimates decide at the other points."""
    choice = (2, 2, 1, 1)
    stated = replace(protected, verdicts=(StatedVerdict(choice, admissible=True),))
    front = search_protected(stated, policy=policy, front="k=3,30").front
    assert stated.choose(front.points[0].configuration) == choice
    assert front.points[1].score > front.points[0].score


def test_values_weaker_than_the_owners_rule_are_left_out(protected, policy):
    study = aegis.Study(protected, policy)
    advice = study.search(front="k=2,3,5")
    assert [point.value for point in advice.front.points] == [3, 5]
    assert "The front leaves out k = 2, which is weaker" in advice.front.notes[1]
    assert [p.value for p in study.front("k=3,5").points] == [3, 5]
    allowed = aegis.Study(protected, policy, rule_override=True).front("k=2,3")
    assert [point.value for point in allowed.points] == [2, 3]
    with pytest.raises(PolicyError, match="only values that the summary does not allow"):
        study.front("k=2")


def test_a_value_that_nothing_meets_says_so(protected, policy):
    """Only suppressing all columns meets k = 2,900 of 3,000 rows; nothing meets k = 4,000."""
    front = aegis.Study(protected, policy).front("k=3,4000")
    assert front.points[1].configuration is None
    assert front.left_out == ("k = 4,000: by estimate, no configuration meets the rule.",)
    assert "by estimate" in front.notes[0]


def test_a_parameter_that_no_estimate_covers_is_refused(protected, policy):
    with pytest.raises(PolicyError, match="no front over l"):
        search_protected(protected, policy=policy, front="l=2,3")


@pytest.mark.parametrize(
    ("score", "unmasked", "kept"),
    [(0.5, 1.0, 50), (-0.1, 1.0, 0), (1.2, 1.0, 100), (0.5, 0.0, None), (0.5, -1.0, None)],
)
def test_a_share_is_from_nothing_to_all(summaries, score, unmasked, kept):
    scorer = ProtectedScorer(summaries[0])
    scorer.unmasked = unmasked
    assert scorer.utility_kept(score) == kept


def test_correlations_are_those_of_each_pair_of_attributes(protected):
    scorer = ProtectedScorer(protected)
    choice = (0,) * len(protected.attributes)
    masked = [scorer.masked(i, 0) for i in range(len(choice))]
    found = scorer._correlations(choice)
    offsets, moments = protected.offsets, protected.moments.matrix
    places = np.concatenate([[0], np.cumsum([len(m.main) for m in masked])])
    assert found.shape == (places[-1], places[-1])
    for i, j in product(range(len(choice)), repeat=2):
        if i != j:
            block = found[places[i] : places[i + 1], places[j] : places[j + 1]]
            part = moments[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            pair = np.clip(masked[i].onto.T @ part @ masked[j].onto, -1.0, 1.0)
            assert block == pytest.approx(pair, abs=1e-9)
            assert np.abs(pair).max() > 0
