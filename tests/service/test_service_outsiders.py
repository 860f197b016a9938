"""Attacks of who has no account, and of who has one in another organisation."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, RLock, Semaphore
from typing import Any

import httpx
import pytest
from service_support import PASSWORD, POLICY, House, house

from aegis.service.app import create_app
from aegis.service.catalog import CatalogError, accounts, deliveries, flow
from aegis.service.catalog.records import Job
from aegis.service.oidc import Provider
from aegis.service.settings import ServiceSettings

ORIGIN = "https://aegis.example.org"


@pytest.fixture
def served(tmp_path) -> Iterator[Any]:
    """The application of an empty catalog, in this process."""
    settings = ServiceSettings(
        database=str(tmp_path / "c.db"),
        worker=False,
        origin=ORIGIN,
        calls=30,
        provider=Provider("http://127.0.0.1:9", "aegis"),
    )
    app = create_app(settings)
    yield app
    app.state.catalog.database.close()


def called(app: Any, method: str, path: str, address: str = "203.0.113.9", **more: Any) -> Any:
    """Call the application from an address."""

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as caller:
            return await caller.request(method, path, **more)

    return asyncio.run(call())


@pytest.mark.parametrize("path", ["/broken", "/api/v1/broken"])
def test_the_answer_to_an_unexpected_error_is_sealed(served, path):
    """Only such an answer passes by the guard."""

    @served.get(path)
    def broken() -> None:
        raise RuntimeError("canary")

    answer = called(served, "GET", path)
    assert answer.status_code == 500
    assert "canary" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.parametrize(
    "path",
    ["/sign-in", "/sign-in/code", "/set-password", "/api/v1/session", "/api/v1/password-links"],
)
def test_who_is_not_signed_in_sends_little(served, path):
    """8 MB with 700,000 fields took the service 1 GB of memory, and 2.6 s of its processor."""
    assert called(served, "POST", path, content=b"x" * 70_000).status_code == 413

    async def pieces() -> Any:
        for _ in range(70):
            yield b"x" * 1000

    kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
    answer = called(served, "POST", path, content=pieces(), headers={"Content-Type": kind})
    assert answer.status_code == 413


def test_a_data_set_may_be_called_like_a_way_to_sign_in(served):
    path = "/api/v1/data-sets/session"
    assert called(served, "POST", path, content=b"x" * 70_000).status_code != 413


def test_unknown_fields_without_end_are_one_error(place):
    """Each would be an error of its own, with all its words."""
    token = {"Authorization": f"Bearer {place.tokens['clara']}"}
    fields = {f"f{n}": 1 for n in range(200)}
    answer = httpx.post(f"{place.url}/api/v1/tokens", json=fields, headers=token)
    assert answer.status_code == 422
    assert "more than 100 fields" in answer.json()["detail"]
    assert "unknown" not in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/sign-in", "/sign-in/oidc"])
def test_addresses_of_one_network_buy_no_further_tries(served, path):
    """Whoever has an IPv6 address has 2**64 of them. Each call to /sign-in/oidc asks the provider."""
    statuses = [called(served, "GET", path, f"2001:db8::{n}").status_code for n in range(1, 6)]
    assert statuses[:3] == [statuses[0]] * 3
    assert statuses[3:] == [429, 429]
    assert called(served, "GET", path, "2001:db8:1::1").status_code == statuses[0]


@pytest.mark.parametrize("host", ["testserver", "testserver:8080", "LOCALHOST.evil.example"])
def test_the_workbench_has_no_other_name_than_its_own(tmp_path, host):
    """Who answers for another name in the same network could rebind it to this machine."""
    app = create_app(ServiceSettings(local=True, folder=tmp_path, worker=False))
    assert called(app, "GET", "/", headers={"Host": host}).status_code == 421
    assert called(app, "GET", "/", headers={"Host": "localhost:8080"}).status_code == 200


CALLS = (
    ("GET", "", None),
    ("GET", "/events", None),
    ("POST", "/cancel", None),
    ("POST", "/retry", None),
    ("POST", "/alive", {"attempt": 1}),
    ("POST", "/give-back", {"attempt": 1}),
    ("POST", "/failed", {"attempt": 1, "reason": "x"}),
    ("POST", "/checked", {"attempt": 1, "answer": {}}),
)


@pytest.fixture(scope="module")
def hidden(place) -> str:
    """The number of a job of a data set that only paula sees."""
    with place.client("paula") as paula:
        paula.register("hidden", source="adult", public_key=place.key)
        return paula.ask_summary("hidden", POLICY, protect="noise", epsilon=1.0)["id"]


@pytest.mark.parametrize(("method", "step", "body"), CALLS)
def test_the_number_of_a_job_tells_nobody_its_data_set(place, hidden, method, step, body):
    """Whether a job is another's or is not there, the answer is the same."""
    token = {"Authorization": f"Bearer {place.tokens['otto']}"}
    answers = [
        httpx.request(method, f"{place.url}/api/v1/jobs/{job}{step}", json=body, headers=token)
        for job in (hidden, "0" * 32)
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()


class Turns:
    """Notes for each call of a function whether its thread kept others from writing to the database."""

    def __init__(self, place: House, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writers, self.patch = RLock(), monkeypatch
        monkeypatch.setattr(place.catalog.database, "_writers", self.writers)
        self.held: list[bool] = []
        for cached in (flow.declared, flow.policy_of, flow._fitting):
            cached.cache_clear()

    def watch(self, module: Any, name: str) -> None:
        work = getattr(module, name)

        def noted(*given: Any, **more: Any) -> Any:
            self.held.append(self.writers._is_owned())
            return work(*given, **more)

        self.patch.setattr(module, name, noted)


@pytest.mark.parametrize("way", ["page", "api"])
def test_others_write_while_a_policy_is_read(place, monkeypatch, way):
    """A policy of 4 MB takes 10 s: meanwhile nobody of another organisation could sign in."""
    turns = Turns(place, monkeypatch)
    turns.watch(flow, "load_policy")
    turns.watch(flow, "dump_policy")
    if way == "api":
        with place.client("paula") as paula:
            paula.ask_summary("census", POLICY, protect="noise", epsilon=1.0)
    else:
        with signed_in(place, "paula") as (paula, key):
            form = {"policy": POLICY, "protect": "noise", "form_key": key}
            assert paula.post("/data-sets/census/summary", data=form).status_code == 303
    assert turns.held == [False, False]


@pytest.mark.parametrize("way", ["page", "api"])
def test_others_write_while_a_configuration_is_read(requested, tmp_path, monkeypatch, way):
    text = "configurations: {c: {age: {bucketize: {width: 10}}, sex: identity}}\n"
    with house(tmp_path, furnished=requested) as place:
        turns = Turns(place, monkeypatch)
        turns.watch(flow, "load_policy")
        turns.watch(flow, "load_configurations")
        if way == "api":
            with place.client("otto") as otto:
                otto.step(requested.request, "choose", configuration=text)
        else:
            with signed_in(place, "otto") as (otto, key):
                form = {"configuration": text, "form_key": key}
                path = f"/requests/{requested.request}/choose"
                assert otto.post(path, data=form).status_code == 303
        assert turns.held == [False, False]
        turns.held.clear()
        turns.watch(deliveries, "require_answer")
        place.work()
        assert turns.held
        assert not any(turns.held)


@contextmanager
def signed_in(place: House, name: str) -> Iterator[tuple[httpx.Client, str]]:
    """A browser in which a person is signed in, and the key of its forms."""
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}) as browser:
        browser.post("/sign-in", data={"name": name, "password": PASSWORD})
        found = re.search('name="form_key" value="([^"]+)"', browser.get("/account").text)
        assert found
        yield browser, found[1]


def test_the_page_tells_nobody_whether_a_release_is_under_way(requested, tmp_path):
    """Of a request that one may not see, and of one that is not there, it says the same."""
    with house(tmp_path, furnished=requested) as place:
        with place.catalog.database.writing() as session:
            accounts.create(session, "carl", ["consumer"], password=PASSWORD)
            session.add(
                Job(
                    kind="release",
                    place="agent",
                    data_set_id="census",
                    request_id=requested.request,
                )
            )
        with signed_in(place, "carl") as (carl, key):
            pages = [
                carl.post(f"/requests/{number}/cancel", data={"form_key": key}).text
                for number in (requested.request, "0" * 32)
            ]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("half", ["form_key", "base"])
def test_half_a_character_in_a_form_is_refused(place, half):
    """A form says in which encoding it is, and some encodings have halves of characters."""
    with signed_in(place, "otto") as (otto, key):
        texts = {"form_key": key, "base": POLICY} | {half: "\\ud800"}
        parts = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
            for name, text in texts.items()
        ]
        answer = otto.post(
            "/data-sets/census/workbench/draw",
            content="".join([*parts, "--x--\r\n"]).encode(),
            headers={"Content-Type": "multipart/form-data; boundary=x; charset=raw_unicode_escape"},
        )
    assert answer.status_code == 400
    assert "not valid Unicode" in answer.text


@pytest.mark.parametrize("path", ["/log?verify=true", "/log/export"])
def test_reading_the_whole_log_counts_as_work(served, path):
    """With 40,000 entries, the chain takes 0.9 s of the processor, and the export 3.3 s."""
    statuses = [called(served, "GET", path).status_code for _ in range(4)]
    assert statuses == [303, 303, 303, 429]


def test_uploads_of_one_account_leave_room_for_others(place, monkeypatch):
    """Each takes a thread, and there are 40: forty at once, and nobody else was answered."""
    with place.client("paula") as paula:
        paula.register("many", source="adult", public_key=place.key)
        paula.ask_summary("many", POLICY, protect="noise", epsilon=1.0)
        number = paula.work("x")["id"]
    go, begun = Event(), Semaphore(0)

    def waits(*given: Any, **more: Any) -> None:
        begun.release()
        go.wait(60)
        raise CatalogError("It is not what was asked for.")

    monkeypatch.setattr(deliveries, "summary", waits)

    def upload(_: int) -> int:
        return httpx.post(
            f"{place.url}/api/v1/uploads/{number}/summary",
            headers={"Authorization": f"Bearer {place.tokens['paula']}"},
            data={"attempt": "1", "signature": "{}", "policy": POLICY},
            files={"bundle": ("s.protected", b"{}")},
        ).status_code

    with ThreadPoolExecutor(45) as pool:
        first = [pool.submit(upload, n) for n in range(2)]
        assert all(begun.acquire(timeout=60) for _ in first)
        assert set(pool.map(upload, range(43))) == {429}
        go.set()
        assert [each.result() for each in first] == [400, 400]
    assert upload(0) == 400
