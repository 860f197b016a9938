from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy_brute import Rows, entropy, gains, groups, rows, shares, table_of

from aegis.errors import InternalError, PolicyError
from aegis.privacy import MODELS, ClassTable, PrivacyRule

attributes = {"attribute": st.just("s")}
any_mapping = st.fixed_dictionaries(
    {"k": st.integers(1, 6)},
    optional={
        "suppression": st.sampled_from([0.05, 0.3, 0.7]),
        "l_diversity": st.one_of(
            st.fixed_dictionaries(
                {**attributes, "kind": st.just("distinct"), "l": st.integers(1, 3)}
            ),
            st.fixed_dictionaries({**attributes, "kind": st.just("entropy"), "l": st.floats(1, 3)}),
            st.lists(
                st.fixed_dictionaries(
                    {
                        **attributes,
                        "kind": st.just("recursive"),
                        "l": st.just(2),
                        "c": st.floats(1, 4),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
        ),
        "alpha_k": st.fixed_dictionaries({**attributes, "alpha": st.floats(0.3, 1)}),
        "t_closeness": st.fixed_dictionaries(
            {**attributes, "t": st.floats(0, 1), "distance": st.sampled_from(["equal", "ordered"])}
        ),
        "beta_likeness": st.fixed_dictionaries({**attributes, "beta": st.floats(0.1, 4)}),
        "max_risk": st.fixed_dictionaries({"threshold": st.floats(0.1, 1)}),
    },
)


@given(any_mapping)
def test_a_rule_survives_writing(mapping: Mapping[str, object]) -> None:
    rule = PrivacyRule.parse(mapping)
    written = rule.to_mapping()
    assert PrivacyRule.parse(json.loads(json.dumps(written))) == rule
    assert PrivacyRule.parse(written).to_mapping() == written


def test_the_policy_of_the_readme() -> None:
    rule = PrivacyRule.parse(
        {
            "k": 5,
            "suppression": 0.02,
            "l_diversity": {"attribute": "occupation", "kind": "entropy", "l": 2},
        }
    )
    assert rule.sensitive == ("occupation",)
    assert rule.to_mapping() == {
        "k": 5,
        "l_diversity": {"attribute": "occupation", "kind": "entropy", "l": 2.0},
        "suppression": 0.02,
    }
    assert str(rule) == (
        "k-anonymity (k = 5); entropy l-diversity of occupation (l = 2); "
        "at most 2 % of the rows suppressed"
    )
    assert not rule.monotone
    assert rule.monotone_part == PrivacyRule.parse({"k": 5, "suppression": 0.02})
    strict = PrivacyRule.parse({**rule.to_mapping(), "suppression": 0})
    assert str(strict).endswith("(l = 2); no row suppressed")
    assert strict.monotone
    assert strict.monotone_part is strict


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({"k": 5, "l_diversity": {"attribute": "a", "l": 3}}, 5),
        ({"k": 2, "l_diversity": {"attribute": "a", "kind": "entropy", "l": 2.5}}, 3),
        ({"l_diversity": {"attribute": "a", "kind": "entropy-grassberger", "l": 7}}, 7),
        ({"l_diversity": {"attribute": "a", "kind": "recursive", "c": 2, "l": 4}}, 4),
        ({"alpha_k": {"attribute": "a", "alpha": 0.3}}, 4),
        ({"t_closeness": {"attribute": "a", "t": 0.2}}, 1),
    ],
)
def test_classes_have_a_row_of_each_value_that_they_need(
    asked: Mapping[str, object], size: int
) -> None:
    rule = PrivacyRule.parse(asked)
    assert rule.implied_size == size
    # One person may have several values.
    assert replace(rule, person="p").implied_size == rule.minimum_size


def test_defaults_shorthands_and_presets() -> None:
    rule = PrivacyRule.parse(
        {"l_diversity": {"attribute": "a", "l": 2}, "t_closeness": {"attribute": "b", "t": 0.2}}
    )
    assert [one.model.name for one in rule.criteria] == [
        "l_diversity.distinct",
        "t_closeness.equal",
    ]
    assert rule.sensitive == ("a", "b")
    assert PrivacyRule.parse({"k": {"k": 3}}) == PrivacyRule.parse({"k": 3})
    assert PrivacyRule.parse({"preset": "ema"}) == PrivacyRule.parse({"k": 11})
    assert PrivacyRule.parse({"k": 5, "preset": "cms"}) == PrivacyRule.parse({"k": 11})
    assert PrivacyRule.parse({"k": 20, "preset": "health-canada"}).criteria[0]["k"] == 20
    assert PrivacyRule.parse({"k_map": 4}).needs_population
    twice = [{"attribute": "a", "l": 2}, {"attribute": "b", "l": 3}, {"attribute": "a", "l": 2}]
    both = PrivacyRule.parse({"l_diversity": twice})
    assert both.sensitive == ("a", "b")
    assert len(both.criteria) == 2
    assert both.to_mapping()["l_diversity"] == [
        {"attribute": "a", "kind": "distinct", "l": 2},
        {"attribute": "b", "kind": "distinct", "l": 3},
    ]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (
            {"l_diverstiy": {}},
            "Unknown key of the privacy rule 'l_diverstiy'. Did you mean 'l_diversity'",
        ),
        ({"kk": 5}, "Allowed: k, k_map"),
        ({"k_anonymity": 5}, "Did you mean 'k'"),
        ({"k-anonymity": 5}, "Did you mean 'k'"),
        ({"kanonymity": 5}, "Did you mean 'k'"),
        ({"l": 3}, "Did you mean 'l_diversity'"),
        ({"t": 0.2}, "Did you mean 't_closeness'"),
        ({"prosecutor_risk": 0.2}, "Did you mean 'max_risk'"),
        ({"threshold": 0.2}, "privacy rule 'threshold'. Allowed"),
        ({"preset": "emma"}, "Unknown privacy preset 'emma'. Did you mean 'ema'"),
        ({"preset": ["ema"]}, "Unknown privacy preset ['ema']"),
        ({5: 5}, "Unknown key of the privacy rule 5"),
        ({"k": 5, "suppression": 1.01}, "'suppression' of the privacy rule is 1.01"),
        (
            {"k": 5, "t_closeness": {"attribute": "a", "t": 0.1, "reference": "imput"}},
            "Did you mean 'input'",
        ),
        ({"k": {"k": 5, "reference": "input"}}, "Unknown parameter of k-anonymity 'reference'"),
        ({"k": 5, "suppression": -0.1}, "from 0 to 1"),
        ({"k": 5, "suppression": "2 %"}, "'suppression' of the privacy rule is '2 %'"),
        ({"k": 5, "suppression": float("nan")}, "'suppression' of the privacy rule is nan"),
        ({"suppression": 0.1}, "requires nothing"),
        ({}, "requires nothing"),
        (5, "The privacy rule is 5"),
        ({"t_closeness": 0.2}, "Write a mapping of its parameters"),
        ({"t_closeness": {"attribute": "a"}}, "lacks 't'. Give a number from 0 up to 1"),
        ({"t_closeness": {"t": 0.2}}, "lacks the sensitive attribute"),
        ({"t_closeness": {"attribute": 3, "t": 0.2}}, "given: 3"),
        ({"t_closeness": {"attribute": "a", "t": 1.5}}, "'t' of t-closeness"),
        (
            {"t_closeness": {"attribute": "a", "t": 0.1, "distance": "orderd"}},
            "Unknown distance of t_closeness 'orderd'. Did you mean 'ordered'",
        ),
        ({"l_diversity": {"attribute": "a", "l": 2, "kind": ["x"]}}, "Unknown kind of l_diversity"),
        (
            {"l_diversity": {"attribute": "a", "kind": "distinct", "l": 2, "c": 3}},
            "parameter of distinct",
        ),
        ({"l_diversity": {"attribute": "a", "kind": "recursive", "l": 2}}, "lacks 'c'"),
        ({"l_diversity": []}, "is an empty list"),
        ({"max_risk": {"threshold": 0}}, "above 0 up to 1"),
        (
            {"max_risk": {"threshold": 0.1, "attribute": "a"}},
            "Unknown parameter of prosecutor risk",
        ),
    ],
)
def test_bad_rules_get_one_clear_error(mapping: object, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        PrivacyRule.parse(mapping)  # type: ignore[arg-type]
    assert message in str(caught.value)


@given(rows, st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_k_with_suppression(given: Rows, k: int, suppression: float) -> None:
    sizes = [len(one) for one in groups(given)]
    small = sum(size for size in sizes if size < k)
    table = ClassTable(np.array(sizes))
    verdict = PrivacyRule.parse({"k": k, "suppression": suppression}).check(table)
    large = [size for size in sizes if size >= k]
    assert verdict.suppressed_rows == small
    assert verdict.suppressed_classes == len(sizes) - len(large)
    assert verdict.admissible == (bool(large) and small <= suppression * len(given) + 1e-9)
    assert verdict.smallest_class == min(large, default=0)
    assert verdict.smallest_before == min(sizes)
    assert verdict.kept_classes.tolist() == [size >= k for size in sizes]
    assert bool(verdict.violations) is not verdict.admissible
    risk = PrivacyRule.parse({"max_risk": {"threshold": 1 / k}, "suppression": suppression})
    assert risk.check(table).to_dict() == verdict.to_dict() | {
        "violations": list(risk.check(table).violations)
    }


def fails(values: list[int], rest: list[int], asked: Mapping[str, float]) -> bool:
    """Say by the definitions whether a class fails the rule of the test below."""
    distance = 0.5 * sum(abs(q - p) for q, p in zip(shares(values), shares(rest), strict=True))
    return (
        len(values) < asked["k"]
        or entropy(values) < np.log(asked["l"]) - 1e-9
        or distance > asked["t"] + 1e-9
        or max(gains(values, rest)) > asked["beta"] + 1e-9
    )


@given(
    rows,
    st.fixed_dictionaries(
        {
            "k": st.integers(1, 4),
            "l": st.sampled_from([1, 1.5, 2]),
            "t": st.sampled_from([0.1, 0.3, 0.5, 1]),
            "beta": st.sampled_from([0.2, 0.5, 1, 3]),
        }
    ),
    st.sampled_from([0.0, 0.3, 0.8]),
)
def test_a_rule_of_several_models_drops_until_nothing_changes(
    given: Rows, asked: dict[str, float], suppression: float
) -> None:
    of = {"attribute": "s"}
    rule = PrivacyRule.parse(
        {
            "k": asked["k"],
            "l_diversity": {**of, "kind": "entropy", "l": asked["l"]},
            "t_closeness": {**of, "t": asked["t"]},
            "beta_likeness": {**of, "beta": asked["beta"]},
            "suppression": suppression,
        }
    )
    classes = groups(given)
    alone = {"k": asked["k"], "l": asked["l"], "t": 1.0, "beta": 1e9}
    kept = [one for one in range(len(classes)) if not fails(classes[one], classes[one], alone)]
    while True:
        rest = [value for one in kept for value in classes[one]]
        left = [one for one in kept if not fails(classes[one], rest, asked)]
        if left == kept:
            break
        kept = left
    verdict = rule.check(table_of(given))
    removed = len(given) - len(rest)
    assert np.flatnonzero(verdict.kept_classes).tolist() == kept
    assert verdict.suppressed_rows == removed
    assert verdict.admissible == (bool(kept) and removed <= int(suppression * len(given) + 1e-9))


@given(rows, any_mapping)
def test_what_is_kept_passes_on_its_own(given: Rows, mapping: Mapping[str, object]) -> None:
    """The promise to whoever audits the released rows alone."""
    rule = PrivacyRule.parse(mapping)
    table = table_of(given)
    verdict = rule.check(table)
    if verdict.smallest_class:
        released = PrivacyRule(rule.criteria).check(table.keep(verdict.kept_classes))
        assert released.admissible
        assert released.suppressed_rows == 0
    assert (verdict.smallest_class == 0) == (not verdict.kept_classes.any())
    assert bool(verdict.violations) is not verdict.admissible


def test_violations_say_what_falls_short_and_by_how_much() -> None:
    sizes = np.array([1] * 1204 + [31346])
    verdict = PrivacyRule.parse({"k": 5, "suppression": 0.02}).check(ClassTable(sizes))
    assert verdict.violations == (
        "k-anonymity: 1,204 rows in classes smaller than 5; 651 may be suppressed",
    )
    rule = PrivacyRule.parse(
        {"k": 2, "l_diversity": {"attribute": "s", "l": 2}, "suppression": 0.34}
    )
    table = table_of([(0, 0), (1, 0), (2, 0), (2, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 2)])
    verdict = rule.check(table)
    assert verdict.violations == (
        "distinct l-diversity of s: 5 rows in classes with fewer than 2 distinct values; "
        "3 may be suppressed",
    )
    apart = table_of([(0, 0), (1, 0), (1, 0), (2, 0), (2, 1)])
    half = PrivacyRule.parse({"k": 2, "max_risk": {"threshold": 0.5}, "suppression": 0.1})
    assert half.check(apart).violations == (
        "k-anonymity: 1 row in classes smaller than 2; 0 may be suppressed",
        "prosecutor risk: 1 row in classes with a risk above 0.5; 0 may be suppressed",
    )


def test_criteria_that_only_together_remove_too_much() -> None:
    rule = PrivacyRule.parse(
        {"k": 2, "alpha_k": {"attribute": "s", "alpha": 0.9}, "suppression": 0.3}
    )
    # A class of one row fails alpha too: what k removes is among what alpha removes.
    table = table_of([(0, 0), (0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3)])
    assert rule.check(table).violations == (
        "(alpha,k)-anonymity of s: 3 rows in classes smaller than 1 or with one value in more than "
        "0.9 of the rows; 2 may be suppressed",
    )
    apart = PrivacyRule.parse(
        {"k": 3, "max_risk": {"kind": "journalist", "threshold": 0.1}, "suppression": 0.3}
    )
    people = ClassTable(np.array([2, 4, 8]), population=np.array([20, 5, 80]))
    assert apart.check(people).violations == (
        "together: 6 rows in classes that fail a criterion; 4 may be suppressed",
    )


def test_nothing_left_and_nothing_there() -> None:
    rule = PrivacyRule.parse({"k": 5, "suppression": 0.9999999999})
    assert rule.check(ClassTable(np.array([2]))).violations == (
        "no class meets all criteria, so nothing would be released",
    )
    empty = ClassTable.from_cells([], [], {"s": ([], ("a",))})
    for mapping in ({"k": 5}, {"k": 5, "t_closeness": {"attribute": "s", "t": 0.2}}):
        verdict = PrivacyRule.parse(mapping).check(empty)
        assert not verdict.admissible
        assert verdict.violations == ("The table has no rows.",)
        assert verdict.smallest_before == verdict.smallest_class == 0
    assert PrivacyRule().check(ClassTable(np.array([1]))).admissible


def test_a_table_that_lacks_what_the_rule_needs() -> None:
    table = ClassTable(np.array([5, 6]))
    with pytest.raises(PolicyError, match="needs the counts of sensitive attribute 'a'"):
        PrivacyRule.parse({"l_diversity": {"attribute": "a", "l": 2}}).check(table)
    with pytest.raises(PolicyError, match="needs the class sizes of the population"):
        PrivacyRule.parse({"k_map": 2}).check(table)
    counts = ClassTable.from_cells([0], [2], {"a": ([0], ("x",))})
    tree = PrivacyRule.parse(
        {"t_closeness": {"attribute": "a", "t": 0.1, "distance": "hierarchical"}}
    )
    assert tree.hierarchical == ("a",)
    with pytest.raises(PolicyError, match="needs a hierarchy of 'a'"):
        tree.check(counts)
    with pytest.raises(InternalError, match="has no hierarchy"):
        tree.criteria[0].figures(counts)
    with pytest.raises(InternalError, match="has no parameter 'k'"):
        tree.criteria[0]["k"]


def test_prosecutor_threshold_counts_whole_classes() -> None:
    fifth = PrivacyRule.parse({"max_risk": {"threshold": 0.2}})
    assert fifth.minimum_size == 5
    assert fifth.check(ClassTable(np.array([5]))).admissible
    assert PrivacyRule.parse({"max_risk": {"threshold": 0.09}}).minimum_size == 12
    assert MODELS.get("max_risk.prosecutor").criterion({"threshold": 0.2}).failing(
        ClassTable(np.array([4, 5]))
    ).tolist() == [True, False]


def test_dropping_a_class_can_make_another_one_fail() -> None:
    """Value 1 has a share of 6/8, and of 6/7 once the last class is gone: then the first fails."""
    classes = [[0, 1], [1, 1, 1], [1, 1], [0]]
    table = table_of([(place, value) for place, one in enumerate(classes) for value in one])
    asked = {"t_closeness": {"attribute": "s", "t": 0.25}}
    first = PrivacyRule.parse(asked).criteria[0].failing(table)
    assert first.tolist() == [False, False, False, True]
    verdict = PrivacyRule.parse({**asked, "suppression": 0.4}).check(table)
    assert verdict.kept_classes.tolist() == [False, True, True, False]
    assert (verdict.admissible, verdict.suppressed_rows) == (True, 3)


def asked(key: str, **parameters: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.fixed_dictionaries({key: st.fixed_dictionaries({**attributes, **parameters})})


demands = st.one_of(
    asked("l_diversity", kind=st.just("distinct"), l=st.integers(1, 5)),
    asked("l_diversity", kind=st.just("entropy"), l=st.integers(1, 5) | st.floats(1, 5)),
    asked("l_diversity", kind=st.just("recursive"), l=st.integers(1, 5), c=st.floats(0.2, 9)),
    asked("alpha_k", alpha=st.floats(0.1, 1) | st.sampled_from([1 / v for v in range(1, 6)])),
    st.fixed_dictionaries({"k": st.integers(1, 20)}),
)


@given(rows, demands)
def test_what_the_table_lacks_no_class_has(given: Rows, demand: dict[str, object]) -> None:
    rule = PrivacyRule.parse({**demand, "suppression": 0.99})
    values = sorted({value for _, value in given})
    lacks = rule.shortage(len(given), {"s": len(values)})
    if lacks is not None:
        assert not rule.check(table_of(given)).kept_classes.any()
        with pytest.raises(PolicyError, match=r"requires .* but the table has"):
            rule.require_possible(len(given), {"s": len(values)})
    # The bound is tight: one class with every value alike meets what is not refused.
    if rule.criteria[0].model.name != "l_diversity.recursive":
        alike = [(0, value) for value in values for _ in range(20)]
        refused = rule.shortage(len(alike), {"s": len(values)}) is not None
        assert rule.check(table_of(alike)).admissible == (not refused)
    assert rule.shortage(len(given)) == rule.shortage(len(given), {"other": 1})


def test_records_say_what_name_lists_decided() -> None:
    """A model of another name behaves alike where its record says so."""
    kept = MODELS.get("k")
    other = replace(kept, name="crowd_size", title="crowd size")
    criterion = other.criterion({"k": 4})
    rule = PrivacyRule((criterion, MODELS.get("max_risk.prosecutor").criterion({"threshold": 0.1})))
    assert rule.sizes_only
    assert rule.minimum_size == 10
    assert rule.to_mapping()["crowd_size"] == 4
    weaker = criterion.weaker()
    assert weaker is not None
    assert weaker["k"] == 3
    assert other.criterion({"k": 2}).weaker() is None
    # Alone, without an attribute and without variants, the parameter needs no name.
    bare = ("k", "k_map", "sample_uniqueness", "max_risk.marketer", "alpha_k", "delta_presence")
    assert [MODELS.get(name).bare for name in bare] == ["k", "k", "threshold", None, None, None]
    diverse = MODELS.get("l_diversity.entropy").criterion({"attribute": "a", "l": 2.5})
    assert diverse.values_needed == 3
    alpha = MODELS.get("alpha_k").criterion({"attribute": "a", "alpha": 0.3})
    assert alpha.values_needed == 4
    assert criterion.values_needed == 1


@given(
    classes=st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=8),
    t=st.sampled_from([0.1, 0.2, 0.4]),
    share=st.sampled_from([0.3, 1]),
)
def test_classes_compared_with_the_input_are_judged_once(classes, t, share) -> None:
    counts = np.array([c for c in classes if sum(c)], dtype=np.int64).reshape(-1, 3)
    ids, codes = np.nonzero(counts)
    table = ClassTable.from_cells(ids, counts[ids, codes], {"s": (codes, ("a", "b", "c"))})
    asked = {"t_closeness": {"attribute": "s", "t": t, "reference": "input"}, "suppression": share}
    rule = PrivacyRule.parse(asked)
    assert PrivacyRule.parse(rule.to_mapping()) == rule
    assert str(rule) != str(PrivacyRule.parse({"t_closeness": {"attribute": "s", "t": t}}))
    if not len(counts):
        return
    whole = counts.sum(axis=0) / counts.sum()
    kept = [np.abs(c / c.sum() - whole).sum() / 2 <= t + 1e-9 for c in counts]
    verdict = rule.check(table)
    assert verdict.kept_classes.tolist() == kept
    lost = sum(int(c.sum()) for c, keeps in zip(counts, kept, strict=True) if not keeps)
    assert verdict.admissible == (any(kept) and lost <= share * counts.sum() + 1e-9)
