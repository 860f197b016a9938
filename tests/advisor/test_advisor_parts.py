"""What many configurations show by part of the rows, counted at once, against one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor import Scorer, parts
from aegis.measures import get
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
