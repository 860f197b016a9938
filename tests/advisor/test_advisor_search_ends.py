"""How a search ends: out of time, interrupted, with nothing admissible, or refused."""

from __future__ import annotations

import contextlib
import json
import math
import signal
from typing import Any

import pytest
from advisor_support import RULES, all_choices, policy_of
from search_support import expected, fresh, prepared, rule_of, rules, shared

from aegis import search
from aegis import search as search_function
from aegis.advisor import PrivacyPlan
from aegis.advisor.search.branch import BranchAndBound, gap
from aegis.advisor.search.problem import Box
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.interrupts import check, watching
from aegis.summary import summarize


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
    policy = policy_of({"l_diversity": {"attribute": "ill", "kind": "recursive", "l": 3, "c": 0.9}})
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
