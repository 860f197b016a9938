"""The service is run by somebody: ends, files, proxies, what it says of itself."""

from __future__ import annotations

import json
import os
import stat
import threading
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import uvicorn
from service_support import POLICY, house, released
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from aegis.cli.main import run
from aegis.service import run as running_service
from aegis.service.app import create_app
from aegis.service.catalog import WrongState, consistency, jobs, requests, retention, signs
from aegis.service.catalog.records import Job, ReleaseRecord, SignIn, now
from aegis.service.settings import Operation, ServiceSettings
from aegis.service.worker import Worker
from aegis.sources.embedded import embedded


@pytest.fixture
def place(furnished, tmp_path):
    with house(tmp_path, furnished=furnished) as made:
        yield made


def bearer(place, name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {place.tokens[name]}"}


def job_of(place, kind: str) -> Job:
    with place.catalog.database.reading() as session:
        query = select(Job).where(Job.kind == kind).order_by(Job.created.desc())
        return session.scalars(query).first()


def test_a_lease_and_a_look_for_work_are_shorter_than_a_kill_may_cost():
    assert jobs.LEASE + timedelta(seconds=jobs.LOOK_FOR_WORK) <= signs.SILENT_AFTER
    assert signs.SILENT_AFTER.total_seconds() <= 15
    assert jobs.LEASE.total_seconds() > jobs.SIGN_OF_LIFE * 3


def test_an_agent_that_is_told_to_end_gives_its_job_back(place, monkeypatch):
    said = []
    monkeypatch.setattr(place.agent, "say", said.append)
    with place.client("paula") as paula:
        paula.ask_summary("census", POLICY, protect="noise", epsilon=1.0)

    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place.agent, "do", ended)
        with pytest.raises(KeyboardInterrupt):
            place.agent.once()
    job = job_of(place, "summarize")
    assert (job.state, job.leased_until, job.attempt) == ("queued", None, 1)
    assert said[-1] == "given back"
    assert place.agent.once()
    job = job_of(place, "summarize")
    assert (job.state, job.attempt) == ("done", 2)


def test_an_answer_of_the_attempt_that_was_given_back_is_refused(place):
    with place.client("paula") as paula:
        paula.ask_summary("census", POLICY, protect="noise", epsilon=1.0)
        job = paula.work("one")
        paula.give_back(job["id"], job["attempt"])
        for late in (paula.give_back, lambda j, a: paula.failed(j, a, "late")):
            with pytest.raises(WrongState):
                late(job["id"], job["attempt"])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, None])
def test_a_worker_that_is_told_to_end_gives_its_job_back(place, monkeypatch, kind):
    """Ctrl-C of `aegis worker`, and the end of a service with a worker of its own."""
    with place.client("clara") as clara, place.client("otto") as otto:
        number = clara.request("census", "to learn", terms_accepted=True)["id"]
        otto.step(number, "review")
        otto.step(number, "choose")
    worker = Worker(place.catalog)

    def search(*_: object, alive, **__: object) -> None:
        worker.over.set()
        if kind is not None:
            raise kind
        alive({})

    monkeypatch.setattr("aegis.service.catalog.limited.run", search)
    if kind is None:
        worker.run()
    else:
        with pytest.raises(kind):
            worker.run()
    job = job_of(place, "search")
    assert (job.state, job.leased_until) == ("queued", None)


def test_a_worker_goes_on_when_the_database_is_back(place, monkeypatch):
    worker, said = Worker(place.catalog), []
    answers = iter([OperationalError("SELECT", {}, Exception("gone")), False])

    def once() -> bool:
        answer = next(answers, None)
        if answer is None:
            worker.over.set()
            return True
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(worker, "once", once)
    worker.run(said.append)
    assert said == [f"{worker.name}: OperationalError"]


def test_files_of_a_catalog_are_its_owners_alone(place):
    for path in place.folder.rglob("*"):
        inside = path.is_relative_to(place.folder / "objects")
        if path.is_file() and (inside or path.name.startswith("catalog.db")):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((place.folder / "objects").stat().st_mode) == 0o700
    assert list((place.folder / "objects").rglob("*"))


def test_what_was_answered_is_on_the_disk(place, monkeypatch):
    """A power failure otherwise takes the newest requests, spends and entries of the log back, and
    leaves releases without their files.
    """
    written = []
    monkeypatch.setattr(os, "fsync", lambda file: written.append(os.fstat(file).st_ino))
    key, _ = place.catalog.objects.put("releases", b"masked")
    assert (place.folder / "objects" / key).stat().st_ino in written
    with place.catalog.database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_the_file_of_a_release_that_is_over_goes_and_its_certificate_stays(place):
    kept, gone = released(place), released(place)
    with place.client("otto") as otto:
        otto.step(gone, "revoke", message="over")
    with place.catalog.database.writing() as session:
        held = session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == gone))
        key, held.revoked = held.object_key, now() - timedelta(days=8)
    assert retention.clean(place.catalog, timedelta(days=9)).files == 0
    assert place.catalog.objects.get(key)
    assert retention.clean(place.catalog, timedelta(days=7)).files == 1
    assert key not in dict(place.catalog.objects.listed())
    assert retention.clean(place.catalog, timedelta(days=7)).files == 0
    with place.client("otto") as otto, place.client("clara") as clara:
        assert json.loads(otto.release(gone)["certificate"])["output"]["rows"] > 0
        with pytest.raises(WrongState, match="was removed after the release had ended"):
            otto.export_release(gone, "dcat")
        (revoked,) = otto.verify(gone)["wrong"]
        assert revoked.startswith("the release was revoked on")
        assert clara.verify(kept)["verified"]
    with place.catalog.database.reading() as session:
        assert consistency.compare(session, place.catalog.objects) == []


def test_a_file_that_was_taken_out_without_an_entry_is_found(place):
    number = released(place)
    with place.catalog.database.writing() as session:
        held = session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == number))
        held.object_key = ""
    with place.catalog.database.reading() as session:
        wrong = consistency.compare(session, place.catalog.objects)
    assert wrong == [f"request {number}: its file was removed, but the log does not say so"]


def test_an_expired_release_whose_file_went_is_not_renewed(place):
    number = released(place)
    with place.catalog.database.writing() as session:
        held = session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == number))
        held.expires = now() - timedelta(days=2)
        requests.expire(session)
    retention.clean(place.catalog, timedelta(days=1))
    with place.client("otto") as otto, pytest.raises(WrongState, match="was removed"):
        otto.step(number, "renew", days=3)


def test_orphans_go_when_no_upload_can_be_about_to_name_them(place, monkeypatch):
    key, _ = place.catalog.objects.put("releases", b"nobody's")
    assert retention.clean(place.catalog, timedelta(days=1)).orphans == 0
    monkeypatch.setattr(retention, "ORPHANED", timedelta(seconds=-60))
    assert retention.clean(place.catalog, timedelta(days=1)).orphans == 1
    assert key not in dict(place.catalog.objects.listed())
    with place.catalog.database.reading() as session:
        assert consistency.compare(session, place.catalog.objects) == []


def test_sessions_that_have_ended_go(place):
    with place.catalog.database.writing() as session:
        clara = requests.select(SignIn.account_id)
        assert session.scalars(clara).all() == []
    form = {"name": "clara", "password": "a sentence that is long enough"}
    for _ in range(2):
        httpx.post(f"{place.url}/sign-in", data=form, headers={"Origin": place.url})
    with place.catalog.database.writing() as session:
        session.scalars(select(SignIn)).first().seen = now() - timedelta(hours=1)
    assert retention.clean(place.catalog, timedelta(days=1)).sessions == 1
    with place.catalog.database.reading() as session:
        assert len(session.scalars(select(SignIn)).all()) == 1


def test_the_command_cleans_a_catalog(place, capsys):
    database, objects = str(place.folder / "catalog.db"), str(place.folder / "objects")
    arguments = ["catalog", "clean", "--keep-days", "30", "--database", database]
    assert run([*arguments, "--objects", objects]) == 0
    assert "Removed 0 files of ended releases" in capsys.readouterr().out
    assert run([*arguments[:-1], str(place.folder / "none.db")]) == 2
    assert "There is no catalog" in capsys.readouterr().err


def test_live_does_not_ask_the_database_and_health_asks_the_files_too(place, monkeypatch):
    from sqlalchemy.orm import Session

    def gone(*_: object, **__: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    live, health = (f"{place.url}/api/v1/{name}" for name in ("live", "health"))
    assert httpx.get(health).json() == {"status": "ok"}
    with monkeypatch.context() as patch:
        patch.setattr(Session, "execute", gone)
        assert httpx.get(live).status_code == 200
        assert httpx.get(health).status_code == 503
    objects = place.folder / "objects"
    objects.rename(place.folder / "elsewhere")
    answer = httpx.get(health)
    assert (answer.status_code, answer.json()["title"]) == (503, "EngineError")
    (place.folder / "elsewhere").rename(objects)


def test_metrics_count_calls_and_what_waits_and_name_nobody(place):
    with place.client("clara") as clara:
        number = clara.draft("census", "to learn", terms_accepted=True)["id"]
        clara.step(number, "submit")
    assert httpx.get(f"{place.url}/api/v1/metrics").status_code == 401
    refused = httpx.get(f"{place.url}/api/v1/metrics", headers=bearer(place, "otto"))
    assert refused.status_code == 403
    httpx.request("MADE-UP", f"{place.url}/api/v1/live")
    answer = httpx.get(f"{place.url}/api/v1/metrics", headers=bearer(place, "aude"))
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert 'aegis_requests{state="submitted"} 1.0' in lines
    assert 'aegis_jobs{place="agent",state="done"} 1.0' in lines
    counted = 'aegis_calls_total{method="POST",route="/api/v1/requests/{request_id}/submit"'
    assert any(line.startswith(counted) and line.endswith(" 1.0") for line in lines)
    for name in ("clara", "census", number, "MADE-UP"):
        assert name not in answer.text


@contextmanager
def behind(place, *, calls=600, **about):
    """Serve the catalog of a place as `aegis serve` does, with settings of its own."""
    settings = ServiceSettings(worker=False, calls=calls, operation=Operation(**about))
    app = create_app(settings, place.catalog)
    options = {**running_service._options(settings), "lifespan": "off"}
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("proxies", "seen"),
    [(("127.0.0.0/8",), "203.0.113.9"), (("10.9.9.9",), "127.0.0.1"), (None, "127.0.0.1")],
)
def test_a_proxy_says_who_calls_where_it_is_trusted(place, tmp_path, proxies, seen):
    log = tmp_path / "access.jsonl"
    with behind(place, proxies=proxies, access_log=str(log)) as url:
        httpx.get(f"{url}/api/v1/live", headers={"X-Forwarded-For": "203.0.113.9"})
    assert [line["address"] for line in lines_of(log)] == [seen]


def test_who_shares_a_trusted_proxy_shares_no_limit(place):
    """Behind a proxy that was not on loopback 108 of 130 persons were turned away."""
    with behind(place, proxies=("127.0.0.1",), calls=2) as url:
        codes = [
            httpx.get(
                f"{url}/api/v1/live", headers={"X-Forwarded-For": f"203.0.113.{n}"}
            ).status_code
            for n in range(50)
        ]
    assert set(codes) == {200}


def test_the_access_log_says_who_asked_for_what_and_holds_no_query(place, tmp_path):
    log = tmp_path / "access.jsonl"
    with behind(place, access_log=str(log)) as url:
        httpx.get(f"{url}/api/v1/data-sets?words=canary-7f3a91", headers=bearer(place, "clara"))
        httpx.get(f"{url}/api/v1/data-sets/none", headers=bearer(place, "clara"))
    first, second = lines_of(log)
    assert set(first) == {
        "time", "address", "account", "method", "path", "status", "seconds", "bytes",
    }  # fmt: skip
    assert (first["account"], first["path"], first["status"]) == ("clara", "/api/v1/data-sets", 200)
    assert second["status"] == 404
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    text = log.read_text()
    assert "canary" not in text
    assert place.tokens["clara"] not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trust-proxy", "proxy.example.org"], "is not an address of a proxy"),
        (["--trust-proxy", "10.0.0.1/8"], "is not an address of a proxy"),
        (["--access-log", "none/access.jsonl"], "cannot be written"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    assert run(["serve", "--database", "c.db", *options]) == 2
    assert words in capsys.readouterr().err
    free = embedded().con.execute("SELECT current_setting('enable_external_access')").fetchone()
    assert free == (True,), "the engine of this process stays as it was"
