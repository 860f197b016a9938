"""From registration to download, and what stands in the way where something is wrong."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pandas as pd
import pytest
from service_support import CANARY, PASSWORD, POLICY, house, released
from sqlalchemy import select

from aegis.advisor.utility import UtilityFigure
from aegis.cli.main import run
from aegis.errors import AegisError, EngineError, PolicyError
from aegis.present.chosen import chosen_words
from aegis.service.catalog import (
    CatalogError,
    NotAllowed,
    NotThere,
    WrongState,
    deliveries,
    jobs,
    requests,
    retention,
)
from aegis.service.catalog.records import Job, ReleaseRecord, Version, now
from aegis.service.catalog.statements import digest
from aegis.service.client import Client
from aegis.signing import seal, sign_bytes
from aegis.words import percent


@pytest.fixture(scope="module")
def delivered(place):
    """A release of the data set, for tests that only read it."""
    return released(place)


def test_a_request_becomes_a_verified_release(place, delivered, tmp_path):
    number = delivered
    with place.client("clara") as clara:
        shown = clara.shown(number)
        assert "every released row is like at least" in shown["answer"]["headline"]
        path = clara.download(number, tmp_path / "masked.parquet")
        verdict = clara.verify(number)
        assert (verdict["verified"], verdict["wrong"]) == (True, [])
        certificate = json.loads(clara.release(number)["certificate"])
    table = pd.read_parquet(path)
    # Counted anew by pandas alone.
    assert table.groupby(["age", "sex"], dropna=False).size().min() >= 3
    assert len(table) >= 360
    assert "canary" not in table.columns
    assert certificate["output"]["rows"] == len(table)
    assert certificate["input"]["origin"] == "census", "no path of the provider's machine"


@pytest.mark.parametrize(
    ("path", "certificate", "said"),
    [
        ("m.csv", None, "The release is a file of the format .parquet"),
        ("m.csv", "c.json", "The release is a file of the format .parquet"),
        ("m.parquet", "m.parquet", "named for two outputs"),
        ("m.parquet", "missing/c.json", "its folder does not exist"),
        ("m.parquet", "there.json", "there.json exists"),
    ],
)
def test_a_download_that_is_refused_writes_nothing(
    place, delivered, tmp_path, path, certificate, said
):
    tmp_path.joinpath("there.json").write_text("{}")
    written = None if certificate is None else tmp_path / certificate
    with place.client("clara") as clara, pytest.raises(PolicyError, match=said):
        clara.download(delivered, tmp_path / path, certificate=written)
    assert [each.name for each in tmp_path.iterdir()] == ["there.json"]


def test_what_speaks_of_a_release_states_the_utility_of_its_certificate(place, delivered):
    with place.client("clara") as clara:
        answer = clara.shown(delivered)["answer"]
        stated = json.loads(clara.release(delivered)["certificate"])["utility"]
    assert answer["utility_kept"] == stated["kept"]
    assert answer["headline"].startswith(
        f"The release keeps {percent(stated['kept'])} of the predictive value above chance, "
        "measured on the released rows ("
    )


def test_before_a_release_its_utility_is_called_an_estimate():
    checked = {
        "holds": True,
        "measure": "held-out-auc",
        "utility_kept": 96.4,
        "rows": 400,
        "suppressed_rows": 22,
        "smallest_class": 5,
    }
    headline = chosen_words(checked, "income")["headline"]
    assert headline.startswith("The release keeps 96.4 % of the predictive value above chance.")
    assert "This is an estimate: it is computed beside the data from all rows" in headline
    measured = UtilityFigure("held-out-auc", 0.881, 0.895, utility_kept=96.53)
    after = chosen_words(chosen_words(checked, "income"), "income", measured)
    assert after["headline"] == (
        "The release keeps 96.5 % of the predictive value above chance, measured on the released rows "
        "(held-out-auc 0.88 of 0.90 unmasked). It suppresses 22 of 400 rows; every released row is "
        "like at least 4 others in all quasi-identifiers."
    )
    everything = chosen_words(checked | {"suppressed_rows": 0}, None)["headline"]
    assert (
        "of the association among the columns, computed beside the data from all rows" in everything
    )


@pytest.mark.usefixtures("delivered")
def test_no_byte_of_an_identifier_is_at_the_service(place):
    held = [path for path in place.folder.rglob("*") if path.is_file() and path.suffix != ".csv"]
    assert len(held) > 3
    assert not any(CANARY.encode() in path.read_bytes() for path in held)


def test_the_log_tells_the_whole_story(place, delivered):
    with place.client("aude") as aude:
        actions = [entry["action"] for entry in aude.log() if entry["request"] == delivered]
        assert aude.verify_log()["whole"]
    story = ["request drafted", "submit", "review", "search started", "check started"]
    story += ["configuration checked", "approve", "run", "release started", "complete"]
    assert [one for one in reversed(actions) if one in story] == story


def test_an_unprotected_bundle_is_refused(place):
    with pytest.raises(CatalogError, match="exact counts"):
        deliveries.summary(
            place.catalog, None, "job", 1, policy=POLICY, bundle=b"PK\x03\x04", signature={}
        )
    with pytest.raises(CatalogError, match="not a protected summary"):
        deliveries.summary(place.catalog, None, "job", 1, policy=POLICY, bundle=b"{}", signature={})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("signature", "The signature does not come from the data set's agent."),
        ("file", "The file is not a Parquet file."),
        ("masks", "its masks are not the approved masks"),
        ("rule", "it says that the rule is not met"),
    ],
)
def test_an_upload_that_does_not_fit_is_refused_and_the_request_says_why(
    place, monkeypatch, wrong, said
):
    """An agent that hands in something else than what it signed, or than what was approved."""
    number = place.ask()
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")

    sent = Client.upload

    def tampered(self, job, kind, fields, name, file):
        fields = dict(fields)
        seal = json.loads(fields["signature"])
        document = json.loads(fields["certificate"])
        content = file[1]
        if wrong == "signature":
            seal["signature"]["value"] = "00" * 64
        elif wrong == "file":
            content = content[:-1] + b"x"
        else:
            if wrong == "masks":
                document["configuration"]["masks"]["sex"] = "suppress"
                document["configuration"]["masks"]["age"] = "suppress"
            else:
                document["privacy"]["passed"] = False
            fields["certificate"] = json.dumps(document)
            signed = deliveries.signed_part(
                "release",
                job,
                seal["attempt"],
                certificate=digest(fields["certificate"]),
                file=digest(content),
            )
            seal["signature"] = sign_bytes(signed, place.agent.settings.key).to_dict()
        fields["signature"] = json.dumps(seal)
        return sent(self, job, kind, fields, name, (file[0], content))

    monkeypatch.setattr(Client, "upload", tampered)
    place.agent.once()
    with place.client("otto") as otto:
        shown = otto.shown(number)
    assert shown["state"] == "failed"
    assert said in shown["message"]
    with place.catalog.database.reading() as session:
        assert (
            session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == number)) is None
        )


def test_a_killed_agent_leaves_a_job_that_the_next_one_does_once(place, monkeypatch):
    number = place.ask()
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
    with place.client("paula") as paula:
        job = paula.work("dies")
    with place.catalog.database.writing() as session:
        session.get(Job, job["id"]).leased_until = now() - timedelta(seconds=1)
    place.work()
    with place.client("otto") as otto:
        assert otto.shown(number)["state"] == "released"
    with place.client("paula") as paula, pytest.raises(WrongState):
        paula.failed(job["id"], job["attempt"], "late")
    with place.catalog.database.reading() as session:
        assert (
            len(
                session.scalars(
                    select(ReleaseRecord).where(ReleaseRecord.request_id == number)
                ).all()
            )
            == 1
        )


def test_an_agent_without_the_table_says_so(place):
    number = place.ask()
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
    sources = place.agent.settings.sources
    held = sources.pop("adult")
    place.agent.once()
    sources["adult"] = held
    with place.client("otto") as otto:
        shown = otto.shown(number)
        assert (shown["state"], "no source 'adult'" in shown["message"]) == ("failed", True)
        otto.step(number, "retry")
        place.work()
        assert otto.shown(number)["state"] == "released"


def test_a_release_ends_by_time_renewal_and_revocation(place, tmp_path):
    number = released(place)
    with place.catalog.database.writing() as session:
        session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == number)).expires = (
            now() - timedelta(days=1)
        )
        assert requests.expire(session) == 1
    with place.client("clara") as clara, place.client("otto") as otto:
        with pytest.raises(WrongState, match="expired"):
            clara.download(number, tmp_path / "a.parquet")
        otto.step(number, "renew", days=5)
        assert clara.download(number, tmp_path / "b.parquet").is_file()
        with pytest.raises(NotAllowed):
            clara.step(number, "revoke", message="mine")
        otto.step(number, "revoke", message="a mistake was found")
        with pytest.raises(WrongState, match="revoked"):
            clara.download(number, tmp_path / "c.parquet")
    assert not (tmp_path / "c.parquet").exists()


def test_a_new_version_sends_what_was_approved_back(place):
    def versions() -> int:
        with place.catalog.database.reading() as session:
            return len(session.scalars(select(Version)).all())

    number, before = place.ask(), versions()
    with place.client("otto") as otto, place.client("paula") as paula:
        otto.step(number, "approve")
        paula.ask_summary("census", POLICY, protect="noise", epsilon=8.0)
        place.work()
        assert otto.shown(number)["state"] == "returned"
        assert "Submit the request again" in otto.shown(number)["message"]
    assert versions() == before + 1


def test_another_release_in_between_asks_for_a_new_check(place):
    waiting = place.ask()
    released(place)
    with (
        place.client("otto") as otto,
        pytest.raises(WrongState, match="since the configuration was checked"),
    ):
        otto.step(waiting, "approve")


def test_bad_calls_are_told_apart(place):
    with place.client("clara") as clara:
        with pytest.raises(NotThere):
            clara.data_set("nothing")
        with pytest.raises(NotThere):
            clara.shown("0" * 32)
        with pytest.raises(NotAllowed):
            clara.register("mine", source="x", public_key=place.key)
        with pytest.raises(CatalogError, match="purpose"):
            clara.request("census", " ")
        with pytest.raises(CatalogError, match="terms"):
            clara.request("census", "to learn")
    with (
        Client("http://127.0.0.1:9", "token") as nobody,
        pytest.raises(EngineError, match="answer"),
    ):
        nobody.me()


@pytest.mark.parametrize("field", ["approvals", "days", "title", "public"])
def test_what_a_data_set_must_have_is_not_taken_away(place, field):
    with place.client("paula") as paula, pytest.raises(CatalogError, match=field):
        paula.change("census", **{field: None})


def test_a_policy_that_is_none_is_refused(place):
    with place.client("paula") as paula:
        for policy in ("", "- a", "version: 1", "a: &a [*a]"):
            with pytest.raises(CatalogError):
                paula.ask_summary("census", policy)


def test_a_policy_with_weights_is_refused_before_an_agent_fails_with_it(place):
    with place.client("paula") as paula, pytest.raises(CatalogError, match="counts each row once"):
        paula.ask_summary("census", f"weight: age_weight\n{POLICY}")


def test_health_is_for_everybody(place):
    assert httpx.get(f"{place.url}/api/v1/health").json() == {"status": "ok"}


def test_two_persons_where_the_data_set_asks_for_it(tmp_path):
    with house(tmp_path) as place:
        place.offer(approvals=2)
        number = place.ask()
        with place.client("otto") as otto, place.client("anna") as anna:
            assert otto.step(number, "approve")["state"] == "in review"
            with pytest.raises(NotAllowed, match="Ask another approver"):
                otto.step(number, "approve")
            assert anna.step(number, "approve")["state"] == "approved"


def test_racing_approvers_count_once_each(place):
    """Two persons approve in the same instant, each several times: one release is frozen, by both."""
    place.offer("raced", approvals=2)
    number = place.ask("raced")
    told: list[str] = []

    def approve(name: str) -> None:
        with place.client(name) as person:
            try:
                told.append(person.step(number, "approve")["state"])
            except AegisError as error:
                told.append(type(error).__name__)

    threads = [threading.Thread(target=approve, args=(n,)) for n in ("otto", "anna") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one for one in told if one in ("in review", "approved")) == [
        "approved",
        "in review",
    ]
    assert set(told) <= {"approved", "in review", "NotAllowed", "WrongState"}


def test_a_job_is_followed_by_events_until_it_is_cancelled(place):
    """Server-sent events: the first says that it waits, the last that it was cancelled."""
    with place.client("clara") as clara, place.client("otto") as otto:
        number = clara.request("census", "to learn", terms_accepted=True)["id"]
        otto.step(number, "review")
        job = otto.step(number, "choose")["job"]["id"]
        told = []
        headers = {"Authorization": f"Bearer {place.tokens['otto']}"}
        url = f"{place.url}/api/v1/jobs/{job}/events"
        with httpx.stream("GET", url, headers=headers, timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    told.append(json.loads(line.removeprefix("data: "))["state"])
                    otto.cancel(job)
        assert told == ["queued", "cancelled"]
        assert not place.worker.once(), "nobody works on it"
        assert otto.retry(job)["state"] == "queued"
        place.work()
        assert otto.shown(number)["answer"]["holds"]


def test_a_job_that_ends_while_a_request_is_read_has_its_answer(place, monkeypatch):
    """Whoever waits for the job never sees that it ended, but no answer."""
    with place.client("clara") as clara, place.client("otto") as otto:
        number = clara.request("census", "to learn", terms_accepted=True)["id"]
        otto.step(number, "review")
        otto.step(number, "choose")
        latest = jobs.latest

        def work_first(*asked: Any, **of: str) -> Job | None:
            monkeypatch.setattr(jobs, "latest", latest)
            place.work()
            return latest(*asked, **of)

        monkeypatch.setattr(jobs, "latest", work_first)
        shown = otto.shown(number)
        assert shown["job"]["ended"] is not None
        assert shown["answer"]["holds"]


def test_a_request_that_is_refused_leaves_no_draft(place):
    """The terms were not accepted: a draft stayed, of which nobody was told."""
    with place.client("paula") as paula, place.client("clara") as clara:
        paula.change("census", terms="For research only.")
        before = list(clara.requests())
        with pytest.raises(CatalogError, match="not accepted the terms") as refused:
            clara.request("census", "Predict income")
        assert "--accept-terms" in refused.value.hint
        assert list(clara.requests()) == before
        asked = clara.request("census", "Predict income", terms_accepted=True)
        assert asked["state"] == "submitted"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("costly", ["--ceiling", "1", "--epsilon", "4"], "has epsilon 1 left"),
        ("misspelt", ["--protect", "nosie"], "protect"),
        ("endless", ["--epsilon", "1000"], "epsilon"),
    ],
)
def test_a_data_set_whose_summary_is_refused_is_not_registered(
    place, tmp_path, monkeypatch, capsys, name, options, message
):
    """The data set stayed, empty, and its name and its population could not be used again."""
    policy, key = tmp_path / "policy.yaml", tmp_path / "agent.pub"
    policy.write_text(POLICY)
    key.write_bytes(place.public_pem())
    words = ["catalog", "register", name, "--source", "adult", "--key", str(key), "-p"]
    monkeypatch.setenv("AEGIS_URL", place.url)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["paula"])
    with place.client("paula") as paula:
        before = len(list(paula.log()))
        assert run([*words, str(policy), *options]) == 2
        assert message in capsys.readouterr().err
        assert name not in [each["id"] for each in paula.search()]
        assert len(list(paula.log())) == before
        assert run([*words, str(policy), "--ceiling", "4", "--epsilon", "4"]) == 0
        assert paula.ledger(name)["reserved"] == 4
        place.work()
        assert paula.data_set(name)["version"]["number"] == 1


def test_a_token_that_may_not_ask_for_a_summary_registers_none(place):
    with place.client("paula") as paula:
        made = paula.make_token("narrow", ["register", "browse"])
    with Client(place.url, made["secret"]) as narrow:
        asked = {"source": "adult", "public_key": place.key}
        with pytest.raises(NotAllowed, match="upload-summary"):
            narrow.register("narrowly", **asked, summary={"policy": POLICY})
        assert "narrowly" not in [each["id"] for each in narrow.search()]


@pytest.mark.parametrize("removed", [False, True])
def test_a_revoked_release_does_not_verify(furnished, tmp_path, monkeypatch, capsys, removed):
    """It was verified as if nothing had happened, by the command and on the page."""
    with house(tmp_path, furnished=furnished) as place, place.client("clara") as clara:
        number = released(place)
        monkeypatch.setenv("AEGIS_URL", place.url)
        monkeypatch.setenv("AEGIS_TOKEN", place.tokens["clara"])
        assert run(["catalog", "verify", number]) == 0
        assert "Nobody has revoked the release so far" in capsys.readouterr().out
        assert "not revoked as of" in _page(place, f"/requests/{number}/verification")
        path, certificate = tmp_path / "masked.parquet", tmp_path / "certificate.json"
        clara.download(number, path, certificate=certificate)
        assert run(["audit", str(path), "--certificate", str(certificate)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"whether somebody has revoked the release: only the catalog at {place.url}" in said
        assert f"aegis catalog verify {number[:8]}" in said
        with place.client("otto") as otto:
            otto.step(number, "revoke", message="wrong table")
        if removed:
            retention.clean(place.catalog, timedelta(0))
        assert run(["catalog", "verify", number]) == 1
        shown = capsys.readouterr().out
        assert "the release was revoked on" in shown
        assert "wrong table" in shown
        verdict = clara.verify(number)
        assert not verdict["verified"]
        assert verdict["revoked"] is not None
        page = _page(place, f"/requests/{number}/verification")
        assert "Do not use this file" in page
        assert "wrong table" in page


def _page(place, path: str) -> str:
    with httpx.Client(base_url=place.url, follow_redirects=True) as browser:
        browser.post("/sign-in", data={"name": "clara", "password": PASSWORD})
        return browser.get(path).text


def test_a_certificate_that_names_another_request_is_refused(place, monkeypatch):
    number = place.ask()
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
        made = place.agent._masked

        def naming_another(*given: Any) -> Any:
            output = made(*given)
            document = json.loads(output.fields["certificate"])
            document["catalog"]["request"] = "ab" * 16
            sealed = json.dumps(seal(document, place.agent.settings.key))
            return replace(output, fields={"certificate": sealed})

        monkeypatch.setattr(place.agent, "_masked", naming_another)
        place.work()
        assert "it names another request" in otto.shown(number)["job"]["error"]
