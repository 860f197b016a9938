"""Privacy on the plan against masking the rows and grouping them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

from advisor_support import (
    LABEL_MASKS,
    RULES,
    UNIQUENESS,
    Row,
    all_choices,
    class_table,
    policy_of,
    random_rows,
    rows,
    table_of,
    with_suppression,
)
from aegis.advisor import PrivacyPlan, Scorer
from aegis.errors import DataError, PolicyError
from aegis.policy import Policy, load_policy
from aegis.privacy import MODELS, ModelNeed, PrivacyRule
from aegis.sources import open_table
from aegis.summary import FrequencyTable, Information, count_in_engine, summarize, withhold
from aegis.summary.count_cells import count_cells

MASKED_ILL = ("identity", {"keep_frequent": {"count": 1}}, "suppress")


def compare(
    given_rows: list[Row], policy: Policy, stride: int, rules: Sequence[dict[str, Any]] = RULES
) -> None:
    """Check rules on combinations from the plan, from rows and from queries."""
    table = table_of(given_rows)
    source = open_table(table)
    summary = summarize(source, policy)
    quasi = tuple(a.name for a in policy.quasi_identifiers)
    counter = count_in_engine(source, quasi, ("ill",))
    for number, choice in enumerate(all_choices(summary)[::stride]):
        classes = class_table(table, choice, quasi, ("ill",))
        for rule in rules:
            asked = PrivacyRule.parse(with_suppression(rule, 0.15 * (number % 2)))
            wanted = asked.check(classes).to_dict()
            assert PrivacyPlan(summary, asked).check(choice).to_dict() == wanted, str(asked)
        queried = counter({name: c.mask for name, c in choice.items()})
        assert sorted(queried.sizes.tolist()) == sorted(classes.sizes.tolist())
        found = PrivacyPlan(summary, asked).classes(choice, ["ill"])
        assert sorted(found.sizes.tolist()) == sorted(classes.sizes.tolist())


@given(rows)
@settings(max_examples=3, phases=[Phase.explicit, Phase.generate])
def test_every_model_on_generated_tables(given_rows: list[Row]) -> None:
    compare(given_rows, policy_of(), stride=6)


def test_every_model_with_masks_of_label_and_protected_attribute() -> None:
    compare(random_rows(3), policy_of(ill_masks=MASKED_ILL), stride=7)
    compare(random_rows(4), policy_of(label_masks=LABEL_MASKS), stride=7)


def test_uniqueness_in_the_population() -> None:
    compare(random_rows(5), policy_of(), stride=120, rules=UNIQUENESS)


def test_the_rules_cover_every_model_that_the_plan_can_check() -> None:
    parsed = (PrivacyRule.parse(rule) for rule in (*RULES, *UNIQUENESS))
    checked = {one.model.name for rule in parsed for one in rule.criteria}
    more = {ModelNeed.POPULATION, ModelNeed.HIERARCHY, ModelNeed.LEAVES}
    others = {m.name for m in MODELS if m.needs & more}
    lacking = set(MODELS.names()) - checked - others
    assert not lacking, f"add a rule of {sorted(lacking)} to RULES in advisor_support.py"


def test_protected_label() -> None:
    rule = {"l_diversity": {"attribute": "y", "kind": "distinct", "l": 2}, "suppression": 0.2}
    policy = policy_of(rule)
    table = table_of(random_rows(5))
    summary = summarize(table, policy)
    for choice in all_choices(summary)[::5]:
        classes = class_table(table, choice, ("age", "zip"), ("y",))
        wanted = policy.privacy.check(classes).to_dict()
        assert PrivacyPlan(summary, policy.privacy).check(choice).to_dict() == wanted


def test_a_table_beyond_the_limit_of_cells_is_counted_by_queries() -> None:
    table = table_of(random_rows(6))
    source, policy = open_table(table), policy_of(RULES[-1])
    summary = summarize(source, policy)
    assert summary.frequency is not None
    limited = count_cells(
        source,
        summary.frequency.quasi,
        summary.frequency.sensitive,
        summary.attributes,
        "y",
        lambda rows: rows["y"],
        summary.attributes["zip"].values[:0],
        max_cells=summary.frequency.cells - 1,
    )
    assert limited is None
    without = replace(summary, frequency=None)
    with pytest.raises(DataError, match="no frequency table"):
        PrivacyPlan(without, policy.privacy)
    counter = count_in_engine(source, ("age", "zip"), ("ill",))
    engine = PrivacyPlan(without, policy.privacy, counter=counter)
    memory = PrivacyPlan(summary, policy.privacy)
    assert (engine.in_engine, memory.in_engine) == (True, False)
    for choice in all_choices(summary)[::3]:
        assert engine.check(choice).to_dict() == memory.check(choice).to_dict()


def test_rules_that_the_summary_cannot_answer() -> None:
    summary = summarize(table_of(random_rows(7)), policy_of())
    with pytest.raises(PolicyError, match="61 rows in a class, but the table has 60 rows"):
        PrivacyPlan(summary, PrivacyRule.parse({"k": 61}))
    PrivacyPlan(summary, PrivacyRule.parse({"k": 60}))
    other = PrivacyRule.parse({"l_diversity": {"attribute": "pay", "kind": "distinct", "l": 2}})
    with pytest.raises(PolicyError, match="'pay'"):
        PrivacyPlan(summary, other)
    assert (
        PrivacyPlan(summary, PrivacyRule()).under(PrivacyRule.parse({"k": 3})).rule.minimum_size
        == 3
    )


def test_ids_survive_a_radix_beyond_64_bits() -> None:
    random = np.random.default_rng(0)
    codes = {str(i): random.integers(0, 1 << 20, 50).astype(np.int32) for i in range(8)}
    codes["y"] = np.zeros(50, dtype=np.int32)
    for column in codes.values():
        column[25:] = column[:25]
    everything = {name: np.arange(1 << 20, dtype=np.int32) for name in codes}
    frequency = FrequencyTable(
        tuple(map(str, range(8))), (), "y", codes, np.ones(50, dtype=np.int64), everything
    )
    rolled = frequency.roll_up({name: everything[name] for name in frequency.quasi})
    assert sorted(rolled.sizes.tolist()) == [2] * 25


@pytest.mark.parametrize(
    ("masks", "known"),
    [
        (["identity", {"bucketize": {"width": 10}}], True),
        ([{"bucketize": {"width": 10}}, "suppress"], False),
        # Neither refines the other, so that the values themselves are counted.
        ([{"bucketize": {"width": 10}}, {"bucketize": {"width": 4}}], True),
    ],
)
def test_unmasked_classes_are_those_of_the_table_where_the_plan_says_so(
    masks: list[object], known: bool
) -> None:
    table = pa.table({"age": [20 + i % 17 for i in range(90)], "y": ["n", "p", "p"] * 30})
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {"age": {"role": "quasi-identifier", "masks": masks}},
        }
    )
    summary = summarize(open_table(table), policy)
    plan = PrivacyPlan(summary, policy.privacy)
    assert plan.as_it_is is known
    sizes = sorted(plan.classes(Scorer(summary).unmasked).sizes.tolist())
    raw = sorted(Counter(table["age"].to_pylist()).values())
    assert (sizes == raw) is known
    without = withhold(summary, Information.NOTHING)
    assert PrivacyPlan(without, policy.privacy).as_it_is is (masks[0] == "identity")
