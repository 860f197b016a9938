"""The search against brute force over every combination."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
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
from aegis.advisor.search import Searcher, objective_names, search
from aegis.advisor.search import search as search_function
from aegis.advisor.search.branch import BranchAndBound, gap
from aegis.advisor.search.objectives import CLASS_LOSSES, LOSSES
from aegis.advisor.search.problem import Box, make_problem
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.masks import Level
from aegis.measures import MEASURES, Scope
from aegis.privacy import PrivacyRule
from aegis.summary import Summary, summarize
from aegis.summary.count_cells import count_cells

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
            total += mask.level / (mask.hierarchy.height - 1)
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


EVERYWHERE = [(v, o) for v in VARIANTS for o in ("mi-corrected", "discernibility")]


@pytest.mark.parametrize(("variant", "objective"), [("plain", "pillai"), *EVERYWHERE])
def test_every_rule(variant: str, objective: str) -> None:
    for rule in rules():
        assert_best(shared(variant, objective), variant, rule, top=3)


@pytest.mark.parametrize("objective", objective_names())
def test_every_objective(objective: str) -> None:
    for variant in ("plain", "label with masks"):
        for rule in (rule_of(RULES[0], 0.12), rule_of(RULES[-1], 0)):
            assert_best(shared(variant, objective), variant, rule, top=4)


def test_all_that_are_admissible_in_order() -> None:
    rule = rule_of(RULES[0], 0.12)
    assert_best(shared("plain", "pillai"), "plain", rule, top=1000)


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_other_tables(seed: int) -> None:
    _, summary = prepared("plain", seed)
    scorer = Scorer(summary)
    for name in ("pillai", "g3"):
        measure = MEASURES.get(name)
        for rule in (rule_of({"k": 4}, 0.1), rule_of(RULES[7], 0)):
            plan = PrivacyPlan(summary, rule)
            values = [
                measure.direction.sign * scorer.value(choice, measure)
                for choice in all_choices(summary)
                if plan.check(choice).admissible
            ]
            found, _ = Searcher(summary, plan, name, "pillai").run(rule, top=2, time_limit=None)
            wanted = sorted(values, reverse=True)[:2]
            assert [v for v, _ in found.best] == pytest.approx(wanted, rel=1e-9)


def test_pooled_levels_keep_the_bound_valid() -> None:
    table, _ = prepared("plain")
    summary = summarize(table, policy_of(), max_levels=3)
    rule = rule_of(RULES[0], 0.12)
    plan = PrivacyPlan(summary, rule)
    scorer, measure = Scorer(summary), MEASURES.get("pillai")
    values = [scorer.value(c, measure) for c in all_choices(summary) if plan.check(c).admissible]
    found, _ = Searcher(summary, plan, "pillai", "pillai").run(rule, top=1, time_limit=None)
    assert found.best[0][0] == pytest.approx(max(values), rel=1e-9)


def boxes(searcher: Searcher, seed: int = 0, count: int = 40) -> Iterator[Box]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield tuple(int(random.integers(1, v.full + 1)) for v in searcher.problem.variables)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "objective",
    ["pillai", "pillai-plain", "pillai-held-out", "mi", "cramers-v", "loss", *CLASS_LOSSES],
)
def test_bounds_hold_in_any_box(variant: str, objective: str) -> None:
    searcher = shared(variant, objective)
    problem, bound = searcher.problem, searcher.objective.bound
    leaves = [
        tuple(1 << v.candidates.index(choice[v.name]) for v in problem.variables)
        for choice in all_choices(searcher.summary)
    ]
    for box in boxes(searcher):
        inside = [leaf for leaf in leaves if all(a & b for a, b in zip(leaf, box, strict=True))]
        assert bound(box) >= max(bound(leaf) for leaf in inside) - 1e-9


@pytest.mark.parametrize("variant", VARIANTS)
def test_narrowing_strikes_only_what_is_inadmissible(variant: str) -> None:
    for rule in rules():
        searcher = shared(variant, "mi")
        plan = searcher.plan.under(rule)
        feasibility = searcher.feasibility(rule)
        problem = searcher.problem
        admissible = [
            tuple(1 << v.candidates.index(choice[v.name]) for v in problem.variables)
            for choice, _ in rows_of(variant)
            if plan.check(choice).admissible
        ]
        for box in boxes(searcher, count=10):
            inside = {b for b in admissible if all(x & y for x, y in zip(b, box, strict=True))}
            narrowed = feasibility.narrow(box)
            if narrowed is None:
                assert not inside, str(rule)
            else:
                for leaf in inside:
                    assert all(x & y for x, y in zip(leaf, narrowed, strict=True)), str(rule)


@pytest.mark.parametrize("objective", ["pillai", "discernibility"])
def test_in_the_engine_as_in_memory(monkeypatch: pytest.MonkeyPatch, objective: str) -> None:
    table, whole = prepared("protected attribute with masks")
    policy = policy_of(ill_masks=MASKED_ILL)
    small = partial(count_cells, max_cells=5)
    monkeypatch.setattr("aegis.summary.build.count_cells", small)
    for rule in (rule_of(RULES[-1], 0.12), rule_of(RULES[7], 0))[objective != "pillai" :]:
        changed = policy_with(policy, rule)
        advice = search(table, changed, objective=objective, top=3, explain_best=False)
        assert "engine" in " ".join((*advice.warnings, *advice.search.notes))
        same = search(whole, changed, objective=objective, top=3, explain_best=False)
        assert advice.optimal
        values = [(r.score if r.objective is None else r.objective) for r in advice.ranking]
        wanted = [(r.score if r.objective is None else r.objective) for r in same.ranking]
        assert values == pytest.approx(wanted)
        assert all(r.admissible for r in advice.ranking)


def policy_with(policy: Any, rule: PrivacyRule) -> Any:
    return replace(policy, privacy=rule)


def test_time_limit_zero_gives_an_incumbent_and_its_gap() -> None:
    _, summary = prepared("plain")
    for objective in ("pillai", "g3", "nu-entropy", "discernibility"):
        for rule in rules():
            searcher = shared("plain", objective)
            found, figures = searcher.run(rule, top=1, time_limit=0)
            wanted = expected("plain", objective, rule, 1)
            assert found.nodes == 0
            if not wanted:
                assert not found.best
                continue
            sign = searcher.objective.sign
            assert sign * figures.bound >= wanted[0] - 1e-9
            if found.best:
                assert found.best[0][0] <= wanted[0] + 1e-9
                assert figures.gap == gap(found.best[0][0], found.bound)
                assert figures.optimal == (figures.gap == 0)
            else:
                assert (figures.optimal, figures.gap) == (False, math.inf)
    json.dumps(search(summary, policy_of(RULES[5]), time_limit=0).to_dict(), allow_nan=False)


@pytest.mark.parametrize("objective", ["g3", "nu-entropy"])
def test_interrupts_leave_a_valid_bound_anywhere(
    monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    rule = rule_of(RULES[0], 0.0)
    [wanted] = expected("plain", objective, rule, 1)
    calls = fresh("plain", objective, rule)
    counted = 0

    def counting(box: Box, inner: Any = calls.objective.bound) -> float:
        nonlocal counted
        counted += 1
        return float(inner(box))

    monkeypatch.setattr(calls.objective, "bound", counting)
    calls.run(rule, top=1, time_limit=None)
    for stop in sorted({1, 2, 3, *range(5, counted, max(1, counted // 25))}):
        searcher = fresh("plain", objective, rule)
        left = stop

        def failing(box: Box, inner: Any = searcher.objective.bound) -> float:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return float(inner(box))

        monkeypatch.setattr(searcher.objective, "bound", failing)
        found, figures = searcher.run(rule, top=1, time_limit=None)
        assert found.interrupted
        assert not found.complete
        assert found.bound >= wanted - 1e-9
        if found.best:
            assert found.best[0][0] <= wanted + 1e-9
            assert figures.optimal == (found.bound <= found.best[0][0] + 1e-12)
        else:
            assert (figures.optimal, figures.gap) == (False, math.inf)


def test_advice_after_an_interrupt_is_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    _, summary = prepared("plain")

    def interrupted(self: BranchAndBound) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BranchAndBound, "_loop", interrupted)
    advice = search(summary, policy_of({"k": 3}))
    assert advice.best is not None
    assert not advice.optimal
    assert advice.binding is None
    assert advice.search.bound >= advice.search.best
    json.dumps(advice.to_dict(), allow_nan=False)


def test_duplicate_groupings_are_dropped_and_said() -> None:
    table, _ = prepared("plain")
    policy = policy_of(
        {"k": 3},
        attributes={
            "pay": {"role": "feature", "masks": ["identity", {"round": {"step": 0.5}}, "suppress"]}
        },
    )
    advice = search(table, policy)
    assert advice.search.combinations == 50
    assert any("pay" in note and "left out" in note for note in advice.search.notes)
    assert advice.optimal


def test_single_candidates() -> None:
    table, _ = prepared("plain")
    only = {
        name: {"role": role, "masks": ["suppress"]}
        for name, role in (
            ("age", "quasi-identifier"),
            ("zip", "quasi-identifier"),
            ("pay", "feature"),
        )
    }
    advice = search(table, policy_of({"k": 3}, attributes=only))
    assert advice.search.combinations == 1
    assert advice.optimal
    assert advice.best.masks == {
        "age": "suppress",
        "zip": "suppress",
        "pay": "suppress",
        "ill": "identity",
    }
    assert advice.binding.finer == ()


def test_no_admissible_configuration_names_the_smallest_relaxation() -> None:
    table, _ = prepared("plain")
    fine = {
        "age": {
            "role": "quasi-identifier",
            "masks": ["identity", {"bucketize": {"width": 4}}, {"bucketize": {"width": 6}}],
        },
        "zip": {
            "role": "quasi-identifier",
            "masks": [{"blur": {"keep": 1}}, {"keep_frequent": {"count": 2}}],
        },
    }
    for rule in (
        {"k": 9},
        {"k": 3, "l_diversity": {"attribute": "ill", "kind": "entropy", "l": 2}},
    ):
        policy = policy_of(rule, attributes=fine)
        summary = summarize(table, policy)
        advice = search(summary, policy)
        assert advice.best is None
        assert not advice.optimal
        plan = PrivacyPlan(summary, policy.privacy)
        fewest = min(plan.check(c).suppressed_rows for c in all_choices(summary))
        assert advice.ranking[0].suppressed_rows == fewest
        with pytest.raises(NoAdmissibleConfiguration, match="12 combinations") as raised:
            advice.require_best()
        limit = float(str(raised.value).split("limit of ")[1].split(" ")[0])
        admitted = search(summary, policy_of({**rule, "suppression": limit}, attributes=fine))
        assert admitted.best is not None
        less = (fewest - 1) / summary.rows
        assert (
            search(summary, policy_of({**rule, "suppression": less}, attributes=fine)).best is None
        )
        json.dumps(advice.to_dict(), allow_nan=False)


def test_no_row_could_be_kept() -> None:
    table, _ = prepared("plain")
    policy = policy_of({"l_diversity": {"attribute": "ill", "kind": "distinct", "l": 4}})
    with pytest.raises(NoAdmissibleConfiguration, match="keep no row"):
        search(table, policy).require_best()


def test_a_label_that_may_be_suppressed() -> None:
    table, _ = prepared("plain")
    policy = policy_of({"k": 10}, label_masks=["identity", "suppress"])
    advice = search(table, policy, top=1000)
    plan = PrivacyPlan(summarize(table, policy), policy.privacy)
    admissible = [c for c in all_choices(plan.summary) if plan.check(c).admissible]
    assert len(advice.ranking) == len(admissible)
    blind = [r for r in advice.ranking if r.masks["y"] == "suppress"]
    assert blind
    assert all(r.score == 0 for r in blind)
    only = search(table, policy_of({"k": 10}, label_masks=["suppress"]), top=1)
    assert (only.best.score, only.best.after_suppression) == (0, None)


def test_more_rows_in_a_class_than_rows() -> None:
    with pytest.raises(PolicyError, match="61 rows in a class, but the table has 60"):
        search(prepared("plain")[1], policy_of({"k": 61}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "at least 1"),
        ({"time_limit": -1}, "0 or more"),
        ({"time_limit": math.nan}, "0 or more"),
        ({"objective": "pilai"}, "Did you mean 'pillai'"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        search_function(prepared("plain")[1], policy_of({"k": 2}), **options)


def test_without_a_bound_beyond_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[Searcher.__module__]
    monkeypatch.setattr(module, "ENUMERATED", 10)
    rule = rule_of(RULES[0], 0.12)
    searcher = shared("plain", "cmim")
    # Fewer admissible ones than are ranked anew: each was visited, and that is a proof.
    found, figures = searcher.run(rule, top=2, time_limit=None)
    assert figures.optimal
    assert [v for v, _ in found.best] == pytest.approx(expected("plain", "cmim", rule, 2))
    monkeypatch.setattr(module, "RERANKED", 5)
    found, figures = searcher.run(rule, top=2, time_limit=None)
    assert (figures.optimal, figures.exact, figures.bound, figures.gap) == (
        False,
        False,
        None,
        None,
    )
    assert any("nothing is proven" in note for note in figures.notes)
    plain = shared("plain", "pillai-plain").run(rule, top=5, time_limit=None)[0]
    again = sorted((searcher.objective.bound(box) for _, box in plain.best), reverse=True)
    assert [v for v, _ in found.best] == pytest.approx(again[:2])


def test_additive_objectives_are_all_attribute_measures() -> None:
    names = {m.name for m in MEASURES if m.scope is Scope.ATTRIBUTE} | set(LOSSES)
    assert set(objective_names()) == names | {
        "pillai",
        "pillai-plain",
        "pillai-held-out",
        "pillai-codings",
        "cmim",
    }
    problem = make_problem(prepared("plain")[1])
    assert [v.name for v in problem.variables] == ["age", "zip", "pay", "ill"]
