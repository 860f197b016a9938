"""The search against brute force over every combination."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from advisor_support import RULES, all_choices, policy_of
from aegis import search
from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.plan import plan_of
from aegis.advisor.search import Searcher
from aegis.advisor.search.problem import Box, members
from aegis.advisor.search.search import objective_names
from aegis.measures import MEASURES, Scope
from aegis.measures.cooccurrence import NUMBER_MEASURE
from aegis.summary import summarize
from aegis.summary.count_cells import count_cells
from search_support import (
    LOSSES,
    MASKED_ILL,
    OF_CLASSES,
    VARIANTS,
    assert_best,
    expected,
    policy_with,
    prepared,
    rows_of,
    rule_of,
    rules,
    shared,
)

EVERYWHERE = [(v, o) for v in VARIANTS for o in ("adjusted-mi", "discernibility")]


@pytest.mark.parametrize(("variant", "objective"), [("plain", "adjusted-pillai"), *EVERYWHERE])
def test_every_rule(variant: str, objective: str) -> None:
    # One of the seven is held against every rule, the others against every third, in turn.
    first, step = (0, 1) if objective == "adjusted-pillai" else (list(VARIANTS).index(variant), 3)
    for rule in list(rules())[first::step]:
        assert_best(shared(variant, objective), variant, rule, top=3)


MONOTONE = [m.name for m in MEASURES if m.monotone and m.scope is Scope.CONFIGURATION]


@pytest.mark.parametrize("name", MONOTONE)
def test_no_coarser_mask_improves_a_measure_that_says_so(name: str) -> None:
    measure = MEASURES.get(name)
    for seed in (2, 3):
        _, summary = prepared("plain", seed)
        scorer = Scorer(summary)
        problem = Searcher(summary, plan_of(summary, policy_of()), "mi", name).problem
        for choice in all_choices(summary)[::7]:
            score = measure.direction.sign * scorer.value(choice, measure)
            for variable in problem.variables:
                place = variable.candidates.index(choice[variable.name])
                for coarser in members(variable.coarser[place]):
                    masked = choice | {variable.name: variable.candidates[coarser]}
                    less = measure.direction.sign * scorer.value(masked, measure)
                    assert less <= score + 1e-9, (variable.name, coarser)


SLOW = ("held-out-accuracy", "held-out-log-loss")
"""Measures that share all but the last step with held-out-auc, which is searched under both variants."""


@pytest.mark.parametrize("objective", [n for n in objective_names() if n != NUMBER_MEASURE])
def test_every_objective(objective: str) -> None:
    for variant in ("plain", "label with masks")[: 1 if objective in SLOW else 2]:
        for rule in (rule_of(RULES[0], 0.12), rule_of(RULES[-1], 0)):
            assert_best(shared(variant, objective), variant, rule, top=4)


def test_all_that_are_admissible_in_order() -> None:
    rule = rule_of(RULES[0], 0.12)
    assert_best(shared("plain", "adjusted-pillai"), "plain", rule, top=1000)


@pytest.mark.parametrize("seed", [2, 3])
def test_other_tables(seed: int) -> None:
    _, summary = prepared("plain", seed)
    scorer = Scorer(summary)
    for name in ("adjusted-pillai", "g3"):
        measure = MEASURES.get(name)
        for rule in (rule_of({"k": 4}, 0.1), rule_of(RULES[7], 0)):
            plan = PrivacyPlan(summary, rule)
            values = [
                measure.direction.sign * scorer.value(choice, measure)
                for choice in all_choices(summary)
                if plan.check(choice).admissible
            ]
            found, _ = Searcher(summary, plan, name, "adjusted-pillai").run(
                rule, top=2, time_limit=None
            )
            wanted = sorted(values, reverse=True)[:2]
            assert [v for v, _ in found.best] == pytest.approx(wanted, rel=1e-9)


def test_pooled_levels_keep_the_bound_valid() -> None:
    table, _ = prepared("plain")
    summary = summarize(table, policy_of(), max_levels=3)
    rule = rule_of(RULES[0], 0.12)
    plan = PrivacyPlan(summary, rule)
    scorer, measure = Scorer(summary), MEASURES.get("adjusted-pillai")
    values = [scorer.value(c, measure) for c in all_choices(summary) if plan.check(c).admissible]
    found, _ = Searcher(summary, plan, "adjusted-pillai", "adjusted-pillai").run(
        rule, top=1, time_limit=None
    )
    assert found.best[0][0] == pytest.approx(max(values), rel=1e-9)


def boxes(searcher: Searcher, seed: int = 0, count: int = 40) -> Iterator[Box]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield tuple(int(random.integers(1, v.full + 1)) for v in searcher.problem.variables)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "objective",
    [
        "adjusted-pillai",
        "pillai-plain",
        "held-out-pillai-values",
        "mi",
        "adjusted-cramers-v",
        "loss(factor=0.7)",
        "average-class-size(factor=0.1)",
        "average-class-size(factor=0.9)",
        "classification(charges=arx, factor=0.3)",
        *OF_CLASSES,
    ],
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
    for leaf in leaves:
        assert searcher.objective.upper(leaf) >= bound(leaf) - 1e-9


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


@pytest.mark.parametrize("objective", ["adjusted-pillai", "discernibility"])
def test_in_the_engine_as_in_memory(monkeypatch: pytest.MonkeyPatch, objective: str) -> None:
    table, whole = prepared("protected attribute with masks")
    policy = policy_of(ill_masks=MASKED_ILL)
    small = partial(count_cells, max_cells=5)
    monkeypatch.setattr("aegis.summary.builder.count_cells", small)
    for rule in (rule_of(RULES[-1], 0.12), rule_of(RULES[7], 0))[objective != "adjusted-pillai" :]:
        changed = policy_with(policy, rule)
        advice = search(table, changed, objective=objective, top=3, explain_best=False)
        assert "engine" in " ".join((*advice.warnings, *advice.search.notes))
        same = search(whole, changed, objective=objective, top=3, explain_best=False)
        assert advice.optimal
        values = [(r.score if r.objective is None else r.objective) for r in advice.ranking]
        wanted = [(r.score if r.objective is None else r.objective) for r in same.ranking]
        assert values == pytest.approx(wanted)
        assert all(r.admissible for r in advice.ranking)


def test_without_a_bound_beyond_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[Searcher.__module__]
    monkeypatch.setattr(module, "ENUMERATED", 10)
    rule = rule_of(RULES[0], 0.12)
    searcher = shared("plain", "cmim")
    # Fewer admissible ones than are ranked anew: each was visited, and that is a proof.
    found, figures = searcher.run(rule, top=2, time_limit=None)
    assert figures.optimal
    assert [v for v, _ in found.best][:2] == pytest.approx(expected("plain", "cmim", rule, 2))
    assert figures.proven is not None
    assert figures.proven.least is None
    monkeypatch.setattr(module, "LISTED", 5)
    found, figures = searcher.run(rule, top=2, time_limit=None)
    assert (figures.optimal, figures.exact, figures.bound, figures.gap) == (
        False,
        False,
        None,
        None,
    )
    assert figures.proven.configurations <= 5
    assert figures.proven.least is not None
    by_trace = shared("plain", "adjusted-pillai").run(rule, top=5, time_limit=None)[0]
    again = sorted((searcher.objective.bound(box) for _, box in by_trace.best), reverse=True)
    # What is near the best of the list was tried, too: nothing is worse than the best of those.
    assert all(v >= listed - 1e-9 for (v, _), listed in zip(found.best, again, strict=False))


@pytest.mark.wings
def test_every_measure_and_every_loss_is_an_objective() -> None:
    assert set(objective_names()) == {m.name for m in MEASURES} | set(LOSSES)
