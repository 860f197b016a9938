"""Parts of a search, one by one: its clock, the counts that it reports, where it climbs, what its bound allows."""

from __future__ import annotations

import math
from itertools import pairwise, product
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from advisor_support import RULES
from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.search import Searcher
from aegis.advisor.search import feasibility as checks
from aegis.advisor.search import problem as clock
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.feasibility import InEngine, InMemory
from aegis.advisor.search.neighbours import NEXT, LocalSearch, next_finer
from aegis.advisor.search.problem import Box, Clock, OutOfTimeError, Problem, members
from aegis.advisor.search.rule_bounds import Judge
from aegis.measures import MEASURES
from aegis.policy import load_policy
from aegis.privacy import PrivacyRule
from aegis.summary import summarize
from search_support import fresh, prepared, rule_of, rules


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands at `now`."""
    moved = SimpleNamespace(now=100.0)
    moved.monotonic = lambda: moved.now
    monkeypatch.setattr(clock, "time", moved)
    return moved


def test_a_clock_counts_down_and_never_below_zero(hands: SimpleNamespace) -> None:
    limited = Clock(12.0)
    assert (limited.left(), limited.part(0.25).left()) == (12.0, 3.0)
    assert limited.allows(11.9)
    assert not limited.allows(12.0)
    limited.check(11.9)
    with pytest.raises(OutOfTimeError):
        limited.check(12.0)
    hands.now += 11.5
    assert (limited.left(), limited.allows(), limited.allows(0.5)) == (0.5, True, False)
    limited.check()
    hands.now += 0.5
    assert (limited.left(), limited.part(0.5).left(), limited.allows()) == (0.0, 0.0, False)
    with pytest.raises(OutOfTimeError):
        limited.check()
    hands.now += 5.0
    assert limited.left() == 0.0


def test_a_clock_without_a_limit_ends_only_where_it_is_stopped(hands: SimpleNamespace) -> None:
    endless = Clock(None)
    assert (endless.left(), endless.part(0.3).left(), endless.allows(math.inf)) == (
        None,
        None,
        True,
    )
    endless.check(1e9)
    endless.stop()
    assert (endless.left(), endless.allows()) == (0.0, False)
    with pytest.raises(OutOfTimeError):
        endless.check()


@pytest.mark.usefixtures("hands")
def test_a_climb_ends_where_its_time_is_over() -> None:
    searcher = fresh("plain", "nu-entropy", PrivacyRule())
    problem, feasibility = searcher.problem, searcher.feasibility(PrivacyRule())
    step = SimpleNamespace(advance=lambda amount: None, note=lambda text: None)
    search = BranchAndBound(
        problem, searcher.objective, feasibility, top=1, clock=Clock(0.0), step=step
    )
    with pytest.raises(OutOfTimeError):
        search._local.improved(next(problem.coarsest()), next_finer)


def counting(monkeypatch: pytest.MonkeyPatch, place: type, name: str, counted: list[str]) -> None:
    """Note each call of a method."""
    inner = getattr(place, name)

    def noted(*given: Any, **named: Any) -> Any:
        counted.append(name)
        return inner(*given, **named)

    monkeypatch.setattr(place, name, noted)


def test_a_search_reports_each_class_count_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []
    passes = InMemory._passes

    def passing(self: InMemory, box: Box, rule: PrivacyRule | None, *given: Any) -> bool:
        if rule is None and not self._bounds:
            counted.append("nothing to judge")
        return passes(self, box, rule, *given)

    monkeypatch.setattr(InMemory, "_passes", passing)
    counting(monkeypatch, InMemory, "_classes", counted)
    counting(monkeypatch, InMemory, "_judged", counted)
    counting(monkeypatch, Judge, "possible_in_parts", parts := [])
    seen: set[str] = set()
    for rule in rules():
        searcher = fresh("plain", "nu-entropy", rule)
        counted.clear()
        _, figures = searcher.run(rule, top=2, time_limit=None)
        assert figures.work.checked == len(counted)
        seen.update(counted, parts)
    assert {"_classes", "_judged", "possible_in_parts"} <= seen


def test_parts_of_classes_that_exclude_too_few_boxes_are_looked_at_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting(monkeypatch, Judge, "possible_in_parts", looks := [])
    limits = {"once": (0, 2.0), "twice": (2, 2.0), "always": (0, 0.0)}
    most = dict.fromkeys(limits, 0)
    for rule in rules():
        best = set()
        for name, (tried, worth) in limits.items():
            monkeypatch.setattr(checks, "_TRIED", tried)
            monkeypatch.setattr(checks, "_WORTH", worth)
            looks.clear()
            found, figures = fresh("plain", "nu-entropy", rule).run(rule, top=1, time_limit=None)
            assert figures.optimal
            best.add(round(found.best[0][0], 9) if found.best else None)
            most[name] = max(most[name], len(looks))
        assert len(best) == 1
    assert (most["once"], most["twice"]) == (1, 2)
    assert most["always"] > 2


@pytest.mark.parametrize("rows", [0.0, 0.2])
def test_a_search_admits_what_a_check_of_each_configuration_admits(rows: float) -> None:
    rule = PrivacyRule.parse({"k": 3, "suppression": rows})
    searcher = fresh("plain", "nu-entropy", rule)
    problem, feasibility = searcher.problem, searcher.feasibility(rule)
    boxes = list(product(*([1 << c for c in members(v.full)] for v in problem.variables)))
    Random(1).shuffle(boxes)
    met = [searcher.plan.check(problem.choice(box)).admissible for box in boxes]
    assert [feasibility.admits(box) for box in boxes] == met
    assert 0 < sum(met) < len(boxes)


def test_a_search_by_queries_reports_one_for_each_grouping_of_the_quasi_identifiers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = rule_of(RULES[0], 0.0)
    searcher = fresh("plain", "adjusted-pillai", rule)
    feasibility = InEngine(searcher.problem, searcher.plan, Clock(None))
    counted: list[str] = []
    counting(monkeypatch, PrivacyPlan, "check", counted)
    for box in leaves(searcher.problem, searcher.problem.root)[:12]:
        feasibility.admits(box)
        feasibility.admits(box)
    assert feasibility.checked == len(counted) > 1


def leaves(problem: Problem, box: Box) -> list[Box]:
    """Return every configuration of a box."""
    return [tuple(1 << c for c in one) for one in product(*map(members, box))]


@pytest.mark.parametrize(
    ("top", "gap", "complete", "said"),
    [(2, 0.0, False, True), (1, 0.0, False, False), (2, 0.5, False, False), (2, 0.0, True, False)],
)
def test_only_a_first_that_is_proven_alone_says_that_the_order_is_not(
    top: int, gap: float, complete: bool, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = rule_of(RULES[0], 0.0)
    searcher = fresh("plain", "adjusted-pillai", rule)
    box = next(searcher.problem.coarsest())
    found = Found(best=[(1.0, box)], bound=1.0 + gap, complete=complete)
    strategy = SimpleNamespace(search=lambda *_, **__: found)
    monkeypatch.setattr("aegis.advisor.search.searcher.suiting", lambda *_: strategy)
    _, figures = searcher.run(rule, top=top, time_limit=None)
    note = "the first is proven best, the order of the others is not"
    assert (note in figures.notes) == said
    assert (figures.optimal, figures.gap) == (gap == 0, gap)


@pytest.mark.parametrize(
    ("generous", "bound", "said"), [(False, 2.0, False), (True, 2.0, True), (True, 1.0, False)]
)
def test_a_bound_that_ignores_the_rule_says_so_unless_it_proves_the_best(
    generous: bool, bound: float, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = rule_of(RULES[0], 0.0)
    searcher = fresh("plain", "adjusted-pillai", rule)
    found = Found(best=[(1.0, next(searcher.problem.coarsest()))], bound=bound, generous=generous)
    strategy = SimpleNamespace(search=lambda *_, **__: found)
    monkeypatch.setattr("aegis.advisor.search.searcher.suiting", lambda *_: strategy)
    _, figures = searcher.run(rule, top=1, time_limit=None)
    assert any("the bound ignores the privacy rule" in note for note in figures.notes) == said


def problem_of(rows: int, **masks: list[Any]) -> tuple[Problem, Searcher]:
    """Return a problem over a column `a` in which every row has a value of its own, and `b`."""
    table = pa.table(
        {
            "a": list(range(rows)),
            "b": ["u", "v"] * (rows // 2),
            "y": ["n", "p", "p"] * (rows // 3),
        }
    )
    attributes = {name: {"role": "feature", "masks": own} for name, own in masks.items()}
    read = load_policy({"version": 1, "label": "y", "privacy": {"k": 1}, "attributes": attributes})
    summary = summarize(table, read)
    plan = PrivacyPlan(summary, read.privacy)
    searcher = Searcher(summary, plan, "adjusted-pillai", "adjusted-pillai")
    return searcher.problem, searcher


@pytest.mark.parametrize("rows", [6, 12])
@pytest.mark.parametrize(
    "masks",
    [
        ["identity"],
        ["identity", "suppress"],
        [{"bucketize": {"width": 2}}, "suppress"],
        ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 4}}],
    ],
)
def test_the_bound_holds_without_a_degree_of_freedom_left(rows: int, masks: list[Any]) -> None:
    """The finest, or even the coarsest masks of a box have as many levels as there are rows."""
    problem, searcher = problem_of(rows, a=masks, b=["identity", "suppress"])
    scorer, measure = Scorer(searcher.summary), MEASURES.get("adjusted-pillai")
    domains = [[d for d in range(1, v.full + 1) if d & ~v.full == 0] for v in problem.variables]
    for box in product(*domains):
        inside = leaves(problem, box)
        scores = [scorer.value(problem.choice(leaf), measure) for leaf in inside]
        assert searcher.objective.bound(box) >= max(scores) - 1e-9
        if len(inside) == 1:
            assert searcher.objective.bound(box) == pytest.approx(scores[0], abs=1e-9)


def test_a_climb_begins_at_the_fewest_groups_and_the_finest_protected_values() -> None:
    _, summary = prepared("protected attribute with masks")
    searcher = Searcher(summary, PrivacyPlan(summary, PrivacyRule()), "g3", "g3")
    problem = searcher.problem
    first, second = problem.coarsest()
    for variable, a, b in zip(problem.variables, first, second, strict=True):
        sizes = [c.size for c in variable.candidates]
        assert sizes[b.bit_length() - 1] == min(sizes)
        assert a.bit_count() == b.bit_count() == 1
        wanted = max if variable.name == "ill" else min
        assert sizes[a.bit_length() - 1] == wanted(sizes)


def test_next_finer_masks_have_none_in_between_and_the_fewest_groups_come_first() -> None:
    widths = [{"bucketize": {"width": w}} for w in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)]
    problem, _ = problem_of(60, a=["identity", *widths, "suppress"], b=["identity", "suppress"])
    [variable] = (v for v in problem.variables if v.name == "a")
    for current in range(len(variable.candidates)):
        finer = [c for c in members(variable.finer[current]) if c != current]
        covers = [
            c for c in finer if not any(o != c and variable.coarser[c] >> o & 1 for o in finer)
        ]
        sizes = [variable.candidates[c].size for c in next_finer(variable, current)]
        assert sizes == sorted(variable.candidates[c].size for c in covers)[:NEXT]
    assert len(next_finer(variable, len(variable.candidates) - 1)) == NEXT == 8


def test_a_climb_takes_the_move_that_gains_most() -> None:
    """In a sum over attributes a gain does not change while other masks become finer."""
    searcher = fresh("plain", "nu-entropy", PrivacyRule())
    problem, objective = searcher.problem, searcher.objective
    kept: list[Box] = []

    def value(box: Box) -> float:
        if not kept or objective.bound(box) > objective.bound(kept[-1]):
            kept.append(box)
        return objective.bound(box)

    local = LocalSearch(problem, objective.upper, value)
    end = local.improved(next(problem.coarsest()), next_finer)
    assert kept[-1] == end
    for before, after in pairwise(kept):
        moves = [
            (*before[:i], 1 << c, *before[i + 1 :])
            for i, domain in enumerate(before)
            for c in next_finer(problem.variables[i], domain.bit_length() - 1)
        ]
        gains = [objective.upper(move) - objective.upper(before) for move in moves]
        own = objective.upper(after) - objective.upper(before)
        assert after in moves
        assert own == pytest.approx(max(gains))
        assert own > 0
    assert len(kept) > 4
