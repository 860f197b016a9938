"""Counts by part of the rows: few classes at a time, and what configurations have in common."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor import Scorer, fold_counts
from aegis.advisor.encodings import CodedMasks
from aegis.measures import get
from aegis.policy import load_policy
from aegis.summary import PairCounts, summarize
from aegis.summary.row_pairs import RowPairCounts

MASKS = {
    "a": ["identity", {"bucketize": {"width": 4}}, {"quantiles": {"count": 3}}, "suppress"],
    "b": ["identity", {"keep_frequent": {"count": 2}}, {"randomised_response": {"keep": 0.5}}],
    "c": ["identity", {"bucketize": {"width": 3}}],
    "y": ["identity", {"keep_frequent": {"count": 1}}],
}


def summarised(seed: int, classes: int, fixed: str = ""):
    """A table whose attributes in `fixed` have a single mask, so that configurations share it."""
    rng = np.random.default_rng(seed)
    columns = {
        "a": rng.integers(0, 9, 120).tolist(),
        "b": rng.choice(list("uvwxyz"), 120).tolist(),
        "c": np.where(rng.random(120) < 0.2, np.nan, rng.integers(0, 7, 120)).tolist(),
        "y": rng.choice(list("pqrstuv")[:classes], 120).tolist(),
    }
    columns["c"] = [None if np.isnan(value) else value for value in columns["c"]]
    masks = {name: own[: 1 if name in fixed else None] for name, own in MASKS.items()}
    attributes = {name: {"role": "feature", "masks": masks[name]} for name in "abcy"}
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    return summarize(pa.table(columns), policy)


@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 7),
    common=st.sampled_from(["", "ab", "bc"]),
    pick=st.tuples(*(st.integers(0, 3) for _ in "abcy")),
    cells=st.sampled_from([1, 1_000, 10_000]),
)
@settings(max_examples=10, deadline=None)
def test_classes_counted_one_by_one_say_what_all_at_once_say(seed, classes, common, pick, cells):
    summary = summarised(seed, classes, common)
    own = list(summary.all_attributes)
    choice = {a.name: a.candidates[i % len(a.candidates)] for a, i in zip(own, pick, strict=True)}
    measures = [get(name) for name in ("held-out-auc", "held-out-accuracy(lr+nb)")]
    found = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fold_counts, "FEWEST_LEVELS", 1)
        for at_once in (cells, 10**9):
            patched.setattr(fold_counts, "_AT_ONCE", at_once)
            scorer = Scorer(summary)
            counts = scorer.cooccurrence(choice, measures[0].needs)
            divided = counts.by_fold()
            classes = range(divided.total.classes)
            whole = np.stack([divided.total.of_class(y) for y in classes], axis=1)
            assert whole.shape[1] == divided.rows.shape[1]
            assert np.allclose(divided.total.every, whole.sum(axis=1), rtol=0, atol=1e-9)
            found.append([measure.without_folds(counts) for measure in measures])
    for one_by_one, together in zip(*found, strict=True):
        assert one_by_one == pytest.approx(together, abs=1e-12)


def test_a_label_of_many_classes_takes_the_memory_of_few():
    rng = np.random.default_rng(1)
    label = rng.integers(0, 80, 4_000)
    columns = {
        name: np.where(rng.random(4_000) < 0.3, (label * step) % 40, rng.integers(0, 40, 4_000))
        for name, step in (("a", 3), ("b", 7), ("c", 1))
    }
    table = pa.table({**columns, "y": label.astype(str)})
    attributes = {name: {"role": "feature"} for name in columns}
    summary = summarize(table, load_policy({"version": 1, "label": "y", "attributes": attributes}))
    scorer, measure = Scorer(summary), get("held-out-auc")
    tracemalloc.start()
    scorer.value(scorer.unmasked, measure)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    levels = sum(a.unmasked.n_levels for a in summary.attributes.values())
    assert levels == 120
    # One product of all directions with the counts of all classes alone takes 5 * 80 * 80 * 3 * 120 * 8 bytes.
    assert most < 2 * (8 * fold_counts._AT_ONCE) + 5 * 80 * levels**2 * 8
    assert most < 5 * 80 * 80 * 3 * levels * 8


@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 3),
    common=st.sampled_from(["a", "ab", "c", "bc", "ac"]),
    picks=st.lists(st.tuples(*(st.integers(0, 3) for _ in "abcy")), min_size=1, max_size=6),
)
@settings(max_examples=8, deadline=None)
def test_what_configurations_have_in_common_changes_no_figure(seed, classes, common, picks):
    summary = summarised(seed, classes, common)
    own = list(summary.all_attributes)
    measures = [get(name) for name in ("held-out-auc", "held-out-log-loss(lr+nb)")]
    alone, sharing = Scorer(summary), Scorer(summary)
    for some in picks:
        choice = {
            a.name: a.candidates[pick % len(a.candidates)]
            for a, pick in zip(own, some, strict=True)
        }
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fold_counts, "FEWEST_LEVELS", 1)
            shared = [sharing.value(choice, measure) for measure in measures]
            without = measures[0].without_folds(sharing.cooccurrence(choice, measures[0].needs))
        assert shared == pytest.approx([alone.value(choice, m) for m in measures], abs=1e-9)
        counts = alone.cooccurrence(choice, measures[0].needs)
        assert np.allclose(without, measures[0].without_folds(counts), atol=1e-9)


def test_common_levels_are_eliminated_once(monkeypatch):
    monkeypatch.setattr(fold_counts, "FEWEST_LEVELS", 1)
    summary, measure = summarised(3, 2, "ac"), get("held-out-auc")

    def counted():
        scorer = Scorer(summary)
        masked = summary.attributes["b"].candidates[:2]
        choices = [{**scorer.unmasked, "b": candidate} for candidate in masked]
        return [scorer.cooccurrence(choice, measure.needs).by_fold() for choice in choices]

    first, second = counted()
    assert first.common is not None
    assert first.common is second.common
    monkeypatch.setattr(fold_counts, "MOST_NUMBERS", 0)
    assert all(counts.common is None for counts in counted())


of_masked_tables = given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 4),
    pick=st.tuples(*(st.integers(0, 3) for _ in "abc")),
)


@of_masked_tables
@settings(max_examples=10, deadline=None)
def test_one_fold_has_the_rows_of_all(seed, classes, pick):
    summary = summarised(seed, classes)
    each = [[c for c in a.candidates if c.noise is None] for a in summary.attributes.values()]
    chosen = [own[i % len(own)] for own, i in zip(each, pick, strict=True)]
    coded = CodedMasks([c.levels for c in chosen], pick, [None] * len(chosen))
    several, together = (
        fold_counts.FoldBlocks(summary.pairs, folds).counts(range(3), coded) for folds in (5, 1)
    )
    assert together.rows.shape[0] == 1
    for one, other in ((together.rows, several.rows), (together.joint, several.joint)):
        np.testing.assert_allclose(one[0], other.sum(axis=0), atol=1e-10)
    for label in (None, 0):
        ones, others = together.square(label).border, several.square(label).border
        np.testing.assert_allclose(ones[0], others.sum(axis=0), atol=1e-10)


@of_masked_tables
@settings(max_examples=15, deadline=None)
def test_counts_from_dense_arrays_are_those_of_the_cells_that_occur(seed, classes, pick):
    found, listed = [], []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("aegis.summary.builder.WIDE", 2)  # as on wide tables
        patched.setattr("aegis.summary.row_pairs._CELLS_PER_ROW", 100.0)
        summary = summarised(seed, classes)
        assert isinstance(summary.pairs, RowPairCounts)
        cells = PairCounts.cells
        patched.setattr(PairCounts, "cells", lambda *of: listed.append(of) or cells(*of))
        own = list(summary.attributes.values())
        choice = {
            a.name: a.candidates[i % len(a.candidates)] for a, i in zip(own, pick, strict=True)
        }
        for dense in (True, False):
            if not dense:
                assert not listed
                patched.setattr(RowPairCounts, "is_dense", lambda *_: False)
            scorer = Scorer(summary)
            whole = {**scorer.unmasked, **choice}
            names = ("held-out-auc", "held-out-accuracy(lr+nb)", "held-out-auc(lr)")
            found.append([scorer.value(whole, get(name)) for name in names])
    assert listed
    assert found[0] == pytest.approx(found[1], abs=1e-12)
