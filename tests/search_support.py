"""Every combination of small tables, scored one by one, and searchers over them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from operator import mul
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from advisor_support import (
    LABEL_MASKS,
    RULES,
    all_choices,
    class_loss,
    classes_of,
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
from aegis.masks import Level
from aegis.measures import MEASURES, Measure
from aegis.privacy import PrivacyRule
from aegis.summary import AttributeSummary, Summary, summarize

SUMS = ("nu-entropy", "loss", "log-width", "precision")
"""Losses that are summed over attributes, suppressed rows charged."""
OF_CLASSES = (
    "ambiguity",
    "average-class-size",
    "class-entropy",
    "classification",
    "discernibility",
    "kl-divergence",
)
"""Losses that depend on the classes."""
LOSSES = (*SUMS, *OF_CLASSES, "height", "publisher-payout")

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
        else:
            share, height = rank(attribute, choice, values, shown)
            total += height if name == "height" else share
    return total


def rank(
    attribute: AttributeSummary, choice: Choice, values: list[Any], shown: list[Any]
) -> tuple[float, float]:
    """Return a mask's level over the height of its hierarchy, or of the ladder of sizes; and it."""
    if isinstance(mask := choice[attribute.name].mask, Level):
        assert mask.hierarchy is not None
        return mask.level / mask.hierarchy.height, mask.level
    sizes = {len(set(values)), *(c.size for c in attribute.candidates)}
    finer = [size for size in sizes if size > len(set(shown))]
    return len(finer) / max(len(sizes) - 1, 1), len(finer)


def charged(
    objective: str,
    variant: str,
    choice: Choice,
    masked: dict[str, list[Any]],
    rule: PrivacyRule,
) -> float | None:
    """Return a loss with suppressed rows charged, row by row; None where the rule is not met."""
    from aegis.arx.losses.loss_options import LossOptions

    table, summary = prepared(variant)
    name, options = LossOptions.parse(objective)
    assert summary.frequency is not None
    quasi = summary.frequency.quasi
    verdict = rule.check(classes_of(table, masked, quasi, rule.sensitive))
    if not verdict.admissible:
        return None
    keys = list(zip(*(masked[q] for q in quasi), strict=True))
    kept = dict(zip(dict.fromkeys(keys), verdict.kept_classes.tolist(), strict=True))
    gone = [not kept[key] for key in keys]
    inside = set(summary.frequency.codes)
    losses = []
    counted = [a for a in summary.all_attributes if a.name in quasi or not options.quasi]
    for attribute in counted:
        values, shown = table[attribute.name].to_pylist(), masked[attribute.name]
        # Which rows of an attribute outside the classes go is not known: all in proportion.
        lost = (
            [float(g) for g in gone]
            if attribute.name in inside
            else [sum(gone) / len(gone)] * len(gone)
        )
        weight = attribute.weight if options.weighted else 1
        per_row = row_losses(name, values, shown)
        if name == "precision":
            per_row = [rank(attribute, choice, values, shown)[0]] * len(values)
        losses.append(weight * attribute_loss(name, options, per_row, shown, lost))
    if name == "log-width":
        bits = [math.log2(len(set(table[a.name].to_pylist()))) for a in counted]
        weights = [a.weight if options.weighted else 1 for a in counted]
        widest = [b / sum(map(mul, bits, weights)) for b in bits]
        losses = [x * share for x, share in zip(losses, widest, strict=True)]
    if options.mean == "geometric":
        return math.prod(1 + x for x in losses) ** (1 / len(losses)) - 1
    return {"sum": sum(losses), "arithmetic": sum(losses) / len(losses), "max": max(losses)}[
        options.mean
    ]


def attribute_loss(
    name: str, options: Any, one: list[float], shown: list[Any], lost: list[float]
) -> float:
    """Return the loss of one attribute whose rows lose so much, and are suppressed to a share."""
    hidden = sum(x * share for x, share in zip(one, lost, strict=True))
    total = options.masked * (sum(one) - hidden) + hidden
    if name != "nu-entropy":
        beyond = sum((1 - x) * share for x, share in zip(one, lost, strict=True))
        return (total + options.suppressed * beyond) / len(one)
    groups: dict[Any, float] = {}
    for m, share in zip(shown, lost, strict=True):
        groups[m] = groups.get(m, 0) + share
    beyond = sum(-n * math.log2(n / sum(groups.values())) for n in groups.values() if n)
    return total + options.suppressed * beyond


def row_losses(name: str, values: list[Any], shown: list[Any]) -> list[float]:
    """Return what a mask hides of each row: bits, or the width of its group."""
    if name == "nu-entropy":
        both, groups = Counter(zip(values, shown, strict=True)), Counter(shown)
        return [-math.log2(both[v, m] / groups[m]) for v, m in zip(values, shown, strict=True)]
    members: dict[Any, set[Any]] = {}
    for v, m in zip(values, shown, strict=True):
        members.setdefault(m, set()).add(v)
    if name == "log-width":
        most = math.log2(len(set(values)))
        return [math.log2(len(members[m])) / most if most else 0.0 for m in shown]
    numeric = all(v is None or isinstance(v, int | float) for v in values)

    def width(group: set[Any]) -> float:
        if not numeric:
            return len(group) - 1
        numbers = [v for v in group if v is not None]
        return max(numbers) - min(numbers) if numbers else 0

    whole = width(set(values))
    return [width(members[m]) / whole if whole else 0.0 for m in shown]


def expected(variant: str, objective: str, rule: PrivacyRule, top: int) -> list[float]:
    name = objective.partition("(")[0]
    if name in SUMS:
        costs = [charged(objective, variant, *row, rule) for row in rows_of(variant)]
        return sorted((-cost for cost in costs if cost is not None), reverse=True)[:top]
    if name in (*OF_CLASSES, "publisher-payout"):
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
    # Where all combinations are scored, all are handed on: ties are settled among them.
    assert [v for v, _ in found.best][:top] == pytest.approx(wanted, rel=1e-9, abs=1e-9), str(rule)
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
    return Searcher(summary, PrivacyPlan(summary, rule), objective, "adjusted-pillai")


@cache
def shared(variant: str, objective: str) -> Searcher:
    """Return a searcher to `run` under any rule; what does not depend on the rule is kept."""
    return fresh(variant, objective, PrivacyRule())


def policy_with(policy: Any, rule: PrivacyRule) -> Any:
    return replace(policy, privacy=rule)


def assert_bounded(objective: Any, *, boxes: int) -> None:
    """Check random boxes: no configuration in a box is above its bound."""
    sizes = [len(variable.candidates) for variable in objective._problem.variables]
    leaves = {
        leaf: objective.bound(tuple(1 << place for place in leaf)) for leaf in np.ndindex(*sizes)
    }
    random = np.random.default_rng(3)
    for _ in range(boxes):
        box = tuple(int(random.integers(1, 1 << size)) for size in sizes)
        inside = [
            value
            for leaf, value in leaves.items()
            if all(domain >> place & 1 for domain, place in zip(box, leaf, strict=True))
        ]
        assert objective.bound(box) >= max(inside) - 1e-12


def searcher_of(summary: Summary, measure: Measure, rule: dict[str, Any]) -> Searcher:
    """Return the search by a measure under a rule."""
    plan = PrivacyPlan(summary, PrivacyRule.parse(rule))
    return Searcher(summary, plan, measure.name, measure.name)


def assert_proves_best(searcher: Searcher, summary: Summary, measure: Measure) -> int:
    """Check a search against all configurations; return the boxes that it opened."""
    scorer, plan = Scorer(summary), searcher.plan
    wanted = sorted(
        (scorer.value(c, measure) for c in all_choices(summary) if plan.check(c).admissible),
        reverse=True,
    )
    found, figures = searcher.run(plan.rule, top=4, time_limit=None)
    assert figures.optimal == bool(wanted)
    assert [value for value, _ in found.best] == pytest.approx(wanted[:4], abs=1e-12)
    return found.nodes
