"""Who may change what: terms, approvals, renewals, populations; and state held against the log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from catalog_support import CONFIGURATION, KEY, offered
from sqlalchemy import select, text

from aegis.cli.main import run
from aegis.errors import AegisError, PolicyError
from aegis.service.catalog import (
    Catalog,
    WrongState,
    accounts,
    budget,
    consistency,
    data_sets,
    jobs,
    logbook,
    populations,
    requests,
)
from aegis.service.catalog import backup as copies
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere
from aegis.service.catalog.records import (
    DataSet,
    LogEntry,
    ReleaseRecord,
    Request,
    now,
)
from aegis.service.catalog.states import RequestState


def chosen(place, name: str = "census") -> str:
    """Return a request of clara in review, with a configuration that holds."""
    with place.catalog.database.writing() as session:
        made = requests.draft(session, place.clara, name, purpose="to learn")
        requests.submit(session, place.clara, made.id)
        requests.review(session, place.otto, made.id)
        answer = {"holds": True, "releases": []}
        requests.set_configuration(session, place.otto, made, CONFIGURATION, answer)
        return made.id


def test_an_operator_does_not_change_how_many_must_approve(place):
    """One operator set two approvals to one, approved, and set them back."""
    offered(place, approvals=2)
    number = chosen(place)
    for terms in ({"approvals": 1}, {"days": 9}, {"ceiling": 9.0}, {"public": False}):
        with (
            place.catalog.database.writing() as session,
            pytest.raises(NotAllowed, match="may not"),
        ):
            data_sets.change(session, place.otto, "census", **terms)
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.otto, "census", title="Census", approvals=2)
        assert requests.approve(session, place.otto, number).state == RequestState.IN_REVIEW


def test_terms_are_frozen_with_each_request(place):
    offered(place, approvals=2)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.paula, "census", approvals=1)
    with place.catalog.database.writing() as session, pytest.raises(WrongState, match="the terms"):
        requests.approve(session, place.otto, number)
    with place.catalog.database.writing() as session:
        assert requests.drift(session, place.paula, "census") == 1
        assert session.get(Request, number).state == RequestState.RETURNED


def test_a_request_that_is_sent_back_or_approved_cancels_its_jobs(place):
    """A search that went on after the last approval was begun five times over, in vain."""
    offered(place, approvals=2)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        job = jobs.enqueue(session, "check", "worker", "census", request_id=number)
        assert requests.approve(session, place.otto, number).state == RequestState.IN_REVIEW
        assert (job.state, job.ended) == ("queued", None)
        assert requests.approve(session, place.anna, number).state == RequestState.APPROVED
        assert job.state == "cancelled"
        assert job.ended
        job = jobs.enqueue(session, "check", "worker", "census", request_id=number)
        data_sets.change(session, place.paula, "census", approvals=1)
        assert requests.run(session, place.otto, number).state == RequestState.RETURNED
        assert job.state == "cancelled"
        assert job.ended


@pytest.mark.parametrize("how", ["grant", "role", "closed"])
def test_an_approval_lives_as_long_as_its_givers_right(place, how):
    offered(place, approvals=2)
    number = chosen(place)

    def take_back(session) -> None:
        if how == "grant":
            data_sets.grant(session, place.paula, "census", "anna", "approver", granted=False)
        elif how == "role":
            accounts.change_roles(session, place.ada, "anna", ["auditor"])
        else:
            accounts.disable(session, place.ada, "anna")

    with place.catalog.database.writing() as session:
        requests.approve(session, place.anna, number)
        take_back(session)
        assert requests.approve(session, place.otto, number).state == RequestState.IN_REVIEW


def test_an_approval_of_who_lost_the_right_is_not_carried_out(place):
    offered(place, approvals=2)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        requests.approve(session, place.anna, number)
        assert requests.approve(session, place.otto, number).state == RequestState.APPROVED
        data_sets.grant(session, place.paula, "census", "anna", "approver", granted=False)
        sent_back = requests.run(session, place.otto, number)
        assert sent_back.state == RequestState.RETURNED
        assert "has lost the right to approve" in sent_back.message


def release(place, number: str, days: int = 5) -> None:
    with place.catalog.database.writing() as session:
        request = session.get(Request, number)
        requests.run(session, place.otto, number)
        key, digest = place.catalog.objects.put("releases", b"masked")
        session.add(
            ReleaseRecord(
                request_id=number,
                data_set_id="census",
                population="census",
                object_key=key,
                file_name="m.parquet",
                digest=digest,
                size=6,
                certificate="{}",
                signature={},
                expires=now() + timedelta(days=days),
            )
        )
        requests.complete(session, place.paula, request, digest)


def approved(place, *, days: int = 30) -> str:
    offered(place, approvals=2, days=days)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        requests.approve(session, place.anna, number)
        requests.approve(session, place.otto, number)
    release(place, number)
    return number


def test_renewal_is_approval_by_as_many_persons_and_bounded(place):
    number = approved(place)

    def renew(who, days):
        with place.catalog.database.writing() as session:
            return requests.renew(session, who, number, days)

    def expires():
        with place.catalog.database.reading() as session:
            query = select(ReleaseRecord).where(ReleaseRecord.request_id == number)
            return session.scalar(query).expires

    before = expires()
    with pytest.raises(CatalogError, match=r"31 days") as raised:
        renew(place.otto, 31)
    assert "1 to 30" in raised.value.hint
    with pytest.raises(CatalogError, match="lasts until"):
        renew(place.otto, 1)
    renew(place.otto, 20)
    assert expires() == before
    with pytest.raises(NotAllowed, match="renewed this already"):
        renew(place.otto, 20)
    with pytest.raises(WrongState, match="another number of days"):
        renew(place.anna, 21)
    renew(place.anna, 20)
    assert timedelta(days=19) < expires() - now() <= timedelta(days=20)
    for who in (place.otto, place.anna):
        renew(who, 30)
    assert expires() - now() <= timedelta(days=30)


def test_who_may_not_approve_any_more_does_not_block_a_renewal(place):
    """Otherwise nobody could ever renew it for another number of days; nor could who said the first."""
    number = approved(place)
    with place.catalog.database.writing() as session:
        requests.renew(session, place.otto, number, 20)
        with pytest.raises(WrongState, match="another number of days"):
            requests.renew(session, place.anna, number, 25)
        data_sets.grant(session, place.paula, "census", "otto", "operator", granted=False)
        requests.renew(session, place.anna, number, 25)
        requests.renew(session, place.anna, number, 30)
        with pytest.raises(NotAllowed, match="renewed this already"):
            requests.renew(session, place.anna, number, 30)
        data_sets.grant(session, place.paula, "census", "otto", "operator")
        requests.renew(session, place.otto, number, 30)
        request = session.get(Request, number)
        assert requests.release_of(session, request).expires > now() + timedelta(days=29)


def test_who_got_the_right_back_can_approve_again(place):
    """Anna approved, lost her role, and has it again: the request waited for somebody for ever."""
    offered(place, approvals=2)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        requests.approve(session, place.anna, number)
        accounts.change_roles(session, place.ada, "anna", ["auditor"])
        requests.approve(session, place.otto, number)
        accounts.change_roles(session, place.ada, "anna", ["approver"])
        assert requests.approvals_of(session, session.get(Request, number)) == ["otto"]
        assert requests.approve(session, place.anna, number).state == RequestState.APPROVED


def test_the_consumer_is_released_what_the_consumer_has_accepted(place):
    """An operator may change the text of the terms, which the consumer accepted as it was."""
    offered(place, terms="for research")
    with place.catalog.database.writing() as session:
        made = requests.draft(session, place.clara, "census", purpose="x", terms_accepted=True)
        requests.submit(session, place.clara, made.id)
        requests.review(session, place.otto, made.id)
        answer = {"holds": True, "releases": []}
        requests.set_configuration(session, place.otto, made, CONFIGURATION, answer)
        data_sets.change(session, place.otto, "census", terms="and a kidney")
        with pytest.raises(WrongState, match="the terms"):
            requests.approve(session, place.otto, made.id)
        assert requests.drift(session, place.otto, "census") == 1
        assert made.state == RequestState.RETURNED


def test_a_request_of_an_earlier_version_has_no_text_of_terms_to_compare(place):
    """Then only what it kept is compared."""
    offered(place)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        request = session.get(Request, number)
        request.asked = {name: v for name, v in request.asked.items() if name != "terms"}
        assert requests.approve(session, place.otto, number).state == RequestState.APPROVED


def test_of_two_approved_requests_the_second_is_checked_with_the_first(place):
    """Both were checked before either was released, so nobody knows what they show together."""
    offered(place)
    first, second = chosen(place), chosen(place)
    with place.catalog.database.writing() as session:
        for number in (first, second):
            assert requests.approve(session, place.otto, number).state == RequestState.APPROVED
    release(place, first)
    with place.catalog.database.writing() as session:
        assert requests.drifted(session, session.get(Request, second))
        sent_back = requests.run(session, place.otto, second)
        assert sent_back.state == RequestState.RETURNED
        assert "its releases have changed" in sent_back.message


def test_another_provider_does_not_join_a_population_by_its_name(place):
    """It closed the budget by a low ceiling, and read the ledger."""
    offered(place, ceiling=4.0)

    def joins(name: str = "mine", **about: object):
        with place.catalog.database.writing() as session:
            return data_sets.register(
                session, place.peter, name, source="x", public_key=KEY, **about
            )

    with pytest.raises(NotAllowed, match="belongs to another provider"):
        joins(population="census")
    with place.catalog.database.writing() as session, pytest.raises(NotThere):
        populations.admit(session, place.peter, "census", "peter")
    with place.catalog.database.writing() as session:
        populations.admit(session, place.paula, "census", "peter")
    made = joins(population="census", ceiling=0.1)
    with place.catalog.database.writing() as session:
        own, of_peter = session.get(DataSet, "census"), session.get(DataSet, "mine")
        job = add_job(session, "census")
        budget.reserve(session, own, job, 1.0)
        assert budget.balance(session, own).ceiling == 4.0
        assert budget.balance(session, of_peter).ceiling == 0.1
        assert len(budget.entries(session, own)) == 1
        assert budget.entries(session, of_peter) == []
        assert made.population == "census"
        populations.admit(session, place.paula, "census", "peter", admitted=False)
        with pytest.raises(NotAllowed):
            budget.reserve(session, of_peter, add_job(session, "mine"), 0.01)


def add_job(session, data_set: str) -> str:
    from aegis.service.catalog import jobs

    return jobs.enqueue(session, "summarize", jobs.AGENT, data_set).id


def test_the_log_holds_old_and_new_values_and_is_filtered(place):
    offered(place, days=7)
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.paula, "census", days=9, title="New")
    with place.catalog.database.reading() as session:
        wanted = logbook.LogFilter(actor="paula", action="data set changed", data_set="census")
        entries, count = logbook.listed(session, place.aude, chosen=wanted)
        assert count == 1
        assert entries[0].detail["old"]["days"] == 7
        assert entries[0].detail["new"] == {"days": 9, "title": "New"}
        for wanted, expected in (
            (logbook.LogFilter(since=now() + timedelta(hours=1)), 0),
            (logbook.LogFilter(until=now() - timedelta(hours=1)), 0),
            (logbook.LogFilter(action="published"), 1),
            (logbook.LogFilter(actor="nobody"), 0),
        ):
            assert logbook.listed(session, place.aude, chosen=wanted)[1] == expected


def test_a_head_that_was_noted_is_in_the_chain(place):
    offered(place)
    with place.catalog.database.reading() as session:
        head = logbook.verify(session, place.aude).head
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.paula, "census", title="New")
    with place.catalog.database.reading() as session:
        assert logbook.verify(session, place.aude, head).intact
        checked = logbook.verify(session, place.aude, "ab" * 32)
        assert not checked.intact
        assert "noted" in checked.reason


TAMPERED = {
    "UPDATE data_sets SET approvals = 1": "approvals is 1, but the log says 2",
    "UPDATE data_sets SET ceiling = 99": "ceiling is 99.0, but the log says None",
    "UPDATE data_sets SET public_key = 'x'": "public_key is 'x'",
    "UPDATE requests SET state = 'approved'": "its state is approved, but the log says released",
    "UPDATE releases SET digest = 'x'": "its release is not the one in the log",
    "UPDATE versions SET summary_digest = 'x'": "version 1 has another summary than the log says",
    "DELETE FROM grants WHERE role = 'approver'": "anna is not approver, but the log says so",
    "INSERT INTO grants SELECT 'census', id, 'operator' FROM accounts WHERE name = 'carl'": (
        "carl is operator, but the log does not say so"
    ),
    "UPDATE accounts SET roles = '[\"admin\"]' WHERE name = 'carl'": "account carl: its roles are",
    "UPDATE approvals SET account_id = (SELECT id FROM accounts WHERE name = 'boris')"
    " WHERE account_id = (SELECT id FROM accounts WHERE name = 'otto')": (
        "the log has no entry approve by boris"
    ),
    "UPDATE populations SET owner_id = (SELECT id FROM accounts WHERE name = 'peter')": (
        "its owner is not paula"
    ),
}


@pytest.mark.parametrize("statement", TAMPERED)
def test_state_that_the_log_does_not_tell_of_shows(place, statement):
    approved(place)

    def wrong() -> list[str]:
        with place.catalog.database.reading() as session:
            differing = consistency.compare(session, place.catalog.objects)
        return [line for line in differing if not line.startswith("object none")]

    assert wrong() == []
    with place.catalog.database.writing() as session:
        session.execute(text(statement))
    assert any(TAMPERED[statement] in line for line in wrong()), wrong()


def test_a_backup_while_it_runs_holds_every_table(place, tmp_path, capsys):
    """A copy of the file alone held no table: the journal beside it has what is new."""
    approved(place)
    database = str(place.catalog.database.engine.url.database)
    folder = tmp_path / "copy"
    assert run(["catalog", "backup", str(folder), "--database", database]) == 0
    with closing(sqlite3.connect(folder / copies.DATABASE)) as copy, copy:
        assert copy.execute("select count(*) from log").fetchone()[0] > 0
    assert (folder / copies.DATABASE).stat().st_mode & 0o777 == 0o600
    assert run(["catalog", "backup", str(folder), "--database", database]) == 2
    restored = str(tmp_path / "restored.db")
    assert run(["catalog", "restore", str(folder), "--database", restored]) == 0
    assert Path(restored).stat().st_mode & 0o777 == 0o600
    assert run(["catalog", "restore", str(folder), "--database", restored]) == 2
    catalog = Catalog.open(restored)
    with catalog.database.reading() as session, place.catalog.database.reading() as before:
        counted = [len(s.scalars(select(LogEntry)).all()) for s in (session, before)]
        assert counted[0] == counted[1]
    catalog.database.close()
    capsys.readouterr()
    assert run(["catalog", "check", "--database", restored]) == 1  # its summary is no real one
    assert "object none" in capsys.readouterr().out
    assert run(["catalog", "check", "--database", str(tmp_path / "none.db")]) == 2


def test_a_copy_is_refused_where_it_cannot_be(place, tmp_path):
    with pytest.raises(PolicyError, match="in files"):
        copies.backup("postgresql://x/y", "objects", tmp_path / "a")
    with pytest.raises(AegisError, match="no copy"):
        copies.restore(tmp_path / "nothing", str(tmp_path / "x.db"), str(tmp_path / "o"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / copies.DATABASE).write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(AegisError):
        copies.restore(tmp_path / "bad", str(tmp_path / "x.db"), str(tmp_path / "o"))
