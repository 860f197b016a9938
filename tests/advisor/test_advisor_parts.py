"""What many configurations show by part of the rows, counted at once, against one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor import Scorer, parts, shared
from aegis.measures import get
from aegis.measures.split import SplitCounts
from aegis.policy import load_policy
from aegis.summary import summarize

MASKS = {
    "a": ["identity", {"bucketize": {"width": 4}}, {"quantiles": {"count": 3}}, "suppress"],
    "b": ["identity", {"keep_frequent": {"count": 2}}, {"randomised_response": {"keep": 0.5}}],
    "c": ["identity", {"bucketize": {"width": 3}}],
    "y": ["identity", {"keep_frequent": {"count": 1}}],
}


def summarised(seed: int, classes: int):
    rng = np.random.default_rng(seed)
    columns = {
        "a": rng.integers(0, 9, 120).tolist(),
        "b": rng.choice(list("uvwxyz"), 120).tolist(),
        "c": np.where(rng.random(120) < 0.2, np.nan, rng.integers(0, 7, 120)).tolist(),
        "y": rng.choice(list("pqr")[:classes], 120).tolist(),
    }
    columns["c"] = [None if np.isnan(value) else value for value in columns["c"]]
    attributes = {name: {"role": "feature", "masks": MASKS[name]} for name in "abcy"}
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    return summarize(pa.table(columns), policy)


@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 3),
    picks=st.lists(st.tuples(*(st.integers(0, 3) for _ in "abcy")), min_size=2, max_size=12),
)
@settings(max_examples=25, deadline=None)
def test_configurations_counted_at_once_say_the_same(seed, classes, picks):
    summary = summarised(seed, classes)
    own = list(summary.all_attributes)
    choices = [
        {a.name: a.candidates[pick % len(a.candidates)] for a, pick in zip(own, some, strict=True)}
        for some in picks
    ]
    for measure in map(get, ("held-out-auc", "held-out-accuracy(lr+nb)")):
        alone, together = Scorer(summary), Scorer(summary)
        together.expect(choices, measure)
        for choice in choices:
            expected = alone.value(choice, measure)
            assert together.value(choice, measure) == pytest.approx(expected, abs=1e-12)
            counts = [s.cooccurrence(choice, measure.needs) for s in (alone, together)]
            assert np.allclose(*map(measure.without_parts, counts), atol=1e-12)
            for in_order in (False, True):
                one_by_one, at_once = (c.by_part(in_order=in_order) for c in counts)
                assert at_once.total.tolist() == one_by_one.total.tolist()


def test_they_are_counted_once_for_all_that_are_expected(monkeypatch):
    summary = summarised(1, 2)
    own = list(summary.all_attributes)
    choices = [
        {x.name: x.candidates[i % len(x.candidates)] for x in own}
        | {"y": own[-1].unmasked, "b": own[1].candidates[i % 2]}
        for i in range(8)
    ]
    measure, counted = get("held-out-auc"), []
    assembled = parts.PartBlocks._assembled
    monkeypatch.setattr(
        parts.PartBlocks,
        "_assembled",
        lambda self, shown, label: counted.append(len(shown)) or assembled(self, shown, label),
    )
    scorer = Scorer(summary)
    scorer.expect(choices, measure)
    assert not counted
    values = [scorer.value(choice, measure) for choice in choices]
    assert counted == [3, 3]  # values and thresholds
    monkeypatch.setattr(parts, "_TOGETHER", 1)
    one_by_one = Scorer(summary)
    one_by_one.expect(choices, measure)
    assert [one_by_one.value(choice, measure) for choice in choices] == pytest.approx(values)
    assert len(counted) > 2


@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 3),
    common=st.sampled_from(["a", "ab", "c", "bc", "ac"]),
    picks=st.lists(st.tuples(*(st.integers(0, 3) for _ in "abcy")), min_size=1, max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_what_configurations_have_in_common_changes_no_figure(seed, classes, common, picks):
    summary = summarised(seed, classes)
    own = list(summary.all_attributes)
    measures = [get(name) for name in ("held-out-auc", "held-out-log-loss(lr+nb)")]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts, "FEWEST_LEVELS", 1)
        patched.setattr(shared, "FEWEST_LEVELS", 1)
        alone, sharing = Scorer(summary), Scorer(summary)
        sharing.common.share({name: summary.attributes[name].unmasked for name in common})
        for some in picks:
            choice = {
                a.name: a.unmasked if a.name in common else a.candidates[pick % len(a.candidates)]
                for a, pick in zip(own, some, strict=True)
            }
            for measure in measures:
                expected = alone.value(choice, measure)
                assert sharing.value(choice, measure) == pytest.approx(expected, abs=1e-9)
            counts = sharing.cooccurrence(choice, measures[0].needs)
            assert np.allclose(
                measures[0].without_parts(counts),
                measures[0].without_parts(alone.cooccurrence(choice, measures[0].needs)),
                atol=1e-9,
            )


def test_common_levels_are_eliminated_once(monkeypatch):
    monkeypatch.setattr(parts, "FEWEST_LEVELS", 1)
    monkeypatch.setattr(shared, "FEWEST_LEVELS", 1)
    summary, measure = summarised(3, 2), get("held-out-auc")

    def counted():
        scorer = Scorer(summary)
        scorer.common.share({name: scorer.unmasked[name] for name in "ac"})
        masked = summary.attributes["b"].candidates[:2]
        choices = [{**scorer.unmasked, "b": candidate} for candidate in masked]
        return [scorer.cooccurrence(choice, measure.needs).by_part() for choice in choices]

    first, second = counted()
    assert isinstance(first, SplitCounts)
    assert first.common is second.common
    monkeypatch.setattr(parts, "MOST_NUMBERS", 0)
    assert not any(isinstance(counts, SplitCounts) for counts in counted())
