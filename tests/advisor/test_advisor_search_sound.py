"""What a search rules out, how it divides its time, and which rules it lists: single parts of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

import aegis
from advisor_support import policy_of, random_rows, table_of
from aegis.advisor import PrivacyPlan
from aegis.advisor.confidence import Prefer
from aegis.advisor.search import Searcher
from aegis.advisor.search.corner_classes import CornerClasses, RuleCells
from aegis.advisor.search.feasibility import InMemory
from aegis.advisor.search.front import FrontRange, _FrontStrength, _settle, prefer_among_ties
from aegis.advisor.search.objective import seconds_of
from aegis.advisor.search.problem import Box, Clock, Problem, Work, members
from aegis.privacy import PrivacyRule
from aegis.summary import summarize
from search_support import fresh, rule_of, rules


def leaves(box: Box) -> list[Box]:
    """Return every configuration of a box."""
    return [tuple(1 << c for c in one) for one in product(*map(members, box))]


def boxes(problem: Problem) -> Iterator[Box]:
    """Yield the whole space, and the boxes that leave a variable some neighbours of its candidates."""
    yield problem.root
    for index, domain in enumerate(problem.root):
        inside = list(members(domain))
        for start in range(len(inside)):
            for end in range(start + 1, len(inside) + 1):
                chosen = sum(1 << c for c in inside[start:end])
                yield (*problem.root[:index], chosen, *problem.root[index + 1 :])


@pytest.mark.parametrize("seed", range(3))
def test_counts_in_memory_rule_out_only_boxes_without_an_admissible_configuration(
    seed: int,
) -> None:
    summary = summarize(table_of(random_rows(seed)), policy_of())
    struck = 0
    for rule in rules():
        searcher = Searcher(summary, PrivacyPlan(summary, rule), "nu-entropy", "adjusted-pillai")
        feasibility, problem = searcher.feasibility(rule), searcher.problem
        good = {
            box
            for box in leaves(problem.root)
            if searcher.plan.check(problem.choice(box)).admissible
        }
        for box in boxes(problem):
            narrowed = feasibility.narrow(box)
            rest = set() if narrowed is None else set(leaves(narrowed))
            struck += narrowed is None
            assert good & set(leaves(box)) <= rest, f"{rule} {box}"
    assert struck > 20


BESIDE_INPUT: tuple[dict[str, Any], ...] = (
    {"t_closeness": {"distance": "equal", "t": 0.3}},
    {"t_closeness": {"distance": "ordered", "t": 0.25}},
    {"beta_likeness": {"kind": "basic", "beta": 1.2}},
    {"delta_disclosure": {"values": "all", "delta": 1.2}},
)
"""Models that compare classes with the table before suppression."""


@pytest.mark.parametrize("matrices", [True, False], ids=["matrices", "cells"])
@pytest.mark.parametrize("model", BESIDE_INPUT, ids=str)
def test_classes_are_compared_with_all_rows_of_the_table(
    model: dict[str, Any], matrices: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not matrices:
        monkeypatch.setattr("aegis.advisor.search.rule_bounds._PLACES", 0)
    asked = {k: {"attribute": "ill", "reference": "input", **own} for k, own in model.items()}
    diverse = {"l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2}}
    answers = set()
    for seed in range(3):
        summary = summarize(table_of(random_rows(seed)), policy_of())
        for rule in (
            rule_of({"k": 2, **asked, **more}, s) for more in ({}, diverse) for s in (0.0, 0.2)
        ):
            searcher = Searcher(
                summary, PrivacyPlan(summary, rule), "nu-entropy", "adjusted-pillai"
            )
            feasibility, problem = searcher.feasibility(rule), searcher.problem
            for box in leaves(problem.root):
                checked = searcher.plan.check(problem.choice(box)).admissible
                assert feasibility.admits(box) == checked, f"{rule} {box}"
                answers.add(checked)
    assert answers == {True, False}


@pytest.mark.parametrize("cached", [1 << 26, 0], ids=["cached", "computed again"])
def test_classes_of_boxes_are_those_of_their_groupings(
    cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.advisor.search.corner_classes._CACHED", cached)
    summary = summarize(table_of(random_rows(4)), policy_of())
    assert summary.frequency is not None
    plan = PrivacyPlan(summary, rule_of({"k": 2}, 0.0))
    problem = Searcher(summary, plan, "nu-entropy", "adjusted-pillai").problem
    cells = RuleCells(summary.frequency, all_cells=True)
    corners = CornerClasses(problem, cells)
    some = [*boxes(problem), *leaves(problem.root)]
    for box in [*some, *reversed(some)]:
        for finest, ids in ((False, corners.of(box)[0]), (True, corners.finest_of(box)[0])):
            shown = [
                cells.code(v.name, v.join(domain) if finest else v.meet(domain)).tolist()
                for v, domain in zip(problem.variables, box, strict=True)
                if v.quasi
            ]
            classes = list(zip(*shown, strict=True))
            both = set(zip(classes, ids.tolist(), strict=True))
            assert len(both) == len(set(classes)) == len(set(ids.tolist()))


def test_a_rule_that_counts_persons_does_not_depend_on_rows_alone() -> None:
    table = table_of(random_rows(1))
    people = table.append_column("person", [[i // 2 for i in range(table.num_rows)]])
    policy = policy_of()
    rows = summarize(table, policy)
    persons = summarize(people, aegis.load_policy({**raw(policy), "person": "person"}))
    for summary, alone in ((rows, True), (persons, False)):
        plan = PrivacyPlan(summary, PrivacyRule.parse({"k": 3}))
        searcher = Searcher(summary, plan, "nu-entropy", "adjusted-pillai")
        feasibility = searcher.feasibility(plan.rule)
        assert isinstance(feasibility, InMemory)
        assert feasibility.by_sizes is alone


def raw(policy: Any) -> dict[str, Any]:
    """Return a policy as the mapping that it was read from."""
    from aegis.policy import policy_mapping

    return dict(policy_mapping(policy))


def test_a_part_of_a_clock_ends_with_its_share_of_what_is_left() -> None:
    work = Work()
    clock = Clock(10.0, work)
    work.add(4.0)
    assert clock.part().left() == 6.0
    assert clock.part(0.5).left() == 3.0
    assert Clock(None).part().left() is None


def test_a_range_of_shares_has_eleven_steps_within_it() -> None:
    values = FrontRange.parse("suppression=0.1..0.3").values
    assert values == tuple(sorted((round(0.1 + 0.02 * i, 10) for i in range(11)), reverse=True))


def test_a_search_that_was_cut_off_keeps_what_it_found() -> None:
    searcher = fresh("plain", "nu-entropy", rule_of({"k": 3}, 0.12))
    best = next(
        b
        for b in leaves(searcher.problem.root)
        if searcher.feasibility(searcher.plan.rule).admits(b)
    )
    figures = SimpleNamespace(exact=True)
    outcome = SimpleNamespace(
        best=[(searcher.objective.bound(best), best)], bound=1e9, complete=False, interrupted=False
    )
    stub = SimpleNamespace(
        run=lambda *_, **__: (outcome, figures),
        plan=searcher.plan,
        problem=searcher.problem,
        objective=searcher.objective,
    )
    strength = _FrontStrength(0.12, searcher.plan.rule, searcher.objective)
    _settle(stub, strength, [], Clock(None), 1)  # type: ignore[arg-type]
    assert strength.box == best


def test_a_fit_takes_no_time_once_it_is_known() -> None:
    searcher = fresh("plain", "adjusted-pillai", rule_of({"k": 3}, 0.0))
    box = leaves(searcher.problem.root)[0]
    assert searcher.objective.effort(box) == seconds_of(searcher.problem, box) > 0
    searcher.objective.bound(box)
    assert searcher.objective.effort(box) == 0


def test_masks_of_many_levels_are_bounded_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(random_rows(2))
    policy = raw(policy_of())
    policy = {key: own for key, own in policy.items() if key != "label"} | {"labels": "any"}
    best = aegis.Study(table, policy).search()
    monkeypatch.setattr("aegis.advisor.search.objective._LEVELS", 3)
    again = aegis.Study(table, policy).search()
    assert again.best is not None
    assert best.best is not None
    assert again.best.score == best.best.score
    assert again.best.configuration.spec() == best.best.configuration.spec()


def test_of_equal_scores_and_masks_the_best_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = fresh("plain", "nu-entropy", rule_of({"k": 3}, 0.12))
    first, second, third = leaves(searcher.problem.root)[:3]
    masked = {first: 0.5, second: 0.5, third: 0.5}
    rows = {first: 9, second: 5, third: 0}
    monkeypatch.setattr(
        "aegis.advisor.search.front.Masking", lambda *_, **__: SimpleNamespace(share=masked.get)
    )
    stub = SimpleNamespace(
        objective=SimpleNamespace(bounded=False, divides=False, sign=1.0),
        problem=searcher.problem,
        plan=searcher.plan,
        verdict=lambda box, _: SimpleNamespace(suppressed_rows=rows[box]),
    )
    outcome = SimpleNamespace(best=[(1.0, first), (1.0, second), (1.0, third)])

    def preferred() -> Box:
        return prefer_among_ties(stub, outcome, Prefer.LEAST_MASKING, 0.1, Clock(None))[0]  # type: ignore[arg-type]

    assert preferred() == first
    masked[first] = 0.9
    assert preferred() == third  # of the two that mask less, the one that suppresses fewer rows


def test_an_adjusted_trace_is_bounded_by_the_plain_one() -> None:
    rule = rule_of({"k": 3}, 0.0)
    adjusted = fresh("plain", "adjusted-pillai", rule)
    plain = fresh("plain", "pillai-plain", rule)
    for box in boxes(adjusted.problem):
        assert adjusted.objective.bound(box) <= plain.objective.bound(box) + 1e-12


def test_a_limit_in_seconds_takes_the_place_of_counted_work() -> None:
    study = aegis.Study(table_of(random_rows(1)), policy_of())
    for limits, optimal in (({"work": 1e-9}, False), ({"work": 1e-9, "time_limit": 60}, True)):
        figures = study.search(**limits).search
        assert figures is not None
        assert figures.optimal is optimal
