"""Whether a rule is at least as strong: what is claimed must hold on every table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from privacy_brute import Rows, groups, rows, table_of

from aegis.privacy import (
    MODELS,
    ClassTable,
    Criterion,
    ModelNeed,
    ModelParameter,
    PrivacyModel,
    PrivacyRule,
    Strength,
    strength,
)
from aegis.privacy.admission import admits

NUMBERS = {
    "k": (1, 2, 3),
    "l": (1, 2, 3),
    "c": (0.5, 1.0, 3.0),
    "alpha": (0.4, 0.7, 1.0),
    "t": (0.0, 0.2, 0.5, 0.9),
    "beta": (0.3, 1.0, 2.5),
    "delta": (0.3, 0.8, 2.0),
    "threshold": (0.2, 0.34, 0.5, 1.0),
    "maximum": (0.4, 0.8, 1.0),
    "minimum": (0.0, 0.3),
    "population": (40, 1000),
    "gain": (0.0, 1.0, 3.0),
    "cost": (0.4, 1.0),
    "benefit": (1.0, 4.0),
    "loss": (0.5, 2.0),
    "base": (2.0, 10.0),
}
"""Few numbers for each parameter, so that rules with the same ones are often drawn."""


def numbers_of(parameter: ModelParameter) -> tuple[float, ...]:
    """Return numbers of a parameter; of one that is new, what its own range holds."""
    least = parameter.low + parameter.above
    most = min(parameter.high, least + 2)
    own = (least, round((least + most) / 2) if parameter.whole else (least + most) / 2, most)
    return NUMBERS.get(parameter.name, own)


def rule(**asked: object) -> PrivacyRule:
    return PrivacyRule.parse(asked)


@st.composite
def criteria(draw: st.DrawFn, model: PrivacyModel) -> Criterion:
    chosen = {p.name: draw(st.sampled_from(numbers_of(p))) for p in model.parameters}
    attribute = {"attribute": "s"} if ModelNeed.SENSITIVE in model.needs else {}
    return model.criterion(chosen | attribute)


models = st.sampled_from(list(MODELS))


@st.composite
def rules(draw: st.DrawFn) -> PrivacyRule:
    chosen = draw(st.lists(models.flatmap(criteria), min_size=1, max_size=3))
    return PrivacyRule(tuple(chosen), draw(st.sampled_from((0.0, 0.2, 0.9))))


def with_people(given_rows: Rows, extra: list[int]) -> ClassTable:
    """Return a table beside its population, with what masks hide of each class."""
    people = [len(g) + n for g, n in zip(groups(given_rows), extra, strict=False)]
    table = table_of(given_rows, people)
    return replace(table, hidden=np.linspace(0.1, 1, len(table)))


pairs = st.one_of(
    st.tuples(rules(), rules()),
    models.flatmap(lambda m: st.tuples(criteria(m), criteria(m))).map(
        lambda two: (PrivacyRule((two[0],), 0.9), PrivacyRule((two[1],), 0.9))
    ),
    st.tuples(models.flatmap(criteria), models.flatmap(criteria)).map(
        lambda two: (PrivacyRule((two[0],), 0.9), PrivacyRule((two[1],), 0.9))
    ),
)


@settings(max_examples=60, deadline=None)
@given(pairs, rows, st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_what_meets_a_rule_at_least_as_strong_meets_the_other(
    two: tuple[PrivacyRule, PrivacyRule], given_rows: Rows, extra: list[int]
) -> None:
    strong, weak = two
    assume(strength(strong, weak) is not Strength.WEAKER)
    table = with_people(given_rows, extra)
    verdict = strong.check(table)
    assume(verdict.admissible)
    released = table.keep(verdict.kept_classes)
    assert not any(demand.failing(released).any() for demand in weak.criteria)
    assert verdict.suppressed_rows <= weak.allowed_rows(table.rows)


@settings(max_examples=30, deadline=None)
@given(rules(), rows, st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_what_is_asked_quickly_is_what_is_checked(
    one: PrivacyRule, given_rows: Rows, extra: list[int]
) -> None:
    table = with_people(given_rows, extra)
    admissible = one.check(table).admissible
    assert admits(one, table) == admissible
    assert admits(one, table, one.allowed_rows(table.rows)) == admissible
    if all(c.model.local or not c.local for c in one.criteria):
        # Classes that sizes alone rule out may go first, also those too small for their values.
        large = table.sizes >= one.implied_size
        room = one.allowed_rows(table.rows) - int(table.sizes[~large].sum())
        assert (room >= 0 and admits(one, table.keep(large), room)) == admissible


@settings(max_examples=30, deadline=None)
@given(rules(), rows, st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_what_is_kept_has_a_row_of_each_value_that_a_class_needs(
    one: PrivacyRule, given_rows: Rows, extra: list[int]
) -> None:
    table = with_people(given_rows, extra)
    verdict = one.check(table)
    assume(verdict.admissible)
    assert (table.sizes[verdict.kept_classes] >= one.implied_size).all()
    assert table.sizes[table.sizes < one.implied_size].sum() <= one.allowed_rows(table.rows)


@given(rules())
def test_a_rule_is_as_strong_as_itself(one: PrivacyRule) -> None:
    assert strength(one, one) is Strength.SAME
    assert strength(one, PrivacyRule(suppression=0.95)) is Strength.STRONGER
    assert strength(PrivacyRule(suppression=0.95), one) is Strength.WEAKER


@given(rules(), rules(), rules())
def test_strength_is_transitive(one: PrivacyRule, two: PrivacyRule, three: PrivacyRule) -> None:
    if Strength.WEAKER not in (strength(one, two), strength(two, three)):
        assert strength(one, three) is not Strength.WEAKER


S = {"attribute": "s"}


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        (rule(k=10), rule(k=5)),
        (rule(k=5), rule(k=5, suppression=0.02)),
        (rule(k=5, l_diversity=S | {"l": 2}), rule(k=5)),
        (rule(l_diversity=S | {"kind": "entropy", "l": 2.5}), rule(l_diversity=S | {"l": 3})),
        (rule(l_diversity=S | {"l": 3}), rule(k=3)),
        (rule(max_risk={"threshold": 0.1}), rule(k=10, suppression=0.1)),
        (
            rule(t_closeness=S | {"t": 0.1, "distance": "equal"}),
            rule(t_closeness=S | {"t": 0.2, "distance": "ordered"}),
        ),
        (rule(k=5, t_closeness=S | {"t": 0.2}), rule(t_closeness=S | {"t": 0.2})),
        (rule(k=2), PrivacyRule()),
        (
            rule(l_diversity=S | {"kind": "entropy", "l": 3}),
            rule(l_diversity=S | {"kind": "entropy", "l": 2}),
        ),
        (
            rule(t_closeness=S | {"t": 0.1, "distance": "equal"}),
            rule(t_closeness=S | {"t": 0.2, "distance": "equal"}),
        ),
    ],
)
def test_rules_that_ask_for_less_are_weaker(stronger: PrivacyRule, weaker: PrivacyRule) -> None:
    assert strength(stronger, weaker) is Strength.STRONGER
    assert strength(weaker, stronger) is Strength.WEAKER


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (rule(k=10, suppression=0.05), rule(k=5)),
        (rule(l_diversity=S | {"l": 2}), rule(l_diversity={"attribute": "other", "l": 2})),
        (rule(k=5), rule(t_closeness=S | {"t": 0.2})),
        (rule(k=5), replace(rule(k=5), person="patient")),
    ],
)
def test_rules_that_cannot_be_compared_are_weaker_both_ways(
    one: PrivacyRule, two: PrivacyRule
) -> None:
    assert strength(one, two) is Strength.WEAKER
    assert strength(two, one) is Strength.WEAKER


def test_the_same_demand_in_other_words_is_the_same_rule() -> None:
    assert strength(rule(k=5), rule(max_risk={"threshold": 0.2})) is Strength.SAME
