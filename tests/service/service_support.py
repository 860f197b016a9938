"""A service that runs, with accounts, tokens and an agent beside a small table."""

from __future__ import annotations

import csv
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from aegis.catalog import Catalog, accounts
from aegis.catalog.access import scopes_of
from aegis.service.agent import Agent, AgentSettings
from aegis.service.app import create_app
from aegis.service.client import Client
from aegis.service.settings import Settings
from aegis.service.worker import Worker
from aegis.signing import load_private_key, make_keys

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

    def client(self, name: str) -> Client:
        return Client(self.url, self.tokens[name])

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


@contextmanager
def running(settings: Settings, catalog: Catalog | None = None) -> Iterator[str]:
    """Serve on a free port of this machine; yield the address."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    app = create_app(Settings(**{**vars(settings), "origin": url}), catalog)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="on"))
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


@contextmanager
def house(folder: Path, database: str | None = None) -> Iterator[House]:
    """Run a service with six accounts and an agent."""
    write_table(folder / "adult.csv")
    private, _ = make_keys()
    (folder / "agent.pem").write_bytes(private)
    key = load_private_key(folder / "agent.pem")
    catalog = Catalog.open(database or str(folder / "catalog.db"), str(folder / "objects"))
    tokens = {}
    with catalog.database.writing() as session:
        for name, roles in PEOPLE.items():
            actor = accounts.actor_of(accounts.create(session, name, roles, password=PASSWORD))
            _, tokens[name] = accounts.make_token(session, actor, "test", scopes_of(actor))
    with running(Settings(worker=False, calls=60_000), catalog) as url:
        sources = {"adult": str(folder / "adult.csv")}
        told = AgentSettings(url, tokens["paula"], key, sources, "agent")
        agent = Agent(told)
        try:
            yield House(url, catalog, tokens, agent, Worker(catalog), key.public.text, folder)
        finally:
            agent.client.close()
