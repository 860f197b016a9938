"""An agent believes nobody: a catalog that lies gets nothing beyond what the provider pinned."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any

import pytest
from service_support import CANARY, POLICY, new_key, write_table

from aegis.errors import AegisError, EngineError, PolicyError
from aegis.policy import policy_digest
from aegis.safe.ledger import Ledger
from aegis.service import agent_book, agent_settings
from aegis.service.agent import Agent
from aegis.service.agent_settings import AgentSettings
from aegis.service.catalog import limited
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.limited import WorkLimits
from aegis.service.catalog.statements import digest, sign_statement, statement_of
from aegis.signing import PrivateKey, load_private_key, seal

# The classes are declared: noise could refuse those that it has to name.
POLICY = POLICY.replace("label: income", "label: {column: income, classes: [high, low]}")
WEAK = POLICY.replace("k: 3", "k: 1")
OTHER_ROLES = POLICY.replace("canary: {role: identifier}", "canary: {role: feature}")
OTHER_MASKS = POLICY.replace("{bucketize: {width: 10}}", "identity")
RAW = """configurations:
  raw: {age: identity, sex: identity}
"""
GOOD = """configurations:
  wide: {age: {bucketize: {width: 40}}, sex: suppress}
"""


class FakeCatalog:
    """A catalog that somebody took over: it serves the jobs it likes, and keeps what it gets."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.got: dict[str, list[bytes]] = {}
        self.redirect: str | None = None
        self.number = 0

    def serve(self, kind: str, *, request: str | None = "r1", **task: Any) -> None:
        self.number += 1
        job = {"id": f"j{self.number}", "kind": kind, "attempt": 1, "request": request}
        given = {"policy": POLICY, "source": "adult", "measure": None, **task}
        self.jobs.append({**job, "data_set": "census", "task": given})

    def answered(self, what: str) -> list[bytes]:
        """Return what the agent sent to paths that hold a word."""
        return [body for path, bodies in self.got.items() if what in path for body in bodies]

    def reasons(self) -> str:
        return " ".join(json.loads(body)["reason"] for body in self.answered("/failed"))


@contextmanager
def answering(fake: FakeCatalog) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.got.setdefault(self.path, []).append(body)
            if fake.redirect:
                self.send_response(307)
                self.send_header("Location", fake.redirect + self.path)
                self.end_headers()
                return
            work = self.path.endswith("/work")
            answer = json.dumps(fake.jobs.pop(0) if work and fake.jobs else {}).encode()
            self.send_response(204 if work and answer == b"{}" else 200)
            self.end_headers()
            self.wfile.write(b"" if work and answer == b"{}" else answer)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Scene:
    """An honest agent beside a table, and the catalog that it calls."""

    def __init__(self, folder: Path, url: str, fake: FakeCatalog) -> None:
        self.folder, self.fake = folder, fake
        write_table(folder / "adult.csv")
        write_table(folder / "secret.csv")
        new_key(folder, "agent")
        self.otto = new_key(folder, "otto")
        self.stranger = new_key(folder, "stranger")
        (folder / "policy.yaml").write_text(POLICY)
        self.file = folder / "agent.yaml"
        self.write(url=url)

    def write(self, *, url: str, floor: str = "", more: str = "") -> None:
        self.file.write_text(
            f"url: {url}\nkey: agent.pem\napprovers: {{otto: otto.pub.pem}}\n{more}\n"
            "sources:\n  adult:\n    table: adult.csv\n    policy: policy.yaml\n"
            f"    floor: {{k: 3, suppression: 0.1, epsilon: 2, epsilon_a_day: 1, threshold: 5, "
            f"never: [canary]{floor}}}\n"
            "  secret:\n    table: secret.csv\n    policy: policy.yaml\n"
        )

    def work(self) -> Agent:
        """Have an agent that was started anew do all that the catalog asks for."""
        agent = Agent(AgentSettings.load(self.file, "t"))
        with agent.client:
            while agent.once():
                continue
        return agent

    def checked(self, configuration: str = GOOD) -> str:
        """Have a configuration checked honestly; return it as the agent wrote it."""
        self.fake.serve("check", configurations=[configuration], certificates=[], may_search=False)
        self.work()
        return json.loads(self.fake.answered("/checked")[-1])["answer"]["configuration"]

    def approved(
        self, configuration: str, key: PrivateKey | None = None, /, **changed: Any
    ) -> dict[str, Any]:
        frozen = {
            "data_set": "census",
            "policy": policy_digest(policy_of(POLICY)),
            "summary": "0" * 64,
            "configuration": digest(configuration),
        }
        until = changed.pop("until", datetime.now(UTC) + timedelta(days=5))
        statement = statement_of(frozen, request="r1", source="adult", until=until)
        return sign_statement({**statement, **changed}, key or self.otto).to_dict()

    def raw_rows(self) -> bool:
        """Whether a value of a row is in anything that the catalog got."""
        rows = self.folder.joinpath("adult.csv").read_text().splitlines()[1:]
        sent = b"".join(self.fake.answered(""))
        return CANARY.encode() in sent or any(row.encode() in sent for row in rows)


@pytest.fixture
def scene(tmp_path) -> Iterator[Scene]:
    fake = FakeCatalog()
    with answering(fake) as url:
        yield Scene(tmp_path, url, fake)


@pytest.mark.parametrize(
    ("policy", "configuration", "words"),
    [
        (WEAK, RAW, "its k is 1, below 3"),
        (POLICY.replace("0.1", "0.9"), GOOD, "it may suppress 0.9 of the rows, above 0.1"),
        (OTHER_ROLES, RAW, "canary is feature, not identifier"),
        (OTHER_ROLES, RAW, "canary never leaves"),
        (OTHER_MASKS, RAW, "age has other masks"),
        (POLICY.replace("column: income, classes: [high, low]", "column: sex").replace("  sex: {role: quasi-identifier, masks: [identity, suppress]}\n", ""), GOOD, "it lacks sex"),
        (POLICY, RAW, "identity of age may not be used"),
        (POLICY, "configurations:\n  c: {age: {bucketize: {width: 1}}, sex: suppress}\n", "may not be used"),
        (POLICY, GOOD, "wants 1 signed approval of this release and has 0"),
    ],
)  # fmt: skip
def test_a_catalog_that_lies_gets_no_row(scene, policy, configuration, words):
    """The fake of the trial got every raw row of Adult, signed with the provider's key, so."""
    scene.fake.serve("release", policy=policy, configuration=configuration, approvals=[])
    scene.work()
    assert not scene.fake.answered("/uploads/")
    assert words in scene.fake.reasons()
    assert not scene.raw_rows()
    ledger = Ledger(scene.folder / "agent-ledger" / "ledger.db")
    assert words in json.loads(ledger.notes("adult")[-1])["why"]


def test_what_was_pinned_and_approved_leaves_once(scene):
    configuration = scene.checked()
    given = scene.approved(configuration)
    scene.fake.serve("release", configuration=configuration, approvals=[given])
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1, scene.fake.reasons()
    scene.fake.serve("release", configuration=configuration, approvals=[given])
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "An approval allows only one release" in scene.fake.reasons()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"until": datetime.now(UTC) - timedelta(seconds=1)}, "the approval of otto has expired"),
        ({"until": datetime.now(UTC) + timedelta(days=92)}, "lasts more than 90 days"),
        ({"request": "r2"}, "the approval of otto is for another request"),
        ({"source": "secret"}, "the approval of otto is for another source"),
        ({"configuration": "0" * 64}, "the approval of otto is for another configuration"),
        ({"policy": "0" * 64}, "the approval of otto is for another policy"),
        ({"kind": "rotation"}, "the approval of otto is for another kind"),
        ({"expires": "next year"}, "which is not a time"),
    ],
)
def test_an_approval_of_something_else_counts_for_nothing(scene, changed, words):
    configuration = scene.checked()
    given = scene.approved(configuration, **changed)
    scene.fake.serve("release", configuration=configuration, approvals=[given])
    scene.work()
    assert not scene.fake.answered("/uploads/")
    assert words in scene.fake.reasons()


def test_a_signature_of_a_stranger_or_a_statement_that_was_changed_counts_for_nothing(scene):
    configuration = scene.checked()
    of_stranger = scene.approved(configuration, scene.stranger)
    changed = scene.approved(configuration, until=datetime.now(UTC) - timedelta(days=1))
    changed["statement"]["expires"] = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    for given in (of_stranger, changed, {"statement": []}, "yes", None):
        scene.fake.serve("release", configuration=configuration, approvals=[given])
    scene.work()
    assert not scene.fake.answered("/uploads/")
    assert "the agent does not know the key of one of them" in scene.fake.reasons()
    assert "the signature of otto does not match its statement" in scene.fake.reasons()


def test_two_signatures_of_one_person_are_one_approval(scene):
    scene.write(
        url=scene.file.read_text().split()[1],
        more="approvals: 2",
    )
    text = scene.file.read_text().replace(
        "{otto: otto.pub.pem}", "{otto: otto.pub.pem, anna: stranger.pub.pem}"
    )
    scene.file.write_text(text)
    configuration = scene.checked()
    twice = [scene.approved(configuration), scene.approved(configuration)]
    scene.fake.serve("release", configuration=configuration, approvals=twice)
    scene.work()
    assert "wants 2 signed approvals of this release and has 1" in scene.fake.reasons()
    both = [twice[0], scene.approved(configuration, scene.stranger)]
    scene.fake.serve("release", configuration=configuration, approvals=both)
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1


def test_a_configuration_that_the_agent_did_not_check_is_not_released(scene):
    given = scene.approved(GOOD)
    scene.fake.serve("release", configuration=GOOD, approvals=[given])
    scene.work()
    assert not scene.fake.answered("/uploads/")
    assert "has not yet confirmed that this configuration meets the rule" in scene.fake.reasons()


def test_releases_of_a_day_hold_whatever_the_catalog_forgets(scene):
    configuration = scene.checked()
    for request in ("r1", "r2"):
        given = scene.approved(configuration, request=request)
        scene.fake.serve("release", request=request, configuration=configuration, approvals=[given])
        scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "1 release of adult in 24 hours; the limit is 1" in scene.fake.reasons()


def test_earlier_releases_are_remembered_by_the_agent(scene):
    """The catalog leaves out what it released before: the agent counts classes with it all the same."""
    scene.write(url=scene.file.read_text().split()[1], floor=", releases_a_day: 9")
    first = scene.checked()
    second = scene.checked("configurations:\n  c: {age: suppress, sex: identity}\n")
    given = scene.approved(first)
    scene.fake.serve("release", configuration=first, approvals=[given])
    given = scene.approved(second, request="r2")
    scene.fake.serve("release", request="r2", configuration=second, approvals=[given])
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "together with all its earlier releases" in scene.fake.reasons()
    scene.checked("configurations:\n  c: {age: suppress, sex: identity}\n")
    answer = json.loads(scene.fake.answered("/checked")[-1])["answer"]
    assert "joint_smallest_class" in answer


def few_men(scene: Scene) -> None:
    """Write a table with 3 men in their twenties, 4 in their thirties, and 40 women in each."""
    rows = [
        f"{age},{sex},n{number},{'high' if number % 2 else 'low'}"
        for age, sex, count in ((25, "m", 3), (35, "m", 4), (25, "f", 40), (35, "f", 40))
        for number in range(count)
    ]
    (scene.folder / "adult.csv").write_text("\n".join(["age,sex,canary,income", *rows, ""]))
    scene.write(url=scene.file.read_text().split()[1], floor=", releases_a_day: 9")


FINE = "configurations:\n  fine: {age: {bucketize: {width: 10}}, sex: identity}\n"


def release_fine(scene: Scene, policy: str) -> str:
    """Have the agent release fine masks under a policy; return the certificate."""
    (scene.folder / "policy.yaml").write_text(policy)
    asked = {"certificates": [], "may_search": False, "policy": policy}
    scene.fake.serve("check", configurations=[FINE], **asked)
    scene.work()
    fine = json.loads(scene.fake.answered("/checked")[-1])["answer"]["configuration"]
    given = scene.approved(fine, policy=policy_digest(policy_of(policy)))
    scene.fake.serve("release", policy=policy, configuration=fine, approvals=[given])
    scene.work()
    [upload] = scene.fake.answered("/uploads/")
    return upload.decode("latin-1").split('name="certificate"')[1].split("\r\n")[2]


@pytest.mark.parametrize("remembers", ["agent", "catalog"])
def test_a_release_under_a_smaller_k_is_not_taken_for_one_under_this_k(scene, remembers):
    """With k = 5, the first release would lack all 7 men, so that the second hides them among each
    other. But it was made with k = 3, and shows 3 and 4 men.
    """
    few_men(scene)
    certificate = release_fine(scene, POLICY)
    strict = POLICY.replace("k: 3", "k: 5")
    (scene.folder / "policy.yaml").write_text(strict)
    listed = []
    if remembers == "catalog":  # and an agent with the same key has another ledger
        rmtree(scene.folder / "agent-ledger")
        listed = [certificate]
    asked = {"certificates": listed, "may_search": True, "policy": strict}
    scene.fake.serve("check", configurations=[GOOD], **asked)
    said = []
    agent = Agent(AgentSettings.load(scene.file, "t"), say=said.append)
    with agent.client:
        assert agent.once()
    assert len(scene.fake.answered("/checked")) == 1, scene.fake.answered("/checked")[-1]
    assert any("made under another rule" in line for line in said), said


def test_a_release_under_a_larger_k_does_not_stop_later_ones(scene):
    few_men(scene)
    release_fine(scene, POLICY.replace("k: 3", "k: 5"))
    (scene.folder / "policy.yaml").write_text(POLICY)
    scene.fake.serve("check", configurations=[GOOD], certificates=[], may_search=False)
    scene.work()
    answer = json.loads(scene.fake.answered("/checked")[-1])["answer"]
    assert "joint_smallest_class" in answer


@pytest.mark.parametrize("sent", [False, True])
def test_a_release_that_an_earlier_version_listed_is_checked_by_its_certificate(
    scene, monkeypatch, sent
):
    """Earlier versions recorded no suppressed rows and no rule: without the certificate, the agent
    would take a release under a smaller k for one under the present rule.
    """
    few_men(scene)
    recorded = agent_book.AgentBook.list_release

    def as_before(book, source, key, floor, detail, made):
        recorded(book, source, key, floor, {k: detail[k] for k in ("request", "masks")}, made)

    with monkeypatch.context() as patched:
        patched.setattr(agent_book.AgentBook, "list_release", as_before)
        certificate = release_fine(scene, POLICY)
    strict = POLICY.replace("k: 3", "k: 5")
    (scene.folder / "policy.yaml").write_text(strict)
    asked = {"certificates": [certificate] if sent else [], "policy": strict}
    scene.fake.serve("check", configurations=[GOOD], may_search=True, **asked)
    said = []
    agent = Agent(AgentSettings.load(scene.file, "t"), say=said.append)
    with agent.client:
        assert agent.once()
    assert len(scene.fake.answered("/checked")) == 1, scene.fake.answered("/checked")[-1]
    words = "made under another rule" if sent else "the service did not send its certificate"
    assert any(words in line for line in said), said


def test_budgets_hold_whatever_the_catalog_forgets(scene):
    for epsilon in (0.6, 0.6):
        scene.fake.serve("summarize", protect="noise", epsilon=epsilon, delta=1e-6)
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "0.6 is spent in 24 hours, and 1 is allowed" in scene.fake.reasons()
    scene.fake.serve("summarize", protect="noise", epsilon=3, delta=1e-6)
    scene.fake.serve("summarize", protect="counts", threshold=2)
    scene.fake.serve("summarize", protect="none")
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "allowed is counts with 5 or more" in scene.fake.reasons()
    scene.fake.serve("summarize", protect="counts", threshold=5)
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 2


def test_a_refusal_that_noise_decided_is_paid_for(scene):
    """Asked again for nothing, a catalog could learn from refusals whether a row is in the table."""
    write_table(scene.folder / "adult.csv", rows=12)  # too few to name a class
    unnamed = POLICY.replace("{column: income, classes: [high, low]}", "income")
    (scene.folder / "policy.yaml").write_text(unnamed)
    for _ in range(2):
        scene.fake.serve("summarize", policy=unnamed, protect="noise", epsilon=0.6, delta=1e-6)
    scene.work()
    first, second = map(json.loads, scene.fake.answered("/failed"))
    assert (first["reason"], first["spent"]) == (
        "Read the output of the agent: it failed, and the reason may quote rows.",
        True,
    )
    assert "0.6 is spent in 24 hours, and 1 is allowed" in second["reason"]
    assert "spent" not in second


def test_without_a_floor_neither_noise_nor_counts_leave(scene):
    scene.fake.serve("summarize", source="secret", protect="noise", epsilon=0.1, delta=1e-6)
    scene.fake.serve("summarize", source="secret", protect="counts", threshold=100)
    scene.fake.serve("summarize", source="passwd", protect="noise", epsilon=0.1, delta=1e-6)
    scene.work()
    assert not scene.fake.answered("/uploads/")
    assert "no source 'passwd'" in scene.fake.reasons()


@pytest.mark.parametrize(
    "job",
    [
        {"task": None},
        {"task": {}},
        {"kind": "shell"},
        {"attempt": "1"},
        {"task": {"source": "adult", "policy": POLICY, "protect": "noise", "epsilon": "all"}},
        {"task": {"source": "adult", "policy": POLICY, "protect": "noise", "epsilon": -1}},
        {"task": {"source": "adult", "policy": "]["}},
    ],
)
def test_a_malformed_job_is_refused_and_the_agent_lives(scene, job):
    scene.fake.serve("summarize", protect="noise", epsilon=0.5, delta=1e-6)
    scene.fake.jobs[-1] |= job
    scene.work()
    assert not scene.fake.answered("/uploads/")
    assert len(scene.fake.answered("/failed")) == 1


def test_what_was_made_before_a_kill_is_handed_in_as_it_is(scene, monkeypatch):
    """A repeated job shows nothing new, and spends nothing twice."""
    scene.fake.serve("summarize", protect="noise", epsilon=0.6, delta=1e-6)
    job = dict(scene.fake.jobs[0])

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("aegis.service.client.Client.upload", killed)
        with pytest.raises(KeyboardInterrupt):
            scene.work()
    scene.fake.jobs.append(job)
    scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1, scene.fake.reasons()
    assert not list((scene.folder / "agent-ledger" / "waiting").iterdir())


def test_a_redirect_is_not_followed(scene):
    other = FakeCatalog()
    with answering(other) as elsewhere:
        scene.fake.redirect = elsewhere
        with pytest.raises(EngineError, match="redirects to another address"):
            scene.work()
    assert other.got == {}


@pytest.mark.parametrize(
    "url", ["http://aegis.example.org", "http://127.0.0.1.example.org", "ftp://localhost", "x"]
)
def test_plain_http_goes_to_this_machine_alone(scene, url):
    scene.write(url=url)
    with pytest.raises(PolicyError, match="with http:// it calls only this machine"):
        AgentSettings.load(scene.file, "t")


def test_a_ledger_that_was_tampered_with_stops_the_agent(scene):
    scene.checked()
    import sqlite3

    with (
        closing(sqlite3.connect(scene.folder / "agent-ledger" / "ledger.db")) as connection,
        connection,
    ):
        connection.execute("drop trigger event_remains")
        connection.execute("delete from event where number = 1")
    with pytest.raises(AegisError, match="tampered with"):
        scene.work()


def test_a_kill_between_noise_and_its_charge_refunds_nothing(scene, monkeypatch):
    """The output is handed in later, so a second job under its key must not get its epsilon back."""
    asked = {"protect": "noise", "epsilon": 0.7, "delta": 1e-6}
    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        killed.setattr(Ledger, "cancel", lambda *_: None)  # a killed agent cancels nothing
        scene.fake.serve("summarize", **asked)
        with pytest.raises(KeyboardInterrupt):
            scene.work()
    for _ in range(2):
        scene.fake.number = 0  # the same job again
        scene.fake.serve("summarize", **asked)
        scene.work()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "0.7 is spent in 24 hours, and 1 is allowed" in scene.fake.reasons()


def test_two_agents_with_one_ledger_take_turns(scene, monkeypatch):
    """Else each sees no release of the other, so nobody checks the two releases together."""
    scene.write(url=scene.file.read_text().split()[1], floor=", releases_a_day: 5")
    wide = scene.checked()
    coarse = scene.checked("configurations:\n  c: {age: suppress, sex: suppress}\n")
    for request, configuration in (("r1", wide), ("r2", coarse)):
        given = scene.approved(configuration, request=request)
        scene.fake.serve("release", request=request, configuration=configuration, approvals=[given])
    masked = Agent._masked
    # The first works on until the other one had to wait; if none waits, both get as far as this.
    waits = threading.Event()
    monkeypatch.setattr(Agent, "_masked", lambda *a: (waits.wait(1), masked(*a))[1])
    paused = SimpleNamespace(sleep=lambda pause: (waits.set(), time.sleep(pause)))
    monkeypatch.setattr(agent_book, "time", paused)
    agents = [threading.Thread(target=scene.work) for _ in range(2)]
    for thread in agents:
        thread.start()
    for thread in agents:
        thread.join()
    assert len(scene.fake.answered("/uploads/")) == 1
    assert "not yet confirmed that this configuration meets the rule" in scene.fake.reasons()


_ONE_PERSON = {"age": {"group": {"groups": {"a": [61]}, "rest": "other"}}, "sex": "suppress"}


@pytest.mark.parametrize("signer", [None, "stranger", "agent", "former"])
def test_a_service_that_makes_up_a_release_learns_no_count(scene, signer):
    """Masks of its choice would tell it how many rows have any values that it names."""
    document: dict[str, Any] = {"configuration": {"masks": _ONE_PERSON}}
    if signer is not None:
        path = scene.folder / f"{signer}.pem"
        key = load_private_key(path) if path.exists() else new_key(scene.folder, signer)
        document = seal(document, key)
    policy = POLICY.replace("masks: [{bucketize: {width: 10}}", "masks: [identity")
    (scene.folder / "policy.yaml").write_text(policy)
    with scene.file.open("a") as file:
        file.write("former_keys: [former.pub.pem]\n" if signer == "former" else "")
    hidden = "configurations:\n  all: {age: suppress, sex: suppress}\n"
    asked = {"configurations": [hidden], "may_search": False, "policy": policy}
    scene.fake.serve("check", certificates=[json.dumps(document)], **asked)
    scene.work()
    if signer in ("agent", "former"):
        assert scene.fake.answered("/checked")
        return
    assert not scene.fake.answered("/checked")
    assert "none of its keys has signed it" in scene.fake.reasons()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    policy: policy.yaml\n", "", "pins no policy"),
        ("approvers:", "former_keys: former.pub.pem\napprovers:", "is not a list"),
        ("k: 3", "k: 0.5", "k in the floor of 'adult' is 0.5"),
        ("suppression: 0.1", "suppression: 2", "suppression in the floor"),
        ("k: 3", "kk: 3", "has the key 'kk'"),
        ("approvers: {otto: otto.pub.pem}", "", "wants 1 signed approval and knows 0"),
        ("approvers: {otto: otto.pub.pem}", "approvers: {otto: policy.yaml}", "no Ed25519 public"),
        ("approvers:", "approverz:", "unknown key 'approverz'"),
    ],
)
def test_a_file_that_pins_too_little_is_refused(scene, old, new, words):
    scene.file.write_text(scene.file.read_text().replace(old, new))
    with pytest.raises(PolicyError, match=words):
        AgentSettings.load(scene.file, "t")


def test_a_policy_is_pinned_by_its_digest(scene):
    pinned = f"sha256:{policy_digest(policy_of(POLICY))}"
    scene.file.write_text(
        scene.file.read_text().replace("policy: policy.yaml", f"policy: {pinned}")
    )
    assert scene.checked()
    scene.fake.serve(
        "check", policy=OTHER_MASKS, configurations=[RAW], certificates=[], may_search=True
    )
    scene.work()
    assert "it is not the pinned policy" in scene.fake.reasons()


def test_limits_of_a_job_keep_the_pins(scene):
    """The process of a job gets the same pins as the agent."""
    scene.fake.serve("release", policy=WEAK, configuration=RAW, approvals=[])
    settings = replace(AgentSettings.load(scene.file, "t"), work=WorkLimits(300, None))
    agent = Agent(settings)
    with agent.client:
        assert agent.once()
    assert not scene.fake.answered("/uploads/")
    assert "its k is 1, below 3" in scene.fake.reasons()


@pytest.fixture
def short_saving(tmp_path, monkeypatch):
    """Have the process of a job, too, look again soon at a file that may be in the middle of a save."""
    start = tmp_path / "start"
    start.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "from aegis.service import agent_settings\n"
        "from aegis.service.catalog import limited\n"
        f"agent_settings._SAVING = {agent_settings._SAVING}\n"
        "del sys.argv[1:3]\n"  # -m and the module
        "limited.main()\n"
    )
    start.chmod(0o700)
    monkeypatch.setattr(limited, "sys", SimpleNamespace(executable=str(start)))


@pytest.mark.usefixtures("short_saving")
@pytest.mark.parametrize("apart", [False, True])
def test_a_running_agent_reads_its_file_and_policies_when_a_job_starts(scene, apart):
    limits = WorkLimits(300, None) if apart else None
    agent = Agent(AgentSettings.load(scene.file, "t", limits))
    other = POLICY.replace("k: 3", "k: 4")
    assert other != POLICY
    asked = {"configurations": [GOOD], "certificates": [], "may_search": False}

    def checked(policy: str) -> tuple[int, str]:
        scene.fake.serve("check", policy=policy, **asked)
        assert agent.once()
        return len(scene.fake.answered("/checked")), scene.fake.reasons()

    def changes_are_read() -> None:
        scene.folder.joinpath("policy.yaml").write_text(other)
        assert checked(other)[0] == 1
        scene.write(url=agent.settings.url, floor=", roles: {age: sensitive}")
        done, reasons = checked(other)
        assert (done, "age is quasi-identifier, not sensitive" in reasons) == (1, True)

    with agent.client:
        if not apart:  # each process takes seconds to start
            done, reasons = checked(other)
            assert (done, "the pinned rule" in reasons) == (0, True)
            scene.folder.joinpath("policy.yaml").write_text("version: 2")
            done, reasons = checked(other)
            assert (done, "Read the output of the agent" in reasons) == (0, True)
        changes_are_read()


@pytest.mark.parametrize("lines", [1, 3, 9])
def test_a_file_that_somebody_saves_is_read_once_it_is_whole(scene, lines, monkeypatch):
    """Also a part that looks whole is not used: it may lack an approver or a table."""
    settings = AgentSettings.load(scene.file, "t")
    former = scene.file.read_text()
    whole = former.replace("k: 3", "k: 4")
    scene.file.write_text("".join(whole.splitlines(keepends=True)[:lines]))
    waited = []

    def saved(seconds):
        waited.append(seconds)
        scene.file.write_text(whole)

    # Other threads sleep, too: only this module gets another clock.
    monkeypatch.setattr("aegis.service.agent_settings.time", SimpleNamespace(sleep=saved))
    renewed = settings.renewed()
    assert renewed.sources.keys() == {"adult", "secret"}
    assert renewed.sources["adult"].floor.k == 4
    assert waited
    waited.clear()
    assert renewed.renewed() == renewed
    assert not waited, "an unchanged file is read without a wait"


def test_a_file_that_stays_unreadable_is_named(scene, monkeypatch):
    settings = AgentSettings.load(scene.file, "t")
    scene.file.write_text("url: x\n")
    quick = SimpleNamespace(sleep=lambda seconds: None)
    monkeypatch.setattr("aegis.service.agent_settings.time", quick)
    with pytest.raises(PolicyError, match="is not an agent's file"):
        settings.renewed()
