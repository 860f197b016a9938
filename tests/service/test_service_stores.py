"""The same service over PostgreSQL and over a store that speaks S3."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
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
        assert check(entries).whole


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
    assert httpx.get(f"{url}?words=a%00b", headers=headers).status_code == 422
    body = {"title": "a\0b"}
    assert httpx.post(f"{url}/census", json=body, headers=headers).status_code == 422


class Bucket(ThreadingHTTPServer):
    """As much of S3 as a store of files needs, in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), S3)
        self.files: dict[str, bytes] = {}
        self.full = False
        threading.Thread(target=self.serve_forever, daemon=True).start()


class S3(BaseHTTPRequestHandler):
    """One call of a bucket."""

    server: Bucket

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.full:
            self.tell(403, b"<Error><Code>QuotaExceeded</Code></Error>")
            return
        self.server.files[self.path] = content
        self.tell(200, b"")

    def do_GET(self) -> None:
        content = self.server.files.get(self.path)
        if content is None or "AWS4-HMAC-SHA256" not in self.headers["Authorization"]:
            self.tell(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        wanted = self.headers.get("Range")
        if wanted is None:
            self.tell(200, content)
            return
        first, last = (int(n) for n in wanted.removeprefix("bytes=").split("-"))
        part = content[first : last + 1]
        self.tell(206, part, f"bytes {first}-{first + len(part) - 1}/{len(content)}")

    def do_POST(self) -> None:
        """Delete several, which is how one is deleted, too."""
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        keys = re.findall("<Key>(.*?)</Key>", asked)
        for key in keys:
            self.server.files.pop(f"{self.path.split('?')[0]}/{key}", None)
        told = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self.tell(200, f"<DeleteResult>{told}</DeleteResult>".encode())

    def tell(self, status: int, content: bytes, part: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Wed, 21 Oct 2026 07:28:00 GMT")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def bucket(monkeypatch) -> Iterator[Bucket]:
    made = Bucket()
    told = {"ENDPOINT": f"http://127.0.0.1:{made.server_port}", "REGION": "eu-north-1"}
    told |= {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "ALLOW_HTTP": "true"}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
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
    with pytest.raises(EngineError, match="did not take the file"):
        Objects("s3://releases").put("releases", b"x")


def test_a_store_that_is_gone_is_said(bucket):
    objects = Objects("s3://releases", retries=0)
    key, _ = objects.put("releases", b"x")
    bucket.shutdown()
    bucket.server_close()
    for read in (objects.get, lambda k: objects.part(k, 0, 1), lambda k: list(objects.stream(k))):
        with pytest.raises(EngineError, match="did not give the file"):
            read(key)
