"""How a search ends: out of time, interrupted, with nothing admissible, or refused."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import time
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from advisor_support import RULES, all_choices, policy_of
from aegis import search
from aegis import search as search_function
from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.scoring import Choice
from aegis.advisor.search.branch import BranchAndBound, gap
from aegis.advisor.search.problem import Box
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.files import check, watching
from aegis.measures import Measure
from aegis.summary import summarize
from search_support import expected, fresh, prepared, rule_of, rules, shared


def test_time_limit_zero_gives_an_incumbent_and_its_gap() -> None:
    _, summary = prepared("plain")
    for objective in ("adjusted-pillai", "g3", "nu-entropy", "discernibility"):
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
    asked = policy_of({"k": 3})
    advice = search(summary, asked, measure="adjusted-pillai", explain_best=True)
    assert advice.best is not None
    assert not advice.optimal
    assert advice.binding is None
    assert advice.search.bound >= advice.search.best
    assert any("interrupted" in note for note in advice.search.notes)
    json.dumps(advice.to_dict(), allow_nan=False)


@pytest.mark.usefixtures("interruptible")
def test_a_search_notices_an_interrupt_that_a_library_swallowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, summary = prepared("plain")
    whole = search(summary, policy_of({"k": 3}))
    assert not any("interrupted" in note for note in whole.search.notes)
    loop, sent = BranchAndBound._loop, []

    def swallowing(self: BranchAndBound) -> None:
        if not sent:
            sent.append(self)
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        loop(self)

    monkeypatch.setattr(BranchAndBound, "_loop", swallowing)
    with watching():
        advice = search(summary, policy_of({"k": 3}))
        check()  # the search has answered for it
    assert advice.best is not None
    assert any("interrupted" in note for note in advice.search.notes)


@pytest.mark.parametrize("objective", ["adjusted-pillai", "nu-entropy", "discernibility", "g3"])
def test_the_coarsest_combination_is_checked_first_and_kept(objective: str) -> None:
    for rule in rules():
        searcher = fresh("plain", objective, rule)
        found, figures = searcher.run(rule, top=1, time_limit=0)
        if searcher.feasibility(rule).narrow(searcher.problem.root) is None:
            assert (found.best, figures.complete, figures.work.checked) == ([], True, 1)
        elif rule.monotone:
            # Out of time at once, the coarsest is known to be admissible all the same.
            assert found.best
            assert not figures.complete
            assert figures.stopped == "time limit"


def test_a_stopped_search_says_so_and_never_that_nothing_meets_the_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, _ = prepared("plain")
    rule = {"k": 3, "delta_disclosure": {"attribute": "ill", "delta": 1.0, "values": "present"}}
    summary = summarize(table, policy_of(rule))
    assert search(summary, policy_of(rule)).best is not None
    monkeypatch.setattr("aegis.advisor.search.feasibility.InMemory.admits", lambda _, __: False)
    monkeypatch.setattr("aegis.advisor.search.searcher.find_closest", lambda *_: None)
    advice = search(summary, policy_of(rule), time_limit=0)
    assert advice.undecided
    assert advice.search.stopped == "time limit"
    assert any("there may be one" in note for note in advice.search.notes)
    with pytest.raises(NoAdmissibleConfiguration, match="has not checked all of them"):
        advice.require_best()


def test_what_is_impossible_is_proven_at_once() -> None:
    table, _ = prepared("plain")
    fine = {
        name: {"role": "quasi-identifier", "masks": ["identity", {"keep_frequent": {"count": 2}}]}
        for name in ("age", "zip")
    }
    policy = policy_of({"k": 30}, attributes=fine)
    advice = search(summarize(table, policy), policy, time_limit=0)
    assert advice.search.complete
    assert advice.search.work.checked == 1
    assert not advice.undecided
    with pytest.raises(NoAdmissibleConfiguration, match="proven"):
        advice.require_best()


class _Heavy:
    """An objective whose scores take as long as they say, on a clock that they move."""

    def __init__(self, inner: Any, clock: _Hands) -> None:
        self.inner = inner
        self.clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def effort(self, box: Box) -> float:
        return 0.1 * sum(domain.bit_count() for domain in box)

    def bound(self, box: Box) -> float:
        self.clock.now += self.effort(box)
        return float(self.inner.bound(box))


class _Hands:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("limit", [0.0, 1.0, 5.0, 30.0])
def test_no_score_is_begun_after_the_limit(monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
    hands = _Hands()
    monkeypatch.setattr("aegis.advisor.search.problem.time", hands)
    rule = rule_of(RULES[0], 0.0)
    searcher = fresh("plain", "nu-entropy", rule)
    searcher.objective = _Heavy(searcher.objective, hands)
    found, _ = searcher.run(rule, top=1, time_limit=limit)
    assert found.best
    # The coarsest and the root are scored in any case; one more may be under way.
    longest = 0.1 * sum(len(v.candidates) for v in searcher.problem.variables)
    assert hands.now <= limit + 4 * longest


def test_duplicate_groupings_are_dropped_and_said() -> None:
    table, _ = prepared("plain")
    policy = policy_of(
        {"k": 3},
        attributes={
            "pay": {"role": "feature", "masks": ["identity", {"round": {"step": 0.5}}, "suppress"]}
        },
    )
    advice = search(table, policy)
    assert advice.search.work.combinations == 50
    assert any("pay" in note and "skipped" in note for note in advice.search.notes)
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
    advice = search(table, policy_of({"k": 3}, attributes=only), explain_best=True)
    assert advice.search.work.combinations == 1
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
    policy = policy_of({"l_diversity": {"attribute": "ill", "kind": "recursive", "l": 3, "c": 0.9}})
    with pytest.raises(NoAdmissibleConfiguration, match="suppress every row"):
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
    assert all(r.score == 0.5 for r in blind)  # the AUC of a constant
    only = search(table, policy_of({"k": 10}, label_masks=["suppress"]), top=1)
    assert (only.best.score, only.best.utility.value) == (0.5, 0.5)
    assert only.best.utility.utility_kept == 0


def test_more_rows_in_a_class_than_rows() -> None:
    with pytest.raises(PolicyError, match="61 rows in a class, but the table has 60"):
        search(prepared("plain")[1], policy_of({"k": 61}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "at least 1"),
        ({"time_limit": -1}, "0 or more"),
        ({"time_limit": math.nan}, "0 or more"),
        ({"objective": "adjusted-pilai"}, "Did you mean 'adjusted-pillai'"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        search_function(prepared("plain")[1], policy_of({"k": 2}), **options)


def test_a_search_works_out_what_binds_and_what_masks_cost_where_it_is_asked_to(
    monkeypatch,
) -> None:
    table, _ = prepared("plain")
    scored: list[str] = []

    def counted(self: Scorer, choice: Choice, measure: Measure) -> float:
        scored.append(measure.name)
        return value(self, choice, measure)

    value = Scorer.value
    monkeypatch.setattr(Scorer, "value", counted)
    quick = search(table, policy_of({"k": 3}), objective="loss", top=2)
    # The unmasked table, and each of two configurations, compared with it.
    assert len(scored) <= 5
    assert (quick.binding, quick.expected, dict(quick.lost_alone)) == (None, None, {})
    assert quick.best.utility is None
    asked = search(table, policy_of({"k": 3}), objective="loss", top=2, explain_best=True)
    assert asked.best.configuration.masks == quick.best.configuration.masks
    assert asked.binding.relaxations
    assert asked.lost_alone
    assert asked.best.utility is not None
    assert search(table, policy_of({"k": 3}), top=2).best.utility is not None


def test_a_time_limit_is_not_overshot_by_a_bound_that_takes_longer_than_is_left(
    monkeypatch,
) -> None:
    rule = rule_of({"k": 3}, 0.1)
    searcher = fresh("plain", "held-out-auc", rule)
    monkeypatch.setattr("aegis.advisor.search.searcher.ENUMERATED", 0)
    monkeypatch.setattr("aegis.advisor.search.searcher.LISTED", 2)
    value, bounded = Scorer.value, []

    def slowly(self: Scorer, choice: Choice, measure: Measure) -> float:
        time.sleep(0.2)
        return value(self, choice, measure)

    monkeypatch.setattr(Scorer, "value", slowly)
    reach = "aegis.advisor.search.objective.FinestBound.bound"
    monkeypatch.setattr(reach, lambda *_: bounded.append(time.perf_counter()) or 1.0)
    began = time.perf_counter()
    found, figures = searcher.run(rule, top=2, time_limit=0.6)
    assert found.best
    assert not found.complete
    assert not bounded
    assert figures.bound is None or math.isinf(figures.bound)
    assert time.perf_counter() - began < 0.6 + 0.2
    monkeypatch.setattr(Scorer, "value", value)
    searcher.run(rule, top=2, time_limit=60)
    assert len(bounded) == 1


@pytest.mark.skipif(os.cpu_count() == 1, reason="BLAS has one thread anyway")
def test_a_search_of_the_searcher_holds_blas_to_one_thread(monkeypatch) -> None:
    rule = rule_of({"k": 3}, 0.1)
    searcher = fresh("plain", "held-out-auc", rule)
    seen: set[int] = set()
    value = Scorer.value

    def watched(self: Scorer, choice: Choice, measure: Measure) -> float:
        seen.update(of["num_threads"] for of in threadpool_info() if of["user_api"] == "blas")
        return value(self, choice, measure)

    monkeypatch.setattr(Scorer, "value", watched)
    with threadpool_limits(limits=2, user_api="blas"):
        searcher.run(rule, top=1, time_limit=None)
        free = {of["num_threads"] for of in threadpool_info() if of["user_api"] == "blas"}
    assert seen == {1}
    assert free == {2}
