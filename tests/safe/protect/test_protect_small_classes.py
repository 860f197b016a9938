"""Rows in small classes, estimated from a protected summary, against the formula by brute force."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protect_support import make_table

import aegis
from aegis.errors import NoAdmissibleConfiguration
from aegis.policy import as_policy
from aegis.present import Finding
from aegis.privacy import PrivacyRule
from aegis.release.applying import first_admissible
from aegis.safe.protect import protect, rank_protected, search_protected
from aegis.safe.protect.model import StatedVerdict
from aegis.safe.protect.ranking import FITTING
from aegis.safe.protect.small_classes import MARGIN, ExpectedSmallClasses

SIZES = (3, 3, 2, 2)
EVERY = list(itertools.product(*map(range, SIZES)))
QUASI = 3


def by_definition(summary, choice, least, factor=1.0):
    """The sum over classes of their expected rows times the chance that they are too small, as if
    each class had `factor` times its expected rows.
    """
    shares = []
    for attribute, place in zip(summary.all_attributes[:QUASI], choice, strict=False):
        rows = np.maximum(attribute.table.sum(axis=1), 0)
        groups = attribute.candidates[place].groups
        counts = [rows[groups == group].sum() for group in set(groups.tolist())]
        shares.append([count / rows.sum() for count in counts])
    total = 0.0
    for values in itertools.product(*shares):
        expected = factor * (summary.rows - 1) * math.prod(values)
        small = sum(math.exp(-expected) * expected**n / math.factorial(n) for n in range(least - 1))
        total += summary.rows * math.prod(values) * small
    return total


def under_k(summary, policy, k):
    return ExpectedSmallClasses.of(
        summary, replace(policy, privacy=PrivacyRule.parse({"k": k, "suppression": 0.1}))
    )


@pytest.mark.parametrize("k", [2, 5, 20, 60])
def test_the_rows_in_small_classes_are_those_of_independent_columns(protected, policy, k):
    expected = under_k(protected, policy, k)
    for choice in EVERY:
        # The logarithms of the three shares of a class are rounded to steps of 0.1.
        least, most = (by_definition(protected, choice, k, math.exp(r)) for r in (0.15, -0.15))
        assert least - 1e-6 <= expected.under(choice) <= most + 1e-6


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([5, 30, 100, 400]), st.data())
def test_a_box_that_does_not_fit_has_no_configuration_that_fits(protected, policy, k, data):
    expected = under_k(protected, policy, k)
    box = tuple(data.draw(st.integers(1, (1 << size) - 1)) for size in SIZES)
    inside = [c for c in EVERY if all(d >> place & 1 for d, place in zip(box, c, strict=True))]
    fitting = [c for c in inside if expected.under(c) <= expected.allowed / MARGIN]
    assert expected.admits(box) or not fitting
    assert not expected.fits_all or len(fitting) == len(inside)


def rare_cities(rows=3000, seed=1):
    """A table in which 300 rows have a city of their own and one class of the label."""
    table = make_table(rows, seed=seed)
    cities = table["city"].to_pylist()
    cities[:300] = [f"village {i}" for i in range(300)]
    labels = ["high"] * 300 + table["income"].to_pylist()[300:]
    changed = {"city": pa.array(cities), "income": pa.array(labels)}
    return pa.table({n: changed.get(n, table[n]) for n in table.column_names})


def test_the_first_choice_shows_no_values_without_a_published_name(policy):
    """Their rows may all be alone, as here: 300 rows, of which the rule lets 30 go."""
    strict = replace(policy, privacy=PrivacyRule.parse({"k": 3, "suppression": 0.01}))
    table = rare_cities()
    made = protect(table, strict, epsilon=1, delta=1e-6)
    assert ExpectedSmallClasses.of(made, strict) is not None
    plain = search_protected(replace(made, owner=None))
    assert str(plain.best.configuration.masks["city"]) == "identity"
    with pytest.raises(NoAdmissibleConfiguration):
        aegis.apply(table, strict, plain.best.configuration)
    advice = search_protected(made, policy=strict)
    assert str(advice.best.configuration.masks["city"]) != "identity"
    release = aegis.apply(table, strict, advice.best.configuration)
    assert release.suppressed_rows <= 30
    assert (advice.optimal, advice.search.bound) == (False, None)
    assert "class sizes meet the rule by estimate" in advice.search.notes[-1]
    assert advice.warnings[0].startswith("by estimate, ")
    assert advice.estimated.small_class_rows <= 30 / MARGIN
    both = [plain.best.configuration, advice.best.configuration]
    assert first_admissible(table, strict, both) is both[1]
    assert first_admissible(table, strict, both[:1]) is None
    ranked = rank_protected(made, both, policy=strict)
    assert ranked.best.configuration.masks == advice.best.configuration.masks
    assert ranked.ranking[1].score > ranked.ranking[0].score
    assert [entry.verdict for entry in ranked.ranking] == ["probably met", "doubtful"]
    assert [entry.to_dict()["probably_admissible"] for entry in ranked.ranking] == [True, False]
    found = Finding.of(ranked, ranked.best)
    assert found.released.startswith("It probably meets the rule. Only the owner")
    assert found.proof.startswith("It is the best of 1 that probably meets the rule, among 2 ")


def test_a_search_returns_the_best_that_fit(protected, policy):
    strict = replace(policy, privacy=PrivacyRule.parse({"k": 60, "suppression": 0.1}))
    expected = ExpectedSmallClasses.of(protected, strict)
    fitting = [c for c in EVERY if expected.under(c) <= expected.allowed / MARGIN]
    assert 0 < len(fitting) < len(EVERY)
    advice = search_protected(protected, policy=strict, top=len(EVERY))
    assert {protected.choose(r.configuration) for r in advice.ranking} == set(fitting)


def test_what_the_owner_states_counts_instead_of_the_estimate(protected, policy):
    strict = as_policy(replace(policy, privacy=PrivacyRule.parse({"k": 400})))
    stated = replace(protected, verdicts=tuple(StatedVerdict(c, True) for c in EVERY))
    assert ExpectedSmallClasses.of(stated, strict) is None
    advice = search_protected(stated, policy=strict)
    assert advice.optimal
    assert not any(text.startswith("by estimate") for text in advice.warnings)
    assert advice.estimated.small_class_rows is None
    assert {entry.verdict for entry in advice.ranking} == {"met"}
    assert {entry.probable for entry in advice.ranking} == {None}


def test_if_nothing_fits_the_best_of_all_is_returned_and_a_note_says_so(protected, policy):
    strict = replace(policy, privacy=PrivacyRule.parse({"k": 4000}))
    advice = search_protected(protected, policy=strict)
    assert advice.ranking
    assert advice.search.notes[-1].startswith("by estimate, no combination meets the rule")
    assert {entry.verdict for entry in advice.ranking} == {"doubtful"}
    assert Finding.of(advice, advice.best).released.startswith("It is doubtful whether it meets")


def test_a_share_is_stated_with_its_error_or_not_at_all(protected):
    """A summary that names no value of a column cannot tell what the column's mask loses."""
    assert 0 <= search_protected(protected).estimated.share_error < 20
    [first, *others] = protected.attributes.values()
    hidden = replace(
        first,
        table=first.table[:1],
        units=first.units[:1],
        codes=None,
        candidates=tuple(
            replace(c, groups=c.groups[:1], labels=("(values not named)",))
            for c in first.candidates
        ),
    )
    attributes = {a.name: replace(a, codes=None) for a in (hidden, *others)}
    blind = replace(protected, attributes=attributes, moments=None)
    assert search_protected(blind).estimated.share_error is None


@pytest.mark.parametrize(("k", "fits"), [(60, True), (4000, False)])
def test_earlier_first_choices_are_counted_only_beside_one_that_fits(protected, policy, k, fits):
    rule = PrivacyRule.parse({"k": k, "suppression": 0.1})
    advice = search_protected(protected, policy=replace(policy, privacy=rule))
    assert (FITTING in advice.warnings[0]) is fits
    assert ("so it may not meet the rule" in advice.warnings[0]) is not fits
