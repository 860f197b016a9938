"""Scores of noise masks: expected counts by hand, and a search that stays exact with them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis import advise, search
from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.search.objectives import make_objective
from aegis.advisor.search.problem import is_leaf, make_problem, members
from aegis.errors import PolicyError
from aegis.measures import MEASURES, Contingency, Cooccurrence, LabelKind, measures_of
from aegis.measures.association import mutual_information
from aegis.policy import Policy, load_policy
from aegis.summary import Summary, load_bundle, save_bundle, summarize

AGE = [
    "identity",
    {"bucketize": {"width": 4}},
    {"add_uniform": {"amount": 3}},
    "shuffle",
    "suppress",
]
CITY = [
    "identity",
    {"randomised_response": {"keep": 0.6}},
    {"pram": {"keep": 0.3}},
    {"blur": {"keep": 1}},
]
PAY = ["identity", {"laplace": {"epsilon": 4, "lower": 0, "upper": 2, "resolution": 0.25}}]

rows = st.lists(
    st.tuples(
        st.none() | st.integers(20, 27),
        st.sampled_from(["ab", "ac", "bc"]),
        st.none() | st.sampled_from([0.5, 1.0]),
        st.none() | st.sampled_from(["p", "q", "r"]),
    ),
    min_size=8,
    max_size=30,
).filter(lambda g: len({r[-1] for r in g} - {None}) > 1 and len({r[0] for r in g} - {None}) > 0)


def policy_of(role: str = "feature", **changes: Any) -> Policy:
    data: dict[str, Any] = {
        "version": 1,
        "label": "y",
        "attributes": {
            "age": {"role": role, "masks": AGE},
            "city": {"role": role, "masks": CITY},
            "pay": {"role": "feature", "masks": PAY},
        },
    }
    return load_policy(data | changes)


def table_of(given: Any) -> pa.Table:
    age, city, pay, y = zip(*given, strict=True)
    return pa.table(
        {
            "age": pa.array(age, pa.int64()),
            "city": pa.array(city, pa.string()),
            "pay": pa.array(pay, pa.float64()),
            "y": pa.array(y, pa.string()),
        }
    )


def random_table(seed: int, count: int = 80) -> pa.Table:
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        age, pay = int(random.integers(20, 28)), float(random.choice([0.5, 1.0]))
        city = str(random.choice(["ab", "ac", "bc"]))
        y = "pqr"[int(np.clip((age - 20) / 3 + (city == "ab") + random.normal(0, 0.7), 0, 2))]
        made.append((age, city, pay, y))
    return table_of(made)


def shown_of(summary: Summary, name: str, candidate: Any) -> npt.NDArray[np.float64]:
    """Return P(what is shown | value), a row of zeros and ones for a mask without noise."""
    if candidate.noise is not None:
        channel: npt.NDArray[np.float64] = candidate.noise.channel(summary.attributes[name].data)
        return channel
    return np.eye(candidate.size)[candidate.groups]


def brute(summary: Summary, table: pa.Table, choice: Any) -> npt.NDArray[np.float64]:
    """Return the expected G_y (C, d, d) row by row, noise of different attributes independent."""
    labels = table["y"].to_pylist()
    channels = [shown_of(summary, n, choice[n]) for n in summary.attributes]
    sizes = [c.shape[1] for c in channels]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.zeros((len(summary.label.classes), starts[-1], starts[-1]))
    for row, label in enumerate(labels):
        if label is None:
            continue
        y = summary.label.classes.index(label)
        shown = [
            channel[summary.attributes[n].values.to_pylist().index(table[n][row].as_py())]
            for n, channel in zip(summary.attributes, channels, strict=True)
        ]
        for i, j in product(range(len(shown)), repeat=2):
            block = np.diag(shown[i]) if i == j else np.outer(shown[i], shown[j])
            counts[y, starts[i] : starts[i + 1], starts[j] : starts[j + 1]] += block
    return counts


def chance_of(summary: Summary, table: pa.Table, choice: Any, offsets: Any) -> Any:
    """Return a root of what drawing each row adds to the variance of the counts, (d, d)."""
    added = np.zeros((offsets[-1], offsets[-1]))
    for i, name in enumerate(summary.attributes):
        channel = shown_of(summary, name, choice[name])
        own = slice(*offsets[i : i + 2])
        for value, label in zip(table[name].to_pylist(), table["y"].to_pylist(), strict=True):
            if label is not None:
                shown = channel[summary.attributes[name].values.to_pylist().index(value)]
                added[own, own] += np.diag(shown) - np.outer(shown, shown)
    spread, axes = np.linalg.eigh(added)
    return axes * np.sqrt(np.maximum(spread, 0))


@settings(max_examples=15)
@given(rows, st.data())
def test_expected_counts_and_scores_are_those_of_every_row(given_rows, data):
    table = table_of(given_rows)
    summary = summarize(table, policy_of())
    scorer = Scorer(summary)
    choice = {a.name: data.draw(st.sampled_from(a.candidates)) for a in summary.all_attributes}
    expected = brute(summary, table, choice)
    sizes = [shown_of(summary, n, choice[n]).shape[1] for n in summary.attributes]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    found = scorer.cooccurrence(choice)
    np.testing.assert_allclose(found.offsets, offsets)
    np.testing.assert_allclose(found.total, expected.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.joint, np.diagonal(expected, axis1=1, axis2=2).T, atol=1e-9)
    chance = chance_of(summary, table, choice, offsets)
    plain = replace(Cooccurrence.of(expected, offsets), chance=chance)
    for name in ("adjusted-pillai", "pillai-plain", "held-out-pillai-values", "cmim"):
        measure = MEASURES.get(name)
        assert scorer.value(choice, measure) == pytest.approx(measure(plain), abs=1e-7)
    for i, attribute in enumerate(summary.attributes.values()):
        own = found.joint[offsets[i] : offsets[i + 1]] / found.n
        independent = np.outer(own.sum(axis=1), own.sum(axis=0))
        seen = own > 1e-15
        bits = (own[seen] * np.log2(own[seen] / independent[seen])).sum()
        measured = scorer.attribute(attribute, choice[attribute.name], MEASURES.get("mi"))
        assert measured == pytest.approx(bits, abs=1e-9)


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return Scorer(summarize(random_table(1), policy_of()))


@pytest.mark.parametrize("name", [m.name for m in measures_of(LabelKind.CLASSES)])
def test_every_measure_scores_noise(name, scorer):
    summary, measure = scorer.summary, MEASURES.get(name)
    for attribute in summary.attributes.values():
        for candidate in attribute.candidates:
            value = scorer.attribute(attribute, candidate, measure)
            assert np.isfinite(value)
            # g1 and g2 count rows that show the same: noise spreads them over more reports.
            if measure.monotone and name not in ("g1", "g2"):
                sign = measure.direction.sign
                best = scorer.attribute(attribute, attribute.unmasked, measure)
                assert sign * value <= sign * best + 1e-9


def test_a_shuffled_attribute_says_nothing():
    summary = summarize(random_table(2), policy_of())
    age = summary.attributes["age"]
    shuffled = age.candidates[3]
    scorer = Scorer(summary)
    assert scorer.attribute(age, shuffled, MEASURES.get("mi")) == pytest.approx(0, abs=1e-9)
    choice = dict(scorer.unmasked) | {"age": shuffled}
    without = dict(scorer.unmasked) | {"age": age.candidates[4]}
    plain = MEASURES.get("pillai-plain")
    assert scorer.value(choice, plain) == pytest.approx(scorer.value(without, plain), abs=1e-9)


def test_the_score_of_the_expectation_is_near_what_many_draws_score():
    table = random_table(3, 3000)
    summary = summarize(table, policy_of())
    age = summary.attributes["age"]
    noisy = age.candidates[2]
    scorer = Scorer(summary)
    expected = scorer.attribute(age, noisy, MEASURES.get("mi"))
    random = np.random.default_rng(0)
    labels = np.array([summary.label.classes.index(v) for v in table["y"].to_pylist()])
    drawn = []
    for _ in range(20):
        shown = noisy.noise.draw(table["age"].combine_chunks(), random).to_numpy()
        counts = np.zeros((shown.max() - shown.min() + 1, 3), dtype=int)
        np.add.at(counts, (shown - shown.min(), labels), 1)
        drawn.append(mutual_information(Contingency.of(counts)))
    bias = (len(counts) - 1) * 2 / (2 * 3000 * np.log(2))
    assert np.mean(drawn) - bias <= expected + 0.01
    assert np.mean(drawn) >= expected - 0.01


@pytest.mark.parametrize(("name", "place"), [("age", 2), ("age", 3), ("city", 1), ("city", 2)])
def test_corrected_scores_are_those_that_draws_get_on_average(name, place):
    table = random_table(7, 250)
    summary = summarize(table, policy_of())
    mask = summary.attributes[name].candidates[place]
    scorer = Scorer(summary)
    choice = dict(scorer.unmasked) | {name: mask}
    names = ("adjusted-pillai", "held-out-pillai-values", "held-out-pillai")
    random = np.random.default_rng(0)
    found = []
    for _ in range(40):
        shown = mask.noise.draw(table[name].combine_chunks(), random)
        released = table.set_column(table.column_names.index(name), name, shown)
        drawn = Scorer(summarize(released, policy_of()))
        found.append([drawn.value(drawn.unmasked, MEASURES.get(one)) for one in names])
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    wanted = [scorer.value(choice, MEASURES.get(one)) for one in names]
    assert means == pytest.approx(wanted, abs=4 * max(errors) + 0.004)


@pytest.mark.parametrize(
    "objective",
    ["adjusted-pillai", "pillai-plain", "held-out-pillai-values", "adjusted-mi", "g3", "cmim"],
)
@pytest.mark.parametrize("seed", [4, 5])
def test_search_among_noise_masks_finds_the_best_of_all(objective, seed):
    policy = policy_of("quasi-identifier", privacy={"k": 3, "suppression": 0.1})
    summary = summarize(random_table(seed), policy)
    advice = search(summary, policy, objective=objective, top=3, explain_best=False, prefer="score")
    scorer, measure = Scorer(summary), MEASURES.get(objective)
    plan = PrivacyPlan(summary, policy.privacy)
    values = []
    for chosen in product(*(a.candidates for a in summary.all_attributes)):
        choice = {a.name: c for a, c in zip(summary.all_attributes, chosen, strict=True)}
        if plan.check(choice).admissible:
            values.append(measure.direction.sign * scorer.value(choice, measure))
    assert advice.optimal
    found = [measure.direction.sign * r.score for r in advice.ranking]
    np.testing.assert_allclose(found, sorted(values, reverse=True)[:3], atol=1e-9)


@settings(max_examples=10)
@given(rows, st.data())
def test_bounds_hold_for_boxes_with_noise(given_rows, data):
    summary = summarize(table_of(given_rows), policy_of())
    problem, scorer = make_problem(summary), Scorer(summary)
    plan = PrivacyPlan(summary, policy_of().privacy)
    box = tuple(data.draw(st.integers(1, v.full)) for v in problem.variables)
    for name in ("adjusted-pillai", "pillai-plain", "held-out-pillai-values"):
        objective = make_objective(name, problem, scorer, plan)
        bound = objective.bound(box)
        for leaf in product(*(members(domain) for domain in box)):
            single = tuple(1 << c for c in leaf)
            assert is_leaf(single)
            value = scorer.value(problem.choice(single), MEASURES.get(name))
            assert objective.bound(single) == pytest.approx(value, abs=1e-7)
            assert value <= bound + 1e-7


def test_noise_compares_with_identity_and_suppression_only():
    summary = summarize(random_table(6), policy_of())
    age = make_problem(summary).variables[0]
    identity, bucketize, noise, shuffle, suppress = range(5)
    assert set(members(age.finer[noise])) == {identity, noise}
    assert set(members(age.coarser[noise])) == {noise, suppress}
    assert set(members(age.finer[bucketize])) == {identity, bucketize}
    assert set(members(age.finer[suppress])) == {identity, bucketize, noise, shuffle, suppress}


def test_information_losses_are_refused_for_noise():
    policy = policy_of()
    summary = summarize(random_table(6), policy)
    with pytest.raises(PolicyError, match="not defined for noise"):
        search(summary, policy, objective="loss")


@pytest.mark.parametrize(
    ("attributes", "privacy", "message"),
    [
        ({"y": {"role": "sensitive", "masks": ["shuffle"]}}, {}, "the label is what"),
        (
            {"age": {"role": "sensitive", "masks": ["shuffle"]}},
            {"l_diversity": {"attribute": "age", "kind": "distinct", "l": 2}},
            "the privacy rule counts",
        ),
    ],
)
def test_noise_on_the_label_or_what_the_rule_protects_is_refused(attributes, privacy, message):
    listed = {"city": {"role": "quasi-identifier"}, **attributes}
    policy = load_policy({"version": 1, "label": "y", "privacy": privacy, "attributes": listed})
    with pytest.raises(PolicyError, match=message):
        summarize(random_table(7), policy)


def test_pooled_levels_keep_expected_totals():
    random = np.random.default_rng(8)
    values = random.normal(0, 50, 600).round(1)
    table = pa.table(
        {"v": values.tolist(), "y": ["p" if v + random.normal(0, 20) > 0 else "q" for v in values]}
    )
    masks = ["identity", {"add_uniform": {"amount": 10}}]
    policy = load_policy(
        {"version": 1, "label": "y", "attributes": {"v": {"role": "feature", "masks": masks}}}
    )
    summary = summarize(table, policy, max_levels=16)
    attribute = summary.attributes["v"]
    scorer = Scorer(summary)
    channel = scorer.levels(attribute, attribute.candidates[1])
    assert channel.shape == (attribute.n_atoms, 16)
    np.testing.assert_allclose(channel.sum(axis=1), 1)
    # Neighbouring reports share a level, so what the noise keeps is still seen.
    choice = {"v": attribute.candidates[1]}
    assert 0.3 < scorer.value(choice, MEASURES.get("pillai-plain")) < 1


def test_noise_survives_the_bundle(tmp_path):
    policy = policy_of()
    summary = summarize(random_table(9), policy)
    save_bundle(summary, tmp_path / "s.aegis")
    again = load_bundle(tmp_path / "s.aegis")
    one = advise(summary, policy, generate_count=20)
    two = advise(again, policy, generate_count=20)
    assert [(r.name, r.score) for r in one.ranking] == [(r.name, r.score) for r in two.ranking]


def test_the_ends_of_a_domain_are_those_that_all_others_refine_or_are_refined_by():
    age = make_problem(summarize(random_table(6), policy_of())).variables[0]
    for domain in range(1, age.full + 1):
        held = set(members(domain))
        coarsest = [c for c in sorted(held) if held <= set(members(age.finer[c]))]
        finest = [c for c in sorted(held) if held <= set(members(age.coarser[c]))]
        assert age.coarsest(domain) == next(iter(coarsest), None)
        assert age.finest(domain) == next(iter(finest), None)


def test_noise_on_a_column_with_one_value_says_nothing() -> None:
    """It was a KeyError if the table had no other column."""
    mapping: dict[str, Any] = {"version": 1, "label": "y"}
    noise = {"scale_uniform": {"ratio": 0.2}}
    mapping["attributes"] = {"a": {"role": "feature", "masks": [noise, "suppress"]}}
    advice = advise(pa.table({"a": [0] * 60, "y": ["n", "y"] * 30}), load_policy(mapping))
    assert [ranked.score for ranked in advice.ranking] == [0.5, 0.5]
