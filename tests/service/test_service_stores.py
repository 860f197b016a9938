"""The same service over PostgreSQL and over a store that speaks S3."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest
from s3_bucket import Bucket, settings
from service_support import POLICY, house, released
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError

from aegis.errors import EngineError
from aegis.service.catalog import jobs
from aegis.service.catalog.errors import NotThere
from aegis.service.catalog.log import check
from aegis.service.catalog.objects import Objects
from aegis.service.catalog.records import Job, LogEntry
from postgres_server import server


@pytest.fixture(scope="module")
def postgres():
    with server() as made:
        yield made


@pytest.fixture(scope="module")
def place(postgres, tmp_path_factory):
    with house(tmp_path_factory.mktemp("service"), postgres.url) as made:
        made.offer()
        yield made


def test_a_request_becomes_a_release_on_postgres(place, tmp_path):
    number = released(place)
    with place.client("clara") as clara, place.client("aude") as aude:
        assert clara.download(number, tmp_path / "m.parquet").is_file()
        assert clara.verify(number)["verified"]
        assert aude.verify_log()["whole"]
        assert [one["id"] for one in clara.search("census AGE")] == ["census"]


def test_many_ask_for_a_job_and_one_has_it_on_postgres(place):
    with place.catalog.database.writing() as session:
        made = jobs.enqueue(session, "search", "worker", "census", task={"n": 1})
    taken: list[str] = []

    def take(number: int) -> None:
        with place.catalog.database.writing() as session:
            job = jobs.claim(session, f"w{number}", "worker")
            if job is not None:
                taken.append(job.id)

    threads = [threading.Thread(target=take, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [made.id]
    with place.catalog.database.writing() as session:
        jobs.cancel(session, session.get(Job, made.id), "test")
        entries = session.scalars(select(LogEntry).order_by(LogEntry.number)).all()
        assert check(entries).intact


@pytest.mark.parametrize(
    "change", ["UPDATE log SET actor = 'x'", "DELETE FROM log", "TRUNCATE log"]
)
def test_postgres_itself_refuses_changes_of_the_log(place, change):
    with (
        pytest.raises(SQLAlchemyError, match="append-only"),
        place.catalog.database.writing() as session,
    ):
        session.execute(text(change))


def test_a_postgres_that_stops_is_said_and_found_again(place, postgres):
    number = place.ask()
    url = f"{place.url}/api/v1/requests/{number}"
    headers = {"Authorization": f"Bearer {place.tokens['otto']}"}
    postgres.stop()
    try:
        answer = httpx.get(url, headers=headers)
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["detail"]
    finally:
        postgres.start()
    assert httpx.get(url, headers=headers).json()["state"] == "in review"


def test_a_long_name_of_an_agent_fits_into_the_tables(place):
    """The name of the account stands before it: together they were too long for PostgreSQL, and no job was given."""
    with place.client("paula") as paula:
        paula.ask_summary("census", POLICY, protect="noise", epsilon=1.0)
        taken = paula.work("n" * 120)
        paula.give_back(taken["id"], taken["attempt"])
        assert paula.job(taken["id"])["state"] == "queued"
    place.work()


def test_characters_that_postgres_does_not_store_are_refused(place):
    headers = {"Authorization": f"Bearer {place.tokens['paula']}"}
    url = f"{place.url}/api/v1/data-sets"
    assert httpx.get(f"{url}?words=a%00b", headers=headers).status_code == 400
    body = {"title": "a\0b"}
    assert httpx.post(f"{url}/census", json=body, headers=headers).status_code == 422


@pytest.fixture
def bucket(monkeypatch) -> Iterator[Bucket]:
    made = Bucket()
    for name, value in settings(made.server_port).items():
        monkeypatch.setenv(name, value)
    yield made
    made.shutdown()
    made.server_close()


def test_a_store_that_speaks_s3_keeps_files(bucket):
    objects = Objects("s3://releases/aegis")
    content = bytes(range(256)) * 5000
    key, digest = objects.put("releases", content)
    assert objects.get(key) == content
    assert b"".join(objects.stream(key)) == content
    assert objects.part(key, 10, 20) == content[10:20]
    assert digest in key
    objects.delete(key)
    with pytest.raises(NotThere):
        objects.get(key)


def test_a_store_that_takes_nothing_says_so(bucket):
    bucket.full = True
    with pytest.raises(EngineError, match="did not accept the file"):
        Objects("s3://releases").put("releases", b"x")


def test_a_store_that_is_gone_is_said(bucket):
    objects = Objects("s3://releases", retries=0)
    key, _ = objects.put("releases", b"x")
    bucket.shutdown()
    bucket.server_close()
    for read in (objects.get, lambda k: objects.part(k, 0, 1), lambda k: list(objects.stream(k))):
        with pytest.raises(EngineError, match="does not answer"):
            read(key)
