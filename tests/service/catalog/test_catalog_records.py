"""Jobs, budgets, the log: what holds when many processes work and some die."""

from __future__ import annotations

import gc
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from catalog_support import POLICY, offered
from sqlalchemy import select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError

from aegis.errors import EngineError
from aegis.service.catalog import (
    Catalog,
    WrongState,
    budget,
    data_sets,
    deliveries,
    flow,
    jobs,
    log,
    logbook,
)
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere, TooOften
from aegis.service.catalog.objects import Objects
from aegis.service.catalog.records import DataSet, Job, LogEntry, SpendRecord, Utc, now


def ask(place, epsilon=1.0):
    with place.catalog.database.writing() as session:
        return flow.ask_summary(
            session,
            place.paula,
            "census",
            POLICY,
            protect="noise",
            epsilon=epsilon,
            delta=1e-6,
            threshold=11,
        )


def test_a_job_is_given_once_however_many_ask(place):
    offered(place)
    ask(place)
    taken: list[str] = []

    def take(number: int) -> None:
        with place.catalog.database.writing() as session:
            job = jobs.claim(session, f"agent {number}", jobs.AGENT, provider=place.paula.account)
            if job is not None:
                taken.append(job.id)

    threads = [threading.Thread(target=take, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


def test_agents_get_only_jobs_of_their_own_provider(place):
    offered(place)
    ask(place)
    with place.catalog.database.writing() as session:
        assert jobs.claim(session, "x", jobs.AGENT, provider=place.peter.account) is None
        assert jobs.claim(session, "x", jobs.WORKER) is None


def test_a_lost_lease_goes_to_the_next_and_the_first_is_refused(place):
    offered(place)
    ask(place)
    database = place.catalog.database
    with database.writing() as session:
        first = jobs.claim(session, "one", jobs.AGENT)
        attempt = first.attempt
        first.leased_until = now() - timedelta(seconds=1)
    with database.writing() as session:
        second = jobs.claim(session, "two", jobs.AGENT)
        assert (second.id, second.attempt) == (first.id, attempt + 1)
    with database.writing() as session:
        with pytest.raises(WrongState, match="Attempt 1 of the job is over"):
            jobs.finish(session, first.id, attempt, {})
        jobs.finish(session, second.id, second.attempt, {"done": True})
        with pytest.raises(WrongState):
            jobs.finish(session, second.id, second.attempt, {})


def test_a_job_that_never_ends_is_given_up(place):
    offered(place)
    ask(place)
    for _ in range(jobs.MOST_ATTEMPTS):
        with place.catalog.database.writing() as session:
            job = flow.claim(session, "dies", jobs.AGENT)
            job.leased_until = now() - timedelta(seconds=1)
    with place.catalog.database.writing() as session:
        assert flow.claim(session, "dies", jobs.AGENT) is None
        assert session.get(Job, job.id).state == "failed"


def test_a_job_that_is_given_up_gives_its_budget_back(place):
    offered(place, ceiling=2.0)
    ask(place, 1.5)
    for _ in range(jobs.MOST_ATTEMPTS):
        with place.catalog.database.writing() as session:
            flow.claim(session, "dies", jobs.AGENT).leased_until = now() - timedelta(seconds=1)
    with place.catalog.database.writing() as session:
        assert budget.balance(session, session.get(DataSet, "census")).reserved == 1.5
        flow.claim(session, "dies", jobs.AGENT)
        assert budget.balance(session, session.get(DataSet, "census")).reserved == 0


def test_a_crash_between_the_steps_of_a_spend_leaves_nothing(place, monkeypatch):
    """Job, reservation and log stand or fall together."""
    offered(place, ceiling=2.0)
    with place.catalog.database.reading() as session:
        before = len(session.scalars(select(LogEntry)).all())
    real = budget.reserve

    def dies(*given: object) -> None:
        real(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(budget, "reserve", dies)
    with pytest.raises(KeyboardInterrupt):
        ask(place, 1.5)
    with place.catalog.database.reading() as session:
        assert budget.balance(session, session.get(DataSet, "census")).reserved == 0
        assert session.scalars(select(Job)).all() == []
        assert len(session.scalars(select(LogEntry)).all()) == before


def test_too_many_waiting_jobs_are_refused(place, monkeypatch):
    offered(place)
    monkeypatch.setattr(jobs, "MOST_WAITING", 2)
    with place.catalog.database.writing() as session:
        for number in range(2):
            jobs.enqueue(session, "leak", "worker", "census", task={"n": number})
        with pytest.raises(TooOften, match="are already waiting"):
            jobs.enqueue(session, "leak", "worker", "census", task={"n": 3})


def test_the_same_job_waits_once(place):
    offered(place)
    with place.catalog.database.writing() as session:
        first = jobs.enqueue(session, "leak", "worker", "census", task={"n": 1})
        assert jobs.enqueue(session, "leak", "worker", "census", task={"n": 1}) is first
        others = [
            jobs.enqueue(session, "audit", "worker", "census", task={"n": 1}),
            jobs.enqueue(session, "leak", "worker", "census", task={"n": 2}),
        ]
        assert len({first.id, *(job.id for job in others)}) == 3


def test_an_agent_works_for_its_provider_alone(place):
    offered(place)
    job = ask(place)
    with place.catalog.database.reading() as session:
        deliveries.require_agent(session, place.paula, job.id)
        for who, number in ((place.peter, job.id), (place.otto, job.id), (place.paula, "none")):
            with pytest.raises((NotAllowed, NotThere)):
                deliveries.require_agent(session, who, number)


def test_a_refusal_that_noise_decided_is_spent_for_good(place):
    offered(place, ceiling=2.0)
    job = ask(place, 1.5)
    with place.catalog.database.writing() as session:
        claimed = flow.claim(session, "agent", jobs.AGENT)
    with place.catalog.database.writing() as session:
        deliveries.failed(session, place.paula, job.id, claimed.attempt, "refused", spent=True)
    with place.catalog.database.writing() as session:
        left = budget.balance(session, session.get(DataSet, "census"))
        assert (left.spent, left.reserved) == (1.5, 0.0)
        with pytest.raises(WrongState, match=r"has epsilon 0\.5 left"):
            flow.retry_job(session, place.paula, job.id)


def test_what_failed_is_asked_once_more(place):
    offered(place, ceiling=2.0)
    job = ask(place, 1.5)
    with place.catalog.database.writing() as session:
        claimed = flow.claim(session, "agent", jobs.AGENT)
        flow.give_up(session, place.paula, claimed, "no table")
    with place.catalog.database.writing() as session:
        again = flow.retry_job(session, place.paula, job.id)
        assert (again.state, again.task, again.id != job.id) == ("queued", job.task, True)
        assert budget.balance(session, session.get(DataSet, "census")).reserved == 1.5
        with pytest.raises(WrongState):
            flow.retry_job(session, place.paula, again.id)


@pytest.mark.parametrize("which", ["hierarchy", "key_file", "key_env", "population"])
def test_a_policy_opens_no_file_of_this_machine(place, tmp_path, which):
    (tmp_path / "secret.csv").write_text("a;b\n")
    entry = {
        "hierarchy": f"{{role: quasi-identifier, hierarchy: {tmp_path}/secret.csv}}",
        "key_file": f"{{role: feature, masks: [{{tokenise: {{key_file: {tmp_path}/secret.csv}}}}]}}",
        "key_env": "{role: feature, masks: [{tokenise: {key_env: HOME}}]}",
    }.get(which, "{role: feature}")
    policy = f"population: {tmp_path}/secret.csv\n" if which == "population" else ""
    policy += f"version: 1\nlabel: income\nattributes:\n  age: {entry}\n"
    with pytest.raises(CatalogError, match=r"file|key|population") as told:
        flow.policy_of(policy)
    assert "a;b" not in str(told.value)


def test_a_configuration_opens_no_file_of_this_machine(tmp_path):
    text = "configurations: {c: {age: {tokenise: {key_file: /etc/passwd}}, sex: identity}}"
    with pytest.raises(CatalogError, match="key"):
        flow.configuration_of(text, flow.policy_of(POLICY))


def test_comments_of_a_policy_stay_behind(place):
    offered(place)
    with place.catalog.database.writing() as session:
        job = flow.ask_summary(
            session, place.paula, "census", POLICY + "# 3 values, 17 to 99\n", protect="noise",
            epsilon=1.0, delta=1e-6, threshold=11,
        )  # fmt: skip
        assert "17" not in job.task["policy"]


def test_parallel_spends_never_go_beyond_the_ceiling(place):
    offered(place, ceiling=3.0)
    refused = []

    def spend(number: int) -> None:
        try:
            with place.catalog.database.writing() as session:
                job = Job(kind="summarize", place="agent", data_set_id="census", task={"n": number})
                session.add(job)
                session.flush()
                budget.reserve(session, session.get(DataSet, "census"), job.id, 0.5)
        except WrongState:
            refused.append(number)

    threads = [threading.Thread(target=spend, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with place.catalog.database.reading() as session:
        balance = budget.balance(session, session.get(DataSet, "census"))
    assert balance.reserved == pytest.approx(3.0)
    assert balance.remaining == pytest.approx(0.0)
    assert len(refused) == 44


def test_what_exists_is_spent_for_good_and_what_does_not_is_given_back(place):
    offered(place, ceiling=2.0)
    first = ask(place, 0.5)
    with place.catalog.database.writing() as session:
        budget.reserve(session, session.get(DataSet, "census"), first.id, 0.5)
        budget.commit(session, first.id)
        budget.give_back(session, first.id)
        assert budget.balance(session, session.get(DataSet, "census")).spent == pytest.approx(0.5)
        assert session.scalars(select(SpendRecord)).one().state == "committed"
    with pytest.raises(WrongState, match=r"has epsilon 1\.5 left"):
        ask(place, 1.9)
    with place.catalog.database.reading() as session:
        assert len(session.scalars(select(SpendRecord)).all()) == 1, "nothing is half-done"


def test_the_log_cannot_be_changed_and_shows_what_was(place):
    offered(place)
    database = place.catalog.database
    for statement in ("UPDATE log SET actor = 'x' WHERE number = 2", "DELETE FROM log"):
        with pytest.raises(DatabaseError, match="append-only"), database.writing() as session:
            session.execute(text(statement))
    with database.writing() as session:
        session.execute(text("DROP TRIGGER log_no_update"))
        session.execute(text("DROP TRIGGER log_no_delete"))
        session.execute(text("UPDATE log SET actor = 'x' WHERE number = 3"))
    with database.reading() as session:
        found = logbook.verify(session, place.aude)
        assert (found.intact, found.broken) == (False, 3)


def test_a_missing_entry_shows(place):
    database = place.catalog.database
    with database.writing() as session:
        session.execute(text("DROP TRIGGER log_no_delete"))
        session.execute(text("DELETE FROM log WHERE number = 2"))
    with database.reading() as session:
        found = log.check(session.scalars(select(LogEntry).order_by(LogEntry.number)))
        assert (found.broken, found.reason) == (2, "entry 2 is missing")


def test_readers_of_the_log_see_what_concerns_them(place):
    offered(place)
    with place.catalog.database.reading() as session:
        own, _ = logbook.listed(session, place.paula)
        none, _ = logbook.listed(session, place.peter)
        everything, count = logbook.listed(session, place.aude, limit=200)
    assert {entry.data_set_id for entry in own} == {"census", None}
    for read, name in ((own, "paula"), (none, "peter")):
        of_accounts = [(e.action, e.detail["account"]) for e in read if e.data_set_id is None]
        assert of_accounts == [("account made", name)]
    assert len(none) == 1
    assert len(everything) == count > len(own)


def test_what_is_registered_is_checked(place):
    with place.catalog.database.writing() as session:
        for identifier in ("", "Census", "a b", "-a", "x" * 81, "../x"):
            with pytest.raises(CatalogError, match="cannot be a data set's name"):
                data_sets.register(
                    session, place.paula, identifier, source="t", public_key="ab" * 32
                )
        for source in ("/etc/passwd", "postgres://x", "a.csv"):
            with pytest.raises(CatalogError, match="not a name"):
                data_sets.register(session, place.paula, "a", source=source, public_key="ab" * 32)
        with pytest.raises(CatalogError, match="public key"):
            data_sets.register(session, place.paula, "a", source="t", public_key="zz")


def test_what_one_may_not_see_is_not_there(place):
    offered(place)
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.paula, "census", public=False)
        with pytest.raises(NotThere):
            data_sets.authorised(session, place.clara, "browse", "census")
        assert data_sets.search(session, place.clara) == ([], 0)
        data_sets.grant(session, place.paula, "census", "clara", "consumer")
        assert data_sets.search(session, place.clara)[1] == 1
        assert data_sets.search(session, place.carl)[1] == 0


@pytest.mark.parametrize("words", ["census", "CENS", "age", "cen age", "%", "_", "'"])
def test_search_takes_words_as_they_are(place, words):
    offered(place)
    with place.catalog.database.reading() as session:
        expected = 0 if words in ("%", "_", "'") else 1
        assert data_sets.search(session, place.clara, words)[1] == expected


def test_a_store_keeps_files_by_content(tmp_path):
    store = Objects(str(tmp_path / "objects"))
    key, digest = store.put("releases", b"masked")
    assert store.get(key) == b"masked"
    assert b"".join(store.stream(key)) == b"masked"
    assert len(digest) == 64
    store.delete(key)
    store.delete(key)
    with pytest.raises(NotThere):
        store.get(key)


@pytest.mark.parametrize("url", ["nonsense://x", "postgresql://nobody@127.0.0.1:1/none"])
def test_a_database_that_cannot_be_used_is_said(url):
    with pytest.raises(EngineError, match="the catalog"):
        Catalog.open(url, "objects")


def test_a_catalog_that_is_there_is_opened_again(place, tmp_path):
    offered(place)
    again = Catalog.open(str(tmp_path / "catalog.db"))
    with again.database.reading() as session:
        assert data_sets.newest(session, "census").number == 1
    again.database.close()


def test_a_catalog_that_nobody_uses_any_more_leaves_no_connection_open(tmp_path):
    catalog = Catalog.open(str(tmp_path / "catalog.db"))
    engine = catalog.database.engine
    with catalog.database.reading() as session:
        session.execute(text("SELECT 1"))
    assert engine.pool.checkedin() == 1
    del catalog, session
    gc.collect()
    assert engine.pool.checkedin() == 0


def test_times_keep_their_zone_where_the_database_has_zones() -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    stored = Utc().process_bind_param(moment, postgresql.dialect())
    assert stored == moment
    assert stored.tzinfo is UTC
    assert Utc().process_bind_param(moment, sqlite.dialect()) == datetime(2026, 3, 1, 10)
