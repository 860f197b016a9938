"""A search without a time limit finds the same on a busy machine: its work is counted."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest

from advisor_support import policy_of
from aegis import Study
from aegis.advisor.search import Searcher
from aegis.advisor.search.problem import Clock, OutOfTimeError, Work
from aegis.requests import SEARCH_WORK
from search_support import prepared

CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time")
MEASURES = ("held-out-auc", "adjusted-pillai", "mi", "cmim")


class _Busy:
    """A clock on which an hour passes between two looks."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        self.now += 3600.0
        return self.now


def _found(measure: str, monkeypatch: pytest.MonkeyPatch, *, busy: bool, **given: Any) -> Any:
    table, _ = prepared("plain")
    with monkeypatch.context() as hours:
        for name in CLOCKS if busy else ():
            hours.setattr(time, name, _Busy())
        study = Study(table, policy_of({"k": 3}))
        return study.search(measure=measure, top=30, explain_best=True, **given)


def _stated(advice: Any) -> dict[str, Any]:
    stated = advice.to_dict()
    for name in ("timings", "summary"):
        stated.pop(name, None)
    stated["search"]["seconds"] = None
    return stated


@pytest.mark.parametrize("work", [0.01, 0.05, 0.2, SEARCH_WORK])
@pytest.mark.parametrize("measure", MEASURES)
def test_a_search_finds_the_same_on_a_clock_that_jumps(
    measure: str, work: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.advisor.search.searcher.ENUMERATED", 0)
    monkeypatch.setattr("aegis.advisor.search.searcher.LISTED", 5)
    idle = _found(measure, monkeypatch, busy=False, work=work)
    busy = _found(measure, monkeypatch, busy=True, work=work)
    assert _stated(idle) == _stated(busy)
    if work in (0.01, SEARCH_WORK):
        assert idle.search.stopped == ("time limit" if work == 0.01 else None)


def test_a_time_limit_is_still_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = _found("held-out-auc", monkeypatch, busy=True, time_limit=30.0, work=SEARCH_WORK)
    assert busy.search.stopped == "time limit"
    idle = _found("held-out-auc", monkeypatch, busy=False, time_limit=30.0, work=SEARCH_WORK)
    assert idle.search.stopped is None


def test_advise_counts_work_without_a_time_limit_and_proves_with_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks: list[Clock] = []
    proves: list[bool] = []
    run = Searcher.run

    def noted(self: Searcher, *args: Any, **options: Any) -> Any:
        clocks.append(options["time_limit"])
        proves.append(options["prove"])
        return run(self, *args, **options)

    monkeypatch.setattr(Searcher, "run", noted)
    table, _ = prepared("plain")
    study = Study(table, policy_of({"k": 3}))
    for limit in (None, 60.0):
        study.advise(measure="held-out-auc", time_limit=limit)
    assert (proves[0], proves[-1]) == (False, True)
    for name in CLOCKS:
        monkeypatch.setattr(time, name, _Busy())
    counted, timed = clocks[0], clocks[-1]
    assert 0.7 * SEARCH_WORK < (counted.left() or 0.0) < 0.8 * SEARCH_WORK
    assert timed.left() == 0.0


def test_less_work_is_a_shorter_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aegis.advisor.search.searcher.ENUMERATED", 0)
    done = [
        _found("held-out-auc", monkeypatch, busy=False, work=work).search.work.checked
        for work in (0.01, 0.1, SEARCH_WORK)
    ]
    assert done == sorted(done)
    assert done[0] < done[-1]


def test_a_counted_clock_ends_after_work_and_looks() -> None:
    work = Work()
    clock = Clock(1.0, work)
    part = clock.part(0.5)
    work.add(0.4)
    part.check()
    assert clock.allows(0.5)
    assert not part.allows(0.5)
    work.add(0.2)
    clock.check()
    with pytest.raises(OutOfTimeError):
        part.check()
    assert (part.left(), Clock(None, work).part(0.5).left()) == (0.0, None)
    while clock.allows():  # a strategy that announces no work ends as well
        with suppress(OutOfTimeError):
            clock.check()
    assert clock.left() == 0.0


def test_a_piece_of_work_is_expected_to_take_as_long_as_the_longest_so_far() -> None:
    work = Work()
    clock = Clock(10.0, work)
    assert clock.allows(0.1)
    work.add(4.0)
    assert clock.allows(0.1)
    assert not clock.allows(0.1, times=2)
    assert clock.allows()
