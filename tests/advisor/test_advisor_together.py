"""Releases put together, counted anew with pandas."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor import Scorer
from aegis.advisor.together import together
from aegis.errors import PolicyError
from aegis.policy import Configuration, load_policy
from aegis.study import Study

MASKS = {
    "a": ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 4}}, "suppress"],
    "b": ["identity", {"keep_frequent": {"count": 1}}, "suppress"],
}


def policy(k: int, suppression: float = 0.3):
    attributes = {n: {"role": "quasi-identifier", "masks": m} for n, m in MASKS.items()}
    rule = {"k": k, "suppression": suppression}
    return load_policy({"version": 1, "label": "y", "privacy": rule, "attributes": attributes})


def classes_of(masked: pd.DataFrame, k: int) -> pd.Series:
    """Return which rows a release shows: those in classes of at least k."""
    sizes = masked.groupby(list(masked.columns), dropna=False)[masked.columns[0]].transform("size")
    return sizes >= k


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_joint_classes_are_those_that_pandas_counts(data):
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 7), st.sampled_from("uvw"), st.sampled_from("xy")),
            min_size=12,
            max_size=40,
        ).filter(lambda r: len({y for *_, y in r}) == 2)
    )
    table = pd.DataFrame(rows, columns=["a", "b", "y"])
    k = data.draw(st.integers(2, 4))
    study = Study(table, policy(k))
    scorer = Scorer(study.summary)
    picks = [
        {n: data.draw(st.sampled_from(study.summary.attributes[n].candidates)).mask for n in MASKS}
        for _ in range(2)
    ]
    choices = [scorer.choose(Configuration(str(i), masks)) for i, masks in enumerate(picks)]
    found = together(study.summary, study.plan, choices)
    shown = []
    for choice in choices:
        columns = {}
        for n in MASKS:
            values = study.summary.attributes[n].values.to_pylist()
            group = dict(zip(values, choice[n].groups.tolist(), strict=True))
            columns[n] = table[n].map(group)
        shown.append(pd.DataFrame(columns))
    kept = classes_of(shown[0], k) & classes_of(shown[1], k)
    joint = pd.concat([shown[0].add_suffix("1"), shown[1].add_suffix("2")], axis=1)[kept]
    sizes = joint.groupby(list(joint.columns), dropna=False).size()
    assert found.rows == len(joint)
    assert found.rows_failing == int(sizes[sizes < k].sum())
    assert found.unique_rows == int((sizes == 1).sum())
    assert found.holds is bool((sizes >= k).all())
    assert found.smallest_class == (0 if sizes.empty else int(sizes.min()))


def test_a_coarser_release_after_a_finer_one_shows_nothing_new():
    table = pd.DataFrame(
        {"a": [i % 8 for i in range(64)], "b": list("uv") * 32, "y": list("xxyy") * 16}
    )
    study = Study(table, policy(2))
    scorer = Scorer(study.summary)
    fine, coarse = (
        scorer.choose(Configuration("c", {n: c[place].mask for n, c in _candidates(study).items()}))
        for place in (0, -1)
    )
    found = together(study.summary, study.plan, [fine, coarse])
    assert found.holds
    assert found.breaking == ()


def test_one_release_is_none_together():
    table = pd.DataFrame({"a": [1, 2] * 8, "b": list("uv") * 8, "y": list("xxyy") * 4})
    study = Study(table, policy(2))
    with pytest.raises(PolicyError, match="1 releases"):
        together(study.summary, study.plan, [Scorer(study.summary).unmasked])


def test_what_breaks_it_is_named():
    table = pd.DataFrame({"a": list(range(8)) * 4, "b": ["u"] * 32, "y": ["x", "y"] * 16})
    study = Study(table, policy(6, 0))
    scorer = Scorer(study.summary)
    masks = {"b": study.summary.attributes["b"].candidates[0].mask}
    a = study.summary.attributes["a"].candidates
    by_two = scorer.choose(Configuration("two", {"a": a[1].mask, **masks}))
    shifted = scorer.choose(Configuration("one", {"a": a[0].mask, **masks}))
    found = together(study.summary, study.plan, [by_two, shifted])
    assert found.rows == 0, "the finer one shows nothing under k = 6"
    assert found.holds


def _candidates(study: Study):
    return {n: study.summary.attributes[n].candidates for n in MASKS}
