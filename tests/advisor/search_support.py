"""Every combination of small tables, scored one by one, and searchers over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from advisor_support import (
    LABEL_MASKS,
    RULES,
    all_choices,
    class_loss,
    masked_columns,
    nu_entropy,
    penalty,
    policy_of,
    random_rows,
    table_of,
    with_suppression,
)

from aegis.advisor import Choice, PrivacyPlan, Scorer
from aegis.advisor.search import Searcher
from aegis.advisor.search.objectives import CLASS_LOSSES, LOSSES
from aegis.masks import Level
from aegis.measures import MEASURES
from aegis.privacy import PrivacyRule
from aegis.summary import Summary, summarize

MASKED_ILL = ("identity", {"keep_frequent": {"count": 1}}, "suppress")


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "label with masks": {"label_masks": LABEL_MASKS},
    "protected attribute with masks": {"ill_masks": MASKED_ILL},
}


SHARES = (0.0, 0.12)


@cache
def prepared(variant: str, seed: int = 1) -> tuple[pa.Table, Summary]:
    table = table_of(random_rows(seed))
    return table, summarize(table, policy_of(**VARIANTS[variant]))


@cache
def rows_of(variant: str) -> list[tuple[Choice, dict[str, list[Any]]]]:
    table, summary = prepared(variant)
    return [(choice, masked_columns(table, choice)) for choice in all_choices(summary)]


def rule_of(rule: dict[str, Any], share: float) -> PrivacyRule:
    return PrivacyRule.parse(with_suppression(rule, share))


def rules() -> Iterator[PrivacyRule]:
    for rule in RULES:
        for share in SHARES:
            yield rule_of(rule, share)


@cache
def scored(variant: str, name: str) -> list[tuple[float, Choice]]:
    """Return the signed objective of every combination: from rows for losses, else by a Scorer."""
    table, summary = prepared(variant)
    scorer = Scorer(summary)
    found = []
    for choice, masked in rows_of(variant):
        if name in LOSSES:
            found.append((-loss(name, table, summary, choice, masked), choice))
        else:
            measure = MEASURES.get(name)
            found.append((measure.direction.sign * scorer.value(choice, measure), choice))
    return sorted(found, key=lambda entry: -entry[0])


def loss(
    name: str, table: pa.Table, summary: Summary, choice: Choice, masked: dict[str, list[Any]]
) -> float:
    total = 0.0
    for attribute in summary.all_attributes:
        values, shown = table[attribute.name].to_pylist(), masked[attribute.name]
        if name == "nu-entropy":
            total += nu_entropy(values, shown)
        elif name == "loss":
            total += penalty(values, shown)
        elif isinstance(mask := choice[attribute.name].mask, Level):
            assert mask.hierarchy is not None
            total += mask.level / mask.hierarchy.height
        else:
            sizes = {len(set(values)), *(c.size for c in attribute.candidates)}
            finer = [size for size in sizes if size > len(set(shown))]
            total += len(finer) / max(len(sizes) - 1, 1)
    return total


def expected(variant: str, objective: str, rule: PrivacyRule, top: int) -> list[float]:
    if objective in CLASS_LOSSES:
        table, summary = prepared(variant)
        assert summary.frequency is not None
        quasi = summary.frequency.quasi
        costs = [class_loss(objective, table, m, quasi, rule) for _, m in rows_of(variant)]
        return sorted((-cost for cost in costs if cost is not None), reverse=True)[:top]
    plan = PrivacyPlan(prepared(variant)[1], rule)
    admissible = (v for v, choice in scored(variant, objective) if plan.check(choice).admissible)
    return [value for value, _ in zip(admissible, range(top), strict=False)]


def assert_best(searcher: Searcher, variant: str, rule: PrivacyRule, top: int) -> None:
    found, figures = searcher.run(rule, top=top, time_limit=None)
    wanted = expected(variant, searcher.objective.name, rule, top)
    assert [v for v, _ in found.best] == pytest.approx(wanted, rel=1e-9, abs=1e-9), str(rule)
    assert len({box for _, box in found.best}) == len(found.best)
    plan = searcher.plan.under(rule)
    assert all(plan.check(searcher.problem.choice(box)).admissible for _, box in found.best)
    assert figures.optimal == bool(wanted)
    if wanted:
        assert (figures.gap, figures.best) == (
            0,
            pytest.approx(searcher.objective.sign * wanted[0]),
        )
        assert figures.bound == pytest.approx(figures.best)


def fresh(variant: str, objective: str, rule: PrivacyRule) -> Searcher:
    _, summary = prepared(variant)
    return Searcher(summary, PrivacyPlan(summary, rule), objective, "pillai")


@cache
def shared(variant: str, objective: str) -> Searcher:
    """Return a searcher to `run` under any rule; what does not depend on the rule is kept."""
    return fresh(variant, objective, PrivacyRule())


def policy_with(policy: Any, rule: PrivacyRule) -> Any:
    return replace(policy, privacy=rule)
