"""Ledgers that somebody wrote with the right chain and the wrong events, and files of other programs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from hashlib import sha256

import pytest

from aegis.errors import DataError, PolicyError
from aegis.safe.ledger import Ledger, Spend
from aegis.words import json_fields


@pytest.fixture
def ledger(tmp_path):
    book = Ledger(tmp_path / "book.ledger", create=True)
    book.open_population("adults", ceiling=1.0, delta=1e-6)
    book.open_population("houses", ceiling=0.5, delta=1e-6, unit="persons")
    return book


def forge(ledger, population, content, kind="reserve"):
    """Append an event with a digest worked out here, as somebody does who knows the format."""
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        number, previous = connection.execute(
            "select number + 1, digest from event order by number desc limit 1"
        ).fetchone()
        row = [number, "2026-01-01T00:00:00", kind, population, number, content, previous]
        digest = sha256(json.dumps(row, ensure_ascii=False).encode()).hexdigest()
        connection.execute("insert into event values (?, ?, ?, ?, ?, ?, ?, ?)", (*row, digest))


def reservation(rho, unit="rows"):
    spend = json_fields(Spend("forged", rho, unit))
    return json.dumps({"spend": spend, "note": ""}, sort_keys=True)


def test_a_chain_that_fits_may_still_be_overspent(ledger):
    ledger.reserve("adults", Spend("a", 0.75))
    forge(ledger, "adults", reservation(0.25))
    assert ledger.verify() == 4
    forge(ledger, "adults", reservation(0.01))
    with pytest.raises(DataError, match="the budget of 'adults' is overspent"):
        ledger.verify()


def test_each_population_has_a_ceiling_of_its_own(ledger):
    ledger.reserve("adults", Spend("a", 0.9))
    forge(ledger, "houses", reservation(0.51, "persons"))
    with pytest.raises(DataError, match="the budget of 'houses' is overspent"):
        ledger.verify()


def test_a_cost_of_rows_is_not_taken_from_a_budget_of_persons(ledger):
    with pytest.raises(
        PolicyError, match="'houses' protects persons, but the cost is stated for rows"
    ):
        ledger.reserve("houses", Spend("a", 0.1))
    assert ledger.balance("houses").spent == 0
    ledger.reserve("houses", Spend("a", 0.1, "persons"))


@pytest.mark.parametrize(
    "use",
    [
        lambda book: book.reserve("strangers", Spend("a", 0.1)),
        lambda book: book.balance("strangers"),
        lambda book: book.entries("strangers"),
        lambda book: book.list_release("strangers", "a release", "d" * 64),
    ],
)
def test_a_population_that_is_not_there_is_named_and_nothing_is_written(ledger, use):
    before = ledger.head
    with pytest.raises(PolicyError, match="no population 'strangers'"):
        use(ledger)
    assert ledger.head == before


@pytest.mark.parametrize("use", [Ledger.verify, Ledger.populations], ids=["verify", "populations"])
@pytest.mark.parametrize("pragma", ["application_id = 7", "user_version = 99"])
def test_a_file_of_another_program_or_version_is_no_ledger(ledger, pragma, use):
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute(f"pragma {pragma}")
    with pytest.raises(DataError, match="not a ledger of version"):
        use(ledger)
