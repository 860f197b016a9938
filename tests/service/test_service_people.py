"""Accounts over the API and the pages: what an attacker tries, and what a person sees."""

from __future__ import annotations

import html
import io
import re
import sys

import httpx
import pytest
from service_support import PASSWORD, house
from typer.main import get_command

from aegis.cli.main import app, run
from aegis.service.catalog import Catalog, accounts, guessing, second_factor

WRONG = "a guess that is long enough"
NEW = "another sentence that is long"


@pytest.fixture
def own(inhabited, tmp_path):
    """A service of one test's own: what accounts are is changed by it."""
    with house(tmp_path, furnished=inhabited) as made:
        yield made


@pytest.fixture
def clock(monkeypatch):
    step = [60_000_000]
    monkeypatch.setattr(second_factor, "step_now", lambda: step[0])
    return step


def browser(place) -> httpx.Client:
    return httpx.Client(base_url=place.url, headers={"Origin": place.url}, timeout=60)


def signed_in(place, caller: httpx.Client, name: str, password: str = PASSWORD) -> str:
    answer = caller.post("/sign-in", data={"name": name, "password": password})
    assert answer.status_code == 303, answer.text
    return key_of(caller) if answer.headers["location"] == "/" else ""


def key_of(caller: httpx.Client) -> str:
    return caller.get("/account").text.split('name="form_key" value="', 1)[1].split('"', 1)[0]


def with_factor(place, name: str, clock: list[int]) -> tuple[str, list[str]]:
    with place.client(name) as client:
        secret = client.second_factor("", password=PASSWORD)["secret"]
        code = second_factor.code_at(secret, clock[0])
        codes = client.second_factor("confirm", code=code)["recovery_codes"]
    clock[0] += 1
    return secret, codes


def test_an_invitation_is_made_handed_over_and_used_once(own):
    with browser(own) as ada, browser(own) as nina, browser(own) as thief:
        key = signed_in(own, ada, "ada")
        made = ada.post("/invitations", data={"form_key": key, "name": "nina", "roles": "consumer"})
        link = re.search(r"http://[^<\s]+/set-password#([\w-]+)", html.unescape(made.text))
        assert link is not None
        assert link[1] not in ada.get("/accounts").text, "it is shown once"
        assert "invited" in ada.get("/accounts?words=nina").text
        given = {"secret": link[1], "password": NEW}
        short = nina.post("/set-password", data={**given, "password": "short"})
        assert short.status_code == 400
        assert "5 characters" in short.text
        assert nina.post("/set-password", data=given).headers["location"].startswith("/sign-in")
        again = thief.post("/set-password", data={**given, "password": PASSWORD})
        assert again.status_code == 404
        assert "no longer valid" in again.text
        signed_in(own, nina, "nina", NEW)


def test_half_a_sign_in_opens_nothing(own, clock):
    """The cookie of who knows the password alone is no session, under whatever name it is sent."""
    secret, _ = with_factor(own, "clara", clock)
    with browser(own) as caller:
        signed_in(own, caller, "clara")
        half = caller.cookies["aegis_half"]
        for name in ("aegis_half", "aegis_session"):
            stolen = {name: half}
            with httpx.Client(base_url=own.url, cookies=stolen, timeout=60) as thief:
                assert thief.get("/api/v1/me").status_code == 401
                assert thief.get("/requests").status_code == 303
        assert caller.post("/sign-in/code", data={"code": "wrong"}).status_code == 401
        code = second_factor.code_at(secret, clock[0])
        assert caller.post("/sign-in/code", data={"code": code}).headers["location"] == "/"
        assert caller.get("/api/v1/me").json()["name"] == "clara"
    with browser(own) as thief:
        signed_in(own, thief, "clara")
        replayed = thief.post("/sign-in/code", data={"code": code})
        assert replayed.status_code == 401
        assert "The code is wrong" in replayed.text


@pytest.mark.parametrize("way", ["page", "api"])
def test_a_confirmed_second_factor_ends_the_other_sessions(own, clock, way):
    """Who took a session over before is out, and who set the factor up stays in."""
    with browser(own) as thief, browser(own) as clara:
        signed_in(own, thief, "clara")
        key = signed_in(own, clara, "clara")
        assert thief.get("/api/v1/me").status_code == 200
        if way == "page":
            begun = clara.post(
                "/account/second-factor", data={"form_key": key, "password": PASSWORD}
            )
            secret = begun.text.split("Key: <code>", 1)[1].split("<", 1)[0]
            given = {"form_key": key, "code": second_factor.code_at(secret, clock[0])}
            assert clara.post("/account/second-factor/confirm", data=given).status_code == 200
        else:
            headers = {"Origin": own.url}
            begun = clara.post(
                "/api/v1/me/second-factor", json={"password": PASSWORD}, headers=headers
            )
            given = {"code": second_factor.code_at(begun.json()["secret"], clock[0])}
            path = "/api/v1/me/second-factor/confirm"
            assert clara.post(path, json=given, headers=headers).status_code == 200
        assert thief.get("/api/v1/me").status_code == 401
        assert clara.get("/api/v1/me").status_code == 200


def test_the_api_asks_for_the_code_only_who_knows_the_password(own, clock):
    secret, codes = with_factor(own, "clara", clock)

    def ask(**given: str) -> httpx.Response:
        told = {"name": "clara", **given}
        return httpx.post(f"{own.url}/api/v1/session", json=told, timeout=60)

    code = second_factor.code_at(secret, clock[0])
    wrong = ask(password=WRONG, code=code)
    assert wrong.status_code == 401
    assert "second factor" not in wrong.text
    assert "second factor" in ask(password=PASSWORD).text
    assert ask(password=PASSWORD, code=code).status_code == 200
    assert ask(password=PASSWORD, code=code).status_code == 401
    assert ask(password=PASSWORD, code=codes[0]).status_code == 200
    assert ask(password=PASSWORD, code=codes[0]).status_code == 401


def test_a_changed_password_puts_the_thief_of_a_session_out(own):
    with browser(own) as clara, browser(own) as thief:
        key = signed_in(own, clara, "clara")
        thief.cookies.set("aegis_session", clara.cookies["aegis_session"])
        assert thief.get("/api/v1/me").status_code == 200
        wrong = clara.post(
            "/account/password", data={"form_key": key, "password": WRONG, "new": NEW}
        )
        assert wrong.status_code == 403
        done = clara.post(
            "/account/password", data={"form_key": key, "password": PASSWORD, "new": NEW}
        )
        assert done.headers["location"] == "/account?done=password"
        assert clara.get("/api/v1/me").status_code == 200
        assert thief.get("/api/v1/me").status_code == 401


def test_who_guesses_is_answered_429_and_the_person_is_not(own):
    with browser(own) as caller:
        told = []
        for _ in range(guessing.FREE + 1):
            form = {"name": "clara", "password": WRONG}
            told.append(caller.post("/sign-in", data=form).status_code)
        assert told == [401] * guessing.FREE + [429]
    assert accounts.sign_in(own.catalog.database, "clara", PASSWORD, address="192.0.2.1")


@pytest.mark.parametrize("name", ["paula", "otto", "anna", "clara", "aude"])
def test_no_one_but_an_admin_resets_a_password(own, name):
    with browser(own) as caller:
        key = signed_in(own, caller, name)
        for path in ("/accounts/ada/reset", "/accounts/ada/remove-factor", "/invitations"):
            answer = caller.post(path, data={"form_key": key, "name": "x"})
            assert answer.status_code == 403, path
            assert "set-password#" not in answer.text
        assert caller.post("/api/v1/accounts/ada/reset", json={}).status_code == 403


def test_forms_of_the_account_need_the_key_of_the_session(own):
    with browser(own) as caller:
        signed_in(own, caller, "clara")
        for path, form in (
            ("/account/password", {"password": PASSWORD, "new": NEW}),
            ("/account/sessions", {}),
            ("/account/second-factor", {"password": PASSWORD}),
        ):
            answer = caller.post(path, data={**form, "form_key": "forged"})
            assert answer.status_code == 403, path


def test_an_admin_does_each_thing_on_the_page_of_an_account(own, clock):
    with_factor(own, "clara", clock)
    with browser(own) as ada:
        key = signed_in(own, ada, "ada")

        def do(name: str, step: str, **form: str) -> str:
            answer = ada.post(f"/accounts/{name}/{step}", data={"form_key": key, **form})
            assert answer.status_code == 200, answer.text
            return answer.text

        assert "The second factor is off." in do("clara", "remove-factor")
        assert "/set-password#" in do("clara", "reset")
        assert "All sessions of this account have ended." in do(
            "clara", "end-sessions", tokens="true"
        )
        assert "The account is closed" in do("clara", "close")
        assert "The account is open again" in do("clara", "reopen")
        assert "no provider" in html.unescape(
            ada.post("/accounts/paula/hand-over", data={"form_key": key, "to": "clara"}).text
        )
        last = ada.post("/accounts/ada/close", data={"form_key": key})
        assert last.status_code == 409
        assert "last admin" in last.text
        assert ada.post("/accounts/ada/fly", data={"form_key": key}).status_code == 404


def test_the_log_is_filtered_and_exported(own):
    with browser(own) as ada:
        key = signed_in(own, ada, "ada")
        ada.post("/accounts/clara", data={"form_key": key, "roles": ["consumer", "auditor"]})
        shown = html.unescape(ada.get("/log?by=ada&action=roles+changed").text)
        assert "consumer → auditor, consumer" in shown
        assert "signed in" not in shown.split("<tbody>")[1]
        lines = ada.get("/log/export?by=ada&action=roles+changed").text.splitlines()
        assert len(lines) == 1
        assert '"old": ["consumer"]' in lines[0]
        everything = ada.get("/log/export").text.splitlines()
        assert len(everything) == ada.get("/api/v1/log").json()["count"]
        assert ada.get("/log?since=2999-01-01").text.count("<tr>") == 2
        for wrong in ("2026-13-01", "2026-02-30"):
            answer = ada.get(f"/log?since={wrong}")
            assert answer.status_code == 400
            assert "no day" in answer.text
    with browser(own) as clara:
        signed_in(own, clara, "clara")
        read = [line for line in clara.get("/log/export").text.splitlines() if "paula" in line]
        assert clara.get("/log/export").status_code == 200
        assert read != []  # clara is an auditor now


def test_commands_read_piped_passwords(own, monkeypatch, capsys, tmp_path):
    """They said only "Interrupted."."""
    monkeypatch.delenv("AEGIS_PASSWORD", raising=False)
    monkeypatch.delenv("AEGIS_NEW_PASSWORD", raising=False)
    database = str(tmp_path / "catalog.db")
    made = ["catalog", "account", "nina", "--roles", "admin", "--database", database]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    assert run(made) == 0
    assert accounts.sign_in(Catalog.open(database).database, "nina", PASSWORD)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run([*made[:2], "olga", *made[3:]]) == 2
    assert "Pipe it as one line, set AEGIS_PASSWORD, or run" in capsys.readouterr().err
    monkeypatch.setenv("AEGIS_URL", own.url)
    monkeypatch.setenv("AEGIS_TOKEN", own.tokens["ada"])
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n{NEW}\n"))
    assert run(["catalog", "password"]) == 0
    assert accounts.sign_in(own.catalog.database, "ada", NEW)


@pytest.mark.parametrize("verb", ["account", "password", "set-password", "second-factor"])
def test_completion_asks_for_no_password(verb, monkeypatch):
    """A press of Tab asked for it."""
    for name in ("AEGIS_PASSWORD", "AEGIS_NEW_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("untouched\n"))
    context = get_command(app).make_context("aegis", ["catalog", verb], resilient_parsing=True)
    group = context.command.get_command(context, "catalog")
    context = group.make_context("catalog", [verb], parent=context, resilient_parsing=True)
    command = group.get_command(context, verb)
    command.make_context(verb, [], parent=context, resilient_parsing=True)
    assert sys.stdin.read() == "untouched\n"


def test_commands_do_what_the_pages_do(own, monkeypatch, capsys):
    monkeypatch.setenv("AEGIS_URL", own.url)
    monkeypatch.setenv("AEGIS_TOKEN", own.tokens["ada"])
    monkeypatch.setenv("AEGIS_PASSWORD", PASSWORD)
    monkeypatch.setenv("AEGIS_NEW_PASSWORD", NEW)
    assert run(["catalog", "invite", "nina", "--roles", "consumer,provider"]) == 0
    assert "/set-password#" in capsys.readouterr().out
    assert run(["catalog", "reset", "clara"]) == 0
    assert run(["catalog", "reopen", "clara"]) == 2
    assert run(["catalog", "remove-factor", "clara"]) == 2
    assert run(["catalog", "end-sessions", "clara", "--tokens"]) == 0
    assert "1 tokens" in capsys.readouterr().out
    assert run(["catalog", "hand-over", "paula", "nina", "--all"]) == 0
    assert run(["catalog", "password"]) == 0
    assert accounts.sign_in(own.catalog.database, "ada", NEW)
    monkeypatch.setenv("AEGIS_PASSWORD", WRONG)
    assert run(["catalog", "second-factor", "--recovery"]) == 2
    assert "wrong" in capsys.readouterr().err
