"""Standard errors against tables from which the rows of a fold were really taken out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from aegis import advise, search
from aegis.advisor import Scorer
from aegis.advisor.confidence import (
    CERTAINTY,
    COMPARED,
    jackknife,
    standard_errors,
    student_quantile,
)
from aegis.measures import MEASURES
from aegis.policy import Policy, load_policy
from aegis.summary import Summary, load_bundle, merge, save_bundle, summarize
from aegis.summary.build import without_fold
from aegis.summary.cooccurrence import Chunk, count_pairs
from folds_by_row import folds_of

MASKS = [
    "identity",
    {"bucketize": {"width": 4}},
    {"randomised_response": {"keep": 0.5}},
    "suppress",
]


def policy_of(*, label: bool = False, privacy: dict[str, int] | None = None) -> Policy:
    attributes = {
        "age": {"role": "quasi-identifier", "masks": MASKS},
        "city": {"role": "feature", "masks": ["identity", {"blur": {"keep": 1}}, "suppress"]},
        "sex": {"role": "feature", "masks": ["identity", "shuffle"], "weight": 2},
    }
    if label:
        attributes["y"] = {
            "role": "feature",
            "masks": ["identity", {"group": {"groups": {"pq": ["p", "q"]}}}],
        }
    return load_policy(
        {"version": 1, "label": "y", "attributes": attributes, "privacy": privacy or {}}
    )


def table_of(seed: int, count: int) -> pa.Table:
    random = np.random.default_rng(seed)
    age = random.integers(20, 32, count)
    city = random.choice(["ab", "ac", "bc"], count)
    sex = random.choice(["f", "m"], count)
    level = (age - 20) / 5 + (city == "ab") + random.normal(0, 1, count)
    y = [None if random.random() < 0.05 else "pqr"[int(np.clip(v, 0, 2))] for v in level]
    return pa.table(
        {"age": age.tolist(), "city": city.tolist(), "sex": sex.tolist(), "y": pa.array(y)}
    )


def rest_of(table: pa.Table, summary: Summary, fold: int, seed: int) -> pa.Table:
    """Return the labelled rows that are in another fold."""
    labelled = [i for i, y in enumerate(table["y"].to_pylist()) if y is not None]
    dealt = folds_of(summary, table, seed)
    return table.take([i for i, f in zip(labelled, dealt, strict=True) if f != fold])


@settings(max_examples=4)
@given(st.integers(0, 999), st.sampled_from([60, 25]), st.booleans(), st.data())
def test_scores_without_a_fold_are_those_of_the_table_without_its_rows(seed, count, label, data):
    table, policy = table_of(seed, count), policy_of(label=label)
    summary = summarize(table, policy, seed=seed)
    folds = summary.pairs.folds
    assert folds is not None
    choices = [
        {a.name: data.draw(st.sampled_from(a.candidates)) for a in summary.all_attributes}
        for _ in range(2)
    ]
    names = [
        "adjusted-pillai",
        "pillai-plain",
        "held-out-pillai-values",
        "cmim",
        "adjusted-mi",
        "g3",
        "chi2",
    ]
    found = {n: jackknife(Scorer(summary), choices, MEASURES.get(n)) for n in names}
    for place, fold in enumerate(np.flatnonzero(folds.rows)):
        part = summarize(rest_of(table, summary, int(fold), seed), policy, like=summary)
        scorer = Scorer(part)
        for index, choice in enumerate(choices):
            own = {
                name: part.attribute(name).candidate(candidate.mask)
                for name, candidate in choice.items()
            }
            if own["sex"].noise is not None:
                continue  # a shuffle's channel follows the histogram of all rows
            for name in names:
                value = scorer.value(own, MEASURES.get(name))
                assert found[name][place, index] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("freedom", range(1, 13))
def test_quantiles_of_student_are_those_of_scipy(freedom):
    assert student_quantile(freedom) == pytest.approx(stdtrit(freedom, CERTAINTY), rel=1e-13)


def test_counts_by_fold_add_up():
    summary = summarize(table_of(1, 200), policy_of())
    pairs, by_fold = summary.pairs, summary.pairs.folds
    assert by_fold is not None
    assert by_fold.rows.sum() == pairs.rows
    for i, joint in enumerate(pairs.atom_counts):
        np.testing.assert_array_equal(by_fold.atom_counts[i].sum(axis=0), joint)
        np.testing.assert_array_equal(by_fold.atom_counts[i].sum(axis=(1, 2)), by_fold.rows)
    for pair, count in pairs.count.items():
        np.testing.assert_array_equal(np.bincount(by_fold.cell[pair], by_fold.count[pair]), count)
    rest = without_fold(pairs, 3)
    assert rest.rows == pairs.rows - by_fold.rows[3]
    assert len(rest.count) == len(pairs.count)
    assert list(rest.count) == list(pairs.count)
    assert rest.count[0, 1].sum() == rest.rows
    np.testing.assert_array_equal(rest.total, rest.total.T)


def test_what_leaving_out_each_fold_takes_off_adds_up_to_all_rows():
    pairs = summarize(table_of(2, 150), policy_of()).pairs
    assert pairs.folds is not None
    off = [pairs.total - without_fold(pairs, fold).total for fold in range(pairs.folds.size)]
    np.testing.assert_array_equal(sum(off), pairs.total)
    assert all((own >= 0).all() for own in off)


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 70), st.integers(0, 1)), max_size=60),
    st.data(),
)
def test_counting_in_folds_changes_no_count(rows, data):
    cut = data.draw(st.integers(0, len(rows)))

    def chunks():
        for part in (rows[:cut], rows[cut:]):
            a, b, y = np.array(part, dtype=np.int64).reshape(-1, 3).T
            yield Chunk([a, b], y)

    plain = count_pairs(("a", "b"), (4, 71), 2, chunks())
    folded = count_pairs(("a", "b"), (4, 71), 2, chunks(), folds=10, seed=5)
    assert plain.folds is None
    assert plain.rows == folded.rows == len(rows)
    np.testing.assert_array_equal(plain.index[0, 1], folded.index[0, 1])
    np.testing.assert_array_equal(plain.count[0, 1], folded.count[0, 1])
    for one, two in zip(plain.atom_counts, folded.atom_counts, strict=True):
        np.testing.assert_array_equal(one, two)


def test_standard_error_of_a_mean_is_the_textbook_one():
    random = np.random.default_rng(2)
    groups = random.normal(5, 2, (10, 50))
    left_out = (groups.sum() - groups.sum(axis=1)) / (500 - 50)
    by_hand = groups.mean(axis=1).std(ddof=1) / np.sqrt(10)
    assert standard_errors(left_out[:, None])[0] == pytest.approx(by_hand)


def test_ranking_marks_what_cannot_be_told_from_the_best():
    table, policy = table_of(3, 400), policy_of()
    advice = advise(table, policy, measure="adjusted-pillai", generate_count=24)
    first, *others = advice.ranking[:COMPARED]
    assert first.tied_with_best is True
    assert all(r.stderr is not None and r.stderr >= 0 for r in advice.ranking[:COMPARED])
    assert all(r.stderr is None and r.tied_with_best is None for r in advice.ranking[COMPARED:])
    # Without age the score falls by far more than chance.
    clear = [r for r in others if str(r.configuration.masks["age"]) == "suppress"]
    assert all(r.tied_with_best is False for r in clear)
    entry = advice.to_dict()["ranking"][0]
    assert entry["stderr"] == first.stderr
    assert entry["tied_with_best"] is True
    twin = search(
        table, policy, measure="adjusted-pillai", top=4, explain_best=False, prefer="score"
    )
    assert twin.ranking[0].stderr == pytest.approx(first.stderr)


def test_what_misses_the_rule_is_compared_with_nothing():
    advice = advise(table_of(4, 40), policy_of(privacy={"k": 30}), generate_count=24)
    assert {r.tied_with_best for r in advice.ranking if not r.admissible} == {None}


def test_errors_are_of_what_meets_the_rule_where_something_does():
    table, policy = table_of(5, 150), policy_of(privacy={"k": 20})
    some = advise(table, policy, generate_count=20).ranking
    assert {ranked.admissible for ranked in some} == {True, False}
    assert all((ranked.stderr is not None) == ranked.admissible for ranked in some[:COMPARED])
    missing = [ranked.configuration for ranked in some if not ranked.admissible]
    none = advise(table, policy, configurations=missing).ranking
    assert not any(ranked.admissible for ranked in none)
    assert all(ranked.stderr is not None for ranked in none[:COMPARED])


@pytest.mark.parametrize("name", ["adjusted-pillai", "held-out-auc"])
def test_standard_error_is_near_the_spread_over_fresh_tables(name):
    policy = policy_of()
    measure = MEASURES.get(name)
    scores, errors = [], []
    for seed in range(25):
        summary = summarize(table_of(seed + 100, 400), policy)
        scorer = Scorer(summary)
        scores.append(scorer.value(scorer.unmasked, measure))
        values = jackknife(scorer, [scorer.unmasked], measure)
        errors.append(standard_errors(values)[0])
    assert 0.6 < np.mean(errors) / np.std(scores, ddof=1) < 1.7


def test_folds_survive_bundle_and_merge(tmp_path):
    table, policy = table_of(5, 80), policy_of()
    summary = summarize(table, policy)
    save_bundle(summary, tmp_path / "s.aegis")
    again = load_bundle(tmp_path / "s.aegis")
    one, two = advise(summary, policy), advise(again, policy)
    assert [r.stderr for r in one.ranking] == [r.stderr for r in two.ranking]
    parts = [summarize(table.slice(0, 40), policy, seed=s, like=summary) for s in (0,)]
    parts.append(summarize(table.slice(40), policy, like=summary))
    whole = merge(*parts)
    assert whole.pairs.folds is not None
    assert whole.pairs.folds.rows.sum() == whole.pairs.rows
    assert advise(whole, policy).ranking[0].stderr is not None
