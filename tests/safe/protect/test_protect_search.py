"""The search of protected summaries, held against every combination of a small table."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protect_support import make_table

import aegis
from aegis.advisor.search.problem import Work
from aegis.errors import PolicyError
from aegis.safe.protect import (
    ProtectedScorer,
    load_protected,
    save_protected,
    search_protected,
)
from aegis.safe.protect.model import StatedVerdict
from aegis.safe.protect.ranking import FromCodes, FromTables, RuleByVerdicts

SIZES = (3, 3, 2, 2)
EVERY = list(itertools.product(*map(range, SIZES)))


def blurred(protected, seed, *, moments, penalised=1.0):
    """The summary with other counts in its label tables, with or without moments."""
    random = np.random.default_rng(seed)
    attributes = {
        name: replace(
            a, table=np.rint(a.table * random.uniform(0.02, 1, a.table.shape) ** penalised)
        )
        for name, a in protected.attributes.items()
    }
    return replace(protected, attributes=attributes, moments=protected.moments if moments else None)


def scores(summary, choices):
    scorer = ProtectedScorer(summary)
    return sorted((scorer.score(choice) for choice in choices), reverse=True)


def found_scores(summary, advice):
    scorer = ProtectedScorer(summary)
    return [scorer.score(summary.choose(r.configuration)) for r in advice.ranking]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    moments=st.booleans(),
    top=st.integers(1, 40),
    penalised=st.floats(0, 5),
    stated=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_a_search_finds_the_best_of_all_combinations(
    protected, seed, moments, top, penalised, stated
):
    """Whatever the tables say, with and without moments, and with verdicts on some or on all."""
    summary = blurred(protected, seed, moments=moments, penalised=penalised)
    random = np.random.default_rng(seed)
    verdicts = tuple(
        StatedVerdict(choice, random.choice([True, True, False, None]))
        for choice in EVERY
        if random.random() < stated
    )
    summary = replace(summary, verdicts=verdicts)
    admitted = [v.choice for v in verdicts if v.admissible] if verdicts else EVERY
    advice = search_protected(summary, top=top)
    assert found_scores(summary, advice) == pytest.approx(scores(summary, admitted)[:top])
    assert [r.score for r in advice.ranking] == pytest.approx(found_scores(summary, advice))
    assert advice.optimal is (bool(admitted) and len(verdicts) in (0, len(EVERY)))
    assert advice.search.gap == (0.0 if advice.optimal else advice.search.gap)
    assert advice.search.work.checked <= advice.combinations


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_no_score_in_a_box_exceeds_its_bound(protected, seed, data):
    summary = blurred(protected, seed, moments=False)
    scorer = ProtectedScorer(summary)
    objective = FromTables("tables", scorer, Work())
    box = tuple(data.draw(st.integers(1, (1 << size) - 1)) for size in SIZES)
    inside = [c for c in EVERY if all(d >> place & 1 for d, place in zip(box, c, strict=True))]
    assert objective.bound(box) >= max(map(scorer.score, inside)) - 1e-12
    leaf = tuple(1 << place for place in inside[0])
    assert objective.bound(leaf) == pytest.approx(scorer.score(inside[0]), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_verdicts_narrow_a_box_to_the_masks_of_its_admitted_configurations(protected, seed, data):
    random = np.random.default_rng(seed)
    verdicts = tuple(StatedVerdict(c, bool(random.random() < 0.2)) for c in EVERY)
    rule = RuleByVerdicts(replace(protected, verdicts=verdicts))
    box = tuple(data.draw(st.integers(1, (1 << size) - 1)) for size in SIZES)
    inside = [
        v.choice
        for v in verdicts
        if v.admissible and all(d >> c & 1 for d, c in zip(box, v.choice, strict=True))
    ]
    expected = tuple(sum(1 << c for c in {v[i] for v in inside}) for i in range(len(SIZES)))
    assert rule.narrow(box) == (expected if inside else None)


def test_where_there_are_many_combinations_the_best_by_tables_are_scored(protected, monkeypatch):
    """What was scored is stated, and no other mask of one attribute improves the best."""
    module = "aegis.safe.protect.ranking"
    monkeypatch.setattr(f"{module}.ENUMERATED", 0)
    monkeypatch.setattr(f"{module}.LISTED", 4)
    advice = search_protected(protected, top=3)
    assert (advice.optimal, advice.search.exact, advice.search.bound) == (False, False, None)
    assert advice.search.stopped is None
    listed = advice.search.proven
    tables = replace(protected, moments=None)
    above = [c for c in EVERY if ProtectedScorer(tables).score(c) > listed.least + 1e-12]
    assert 0 < len(above) <= listed.configurations <= 4
    scorer = ProtectedScorer(protected)
    best = protected.choose(advice.best.configuration)
    assert scorer.score(best) >= max(map(scorer.score, above)) - 1e-12
    assert not any(change.change > 1e-12 for change in advice.estimated.changes)


def test_limits_of_time_and_of_work_end_a_search_with_what_it_found(protected):
    for moments in (protected.moments, None):
        summary = replace(protected, moments=moments)
        for limit in ({"time_limit": 0.0}, {"work": 0.0}, {"work": 3e-4}):
            advice = search_protected(summary, **limit)
            assert advice.search.stopped == "time limit"
            assert not advice.optimal
            assert advice.best is not None
        assert search_protected(summary, work=30.0).optimal


def test_a_user_who_interrupts_gets_the_best_so_far(protected):
    class Impatient:
        def __init__(self):
            self.steps = 0

        def step(self, title, total=None):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def advance(self, count=1):
            self.steps += 1
            if self.steps == 20:
                raise KeyboardInterrupt

        def note(self, text):
            return None

    advice = search_protected(protected, progress=Impatient())
    assert advice.search.stopped == "interrupt"
    assert advice.best is not None
    assert not advice.optimal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "cannot return the best 0 configurations"),
        ({"time_limit": -1.0}, "time limit -1.0 is not valid"),
        ({"work": -1.0}, "work -1.0 is not valid"),
    ],
)
def test_mistakes_are_refused_as_for_an_exact_summary(protected, policy, options, message):
    for search in (
        aegis.Study(make_table(60), policy).search,
        aegis.Study(protected, policy).search,
    ):
        with pytest.raises(PolicyError, match=message):
            search(**options)


@pytest.mark.parametrize("seed", range(8))
def test_a_suppressed_attribute_tells_nothing_whatever_the_noise(protected, seed):
    scorer = ProtectedScorer(blurred(protected, seed, moments=False))
    suppressed = [
        (index, mask)
        for index, attribute in enumerate(scorer.summary.attributes.values())
        for mask, candidate in enumerate(attribute.candidates)
        if len(set(candidate.groups)) == 1
    ]
    assert suppressed
    assert not any(scorer.masked(*each).strength for each in suppressed)


def test_scores_of_codes_have_no_bound(protected):
    objective = FromCodes("codes", ProtectedScorer(protected), Work())
    assert objective.bound((3, 1, 1, 1)) == np.inf
    assert objective.scored == 0


def test_a_summary_from_its_file_gives_the_same_search(protected, tmp_path):
    page = tmp_path / "a.protected"
    save_protected(protected, page)
    told = [search_protected(s, top=3).ranking for s in (protected, load_protected(page))]
    assert [r.masks for r in told[0]] == [r.masks for r in told[1]]
