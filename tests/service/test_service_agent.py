"""An agent whose jobs have limits: each in a process of its own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from service_support import POLICY, new_key, released

from aegis.cli.main import run
from aegis.policy import policy_digest
from aegis.service.agent import Agent
from aegis.service.catalog import CatalogError
from aegis.service.catalog.data_sets import rotation_of
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.limited import WorkLimits
from aegis.service.catalog.records import DataSet
from aegis.signing import load_private_key, sign_bytes


def asked(place, limits: WorkLimits) -> tuple[dict, list[str]]:
    """Have a summary made under limits; return the data set as it is then, and what was said."""
    said: list[str] = []
    with place.client("paula") as paula:
        job = paula.ask_summary("census", POLICY, protect="noise", epsilon=8.0)["id"]
        pinned = {policy_digest(policy_of(POLICY)): None}
        sources = {
            name: replace(source, policies=pinned)
            for name, source in place.agent.settings.sources.items()
        }
        settings = replace(place.agent.settings, work=limits, sources=sources)
        agent = Agent(settings, say=said.append)
        assert agent.once()
        agent.client.close()
        return paula.job(job), said


def test_a_job_in_a_process_of_its_own_is_done(place):
    job, said = asked(place, WorkLimits(600, 4 << 30))
    assert job["state"] == "done", said
    assert said[-1].startswith("done in")


def test_a_job_that_takes_too_much_is_ended_and_says_so(place):
    """That of memory is as any other: `test_service_uploads.py` tries both limits."""
    words = "The work took more than 0.1 seconds."
    job, said = asked(place, WorkLimits(0.1, None))
    assert job["state"] == "failed"
    assert words in job["error"]
    assert any(words in line for line in said)


def test_a_rotated_key_signs_from_then_on_and_the_old_signature_stays_verifiable(
    place, tmp_path, capsys, monkeypatch
):
    """The command itself, with an agent's file."""
    new_key(tmp_path, "mine")
    key = load_private_key(tmp_path / "mine.pem")
    place.offer("rotated")
    with place.catalog.database.writing() as session:
        session.get(DataSet, "rotated").public_key = key.public.text
    agent = place.agent
    first = place.agent = Agent(replace(agent.settings, key=key, ledger=tmp_path / "book"))
    second = None
    try:
        before = released(place, "rotated")
        (tmp_path / "policy.yaml").write_text(POLICY)
        (tmp_path / "agent.yaml").write_text(
            f"url: {place.url}\nkey: mine.pem\napprovals: 0\nledger: book\n"
            "sources: {adult: {table: a.csv, policy: policy.yaml}}\n"
        )
        monkeypatch.setenv("AEGIS_TOKEN", place.tokens["paula"])
        assert run(["agent", str(tmp_path / "agent.yaml"), "--rotate"]) == 0
        assert "The new key signs from now on: 1 data set" in capsys.readouterr().out
        fresh = load_private_key(tmp_path / "mine.pem")
        assert fresh.public.text != key.public.text
        assert len(list(tmp_path.glob("mine.pem.former-*"))) == 1
        with place.client("clara") as clara:
            assert clara.verify(before)["verified"]
            assert clara.release(before)["public_key"] == key.public.text
        second = place.agent = Agent(replace(agent.settings, key=fresh, ledger=tmp_path / "book"))
        after = released(place, "rotated")
        with place.client("clara") as clara:
            assert clara.verify(after)["verified"]
            assert clara.release(after)["public_key"] == fresh.public.text
    finally:
        place.agent = agent
        for made in (first, second):
            if made is not None:
                made.client.close()


def test_a_key_is_not_changed_without_the_old_one(place, tmp_path):
    mine, other = new_key(tmp_path, "a"), new_key(tmp_path, "b")
    with place.catalog.database.reading() as session:
        old = session.get(DataSet, "census").public_key
    content = rotation_of(old, other.public.text)
    body = {
        "old": old,
        "new": other.public.text,
        "signatures": [sign_bytes(content, key).to_dict() for key in (mine, other)],
    }
    with place.client("paula") as paula, pytest.raises(CatalogError, match="not signed by"):
        paula._post("/keys", **body)


def test_an_approval_is_signed_by_the_command(place, tmp_path, capsys, monkeypatch):
    """Without a key the agent refuses; the same person adds the signature, and it is released."""
    number = place.ask()
    monkeypatch.setenv("AEGIS_URL", place.url)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["otto"])
    assert run(["catalog", "approve", number]) == 0
    printed = capsys.readouterr().out
    assert "without a signature" in printed
    assert "counts only signed approvals: approve again with --key" in printed
    with place.client("otto") as otto:
        otto.step(number, "run")
        place.work()
        shown = otto.shown(number)
    assert shown["state"] == "failed"
    assert "wants 1 signed approval of this release and has 0" in shown["message"]
    assert run(["catalog", "approve", number, "--key", str(place.folder / "otto.pem")]) == 0
    with place.client("otto") as otto:
        otto.step(number, "retry")
        place.work()
        assert otto.shown(number)["state"] == "released"


def test_a_statement_is_signed_without_a_connection_and_pasted(place, tmp_path, capsys):
    number = place.ask()
    with place.client("otto") as otto:
        offered = otto.statement(number)
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(offered))
    assert run(["catalog", "sign", str(file), "--key", str(place.folder / "otto.pem")]) == 0
    signed = json.loads(capsys.readouterr().out)
    with place.client("otto") as otto:
        wrong = {**signed, "statement": {**signed["statement"], "request": "r"}}
        with pytest.raises(CatalogError, match="names another request"):
            otto._post(f"/requests/{number}/approve", signed=wrong)
        assert otto._post(f"/requests/{number}/approve", signed=signed)
    file.write_text(json.dumps({**offered, "configuration": "other: {}"}))
    assert run(["catalog", "sign", str(file), "--key", str(place.folder / "otto.pem")]) == 2
    assert "to sign another configuration than it shows" in capsys.readouterr().err
    file.write_text("[]")
    assert run(["catalog", "sign", str(file), "--key", str(place.folder / "otto.pem")]) == 2
