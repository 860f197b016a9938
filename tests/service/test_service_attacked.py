"""Attacks on a running service: bodies that cannot be stored, uploads by nobody, steps out of order."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from unittest import mock
from urllib.parse import urlsplit

import httpx
import pytest
from obstore.exceptions import GenericError
from service_support import PASSWORD, POLICY, House, house, new_key, released, running
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError, OperationalError

from aegis.cli.main import run
from aegis.errors import EngineError, PolicyError
from aegis.service.agent import Heartbeat
from aegis.service.api import work
from aegis.service.catalog import Catalog, NotSignedIn, accounts, flow, limited
from aegis.service.catalog.database import Database
from aegis.service.catalog.errors import CatalogError, TooOften
from aegis.service.catalog.records import Account, Approval, Job
from aegis.service.catalog.statements import sign_statement
from aegis.service.client import Client
from aegis.service.pins import Approvers, RefusedError
from aegis.service.settings import ServiceSettings

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
def asked(requested, tmp_path):
    """A service with a request of clara in review, and the number of the request."""
    with house(tmp_path, furnished=requested) as place:
        yield place, requested.request


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
    form = {"attempt": "1", "signature": "{}", "policy": "#" * (5 << 18)}
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


def test_a_release_lasts_as_long_as_was_approved(asked):
    """The provider changed the days while the agent masked; what is stored says who signed what."""
    place, number = asked
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
        counts = {"smallest_class", "suppressed_rows", "rows", "violations"}
        hidden = {"configuration", "scores", "errors", *counts}
        assert hidden <= otto.shown(number)["answer"].keys()
        for secret in (place.tokens["clara"], token):
            headers = {"Authorization": f"Bearer {secret}"}
            shown = [clara.get(f"/requests/{number}", headers=headers).json()]
            listed = clara.get("/requests", headers=headers).json()["requests"]
            shown += [request for request in listed if request["id"] == number]
            assert [hidden & request["answer"].keys() for request in shown] == [set(), set()]
            assert shown[0]["answer"]["masks"]
            page = httpx.get(f"{place.url}/requests/{number}", headers=headers).text
            assert "The configuration as YAML" not in page
            assert "every released row is like" not in page + shown[0]["answer"]["headline"]
        otto.step(number, "approve")
        otto.step(number, "run")
        place.work()
        assert hidden <= clara.get(f"/requests/{number}").json()["answer"].keys()


def test_an_upload_keeps_only_what_was_verified(asked):
    """An agent may send its signature without a frame; the service knows job and attempt itself."""
    place, number = asked
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
        assert otto.verify(number)["verified"]


@contextmanager
def signed_in(place: House, name: str) -> Iterator[tuple[httpx.Client, str]]:
    """A browser in which somebody is signed in, and the key of its forms."""
    own_page = {"Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=place.url, headers=own_page) as caller:
        caller.post("/sign-in", data={"name": name, "password": PASSWORD})
        text = caller.get("/account").text
        yield caller, re.search(r'name="form_key" value="([^"]+)"', text)[1]


@pytest.mark.parametrize("given", ["nan", "inf", "-1", "0", "101"])
def test_the_page_asks_for_no_summary_that_the_api_refuses(place, given):
    """An infinite epsilon closed the budget of a population for good."""
    with signed_in(place, "paula") as (caller, key):
        form = {"form_key": key, "policy": POLICY, "protect": "noise", "epsilon": given}
        assert caller.post("/data-sets/census/summary", data=form).status_code == 422
        form |= {"protect": "exact", "epsilon": "1"}
        assert caller.post("/data-sets/census/summary", data=form).status_code == 422


@pytest.mark.parametrize("given", ["nan", "inf", "-inf", "1e400"])
def test_a_control_of_the_workbench_is_a_number(place, given):
    with signed_in(place, "otto") as (caller, key):
        form = {"form_key": key, "base": POLICY, "k": given}
        answer = caller.post("/data-sets/census/workbench/draw", data=form)
        assert (answer.status_code, "finite" in answer.text) == (422, True)


def test_signing_out_ends_the_session_or_says_that_it_does_not(place):
    """With the key of an old form the cookie went, and the session stayed open."""
    with signed_in(place, "clara") as (caller, key):
        cookies = dict(caller.cookies)
        assert caller.post("/sign-out", data={"form_key": "old"}).status_code == 403
        assert dict(caller.cookies) == cookies
        assert caller.post("/sign-out", data={"form_key": key}).status_code == 303
        with httpx.Client(base_url=place.url, cookies=cookies) as old:
            assert old.get("/api/v1/me").status_code == 401


def test_nobody_is_called_as_the_log_calls_the_service(place):
    """Who was named "system" read of all accounts, and whose passwords were guessed."""
    with as_person(place, "ada") as ada:
        for name in ("system", " System ", "identity provider"):
            answer = ada.post("/accounts", json={"name": name, "roles": ["consumer"]})
            assert (answer.status_code, answer.json()["title"]) == (400, "CatalogError")
    with place.catalog.database.writing() as session:
        accounts.sign_in_elsewhere(session, "https://id.example system", "system")
        subject = Account.subject == "https://id.example system"
        assert session.scalar(select(Account.name).where(subject)).startswith("system ")


def test_a_job_is_followed_only_as_long_as_its_follower_may(place, job):
    """A stream went on after the session had ended and the role was taken."""
    with (
        signed_in(place, "paula") as (caller, _),
        caller.stream("GET", f"/api/v1/jobs/{job}/events") as answer,
    ):
        lines = answer.iter_lines()
        assert json.loads(next(lines).removeprefix("data: "))["state"] == "running"
        with place.catalog.database.writing() as session:
            accounts.end_all(session, accounts.named(session, "paula"))
        with place.catalog.database.writing() as session:
            session.get(Job, job).progress = {"step": "not for who has left"}
        assert "not for who has left" not in "".join(lines)


def test_many_streams_keep_no_other_call_waiting(place, job):
    """Each looked after its job in one of the threads that answer calls: with 450, /health took seconds."""
    over, looking = threading.Event(), threading.Semaphore(0)

    def look(call: object, job_id: str) -> dict[str, str]:
        looking.release()
        over.wait(120)
        return {"state": "done"}

    where = urlsplit(place.url)
    asked = (
        f"GET /api/v1/jobs/{job}/events HTTP/1.1\r\nHost: {where.hostname}\r\n"
        f"Authorization: Bearer {place.tokens['paula']}\r\n\r\n"
    )
    with ExitStack() as streams, mock.patch.multiple(work, _identified_job=look, _PAUSE=0.01):
        streams.callback(over.set)
        for _ in range(60):  # threads that answer calls: 40
            stream = socket.create_connection((where.hostname, where.port), timeout=20)
            streams.enter_context(stream).sendall(asked.encode())
            while b"running" not in stream.recv(4096):
                continue
        assert looking.acquire(timeout=30)
        time.sleep(0.3)  # until the others look, too
        assert httpx.get(f"{place.url}/api/v1/health", timeout=10).status_code == 200


def test_a_page_says_that_the_database_is_away(place):
    """It looked up who asks, also to show the error, and failed on it a second time."""
    away = OperationalError("SELECT", {}, Exception("away"))
    with (
        signed_in(place, "clara") as (caller, _),
        mock.patch.object(Database, "reading", side_effect=away),
    ):
        for path in ("/", "/requests", "/account"):
            answer = caller.get(path)
            assert (answer.status_code, "does not answer" in answer.text) == (503, True)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_is_none_in_utc_is_refused(place, moment):
    """The log answered that the database is away, and an approval that Aegis has a bug."""
    with as_person(place, "otto") as otto:
        assert otto.get("/log", params={"since": moment}).status_code == 422
        number = place.ask()
        statement = otto.get(f"/requests/{number}/statement").json()["statement"]
        signed = sign_statement({**statement, "expires": moment}, place.keys["otto"]).to_dict()
        answer = otto.post(f"/requests/{number}/approve", json={"signed": signed})
        assert (answer.status_code, "not a time" in answer.json()["detail"]) == (400, True)


def test_what_an_agent_says_of_several_releases_is_whole(place):
    """The page of the request failed on half of it."""
    text = "configurations: {c: {age: {bucketize: {width: 10}}, sex: identity}}\n"
    with place.client("clara") as clara, place.client("otto") as otto:
        number = clara.request("census", "to learn", terms_accepted=True)["id"]
        otto.step(number, "review")
        otto.step(number, "choose", configuration=text)
    with as_person(place, "paula") as paula:
        job = paula.post("/work", json={"owner": "x"}).json()
        answer = {
            "configuration": text,
            "holds": False,
            "masks": {"age": "bucketize(width=10)", "sex": "identity"},
            "place": 1,
            "searched": False,
            "joint_smallest_class": 2,
        }
        path = f"/jobs/{job['id']}/checked"
        told = paula.post(path, json={"attempt": job["attempt"], "answer": answer})
        assert (told.status_code, "lacks joint_rows_below" in told.json()["detail"]) == (400, True)
        answer["joint_smallest_class"] = 10**30
        told = paula.post(path, json={"attempt": job["attempt"], "answer": answer})
        assert (told.status_code, "joint_smallest_class is" in told.json()["detail"]) == (400, True)
        over = {"attempt": job["attempt"], "reason": "over"}
        paula.post(f"/jobs/{job['id']}/failed", json=over).raise_for_status()


def test_an_agent_outlives_a_job_that_nobody_foresaw(asked):
    """A lying service ended it with one approval that ends in the year 1, or with an odd job."""
    place, number = asked
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
    said = []
    place.agent.say = said.append
    work = place.agent.client.work

    def lying(owner):
        job = work(owner)
        for signed in job["task"]["approvals"]:
            signed["statement"]["expires"] = "0001-01-01T00:00:00+14:00"
        return job

    with mock.patch.object(place.agent.client, "work", lying):
        assert place.agent.once()
    assert "not a time" in "".join(said)
    with mock.patch.object(Approvers, "require", side_effect=RuntimeError("a secret value")):
        with place.client("otto") as otto:
            otto.step(number, "retry")
        assert place.agent.once()
        with place.client("otto") as otto:
            told = otto.shown(number)["message"]
    assert "Read the output of the agent" in told
    assert "a secret value" not in told
    odd = {"id": "x", "kind": "check", "data_set": "census", "task": {}}
    with (
        mock.patch.object(place.agent.client, "work", return_value=odd),
        pytest.raises(EngineError, match="cannot read the job"),
    ):
        place.agent.once()


def test_a_worker_outlives_a_bug_and_a_store_that_is_away(place, capsys):
    """Its thread ended, and no job was done until somebody started the service again."""
    number = place.ask()
    with place.client("otto") as otto:
        job = otto.step(number, "choose")["job"]["id"]
        with mock.patch.object(flow, "ask_check", side_effect=RuntimeError("a secret value")):
            assert place.worker.once()
        told = otto.job(job)
    assert (told["state"], told["error"]) == ("failed", "A bug of Aegis: RuntimeError.")
    assert "RuntimeError" in capsys.readouterr().err
    away = mock.patch("obstore.delete", side_effect=GenericError("away"))
    with away, pytest.raises(EngineError, match="does not answer"):
        place.catalog.objects.delete("releases/x")


def test_each_step_of_a_job_is_told_at_once():
    """A step that began soon after another was told of only when it moved on, if at all."""
    told = []

    class Told(limited.ThrottledProgress):
        def send(self, told_now):
            told.append(dict(told_now))

    progress = Told()
    for name in ("Reading", "Searching"):
        with progress.step(name, 3) as step:
            step.advance()
    assert [(each["step"], each["done"]) for each in told] == [("Reading", 0), ("Searching", 0)]


def test_no_header_buys_a_caller_further_calls(tmp_path):
    """Another cookie beside that of the session, or another spelling of a token, was another caller."""
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    with catalog.database.writing() as session:
        ada = accounts.create(session, "ada", ["admin"])
        cookie = accounts.open_session(session, ada).secret
        _, token = accounts.make_token(session, accounts.actor_of(ada), "t", ["own-tokens"])
    told = {"session": [], "token": []}
    with running(ServiceSettings(worker=False, calls=5), catalog) as url:
        for number in range(8):
            for kind, headers in (
                ("session", {"Cookie": f"other={number}; aegis_session={cookie}"}),
                ("token", {"Authorization": f"Bearer {' ' * number}{token}"}),
            ):
                answer = httpx.get(f"{url}/api/v1/me", headers=headers)
                told[kind].append(answer.status_code)
    for kind, statuses in told.items():
        assert (statuses[:5], set(statuses[6:])) == ([200] * 5, {429}), kind


def test_an_agent_waits_where_it_called_too_often(tmp_path):
    """Others behind its address used up the calls: it ended, or lost the job that it worked on."""
    with house(tmp_path) as place:
        agent, over = place.agent, threading.Event()
        busy = TooOften("Too many calls.", hint="Wait 1 second.")
        said = []

        def asked(_owner):
            if len(said) > 1:
                over.set()
            raise busy

        agent.say = said.append
        with mock.patch.object(agent.client, "work", asked):
            agent.run(until=over)
        assert said[0].startswith("Too many calls")
        calls = []

        def told(*_given):
            calls.append(_given)
            if len(calls) == 1:
                raise busy

        with (
            mock.patch.object(agent.client, "alive", told),
            mock.patch("aegis.service.agent.SIGN_OF_LIFE", 0.05),
            Heartbeat(agent.client, "job", 1) as life,
        ):
            end = time.monotonic() + 20
            while len(calls) < 3 and time.monotonic() < end:
                time.sleep(0.05)
        assert (len(calls) > 2, life.stopped.is_set()) == (True, False)


def test_the_service_says_that_it_was_called_too_often_in_a_way_that_programs_know(tmp_path):
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    with (
        running(ServiceSettings(worker=False, calls=1), catalog) as url,
        Client(url, "x") as caller,
    ):
        for _ in range(3):
            with pytest.raises((NotSignedIn, TooOften)) as raised:
                caller.me()
    assert raised.type is TooOften


@pytest.mark.parametrize("step", ["return", "reject", "withdraw"])
def test_a_release_that_the_agent_refuses_is_no_dead_end(asked, step):
    """It could only be tried again, for ever."""
    place, number = asked
    with place.client("otto") as otto, place.client("clara") as clara:
        otto.step(number, "approve")
        otto.step(number, "run")
        with mock.patch.object(Approvers, "require", side_effect=RefusedError("not this one")):
            place.work()
        assert otto.shown(number)["state"] == "failed"
        by, given = (clara, {}) if step == "withdraw" else (otto, {"message": "choose another"})
        shown = by.step(number, step, **given)
        assert shown["state"] == {"return": "returned", "reject": "rejected"}.get(step, "withdrawn")
        assert shown["frozen"] is None or step != "return"


def test_an_error_of_the_database_quotes_nothing_that_was_to_be_stored(tmp_path):
    """Such an error ends in the log of the process, with the hash of a password for example."""
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    with catalog.database.writing() as session:
        accounts.create(session, "ada", ["admin"])
    with pytest.raises(IntegrityError) as raised, catalog.database.writing() as session:
        session.add(Account(name="ada", roles=[], password="$argon2id$ a hash"))
    assert "argon2id" not in str(raised.value)


def test_a_check_that_nobody_waits_for_is_not_made(asked):
    """The request was approved meanwhile: the agent checked the table five times, for nothing."""
    place, number = asked
    text = "configurations: {c: {age: {bucketize: {width: 40}}, sex: identity}}\n"
    with place.client("otto") as otto:
        otto.step(number, "choose", configuration=text)
        job = otto.shown(number)["job"]["id"]
        otto.step(number, "approve")
        place.work()
        assert (otto.job(job)["state"], otto.job(job)["attempt"]) == ("cancelled", 0)
        assert otto.shown(number)["state"] == "approved"


def test_a_key_that_the_agent_does_not_know_is_refused_when_the_approval_is_given(asked, tmp_path):
    """The approval counted, and the release failed at the agent: nobody could sign it again."""
    place, number = asked
    stranger = new_key(tmp_path, "stranger")
    with Client(place.url, place.tokens["otto"], key=stranger) as otto:
        with pytest.raises(CatalogError, match="which the provider's agent does not know"):
            otto.step(number, "approve")
        assert otto.shown(number)["state"] == "in review"
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
        place.work()
        assert otto.shown(number)["state"] == "released"


def test_an_approval_by_an_unknown_key_is_signed_again(asked, tmp_path):
    """The provider may list another key after the check; the wrong signature stood for ever."""
    place, number = asked
    stranger = new_key(tmp_path, "stranger")
    with Client(place.url, place.tokens["otto"]) as otto:
        otto.step(number, "approve")
    with Client(place.url, place.tokens["otto"], key=stranger) as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
        place.work()
        shown = otto.shown(number)
        assert (shown["state"], "aegis catalog retry" in shown["message"]) == ("failed", True)
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "retry")
        place.work()
        assert otto.shown(number)["state"] == "released"


@pytest.mark.parametrize(("state", "code"), [("released", 0), ("failed", 1), ("returned", 1)])
def test_a_script_sees_that_no_release_was_made(state, code, capsys):
    """The command ended with 0 after "Request 4f2c9a is failed"."""
    shown = {"state": state, "message": ""}
    with (
        mock.patch.object(Client, "step"),
        mock.patch.object(Client, "wait", return_value=shown),
    ):
        assert run(["catalog", "run", "4f2c9a", "--url", "https://a.test", "--token", "x"]) == code
    assert state in capsys.readouterr().out


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"measure": "nope"}, "Unknown measure 'nope'"),
        ({"measure": "held-out-r2"}, "Unknown measure 'held-out-r2'"),
        ({"label": "age"}, "predicts income, not 'age'"),
    ],
)
def test_what_no_release_can_be_chosen_for_is_refused_when_it_is_asked(place, about, words):
    """The agent failed at the review; another label was ignored."""
    with place.client("clara") as clara:
        with pytest.raises((CatalogError, PolicyError), match=words):
            clara.draft("census", "to learn", **about)
        number = clara.draft("census", "to learn", measure="mi", label="income")["id"]
        with pytest.raises((CatalogError, PolicyError), match=words):
            clara.change_request(number, purpose="to learn more", **about)
        clara.step(number, "withdraw")


def test_no_text_with_a_nul_character_comes_in(place):
    """SQLite stores it; PostgreSQL cannot, and the call ended with 500."""
    with as_person(place, "clara") as clara:
        asked = {"data_set": "census", "purpose": "a\0b"}
        assert clara.post("/requests", json=asked).status_code == 422
        told = clara.post("/requests", json={**asked, "purpose": r"a\u0000b"})
        assert (told.status_code, told.json()["purpose"]) == (200, r"a\u0000b")
        clara.post(f"/requests/{told.json()['id']}/withdraw")
        for path in ("/data-sets/a%00b", "/requests?number=%00"):
            assert clara.get(path).status_code == 400


def test_an_expired_approval_is_signed_again(asked):
    """A signature lasts 30 days. After that, the agent refused the release for ever."""
    place, number = asked
    with place.client("otto") as otto:
        statement = otto.statement(number)["statement"]
        otto.step(number, "approve")
        with pytest.raises(CatalogError, match="cannot be approved"):
            otto.step(number, "approve")
        old = {**statement, "expires": (datetime.now(UTC) - timedelta(days=1)).isoformat()}
        with place.catalog.database.writing() as session:
            [approval] = session.scalars(select(Approval).where(Approval.request_id == number))
            approval.signed = sign_statement(old, place.keys["otto"]).to_dict()
        otto.step(number, "run")
        place.work()
        assert "has expired" in otto.shown(number)["message"]
        otto.step(number, "approve")
        otto.step(number, "retry")
        place.work()
        assert otto.shown(number)["state"] == "released"


def test_a_file_that_the_store_lacks_is_no_download(place):
    """The answer began with 200 and then broke off, and the log said that it was downloaded."""
    number = released(place)
    for path in (place.folder / "objects" / "releases").rglob("*-*"):
        path.unlink()
    with as_person(place, "clara") as clara:
        answer = clara.get(f"/requests/{number}/download")
        assert (answer.status_code, answer.json()["title"]) == (404, "NotThere")
        actions = [entry["action"] for entry in clara.get("/log").json()["entries"]]
        assert "downloaded" not in actions[: actions.index("complete")]
