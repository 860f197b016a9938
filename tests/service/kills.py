"""Kill service, worker and agent at random moments while requests go through, and look at what is left.

    python tests/service/kills.py 100 7      # a hundred kills, seed 7
    python tests/service/kills.py 100 7 postgresql://...
    python tests/service/kills.py 60 7 "" 15           # at most 15 seconds between two, for a busy machine
    python tests/service/kills.py 60 7 postgresql 15 s3  # PostgreSQL and a store that speaks S3, both started here

One process imports everything and forks the others, so that a new one is there at once. It must have no
thread but its own: a lock that another one held would stay locked in the child for ever, which showed as
a service that waited in `duckdb.connect` without end. Leases are shortened, or each kill of a worker would
cost a minute. What must hold at the end: nothing that was answered is lost, every request is released
once, no job is done twice, each spend has its output and each reservation its job, every file is the one
of its certificate, and the log is whole.
"""

from __future__ import annotations

import os

# Read when the libraries are loaded, which otherwise start threads at once.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

import faulthandler
import json
import math
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import uvicorn
from s3_bucket import settings
from service_support import PEOPLE, POLICY, ROOM, AnyPolicy, write_table
from sqlalchemy import select

from aegis.errors import AegisError, EngineError
from aegis.service import agent as agents
from aegis.service import worker as workers
from aegis.service.agent import Agent
from aegis.service.agent_settings import AgentSettings
from aegis.service.app import create_app
from aegis.service.catalog import Catalog, UploadLimits, accounts, deliveries, jobs, log
from aegis.service.catalog.access import scopes_of
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.records import (
    Job,
    LogEntry,
    ReleaseRecord,
    Request,
    SpendRecord,
    Version,
)
from aegis.service.client import Client
from aegis.service.pins import Approvers, PinnedSource
from aegis.service.settings import ServiceSettings
from aegis.service.worker import Worker
from aegis.signing import load_private_key, make_keys

LEASE = 6.0
MOST_ATTEMPTS = 60
LEAST = 2
"""Requests of the shortest campaign."""
SECONDS = 600.0
"""Most seconds after the last kill, until every request is through."""
PAUSE = 0.02, 2.5
"""Least and most seconds between two kills; shorter ones are as likely as longer ones by their logarithm."""


class Scene:
    """A catalog on disk, and how each process of it is started."""

    def __init__(self, folder: Path, database: str | None, objects: str | None) -> None:
        self.folder = folder
        self.objects = objects or str(folder / "objects")
        self.database = database or str(folder / "catalog.db")
        write_table(folder / "adult.csv")
        private, _ = make_keys()
        (folder / "agent.pem").write_bytes(private)
        self.key = load_private_key(folder / "agent.pem")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.tokens = {}
        catalog = self.catalog()
        with catalog.database.writing() as session:
            for name, roles in PEOPLE.items():
                actor = accounts.actor_of(accounts.create(session, name, roles))
                _, self.tokens[name] = accounts.make_token(session, actor, "t", scopes_of(actor))
        catalog.database.close()

    def catalog(self) -> Catalog:
        return Catalog.open(self.database, self.objects, limits=UploadLimits(work=None))

    def serve(self) -> None:
        settings = ServiceSettings(origin=self.url, worker=False, calls=1_000_000)
        uvicorn.run(create_app(settings, self.catalog()), port=self.port, log_level="critical")

    def work(self) -> None:
        Worker(self.catalog()).run()

    def mask(self) -> None:
        told = AgentSettings(
            self.url,
            self.tokens["paula"],
            self.key,
            {"adult": PinnedSource(str(self.folder / "adult.csv"), AnyPolicy(), ROOM)},
            Approvers({}, 0),
            self.folder / "agent-ledger",
            "agent",
        )
        Agent(told).run()

    def drive(self) -> None:
        Driver(self).run()


class Driver:
    """Takes requests from draft to release, trying again whatever was not answered."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clients = {name: Client(scene.url, scene.tokens[name]) for name in PEOPLE}
        self.told = (scene.folder / "answered.jsonl").open("a")

    def run(self) -> None:
        self.offer()
        number = 0
        while number < LEAST or not (self.scene.folder / "stop").exists():
            number += 1
            if number % 2 == 0:
                self.spend()
            self.request(number)

    def answered(self, *what: object) -> None:
        self.told.write(json.dumps(what) + "\n")
        self.told.flush()

    def call(self, act: Callable[[], Any]) -> Any:
        """Try until the service answers; that it was done already is an answer, too."""
        while True:
            try:
                return act()
            except EngineError:
                time.sleep(0.05)
            except CatalogError as error:
                return error

    def offer(self) -> None:
        paula = self.clients["paula"]
        for name in ("census", "spends"):
            asked = {"source": "adult", "public_key": self.scene.key.public.text, "public": True}
            self.call(lambda n=name, a=asked: paula.register(n, **a, ceiling=900.0))
            self.call(lambda n=name: paula.ask_summary(n, POLICY, protect="noise", epsilon=1.0))
            while self.call(lambda n=name: paula.data_set(n))["version"] is None:
                time.sleep(0.1)
            self.call(lambda n=name: paula.publish(n))
            self.call(lambda n=name: paula.grant(n, "otto", "operator"))

    def spend(self) -> None:
        """Have another protected summary made, which spends."""
        paula = self.clients["paula"]
        before = self.call(lambda: paula.data_set("spends"))["version"]["number"]
        self.call(lambda: paula.ask_summary("spends", POLICY, protect="noise", epsilon=1.0))
        while self.call(lambda: paula.data_set("spends"))["version"]["number"] == before:
            time.sleep(0.1)
        self.answered("version", before + 1)

    def request(self, number: int) -> None:
        clara, otto = self.clients["clara"], self.clients["otto"]
        purpose = f"purpose {number}"
        made: Any = None
        while made is None:
            # A draft that was made, but not answered, is looked for before another one is made.
            listed = self.call(lambda: list(clara.requests()))
            made = next((r for r in listed if r["purpose"] == purpose), None)
            if made is None:
                body = {"data_set": "census", "purpose": purpose}
                answer = self.call(lambda b=body: clara._post("/requests", **b))
                made = answer if isinstance(answer, dict) else None
        request = made["id"]
        self.answered("drafted", request)
        steps = {"draft": ("clara", "submit"), "submitted": ("otto", "review")}
        steps |= {"approved": ("otto", "run"), "failed": ("otto", "retry")}
        while True:
            shown = self.call(lambda: otto.shown(request) if made else None)
            if not isinstance(shown, dict):
                shown = self.call(lambda: clara.shown(request))
            state = shown["state"]
            if state == "released":
                self.answered("released", request)
                return
            if state == "in review":
                self.decide(request, shown)
            elif state in steps:
                name, step = steps[state]
                answer = self.call(lambda n=name, s=step: self.clients[n].step(request, s))
                if isinstance(answer, dict):
                    self.answered("step", request, step)
            else:
                time.sleep(0.1)

    def decide(self, request: str, shown: dict[str, Any]) -> None:
        otto = self.clients["otto"]
        job = shown["job"]
        if shown["answer"] is not None:
            answer = self.call(lambda: otto.step(request, "approve"))
            if isinstance(answer, dict):
                self.answered("step", request, "approve")
                return
        elif job is not None and job["state"] in ("queued", "running"):
            time.sleep(0.1)
            return
        self.call(lambda: otto.step(request, "choose"))


class Cast:
    """The processes, by name."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.roles = {
            "service": scene.serve,
            "worker": scene.work,
            "agent": scene.mask,
            "driver": scene.drive,
        }
        self.running: dict[str, int] = {}

    def start(self, role: str) -> None:
        sys.stdout.flush()
        child = os.fork()
        if child:
            self.running[role] = child
            return
        faulthandler.register(signal.SIGUSR1)
        try:
            self.roles[role]()
        except (AegisError, OSError, KeyboardInterrupt) as error:
            sys.stderr.write(f"{role}: {type(error).__name__}: {error}\n")
        finally:
            os._exit(0)

    def kill(self, role: str) -> None:
        child = self.running.pop(role)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def tell(self) -> None:
        """Have each process write what it is at; the file by which it does so is standard error."""
        for role, child in self.running.items():
            sys.stderr.write(f"\n{role} is at:\n")
            sys.stderr.flush()
            os.kill(child, signal.SIGUSR1)
            time.sleep(0.5)

    def over(self, role: str) -> bool:
        done, _ = os.waitpid(self.running[role], os.WNOHANG)
        if done:
            del self.running[role]
        return bool(done)


def forkable() -> None:
    """End the threads of this process; raise where one is left."""
    duckdb.execute("SET threads = 1")
    threads = Path("/proc/self/task")
    if threads.exists() and len(list(threads.iterdir())) > 1:
        raise RuntimeError("A process with threads is not to be forked: run kills.py by itself.")


def campaign(
    folder: Path, kills: int, seed: int, database: str | None = None, objects: str | None = None
) -> dict[str, Any]:
    """Run it; return what was counted and what does not hold."""
    jobs.LEASE = type(jobs.LEASE)(seconds=LEASE)
    jobs.MOST_ATTEMPTS = MOST_ATTEMPTS
    agents.SIGN_OF_LIFE, agents.LOOK_FOR_WORK, workers._PAUSE = 1.0, 0.1, 0.1
    draw = random.Random(seed)
    scene = Scene(folder, database, objects)
    forkable()
    cast = Cast(scene)
    for role in cast.roles:
        cast.start(role)
    killed: Counter[str] = Counter()
    victims = [("service", "worker", "agent")[number % 3] for number in range(kills)]
    draw.shuffle(victims)
    for victim in victims:
        time.sleep(math.exp(draw.uniform(*map(math.log, PAUSE))))
        cast.kill(victim)
        killed[victim] += 1
        cast.start(victim)
    (folder / "stop").touch()
    end = time.monotonic() + SECONDS
    while not cast.over("driver"):
        if time.monotonic() > end:
            break
        time.sleep(0.2)
    late = "driver" in cast.running
    if late:
        cast.tell()
    for role in tuple(cast.running):
        cast.kill(role)
    wrong = checked(scene)
    counted = counts(scene)
    return {"killed": dict(killed), **counted, "wrong": wrong + (["not done in time"] * late)}


def counts(scene: Scene) -> dict[str, int]:
    catalog = scene.catalog()
    with catalog.database.reading() as session:
        told = {
            kind.__tablename__: len(session.scalars(select(kind)).all())
            for kind in (Request, ReleaseRecord, Version, SpendRecord, Job, LogEntry)
        }
        told["most attempts"] = max(job.attempt for job in session.scalars(select(Job)))
    catalog.database.close()
    return told


def checked(scene: Scene) -> list[str]:
    """Return what does not hold."""
    catalog = scene.catalog()
    wrong: list[str] = []
    with catalog.database.reading() as session:
        entries = session.scalars(select(LogEntry).order_by(LogEntry.number)).all()
        if not log.check(entries).intact:
            wrong.append("the log is broken")
        wrong += _answered(scene, entries)
        wrong += _done_once(entries)
        requests = session.scalars(select(Request)).all()
        releases = session.scalars(select(ReleaseRecord)).all()
        wrong += [f"request {r.id} is {r.state}" for r in requests if r.state != "released"]
        if Counter(r.request_id for r in releases) != Counter(r.id for r in requests):
            wrong.append("requests and releases are not one to one")
        key = scene.key.public.text
        for release in releases:
            wrong += deliveries.verify(catalog, release, key)
        states = {job.id: (job.kind, job.state) for job in session.scalars(select(Job))}
        for spend in session.scalars(select(SpendRecord)):
            fits = {"committed": ("done",), "reserved": ("queued", "running")}[spend.state]
            if states[spend.job_id][1] not in fits:
                wrong.append(f"a spend is {spend.state}, its job {states[spend.job_id]}")
        made = sum(state == ("summarize", "done") for state in states.values())
        if made != len(session.scalars(select(Version)).all()):
            wrong.append("versions and summaries are not one to one")
    catalog.database.close()
    return wrong


def _answered(scene: Scene, entries: Any) -> list[str]:
    """Return what was answered and is not there."""
    there = {(e.request_id, e.action) for e in entries}
    versions = {e.detail.get("version") for e in entries if e.action == "summary uploaded"}
    actions = {"drafted": "request drafted", "released": "complete"}
    wrong = []
    for line in (scene.folder / "answered.jsonl").read_text().splitlines():
        kind, *what = json.loads(line)
        if kind == "version":
            lost = what[0] not in versions
        elif kind == "step":
            lost = (what[0], what[1]) not in there
        else:
            lost = (what[0], actions[kind]) not in there
        wrong += [f"answered and lost: {line}"] if lost else []
    return wrong


def _done_once(entries: Any) -> list[str]:
    ends = Counter(e.detail["job"] for e in entries if e.action.endswith(" done"))
    return [f"job {job} was done {count} times" for job, count in ends.items() if count > 1]


@contextmanager
def postgres(named: str) -> Iterator[str | None]:
    """Yield the address of the database; of one that is started here where it is named so."""
    if named != "postgresql":
        yield named or None
        return
    sys.path.append(str(Path(__file__).parents[1]))
    from postgres_server import server

    with server() as started:
        yield started.url


@contextmanager
def bucket(named: str) -> Iterator[str | None]:
    """Yield where files are kept: in a folder, or in a process that speaks S3."""
    if named != "s3":
        yield None
        return
    command = [sys.executable, str(Path(__file__).with_name("s3_bucket.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        os.environ |= settings(int(serving.stdout.readline()))
        try:
            yield "s3://releases/aegis"
        finally:
            serving.kill()


def main() -> None:
    """Run the campaign that the command line names; exit code 1 where something does not hold."""
    global PAUSE
    kills, seed, *more = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    database, most, objects = (*more, *("", "", "")[len(more) :])
    if most:
        PAUSE = 0.5, float(most)
    with (
        tempfile.TemporaryDirectory(prefix="aegis-kills-") as folder,
        postgres(database) as url,
        bucket(objects) as store,
    ):
        told = campaign(Path(folder), kills, seed, url, store)
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    sys.exit(int(bool(told["wrong"])))


if __name__ == "__main__":
    main()
