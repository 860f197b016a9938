"""A service that runs, with accounts, tokens and an agent beside a small table."""

from __future__ import annotations

import asyncio
import csv
import random
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import uvicorn
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aegis.policy import Policy
from aegis.service.agent import Agent
from aegis.service.agent_settings import AgentSettings
from aegis.service.app import create_app
from aegis.service.catalog import Catalog, RequestState, UploadLimits, accounts, data_sets
from aegis.service.catalog.access import scopes_of
from aegis.service.catalog.records import Job, Request
from aegis.service.client import Client
from aegis.service.pins import Approvers, Floor, PinnedSource
from aegis.service.routes import ACTION
from aegis.service.settings import ServiceSettings
from aegis.service.worker import Worker
from aegis.signing import PrivateKey, load_private_key, make_keys

PASSWORD = "a sentence that is long enough"
PEOPLE = {
    "paula": ["provider"],
    "otto": ["operator"],
    "anna": ["approver"],
    "clara": ["consumer"],
    "aude": ["auditor"],
    "ada": ["admin"],
}
POLICY = """version: 1
label: income
privacy: {k: 3, suppression: 0.1}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, {bucketize: {width: 40}}, suppress]}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  canary: {role: identifier}
"""
CANARY = "canary-7f3a91"


def write_table(path: Path, rows: int = 400) -> None:
    """Write a table in which one row holds a value that must leave in no byte."""
    draw = random.Random(1)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["age", "sex", "canary", "income"])
        for number in range(rows):
            age = draw.randint(20, 79)
            rich = draw.random() < (0.7 if age > 50 else 0.2)
            name = CANARY if number == 7 else f"n{number}"
            out.writerow([age, draw.choice("mf"), name, "high" if rich else "low"])


APPROVERS = ("otto", "anna")
ROOM = Floor(k=2, threshold=2, epsilon=1e5, releases_a_day=10_000)
"""A floor that lets everything through that a test of something else does."""


class AnyPolicy(dict[str, Policy | None]):
    """Pins every policy: for tests of what lies behind the pins."""

    def __contains__(self, digest: object) -> bool:
        return True


def new_key(folder: Path, name: str) -> PrivateKey:
    """Make a pair of keys in a folder."""
    private, public = make_keys()
    (folder / f"{name}.pem").write_bytes(private)
    (folder / f"{name}.pub.pem").write_bytes(public)
    return load_private_key(folder / f"{name}.pem")


def approvers_of(folder: Path) -> tuple[dict[str, PrivateKey], Approvers]:
    """Return the keys of those who approve, made where there are none, and what an agent knows of them."""
    keys = {
        name: load_private_key(path)
        if (path := folder / f"{name}.pem").exists()
        else new_key(folder, name)
        for name in APPROVERS
    }
    return keys, Approvers({name: key.public for name, key in keys.items()}, 1)


def declared(prefix: str, rooms: Iterable[Any]) -> list[tuple[str, str, str]]:
    """Return method, path and action of each route of some modules; each route has an action."""
    return [
        (method, prefix + route.path, route.openapi_extra[ACTION])
        for room in rooms
        for route in room.routes.router.routes
        for method in route.methods
    ]


@dataclass
class House:
    """A running service and who calls it."""

    url: str
    catalog: Catalog
    tokens: dict[str, str]
    agent: Agent
    worker: Worker
    key: str
    folder: Path
    keys: dict[str, PrivateKey]

    def client(self, name: str) -> Client:
        return Client(self.url, self.tokens[name], key=self.keys.get(name))

    def public_pem(self) -> bytes:
        """Return the public key of the agent as a file has it."""
        public = self.agent.settings.key.key.public_key()
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def work(self) -> None:
        """Let worker and agent do all there is."""
        while self.worker.once() or self.agent.once():
            pass

    def offer(self, name: str = "census", **about: object) -> None:
        """Register, summarise, publish a data set."""
        with self.client("paula") as paula:
            asked = {"public": True, "terms": "for research", **about}
            paula.register(name, source="adult", public_key=self.key, **asked)
            paula.ask_summary(name, POLICY, protect="noise", epsilon=8.0)
            self.work()
            paula.publish(name)
            paula.grant(name, "otto", "operator")
            paula.grant(name, "anna", "approver")

    def ask(self, name: str = "census") -> str:
        """Have clara request it, and otto search what to release."""
        with self.client("clara") as clara, self.client("otto") as otto:
            number = clara.request(name, "to learn", terms_accepted=True)["id"]
            otto.step(number, "review")
            otto.step(number, "choose")
            self.work()
        return number


class PromptServer(uvicorn.Server):
    """Ends as soon as it is told to: uvicorn looks ten times a second, and then pauses as long again.

    The tests start a hundred services; the end of those that users start is tested in processes.
    """

    async def main_loop(self) -> None:
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.tasks:
            await asyncio.sleep(0.01)
        await self.lifespan.shutdown()


@contextmanager
def running(settings: ServiceSettings, catalog: Catalog | None = None) -> Iterator[str]:
    """Serve on a free port of this machine; yield the address."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    app = create_app(ServiceSettings(**{**vars(settings), "origin": url}), catalog)
    server = PromptServer(uvicorn.Config(app, port=port, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the service did not start")
        time.sleep(0.02)
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join(timeout=10)


@dataclass(frozen=True)
class Furnished:
    """A folder of a house that does not run, the tokens of who calls it, and a request in review."""

    folder: Path
    tokens: dict[str, str]
    request: str = ""


@contextmanager
def house(
    folder: Path, database: str | None = None, furnished: Furnished | None = None
) -> Iterator[House]:
    """Run a service with six accounts and an agent, made anew or from a copy of a furnished folder."""
    if furnished is None:
        write_table(folder / "adult.csv")
        (folder / "agent.pem").write_bytes(make_keys()[0])
    else:
        copytree(furnished.folder, folder, dirs_exist_ok=True)
    key = load_private_key(folder / "agent.pem")
    # Work is done in this process: one of its own for each piece takes seconds to start.
    catalog = Catalog.open(
        database or str(folder / "catalog.db"),
        str(folder / "objects"),
        limits=UploadLimits(work=None),
    )
    tokens = open_accounts(catalog) if furnished is None else furnished.tokens
    with running(ServiceSettings(worker=False, calls=60_000), catalog) as url:
        sources = {"adult": PinnedSource(str(folder / "adult.csv"), AnyPolicy(), ROOM)}
        keys, approvers = approvers_of(folder)
        told = AgentSettings(
            url, tokens["paula"], key, sources, approvers, folder / "agent-ledger", "agent"
        )
        agent = Agent(told)
        try:
            yield House(url, catalog, tokens, agent, Worker(catalog), key.public.text, folder, keys)
        finally:
            agent.client.close()


def open_accounts(catalog: Catalog) -> dict[str, str]:
    """Open an account for each of the people; return their tokens."""
    tokens = {}
    with catalog.database.writing() as session:
        for name, roles in PEOPLE.items():
            actor = accounts.actor_of(accounts.create(session, name, roles, password=PASSWORD))
            _, tokens[name] = accounts.make_token(session, actor, "test", scopes_of(actor))
    return tokens


def request_of(place: House, name: str) -> tuple[str, str]:
    """Return a request for a data set and its search, made past all rights."""
    with place.catalog.database.writing() as session:
        clara = accounts.named(session, "clara" if name != "unlisted" else "ada")
        made = Request(
            data_set_id=name,
            version_id=data_sets.newest(session, name).id,
            consumer_id=clara.id,
            purpose="to learn",
            state=RequestState.IN_REVIEW,
        )
        session.add(made)
        session.flush()
        job = Job(
            kind="search", place="worker", data_set_id=name, request_id=made.id, state="cancelled"
        )
        session.add(job)
        session.flush()
        return made.id, job.id


_UPLOAD = {"attempt": "1", "signature": "{}"}
PROBES = {
    ("POST", "/accounts"): {"name": "x", "roles": [], "password": "a long enough sentence"},
    ("POST", "/accounts/{name}/roles"): {"roles": ["consumer"]},
    ("POST", "/me/password"): {"password": PASSWORD, "new": PASSWORD},
    ("POST", "/me/sessions/end"): {},
    ("POST", "/me/second-factor"): {"password": PASSWORD},
    ("POST", "/me/second-factor/confirm"): {"code": "000000"},
    ("POST", "/me/second-factor/recovery"): {"password": PASSWORD},
    ("POST", "/me/second-factor/remove"): {"password": PASSWORD},
    ("POST", "/invitations"): {"name": "x", "roles": []},
    ("POST", "/accounts/{name}/sessions/end"): {},
    ("POST", "/accounts/{name}/hand-over"): {"to": "paula"},
    ("POST", "/data-sets/{identifier}/hand-over"): {"to": "paula"},
    ("POST", "/tokens"): {"name": "t", "scopes": ["browse"], "days": 1},
    ("POST", "/data-sets"): {"id": "mine", "source": "x", "public_key": "ab" * 32},
    ("POST", "/register"): {"identifier": "mine", "source": "x", "public_key": "ab" * 32},
    ("POST", "/data-sets/{identifier}/grants"): {"account": "otto", "role": "operator"},
    ("POST", "/data-sets/{identifier}/members"): {"account": "paula"},
    ("POST", "/data-sets/{identifier}/summary"): {"policy": POLICY, "protect": "noise"},
    ("POST", "/data-sets/{identifier}/request"): {"purpose": "x"},
    ("POST", "/data-sets/{identifier}/workbench/policy"): {"policy": POLICY},
    ("POST", "/data-sets/{identifier}/workbench/policy.yaml"): {"policy": POLICY},
    ("POST", "/data-sets/{identifier}/workbench/propose"): {"policy": POLICY},
    ("POST", "/requests"): {"data_set": "census", "purpose": "x"},
    ("POST", "/requests/{request_id}"): {"purpose": "x"},
    ("POST", "/requests/{request_id}/change"): {"purpose": "x"},
    ("POST", "/requests/{request_id}/return"): {"message": "x"},
    ("POST", "/requests/{request_id}/reject"): {"message": "x"},
    ("POST", "/requests/{request_id}/revoke"): {"message": "x"},
    ("POST", "/work"): {"owner": "x"},
    ("POST", "/keys"): {"old": "ab" * 32, "new": "cd" * 32, "signatures": [{}, {}]},
    ("POST", "/jobs/{job_id}/alive"): {"attempt": 1},
    ("POST", "/jobs/{job_id}/give-back"): {"attempt": 1},
    ("POST", "/jobs/{job_id}/failed"): {"attempt": 1, "reason": "x"},
    ("POST", "/jobs/{job_id}/checked"): {"attempt": 1, "answer": {}},
    ("POST", "/uploads/{job_id}/summary"): {
        **_UPLOAD,
        "policy": POLICY,
        "files": {"bundle": ("s.protected", b"{}")},
    },
    ("POST", "/uploads/{job_id}/release"): {
        **_UPLOAD,
        "certificate": "{}",
        "files": {"file": ("masked.parquet", b"PAR1")},
    },
}
"""What is sent to a route so that nothing but the right to it decides."""


def released(place: House, name: str = "census") -> str:
    """Have a request of clara released."""
    number = place.ask(name)
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")
        place.work()
        shown = otto.shown(number)
    assert shown["state"] == "released", shown
    return number
