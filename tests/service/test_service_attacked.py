"""Attacks on a running service: bodies that cannot be stored, uploads by nobody, steps out of order."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import httpx
import pytest
from service_support import POLICY, House, house

HALF = '"\\ud800 is half a character"'
DEEP = "[" * 90 + "]" * 90


def as_person(place: House, name: str) -> httpx.Client:
    """A program of a person, with this person's token."""
    return httpx.Client(
        base_url=f"{place.url}/api/v1",
        headers={"Authorization": f"Bearer {place.tokens[name]}"},
    )


def sent(caller: httpx.Client, path: str, body: str) -> httpx.Response:
    """Send a text as JSON, as it is."""
    return caller.post(path, content=body.encode(), headers={"content-type": "application/json"})


@pytest.fixture
def job(place):
    """A job that paula's agent works on, which is given up at the end."""
    with as_person(place, "paula") as paula:
        paula.post("/data-sets/census/summary", json={"policy": POLICY}).raise_for_status()
        number = paula.post("/work", json={"owner": "x"}).json()["id"]
        yield number
        paula.post(f"/jobs/{number}/failed", json={"attempt": 1, "reason": "over"})


@pytest.mark.parametrize(
    "body",
    [
        f'{{"name": "clara", "password": {HALF}}}',
        f'{{"name": {HALF}, "password": "x"}}',
        f'{{"name": "clara", "password": {DEEP}}}',
        "null",
        "5",
    ],
)
def test_a_body_that_no_text_can_hold_is_refused(place, body):
    """Python reads half a character from JSON, and fails only where it is written."""
    with httpx.Client(base_url=f"{place.url}/api/v1") as nobody:
        assert sent(nobody, "/session", body).status_code == 422


@pytest.mark.parametrize(
    "progress",
    [
        f'{{"step": {HALF}}}',
        '{"step": "x", "done": NaN}',
        '{"step": "x", "total": Infinity}',
        '{"step": {"a": 1}}',
        '{"step": "x", "total": "many"}',
        '{"step": "x", "done": true}',
        '{"step": "x", "done": "1"}',
        f'{{"step": "{"x" * 3000}"}}',
        f'{{"step": "x", "more": {DEEP}}}',
    ],
)
def test_progress_that_no_page_can_show_is_refused(place, job, progress):
    """Otherwise the pages of everybody who follows the job fail."""
    with as_person(place, "paula") as paula:
        told = sent(paula, f"/jobs/{job}/alive", f'{{"attempt": 1, "progress": {progress}}}')
        assert told.status_code == 422
        assert paula.get(f"/jobs/{job}").json()["progress"] == {}
        good = {"attempt": 1, "progress": {"step": "Reading", "done": 1, "total": None}}
        assert paula.post(f"/jobs/{job}/alive", json=good).json()["progress"] == good["progress"]
        paula.post(f"/jobs/{job}/alive", json={"attempt": 1})


@pytest.mark.parametrize("attempt", ["true", '"1"', "1.0"])
def test_an_agent_says_what_it_means(place, job, attempt):
    """`true` is no first attempt, and a text no answer to whether noise was drawn."""
    with as_person(place, "paula") as paula:
        body = f'{{"attempt": {attempt}, "reason": "x", "spent": false}}'
        assert sent(paula, f"/jobs/{job}/failed", body).status_code == 422
        body = '{"attempt": 1, "reason": "x", "spent": "no"}'
        assert sent(paula, f"/jobs/{job}/failed", body).status_code == 422
        assert paula.get(f"/jobs/{job}").json()["state"] == "running"


def upload_begun(place: House, path: str, token: str = "") -> bytes:
    """Announce an upload of 100 MB, send its first bytes, and return the status line of the answer."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(place.url).netloc}\r\n{token}"
        "Content-Type: multipart/form-data; boundary=part\r\nContent-Length: 100000000\r\n\r\n"
        '--part\r\nContent-Disposition: form-data; name="file"; filename="m.parquet"\r\n\r\nPAR1'
    )
    address = urlsplit(place.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as caller:
        caller.sendall(head.encode())
        return caller.recv(4096).split(b"\r\n", 1)[0]


@pytest.mark.parametrize("kind", ["summary", "release"])
def test_an_upload_is_read_only_from_who_may_upload(place, job, kind):
    """Nobody fills the disk of the service: it answers before the file has come."""
    path = f"/api/v1/uploads/{job}/{kind}"
    assert b" 401 " in upload_begun(place, path)
    clara = f"Authorization: Bearer {place.tokens['clara']}\r\n"
    assert b" 403 " in upload_begun(place, path, clara)


def test_only_the_routes_of_uploads_take_large_bodies(place):
    """An account may be called uploads."""
    assert b" 413 " in upload_begun(place, "/accounts/uploads/reset")


def test_an_upload_lacks_nothing_and_holds_a_long_policy(place, job):
    """A policy that the service sent out with a job comes back, also if it has more than a megabyte."""
    form = {"attempt": "1", "signature": "{}", "policy": "#" * (3 << 20)}
    file = {"bundle": ("s.protected", b"{}")}
    with as_person(place, "paula") as paula:
        answer = paula.post(f"/uploads/{job}/summary", data=form, files=file)
        assert (answer.status_code, answer.json()["title"]) == (400, "CatalogError")
        answer = paula.post(f"/uploads/{job}/summary", data=form)
        assert (answer.status_code, "bundle" in answer.json()["detail"]) == (422, True)
        short = {"attempt": "0", "signature": "[" * 1999, "policy": POLICY}
        assert paula.post(f"/uploads/{job}/summary", data=short, files=file).status_code == 422
        short["attempt"] = "1"
        answer = paula.post(f"/uploads/{job}/summary", data=short, files=file)
        assert (answer.status_code, "not JSON" in answer.json()["detail"]) == (400, True)


def test_a_release_lasts_as_long_as_was_approved(tmp_path):
    """The provider changed the days while the agent masked; what is stored says who signed what."""
    with house(tmp_path) as place:
        place.offer()
        number = place.ask()
        with place.client("otto") as otto, place.client("paula") as paula:
            otto.step(number, "approve")
            otto.step(number, "run")
            paula.change("census", days=3650)
            place.work()
            shown = otto.shown(number)
            assert (shown["state"], shown["frozen"]["days"]) == ("released", 365)
            made = otto.release(number)
            until = datetime.fromisoformat(made["expires"])
            assert until - datetime.now(UTC) < timedelta(days=366)
            assert made["signature"].keys() == {"signature", "job", "attempt"}


def test_a_consumer_sees_the_configuration_once_it_is_released(place):
    """The API gave before what the page of the request hides, and a token of fewer rights as well."""
    number = place.ask()
    with as_person(place, "clara") as clara, place.client("otto") as otto:
        narrow = {"name": "narrow", "scopes": ["see-request"], "days": 1}
        token = clara.post("/tokens", json=narrow).json()["secret"]
        hidden = {"configuration", "scores", "errors"}
        assert hidden <= otto.shown(number)["answer"].keys()
        for secret in (place.tokens["clara"], token):
            headers = {"Authorization": f"Bearer {secret}"}
            shown = [clara.get(f"/requests/{number}", headers=headers).json()]
            listed = clara.get("/requests", headers=headers).json()["requests"]
            shown += [request for request in listed if request["id"] == number]
            assert [hidden & request["answer"].keys() for request in shown] == [set(), set()]
            assert shown[0]["answer"]["masks"]
            page = httpx.get(f"{place.url}/requests/{number}", headers=headers).text
            assert "As a file" not in page
        otto.step(number, "approve")
        otto.step(number, "run")
        place.work()
        assert hidden <= clara.get(f"/requests/{number}").json()["answer"].keys()


def test_an_upload_keeps_only_what_was_verified(tmp_path):
    """An agent may send its signature without a frame; the service knows job and attempt itself."""
    with house(tmp_path) as place:
        place.offer()
        number = place.ask()
        with place.client("otto") as otto:
            otto.step(number, "approve")
            otto.step(number, "run")
            upload = place.agent.client.upload

            def bare(job, kind, fields, name, file):
                signature = json.loads(fields["signature"])["signature"]
                return upload(job, kind, {**fields, "signature": signature}, name, file)

            place.agent.client.upload = bare
            place.work()
            assert otto.shown(number)["state"] == "released"
            assert otto.verify(number) == {"verified": True, "wrong": []}
