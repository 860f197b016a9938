"""The front of privacy against utility from a protected summary, held against all combinations."""

from __future__ import annotations

from collections import Counter
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
from aegis.safe.protect import ProtectedScorer, front_protected, protect
from aegis.safe.protect.ranking import _alike, _log_chances, _thinned

QUASI = ("age", "city", "sex")


@pytest.fixture(scope="module")
def summaries():
    policy = aegis.load_policy(yaml.safe_load(POLICY))
    table = aegis.summarize(make_table(), policy)
    counts = protect(table, policy, level="counts", key=b"k" * 32, threshold=5)
    return counts, protect(table, policy, level="noise", epsilon=8.0, delta=1e-6)


def rows_alike(summary, choice, quasi_identifiers):
    return _alike(summary, _log_chances(summary, quasi_identifiers), choice)


def _every(summary):
    return product(*(range(len(a.candidates)) for a in summary.attributes.values()))


@pytest.mark.parametrize("place", [0, 1])
def test_no_point_is_beaten_and_both_ends_are_there(summaries, place):
    summary = summaries[place]
    scorer = ProtectedScorer(summary)
    points = front_protected(summary, QUASI, count=40)
    chosen = [summary.choose(p.configuration) for p in points]
    assert [p.score for p in points] == [scorer.score(c) for c in chosen]
    assert [p.alike for p in points] == pytest.approx(
        [rows_alike(summary, c, QUASI) for c in chosen]
    )
    assert [p.score for p in points] == sorted((p.score for p in points), reverse=True)
    assert [p.alike for p in points] == sorted(p.alike for p in points)
    assert len({p.alike for p in points}) == len(points)
    assert points[-1].alike == pytest.approx(
        max(rows_alike(summary, c, QUASI) for c in _every(summary))
    )


def test_without_moments_hardly_any_combination_is_above_the_front(summaries):
    summary = replace(summaries[0], moments=None)
    scorer = ProtectedScorer(summary)
    points = front_protected(summary, QUASI, count=1000)
    for choice in _every(summary):
        alike, score = rows_alike(summary, choice, QUASI), scorer.score(choice)
        best = max(p.score for p in points if p.alike >= alike * (1 - 1e-9))
        assert score <= best + 0.02 * points[0].score


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), count=st.integers(2, 9))
def test_no_other_mask_is_more_useful_and_as_private(protected, seed, count):
    """Whatever the tables say: attributes share information, which `_spread` does not know."""
    random = np.random.default_rng(seed)
    blurred = {
        name: replace(a, table=np.rint(a.table * random.uniform(0.3, 1, a.table.shape)))
        for name, a in protected.attributes.items()
    }
    summary = replace(protected, attributes=blurred)
    scorer = ProtectedScorer(summary)
    for point in front_protected(summary, QUASI, count=count):
        choice = summary.choose(point.configuration)
        for index, attribute in enumerate(summary.all_attributes):
            for place in range(len(attribute.candidates)):
                other = (*choice[:index], place, *choice[index + 1 :])
                if rows_alike(summary, other, QUASI) >= point.alike:
                    assert scorer.score(other) <= point.score + 1e-12


@settings(max_examples=15, deadline=None)
@given(st.integers(min_value=2, max_value=9))
def test_no_more_points_than_were_asked_for(summaries, count):
    points = front_protected(summaries[1], QUASI, count=count)
    assert 1 <= len(points) <= count


def test_rows_alike_are_those_of_the_table_where_one_attribute_tells_rows_apart(summaries):
    """Held against the table itself: city alone, and noise that is small beside 600 rows."""
    summary = summaries[1]
    choice = summary.choose(
        front_protected(summary, ("city",), count=2)[0].configuration
    )  # the most useful one shows the city as it is, or its most frequent values
    shown = list(summary.attributes)
    groups = summary.attributes["city"].candidates[choice[shown.index("city")]]
    cities = Counter(make_table()["city"].to_pylist())
    if groups.size < 4:
        most = dict(cities.most_common(2))
        cities = Counter({**most, "other": 600 - sum(most.values())})
    exact = sum(n * n for n in cities.values()) / 600
    assert rows_alike(summary, choice, ("city",)) == pytest.approx(exact, rel=0.15)


def test_a_front_of_one_point_is_refused(summaries):
    with pytest.raises(PolicyError, match="front of 1 points"):
        front_protected(summaries[0], QUASI, count=1)


def test_what_a_point_keeps_is_what_the_ranking_says_even_where_noise_outdoes_the_label(summaries):
    policy = aegis.load_policy(yaml.safe_load(POLICY))
    table = aegis.summarize(make_table(), policy)
    noisy = protect(table, policy, level="noise", epsilon=0.05, delta=1e-6)
    for summary in (*summaries, noisy):
        scorer = ProtectedScorer(summary)
        for point in front_protected(summary, QUASI, count=40):
            assert point.utility_kept == scorer.utility_kept(point.score)
            assert point.utility_kept is None or 0 <= point.utility_kept <= 100


@pytest.mark.parametrize(
    ("score", "unmasked", "kept"),
    [(0.5, 1.0, 50), (-0.1, 1.0, 0), (1.2, 1.0, 100), (0.5, 0.0, None), (0.5, -1.0, None)],
)
def test_a_share_is_from_nothing_to_all(summaries, score, unmasked, kept):
    scorer = ProtectedScorer(summaries[0])
    scorer.unmasked = unmasked
    assert scorer.utility_kept(score) == kept


def test_the_ends_of_a_front_are_kept_however_few_points_are():
    private, useful = np.array([5.0, 4.0, 3.9, 2.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    for most in (2, 3, 4):
        kept = _thinned(private, useful, most).tolist()
        assert (kept[0], kept[-1]) == (0, 4)
        assert len(kept) <= most


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
