"""Losses charge suppressed rows; ARX's printed optima, on its own table, are the oracle."""

from __future__ import annotations

import functools
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.arx.cases import ADULT_QUASI

from advisor_support import RULES, policy_of
from aegis import Study, load_policy
from aegis.advisor import PrivacyPlan
from aegis.advisor.search import Searcher
from aegis.arx.losses.loss_options import LossOptions, Mean
from aegis.errors import PolicyError
from aegis.privacy import PrivacyRule
from aegis.summary import summarize
from search_support import assert_best, prepared, rule_of, shared


@pytest.mark.parametrize(
    "objective",
    [
        "loss",
        "nu-entropy",
        "loss(mean=geometric)",
        "loss(mean=arithmetic, factor=0.2)",
        "nu-entropy(factor=0)",
        "loss(mean=max, weights=policy)",
        "nu-entropy(mean=geometric,factor=0.9)",
        "precision",
        "precision(factor=0.1)",
        "log-width(over=quasi-identifiers)",
        "log-width(weights=policy)",
    ],
)
def test_charged_losses_equal_brute_force(objective: str) -> None:
    # Every rule on the plain table, and one on each of the others.
    small, large, none = rule_of(RULES[0], 0.12), rule_of(RULES[1], 0.12), rule_of(RULES[0], 0)
    for variant, asked in (
        ("plain", (small, large, none)),
        ("label with masks", (large,)),
        ("protected attribute with masks", (none,)),
    ):
        for rule in asked:
            assert_best(shared(variant, objective), variant, rule, top=4)


@pytest.mark.parametrize("factor", ["0.1", "0.8", "1"])
def test_classes_counted_by_a_factor_equal_brute_force(factor: str) -> None:
    objective = f"average-class-size(factor={factor})"
    for variant in ("plain", "label with masks"):
        for rule in (rule_of(RULES[0], 0.12), rule_of(RULES[1], 0.3), rule_of(RULES[0], 0)):
            assert_best(shared(variant, objective), variant, rule, top=4)


@pytest.mark.parametrize("charges", ["", *(f"(charges=arx, factor={f})" for f in (0.1, 0.5, 0.8))])
def test_what_is_shown_of_a_label_among_the_quasi_identifiers(charges: str) -> None:
    objective = f"classification{charges}"
    for rule in (rule_of(RULES[0], 0.12), rule_of(RULES[1], 0.3), rule_of(RULES[0], 0)):
        assert_best(shared("label with masks", objective), "label with masks", rule, top=4)


def test_a_label_that_shows_nothing_predicts_nothing() -> None:
    """Of 12 rows all are charged where the label is one group, none where age tells it."""
    table = pa.table({"age": [1, 2] * 6, "y": ["a", "b"] * 6})
    quasi = {"role": "quasi-identifier"}
    for masks, loss in ((["identity"], 0), (["suppress"], 1)):
        attributes = {"age": quasi | {"masks": ["identity"]}, "y": quasi | {"masks": masks}}
        written = {"version": 1, "label": "y", "privacy": {"k": 2}, "attributes": attributes}
        study = Study(table, load_policy(written))
        for objective in ("classification", "classification(charges=arx)"):
            assert study.search(objective=objective).best.objective == loss


@pytest.mark.parametrize("cost", ["cost=3", "cost=20"])
def test_the_payout_of_a_publisher_equals_brute_force(cost: str) -> None:
    """An attack on a class of up to three pays at a cost of 3, and none at one of 20."""
    objective = f"publisher-payout(benefit=100, loss=60, gain=12, {cost})"
    for variant in ("plain", "label with masks"):
        for rule in (rule_of(RULES[0], 0.12), rule_of(RULES[0], 0)):
            assert_best(shared(variant, objective), variant, rule, top=4)


def test_deleting_rows_is_not_free() -> None:
    table, _ = prepared("plain")
    policy = policy_of({"k": 3, "suppression": 0.9})
    free = Study(table, policy).search(objective="nu-entropy(factor=0)").best
    charged = Study(table, policy).search(objective="nu-entropy").best
    assert free.objective == 0
    assert str(free.objective) == "0.0"  # and not -0.0
    assert charged.suppressed_rows < free.suppressed_rows


def test_a_hierarchy_counts_leaves_also_of_integers() -> None:
    table = pa.table({"n": [1, 2, 100, 1, 2, 100], "y": ["a", "b"] * 3})
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {
                "n": {
                    "role": "quasi-identifier",
                    "hierarchy": {"low": {"few": ["1", "2"]}, "high": {"many": ["100", "200"]}},
                    "masks": [{"level": 1}],
                }
            },
        }
    )
    # Each group has two of the four leaves, one of which no row has.
    assert Study(table, policy).search(objective="loss").best.objective == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("loss(mean=harmonic)", "Unknown mean of loss"),
        ("loss(factor=2)", "factor of loss is '2'"),
        ("loss(fator=0.2)", "Did you mean 'factor'"),
        ("height(factor=0.2)", "takes no options"),
        ("discernibility(mean=max)", "takes no options but factor"),
        ("average-class-size(mean=max)", "takes no options but factor"),
        ("average-class-size(factor=0)", "no class in the release would count"),
        ("classification(charge=arx)", "Did you mean 'charges'"),
        ("classification(charges=gini)", "Unknown charges of classification"),
        ("classification(factor=0.3)", "weighs the charges of ARX alone"),
        ("classification(charges=arx, factor=2)", "factor of classification is '2'"),
        ("classification(charges=arx", "cannot be read"),
        ("publisher-payout(gain=2", "cannot be read"),
        ("publisher-payout(gian=2)", "Did you mean 'gain'"),
        ("publisher-payout(gain=-2)", "gain of publisher-payout is '-2'"),
        ("publisher-payout(attacker=marketer)", "Unknown attacker of publisher-payout"),
    ],
)
def test_bad_options(text: str, match: str) -> None:
    with pytest.raises(PolicyError, match=match):
        Study(prepared("plain")[0], policy_of({"k": 3})).search(objective=text)


def test_options_are_read() -> None:
    assert LossOptions.parse("loss") == ("loss", LossOptions())
    assert LossOptions.parse("loss( mean = geometric , factor=0.25 )") == (
        "loss",
        LossOptions(Mean.GEOMETRIC, 0.25),
    )
    assert (LossOptions(factor=0.25).masked, LossOptions(factor=0.25).suppressed) == (1.0, 0.5)
    assert (LossOptions(factor=0.75).masked, LossOptions(factor=0.75).suppressed) == (0.5, 1.0)


ORACLES = [
    (1.0, 5, "loss(mean=geometric)", "030021110", 0.22041192847984292),
    (1.0, 5, "loss(mean=geometric, factor=0.1)", "030000000", 0.09257312971977383),
    (0.04, 5, "loss(mean=geometric)", "030111120", 0.26611081915757495),
    (0.04, 100, "nu-entropy", "111122221", 400196.319223464),
    (1.0, 100, "nu-entropy", "011122220", 377248.23689620313),
]
"""Suppression limit, k, loss, levels and value that ARX's own tests expect of heuristic searches."""


@pytest.mark.parametrize(("share", "k", "loss", "levels", "value"), ORACLES)
def test_values_that_arx_prints(
    shared_data: Path, share: float, k: int, loss: str, levels: str, value: float
) -> None:
    searcher = arx_searcher(shared_data / "arx_adult", loss)
    rule = PrivacyRule.parse({"k": k, "suppression": min(share, 0.99999)})
    box = tuple(
        1
        << next(
            i
            for i, c in enumerate(v.candidates)
            if str(c.declared) in (f"level({level})", "identity" if level == "0" else "")
        )
        for v, level in zip(searcher.problem.variables, levels, strict=True)
    )
    objective = searcher.objective_under(rule)
    assert -objective.bound(box) == pytest.approx(value, rel=1e-9)


@functools.cache
def arx_searcher(folder: Path, loss: str) -> Searcher:
    attributes = {
        name: {"role": "quasi-identifier", "hierarchy": str(folder / f"adult_hierarchy_{name}.csv")}
        for name in ADULT_QUASI
    }
    policy = load_policy({"version": 1, "label": "salary-class", "attributes": attributes})
    summary = summarize(folder / "adult.csv", policy)
    assert [a.name for a in summary.all_attributes] == list(ADULT_QUASI)
    return Searcher(summary, PrivacyPlan(summary, PrivacyRule()), loss, "adjusted-pillai")
