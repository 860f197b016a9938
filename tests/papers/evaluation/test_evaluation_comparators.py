from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation_support import make_policy, make_table
from hypothesis import given
from hypothesis import strategies as st

from aegis.advisor import Scorer, generate
from aegis.errors import PolicyError
from aegis.measures import MEASURES
from aegis.papers.evaluation import (
    COMPARATORS,
    Reconstructed,
    compare,
    mascara,
)
from aegis.papers.evaluation.comparators import PUBLISHED, drawn_records, spread_divergence
from aegis.summary import summarize


@pytest.fixture(scope="module")
def scorer():
    return Scorer(summarize(make_table(), make_policy()))


@pytest.fixture(scope="module")
def choices(scorer):
    return {c.name: scorer.choose(c) for c in generate(scorer.summary, 100, seed=0)}


def plain(name, table):
    """Return a measure of a table of fractions, from its definition."""
    n, x, y = table.sum(), table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    if name == "g3":
        return 1 - table.max(axis=1).sum() / n
    expected = x @ y / n
    there = expected > 0
    if name == "chi2":
        return float(((table[there] - expected[there]) ** 2 / expected[there]).sum())
    full = table > 0
    return float((table[full] / n * np.log2(table[full] / expected[full])).sum())


@pytest.mark.parametrize("histogram", [True, False])
def test_before_rounding_the_deviation_is_zero_for_every_configuration(scorer, choices, histogram):
    """Theorem 1: one deterministic mask carries no ranking signal."""
    estimator = Reconstructed(histogram=histogram)
    for choice in choices.values():
        for attribute in scorer.summary.attributes.values():
            candidate = choice[attribute.name]
            masked = scorer.contingency(attribute, candidate)
            table = estimator.fitted(attribute, candidate)
            for name in PUBLISHED:
                exact = MEASURES.get(name)(masked)
                assert plain(name, table) == pytest.approx(exact, abs=1e-5 * max(1.0, exact))


def test_rounding_alone_makes_deviations_differ(scorer, choices):
    measures = [MEASURES.get(name) for name in PUBLISHED]
    estimator = Reconstructed(histogram=False)
    same = [estimator.deviation(scorer, c, measures, seed=1) for c in choices.values()]
    again = [estimator.deviation(scorer, c, measures, seed=1) for c in choices.values()]
    other = [estimator.deviation(scorer, c, measures, seed=2) for c in choices.values()]
    assert same == again
    assert same != other
    # A masked table that IPF gives back in whole rows needs no rounding.
    identity = {a.name: a.unmasked for a in scorer.summary.attributes.values()}
    exact = estimator.deviation(scorer, identity, measures, seed=1)
    assert all(value == pytest.approx(0.0, abs=1e-9) for value in exact.values())


def test_sampling_keeps_the_masked_joint(scorer, choices):
    estimator = Reconstructed(histogram=False, sampled=True)
    for choice in list(choices.values())[:4]:
        for attribute in scorer.summary.attributes.values():
            candidate = choice[attribute.name]
            drawn = estimator.table(attribute, candidate, seed=3)
            for group in range(candidate.size):
                members = candidate.groups == group
                assert drawn[members].sum(axis=0).tolist() == (
                    attribute.joint[members].sum(axis=0).tolist()
                )


groupings = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=12).map(
    lambda pairs: (
        np.array([n for n, _ in pairs]),
        np.unique([g for _, g in pairs], return_inverse=True)[1],
    )
)


@given(groupings)
def test_the_divergence_is_what_grouping_hides(given):
    counts, groups = given
    expected = 0.0
    for group in np.unique(groups):
        own = counts[groups == group]
        share = own / own.sum()
        entropy = -float((share * np.log2(share)).sum())
        expected += own.sum() / counts.sum() * (math.log2(len(own)) - entropy)
    found = spread_divergence(counts, groups)
    assert found == pytest.approx(expected, abs=1e-9)
    uniform = all(len(set(counts[groups == g].tolist())) == 1 for g in groups)
    assert (found < 1e-12) == uniform


def test_suppression_costs_the_size_of_the_domain_less_its_entropy():
    counts = np.array([4, 3, 2, 1])
    share = counts / 10
    expected = math.log2(4) + float((share * np.log2(share)).sum())
    assert spread_divergence(counts, np.zeros(4, dtype=np.int64)) == pytest.approx(expected)
    assert spread_divergence(counts, np.arange(4)) == 0.0


def test_values_without_rows_count_for_the_domain_only():
    assert spread_divergence(np.array([4, 0]), np.array([0, 0])) == pytest.approx(1.0)


def test_mascara_adds_up_attributes_and_charges_lost_rows(scorer, choices):
    choice = choices[next(iter(choices))]
    attributes = scorer.summary.attributes.values()
    total = sum(spread_divergence(a.counts, choice[a.name].groups) for a in attributes)
    assert mascara(scorer, choice) == pytest.approx(total)


def test_every_comparator_scores_every_configuration(scorer, choices):
    found = compare(scorer, choices, seed=4)
    assert [one.name for one in found] == list(COMPARATORS.names())
    assert len(found) == 4 * len(PUBLISHED) + 1
    for one in found:
        assert (one.sign, one.kind) == (-1, "comparator")
        assert set(one.scores) == set(choices)
        assert all(value >= 0 for value in one.scores.values())
    few = compare(scorer, choices, ["sampling:g3", "mascara"], seed=4)
    full = {one.name: one.scores for one in found}
    assert [(one.name, one.scores) for one in few] == [
        (name, full[name]) for name in ("sampling:g3", "mascara")
    ]


def test_an_unknown_comparator_is_refused_with_the_names(scorer, choices):
    with pytest.raises(PolicyError, match="mascara"):
        compare(scorer, choices, ["masquerade"])


def test_sampled_records_bring_their_labels():
    """SAMPLING as the paper has it: on average the raw joint itself, group by group as many rows."""
    joint = np.array([[30, 2], [1, 40], [5, 5], [0, 0]])
    groups = np.array([0, 0, 1, 1])
    draws = np.array([drawn_records(joint, groups, seed=seed) for seed in range(400)])
    sums = np.stack([draws[:, groups == group].sum(axis=(1, 2)) for group in (0, 1)], axis=1)
    assert (sums == [73, 10]).all()
    assert draws.mean(axis=0) == pytest.approx(joint, abs=1.0)
    assert draws[:, joint == 0].max() == 0
    assert (drawn_records(joint, groups, seed=3) == draws[3]).all()
