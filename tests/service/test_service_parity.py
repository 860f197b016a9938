"""Whatever the API can, `aegis catalog` can: one walk with commands alone reaches every call."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from service_support import PASSWORD, POLICY, declared, house

from aegis.cli.main import run
from aegis.service.app import API_ROOMS
from aegis.service.catalog import CatalogError, NotAllowed, NotThere, second_factor
from aegis.service.catalog.access import scopes_of
from aegis.service.commands.catalog import VERBS

BROWSER = {"/session", "/session/end"}
AGENT = {
    "/work",
    "/keys",
    "/jobs/{job_id}/give-back",
    "/jobs/{job_id}/failed",
    "/jobs/{job_id}/alive",
}
ON_THE_MACHINE = {"account", "token", "backup", "restore", "clean", "check", "sign"}
"""Verbs that call no service."""


class Shell:
    """Commands of several persons, each with a token of their own."""

    def __init__(self, place, monkeypatch, capsys, folder: Path) -> None:
        self.place, self.monkeypatch, self.capsys, self.folder = place, monkeypatch, capsys, folder
        self.used: set[str] = set()
        monkeypatch.setenv("AEGIS_URL", place.url)
        monkeypatch.chdir(folder)

    def __call__(self, who: str, verb: str, *words: str, code: int = 0) -> str:
        self.used.add(verb)
        self.monkeypatch.setenv("AEGIS_TOKEN", self.place.tokens[who])
        self.capsys.readouterr()
        ended = run(["catalog", verb, *words])
        shown = self.capsys.readouterr()
        assert ended == code, (verb, words, shown.out, shown.err)
        return shown.out

    def read(self, who: str, verb: str, *words: str):
        return json.loads(self(who, verb, *words, "--format", "json"))

    def called(self) -> set[tuple[str, str]]:
        """Return the calls of the API that were answered with success, from the figures."""
        self("ada", "metrics")  # a call is counted once it is answered
        families = {f.name: f for f in text_string_to_metric_families(self("ada", "metrics"))}
        labels = [sample.labels for sample in families["aegis_calls"].samples]
        answered = [told for told in labels if told.get("status", "").startswith("2")]
        return {(told["method"], told["route"].removeprefix("/api/v1")) for told in answered}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    with house(tmp_path_factory.mktemp("parity")) as made:
        yield made


@pytest.fixture
def shell(fresh, monkeypatch, capsys, tmp_path) -> Shell:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Shell(fresh, monkeypatch, capsys, tmp_path)


def test_commands_alone_reach_every_call_of_the_api(shell):
    accounts_and_tokens(shell)
    people(shell)
    offer(shell)
    number = request(shell)
    decide(shell, number)
    read(shell, number)
    end(shell, number)
    hand_over(shell)
    offered = {
        (method, path) for method, path, _ in declared("", API_ROOMS) if path not in BROWSER | AGENT
    }
    assert offered - shell.called() == set()
    assert shell.used | ON_THE_MACHINE == set(VERBS)


def accounts_and_tokens(shell: Shell) -> None:
    assert shell.read("clara", "me")["roles"] == ["consumer"]
    shell.monkeypatch.setenv("AEGIS_PASSWORD", "a sentence that is long enough")
    shell("ada", "account", "carl", "--roles", "consumer", "--url", shell.place.url)
    shell("ada", "roles", "carl", "operator,consumer")
    shell("ada", "close", "carl")
    rows = {row["name"]: row for row in shell.read("ada", "accounts")}
    assert (rows["carl"]["roles"], rows["carl"]["disabled"]) == ("consumer, operator", True)
    secret = shell("clara", "new-token", "laptop", "--scopes", "browse", "--days", "3").strip()
    assert secret.startswith("aegis_")
    number = next(row["id"] for row in shell.read("clara", "tokens") if row["name"] == "laptop")
    shell("clara", "end-token", number[:6])
    shell("clara", "end-token", "zzz", code=2)


def people(shell: Shell) -> None:
    """Links, passwords, second factors and sessions."""
    shell.monkeypatch.setenv("AEGIS_PASSWORD", PASSWORD)
    shell.monkeypatch.setenv("AEGIS_NEW_PASSWORD", "another sentence that is long")
    link = shell("ada", "invite", "petra", "--roles", "provider").strip()
    shell("ada", "set-password", link.partition("#")[0], code=2)
    shell("ada", "set-password", link)
    shell("ada", "set-password", link, code=2)
    assert "#" in shell("ada", "reset", "petra")
    shell("ada", "close", "petra")
    shell("ada", "reopen", "petra")
    assert shell.read("clara", "factor-state") == {"on": False, "recovery_codes": 0}
    shell.monkeypatch.setattr("typer.prompt", lambda *_, **__: code_that_an_app_shows(shell))
    shell("clara", "second-factor")
    assert shell.read("clara", "factor-state") == {"on": True, "recovery_codes": 10}
    assert len(shell("clara", "second-factor", "--recovery").split()) == 10
    shell("ada", "remove-factor", "clara")
    shell("clara", "second-factor")
    shell("clara", "second-factor", "--remove")
    form = {"name": "clara", "password": PASSWORD}
    httpx.post(f"{shell.place.url}/api/v1/session", json=form).raise_for_status()
    assert len(shell.read("clara", "sessions")) == 1
    shell("clara", "password")
    assert shell.read("clara", "sessions") == []
    shell("clara", "end-sessions")
    shell("ada", "end-sessions", "petra")


def code_that_an_app_shows(shell: Shell) -> str:
    told = shell.capsys.readouterr().out
    secret = told.split("Key for your app: ", 1)[1].split()[0]
    return second_factor.code_at(secret, second_factor.step_now())


def hand_over(shell: Shell) -> None:
    assert "petra is the provider" in shell("paula", "hand-over", "census", "petra")
    shell("ada", "hand-over", "petra", "paula", "--all")


def offer(shell: Shell) -> None:
    place = shell.place
    (shell.folder / "agent.pub.pem").write_bytes(place.public_pem())
    (shell.folder / "weighted.yaml").write_text(f"weight: age_weight\n{POLICY}")
    shell(
        "paula", "register", "census", "--source", "adult", "--key", "agent.pub.pem",
        "-p", "weighted.yaml", code=2,
    )  # fmt: skip
    shell(
        "paula", "register", "census", "--source", "adult", "--key", "agent.pub.pem",
        "-p", "policy.yaml", "--public", "--terms", "for research", "--epsilon", "8",
    )  # fmt: skip
    place.work()
    job = shell("paula", "summary", "census", "-p", "policy.yaml", "--epsilon", "8").strip()
    assert "cancelled" in shell("paula", "cancel", job, "--job")
    assert "queued" in shell("paula", "retry", job, "--job")
    place.work()
    shell("paula", "change", "census", "--title", "The census")
    shell("paula", "change", "census", code=2)
    shell("paula", "publish", "census")
    shell("paula", "grant", "census", "otto", "operator")
    shell("paula", "grant", "census", "anna", "approver")
    shell("paula", "grant", "census", "anna", "approver", "--withdraw")
    shell("paula", "admit", "census", "paula")
    assert "The census" in shell("clara", "list")
    assert "The census" in shell("clara", "show", "census")
    assert len(shell.read("otto", "versions", "census")) == 2
    assert yaml.safe_load(shell("otto", "policy", "census"))["label"] == "income"
    shell("clara", "costs", "census")
    shell("clara", "export", "census")
    assert "reserved" in shell("paula", "ledger", "census")


def request(shell: Shell) -> str:
    number = shell(
        "clara", "request", "census", "--purpose", "to learn", "--accept-terms", "--draft"
    ).strip()
    assert len(number) == 8
    shell("clara", "edit", number, "--purpose", "to learn more", "--models", "lr")
    shell("clara", "submit", number)
    assert number in shell("clara", "requests", "--state", "submitted")
    assert "to learn more" in shell("clara", "status", number)
    shell("otto", "review", number)
    shell("otto", "return", number, "-m", "say for whom")
    shell("clara", "submit", number)
    shell("otto", "review", number)
    gone = shell("clara", "request", "census", "--purpose", "x", "--accept-terms").strip()
    shell("clara", "withdraw", gone)
    refused = shell("clara", "request", "census", "--purpose", "x", "--accept-terms").strip()
    shell("otto", "reject", refused, "-m", "no")
    return number


def decide(shell: Shell, number: str) -> None:
    with shell.place.client("otto") as otto:
        otto.step(number, "choose")
        shell.place.work()
    shell("otto", "job", number, "--follow")
    shell.monkeypatch.setattr("aegis.service.client.Client.wait", worked(shell))
    assert shell("otto", "choose", number)
    shell("otto", "statement", number, "-o", "statement.json")
    assert json.loads((shell.folder / "statement.json").read_text())["statement"]
    shell("otto", "approve", number, "--key", str(shell.place.folder / "otto.pem"))
    with shell.place.client("otto") as otto:
        otto.step(number, "run")
        job = otto.shown(number)["job"]["id"]
    shell("otto", "cancel", number)
    assert "running" in shell("otto", "retry", number)
    with shell.place.client("paula") as paula:
        taken = paula.work("one")
        assert taken["id"] != job
        paula.failed(taken["id"], taken["attempt"], "the disk is full")
    assert "the disk is full" in shell("otto", "status", number)
    shell("otto", "retry", number)
    shell.place.work()
    assert "released" in shell("otto", "status", number)


def worked(shell: Shell):
    """Return a way of waiting in which worker and agent do what there is."""

    def wait(client, number: str, **_: object):
        shell.place.work()
        return client.shown(number)

    return wait


def read(shell: Shell, number: str) -> None:
    shown = shell(
        "clara", "download", number, "-o", "masked.parquet", "--certificate", "of_download.json"
    )
    assert "aegis audit masked.parquet --certificate of_download.json" in shown
    assert run(["audit", "masked.parquet", "--certificate", "of_download.json"]) == 0
    text = shell.folder.joinpath("of_download.json").read_text()
    shell.folder.joinpath("of_download.json").write_text(text.replace('"census"', '"another"'))
    assert run(["audit", "masked.parquet", "--certificate", "of_download.json"]) == 1
    shell("clara", "verify", number)
    assert "sha256" in shell("clara", "release", number, "--certificate", "certificate.json")
    assert json.loads((shell.folder / "certificate.json").read_text())["output"]["rows"] > 0
    shell("clara", "export", number, "--release")
    assert "Nobody has changed the log" in shell("aude", "log", "--verify")
    assert "downloaded" in shell("aude", "log", "--action", "downloaded")
    assert "answer" in shell("aude", "health")
    assert "paula/agent" in {row["name"] for row in shell.read("aude", "programs")}


def end(shell: Shell, number: str) -> None:
    shell("otto", "renew", number, "--days", "1", code=2)
    with shell.place.catalog.database.writing() as session:
        from datetime import timedelta

        from aegis.service.catalog.records import ReleaseRecord, now

        session.query(ReleaseRecord).one().expires = now() + timedelta(days=1)
    assert "released" in shell("otto", "renew", number, "--days", "30")
    shell("otto", "run", number, code=2)
    shell("otto", "revoke", number, "-m", "over")


def test_a_short_number_names_one_request_that_one_may_see(shell):
    shell.place.offer("numbered")
    with shell.place.client("clara") as clara, shell.place.client("otto") as otto:
        made = [clara.request("numbered", f"p{n}", terms_accepted=True)["id"] for n in range(18)]
        first = sorted(made)[0]
        assert clara.shown(first[:8])["id"] == first
        ambiguous = next(d for d in "0123456789abcdef" if sum(n[0] == d for n in made) > 1)
        with pytest.raises(CatalogError, match="Several requests begin with"):
            clara.number(ambiguous)
        with pytest.raises(NotThere, match="There is no request"):
            clara.number("g")
        assert otto.number(first[:8]) == first
    with shell.place.client("ada") as ada, pytest.raises(NotAllowed):
        ada.number(first[:8])


def test_scopes_of_tokens_have_the_figures_of_the_service(fresh):
    from aegis.service.catalog import accounts as stored

    with fresh.catalog.database.reading() as session:
        told = {
            name: "operate" in scopes_of(stored.actor_of(stored.named(session, name)))
            for name in ("ada", "aude", "otto")
        }
    assert told == {"ada": True, "aude": True, "otto": False}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--url", "https://aegis.example.org", "--database", "own.db"), "--url and --database"),
        (("--token", "aegis_made_up", "--database", "own.db"), "--token needs --url"),
    ],
)
def test_an_account_has_one_place(tmp_path, monkeypatch, capsys, options, words):
    """An option that would be ignored is refused, before a password is sent or a catalog is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEGIS_PASSWORD", "a sentence that is long enough")
    assert run(["catalog", "account", "ada", "--roles", "admin", *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_token_of_the_environment_does_not_hinder_an_account_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEGIS_PASSWORD", "a sentence that is long enough")
    monkeypatch.setenv("AEGIS_TOKEN", "aegis_for_the_agent")
    assert run(["catalog", "account", "ada", "--roles", "admin", "--database", "own.db"]) == 0
