"""The ledger: ceilings, states, parallel processes, kills at every step, tampering."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.safe.ledger import EntryState, Ledger, Spend


@pytest.fixture
def ledger(tmp_path):
    book = Ledger(tmp_path / "book.ledger", create=True)
    book.open_population("adults", ceiling=1.0, delta=1e-6)
    return book


def test_a_cost_is_reserved_begun_and_committed(ledger):
    entry = ledger.reserve("adults", Spend("tables", 0.25), note="first")
    assert ledger.balance("adults").remaining == pytest.approx(0.75)
    ledger.begin(entry)
    ledger.commit(entry, "d" * 64)
    [told] = ledger.entries("adults")
    assert (told.state, told.digest, told.note) == (EntryState.COMMITTED, "d" * 64, "first")
    assert ledger.verify() == 4


def test_a_ceiling_refuses_and_reserves_nothing(ledger):
    ledger.reserve("adults", Spend("a", 0.7))
    with pytest.raises(PolicyError, match="budget of 'adults' is too small"):
        ledger.reserve("adults", Spend("b", 0.31))
    assert ledger.balance("adults").spent == pytest.approx(0.7)
    ledger.reserve("adults", Spend("c", 0.3))
    assert ledger.balance("adults").remaining == pytest.approx(0)


def test_nothing_is_given_back_after_output(ledger):
    early = ledger.reserve("adults", Spend("a", 0.5))
    ledger.cancel(early)
    assert ledger.balance("adults").spent == 0
    late = ledger.reserve("adults", Spend("a", 0.5))
    ledger.begin(late)
    with pytest.raises(PolicyError, match="is begun"):
        ledger.cancel(late)
    ledger.commit(late, "x")
    for move in (lambda: ledger.cancel(late), lambda: ledger.commit(late, "y")):
        with pytest.raises(PolicyError, match="is committed"):
            move()
    assert ledger.balance("adults").spent == pytest.approx(0.5)


def test_work_that_fails_before_output_costs_nothing(ledger):
    with pytest.raises(ValueError, match="before"), ledger.spending("adults", Spend("a", 0.4)):
        raise ValueError("before")
    assert ledger.balance("adults").spent == 0

    def begins_and_fails():
        with ledger.spending("adults", Spend("a", 0.4)) as spending:
            spending.begin()
            raise ValueError("after")

    with pytest.raises(ValueError, match="after"):
        begins_and_fails()
    assert ledger.balance("adults").spent == pytest.approx(0.4)


def test_releases_without_a_promise_are_listed(ledger):
    ledger.list_release("adults", "k = 5 release of March", "e" * 64)
    [told] = ledger.entries("adults")
    assert told.state is EntryState.LISTED
    assert ledger.balance("adults").spent == 0


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda b: b.reserve("kids", Spend("a", 0.1)), "no population 'kids'"),
        (lambda b: b.reserve("adults", Spend("a", 0.1, "persons")), "protects rows"),
        (lambda b: Spend("a", 0), "cost rho is 0"),
        (lambda b: Spend("a", float("nan")), "cost rho is nan"),
        (lambda b: b.commit(99, "x"), "no entry 99"),
        (lambda b: b.open_population("adults", ceiling=9, delta=1e-6), "open already"),
        (lambda b: b.open_population("new", ceiling=9, delta=0), "Delta is 0"),
        (lambda b: b.open_population("new", ceiling=9, delta=1), "Delta is 1"),
        (lambda b: b.open_population(" ", ceiling=9, delta=0.1), "no name"),
    ],
)
def test_bad_requests_are_refused_and_cost_nothing(ledger, attempt, message):
    before = ledger.head
    with pytest.raises(PolicyError, match=message):
        attempt(ledger)
    assert ledger.head == before


def test_what_is_no_ledger_is_refused(tmp_path):
    with pytest.raises(DataError, match="There is no ledger"):
        Ledger(tmp_path / "missing.ledger")
    text = tmp_path / "text.ledger"
    text.write_text("not a database, but long enough to be one, " * 30)
    with pytest.raises(DataError, match="cannot be used"):
        Ledger(text)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("create table a (b)")
    with pytest.raises(DataError, match="not a ledger of version"):
        Ledger(other, create=True)


def test_events_cannot_be_changed_and_changes_are_found(ledger):
    ledger.reserve("adults", Spend("a", 0.5))
    noted = ledger.head
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            connection.execute("update event set content = '{}'")
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            connection.execute("delete from event")
        connection.execute("drop trigger event_stays")
        connection.execute(
            "update event set content = replace(content, '0.5', '0.1') where kind = 'reserve'"
        )
    with pytest.raises(DataError, match="tampered with: event 2"):
        ledger.verify()
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute("drop trigger event_remains")
        connection.execute("delete from event where number = 2")
    assert ledger.verify() == 1  # the chain alone does not tell that its end is missing
    with pytest.raises(DataError, match="digest that was noted"):
        ledger.verify(noted)


def test_parallel_spends_never_pass_the_ceiling(ledger):
    def spend(_):
        try:
            Ledger(ledger.path).reserve("adults", Spend("a", 0.07))
        except PolicyError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(spend, range(50)))
    assert done == 14
    assert ledger.balance("adults").spent == pytest.approx(0.98)
    assert ledger.verify() == 15


KILLED = """
import os, signal, sys
from aegis.safe.ledger import Ledger, Spend
book = Ledger(sys.argv[1])
step = sys.argv[2]
def die(at):
    if at == step:
        os.kill(os.getpid(), signal.SIGKILL)
die("before")
entry = book.reserve("adults", Spend("a", 0.3))
die("reserved")
book.begin(entry)
die("begun")
book.commit(entry, "d" * 64)
die("committed")
"""


@pytest.mark.parametrize(
    ("step", "spent"), [("before", 0), ("reserved", 0.3), ("begun", 0.3), ("committed", 0.3)]
)
def test_a_kill_at_any_step_costs_budget_and_never_privacy(ledger, step, spent):
    done = subprocess.run([sys.executable, "-c", KILLED, ledger.path, step], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ledger.balance("adults").spent == pytest.approx(spent)
    ledger.verify()
    ledger.reserve("adults", Spend("next", 0.1))


@given(st.lists(st.tuples(st.sampled_from("rbcx"), st.integers(0, 5)), max_size=25))
def test_any_order_of_steps_keeps_the_books(tmp_path_factory, steps):
    path: Path = tmp_path_factory.mktemp("book") / "b.ledger"
    book = Ledger(path, create=True)
    book.open_population("p", ceiling=1.0, delta=1e-6)
    counted: dict[int, str] = {}
    for what, which in steps:
        if what == "r":
            try:
                counted[book.reserve("p", Spend("m", 0.3))] = "reserved"
            except PolicyError:
                assert sum(s != "cancelled" for s in counted.values()) == 3
            continue
        if not counted:
            continue
        number = list(counted)[which % len(counted)]
        state = counted[number]
        try:
            if what == "b":
                book.begin(number)
            elif what == "c":
                book.commit(number, "d")
            else:
                book.cancel(number)
        except PolicyError:
            allowed = {"b": ("reserved",), "c": ("reserved", "begun"), "x": ("reserved",)}
            assert state not in allowed[what]
            continue
        counted[number] = {"b": "begun", "c": "committed", "x": "cancelled"}[what]
    spent = 0.3 * sum(s != "cancelled" for s in counted.values())
    assert book.balance("p").spent == pytest.approx(spent)
    assert book.verify() == 1 + len(book.entries()) + sum(
        {"reserved": 0, "begun": 1, "committed": 1, "cancelled": 1}[s] for s in counted.values()
    ) + sum(1 for n in counted if _was_begun(book, n) and counted[n] == "committed")
    path.unlink()


def _was_begun(book, number):
    with closing(sqlite3.connect(book.path)) as connection, connection:
        row = connection.execute(
            "select count(*) from event where kind = 'begin' and entry = ?", (number,)
        ).fetchone()
    return bool(row[0])
