"""Random walks of the catalog with an attacker among the actors.

A few short ones run with the tests; at length: `python tests/service/catalog/walks.py 10000 1`.

Everybody tries any step in any order: consumers, operators, an approver, providers, an admin who gives and takes
roles, and mallory. She has an account of every role but provider and admin, and no right on the data set; she replays
approvals, takes jobs of others, answers with other attempts, renews, joins populations, and widens her tokens. What must
never happen is written down here, and looked at after each step: from the tables and the log, not from the product's
own answers.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from catalog_support import CONFIGURATION, POLICY, World, add_version, offered, world
from sqlalchemy import select

from aegis.service.catalog import accounts, budget, consistency, data_sets, flow, jobs, log
from aegis.service.catalog import requests as requested
from aegis.service.catalog.access import Action, Actor
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.records import (
    Approval,
    DataSet,
    Grant,
    Job,
    LogEntry,
    ReleaseRecord,
    Request,
    SpendRecord,
    Token,
    now,
)
from aegis.service.catalog.states import RequestState, RequestStep, after

OUTSIDERS = ("mallory", "peter", "aude", "ada")
DECIDERS = ("otto", "boris", "anna")
EVERYBODY = ("clara", "carl", "paula", *DECIDERS, *OUTSIDERS)
CEILING = 6.0
AHEAD = (RequestState.APPROVED, RequestState.RUNNING)


@dataclass
class Walk:
    """One catalog, and what a model of it knows.

    Attributes
    ----------
    folder
        Where it is.
    draw
        What decides; the same seed walks the same way.
    done
        Steps by name, those that were carried out and those that were refused.
    """

    folder: Path
    draw: random.Random
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.place: World = world(self.folder)
        with self.place.catalog.database.writing() as session:
            roles = ("consumer", "operator", "approver", "auditor")
            made = accounts.create(session, "mallory", roles)
            self.place.actors["mallory"] = accounts.actor_of(made)
        offered(self.place, approvals=2, terms="for research", ceiling=CEILING)
        self.versions = 1
        self.held: list[tuple[str, int]] = []
        self.entries = 0
        self.states: dict[str, str] = {}
        self.focus: str | None = None

    def close(self) -> None:
        self.place.catalog.database.close()

    def actor(self, name: str) -> Actor:
        """Return an account as it is now, which `identity` reads for each call."""
        with self.place.catalog.database.reading() as session:
            return accounts.actor_of(accounts.named(session, name))

    def numbers(self) -> list[str]:
        with self.place.catalog.database.reading() as session:
            return list(session.scalars(select(Request.id).order_by(Request.created)))

    def ahead(self) -> tuple[str, str | None]:
        """Return a step that one of the newest requests is waiting for."""
        with self.place.catalog.database.reading() as session:
            newest = session.scalars(select(Request).order_by(Request.created.desc()).limit(4))
            open_ones = [r for r in newest if RequestState(r.state) in NEXT]
        if not open_ones:
            return "draft", None
        request = self.draw.choice(open_ones)
        return self.draw.choice(NEXT[RequestState(request.state)]), request.id

    def step(self) -> str:
        """Have somebody try something; return what, and whether it was refused."""
        name, self.focus = self.draw.choice(sorted(STEPS)), None
        if self.draw.random() < 0.6:
            name, self.focus = self.ahead()
        who = self.draw.choice(EVERYBODY)
        if self.draw.random() < 0.85:
            who = self.draw.choice(USUAL.get(name, EVERYBODY))
        try:
            with self.place.catalog.database.writing() as session:
                STEPS[name](self, session, self.actor(who), who)
        except CatalogError:
            self.done[f"{name} refused"] += 1
            return f"{who}: {name} refused"
        self.done[name] += 1
        return f"{who}: {name}"


Act = Callable[[Walk, Any, Actor, str], None]
STEPS: dict[str, Act] = {}
USUAL = {
    "draft": ("clara", "carl"),
    "submit": ("clara", "carl"),
    "review": ("otto", "boris"),
    "check": ("otto", "boris"),
    "approve": DECIDERS,
    "run": ("otto", "paula"),
    "retry": ("otto", "paula"),
    "renew": DECIDERS,
    "work": ("paula",),
    "answer": ("paula",),
    "roles": ("ada",),
    "grant": ("paula",),
    "change": ("paula",),
    "ask_summary": ("paula",),
    "new_version": ("paula",),
    "cancel": ("otto", "paula"),
    "end": ("otto", "anna", "clara"),
}
NEXT = {
    RequestState.DRAFT: ("submit",),
    RequestState.SUBMITTED: ("review",),
    RequestState.IN_REVIEW: ("check", "approve", "approve", "approve"),
    RequestState.RETURNED: ("submit",),
    RequestState.APPROVED: ("run",),
    RequestState.RUNNING: ("work", "answer", "answer"),
    RequestState.FAILED: ("retry",),
    RequestState.RELEASED: ("draft", "draft", "renew"),
    RequestState.EXPIRED: ("draft", "draft", "renew"),
}
"""What moves a request on: without it a walk stays with drafts."""


def step(act: Act) -> Act:
    STEPS[act.__name__] = act
    return act


def some(walk: Walk) -> str:
    """Return the number of a request, mostly one of the newest."""
    if walk.focus is not None:
        return walk.focus
    numbers = walk.numbers()
    if not numbers:
        raise CatalogError("none")
    return walk.draw.choice(numbers[-3:] if walk.draw.random() < 0.8 else numbers)


@step
def draft(walk: Walk, session: Any, by: Actor, who: str) -> None:
    accepted = walk.draw.random() < 0.9
    requested.draft(session, by, "census", purpose=f"for {who}", terms_accepted=accepted)


@step
def submit(walk: Walk, session: Any, by: Actor, who: str) -> None:
    requested.submit(session, by, some(walk))


@step
def review(walk: Walk, session: Any, by: Actor, who: str) -> None:
    requested.review(session, by, some(walk))


@step
def check(walk: Walk, session: Any, by: Actor, who: str) -> None:
    """The agent's answer comes in, after somebody chose who may."""
    request = requested.authorised(session, by, Action.REVIEW, some(walk))
    before = [release.id for release in requested.earlier(session, request)]
    answer = {"holds": walk.draw.random() < 0.8, "releases": before}
    requested.set_configuration(session, by, request, CONFIGURATION, answer)


@step
def approve(walk: Walk, session: Any, by: Actor, who: str) -> None:
    requested.approve(session, by, some(walk))


@step
def end(walk: Walk, session: Any, by: Actor, who: str) -> None:
    ways = {"send_back": True, "reject": True, "revoke": True, "withdraw": False}
    name = walk.draw.choice(sorted(ways))
    said = ("because",) if ways[name] else ()
    getattr(requested, name)(session, by, some(walk), *said)


@step
def run(walk: Walk, session: Any, by: Actor, who: str) -> None:
    flow.run(session, by, some(walk))


@step
def retry(walk: Walk, session: Any, by: Actor, who: str) -> None:
    flow.retry(session, by, some(walk))


@step
def renew(walk: Walk, session: Any, by: Actor, who: str) -> None:
    requested.renew(session, by, some(walk), walk.draw.choice((1, 30, 365, 366, 5000)))


@step
def work(walk: Walk, session: Any, by: Actor, who: str) -> None:
    job = flow.claim(session, who, jobs.AGENT, provider=by.account)
    if job is None:
        raise CatalogError("nothing")
    assert session.get(DataSet, job.data_set_id).provider_id == by.account
    walk.held.append((job.id, job.attempt))


@step
def answer(walk: Walk, session: Any, by: Actor, who: str) -> None:
    """An agent ends a job: with the attempt that it holds, or with an older one."""
    from aegis.service.catalog import deliveries

    if not walk.held:
        raise CatalogError("nothing")
    number, attempt = walk.draw.choice(walk.held)
    deliveries.require_agent(session, by, number)
    kind = walk.draw.choice(("done", "done", "fail", "give back"))
    job = jobs.current(session, number, attempt)
    if kind == "give back":
        jobs.give_back(session, number, attempt)
    elif kind == "fail":
        flow.give_up(session, by, job, "the disk is full")
    elif job.kind == "release":
        _released(session, by, job)
    else:
        jobs.finish(session, number, attempt, {})
        budget.commit(session, number)


def _released(session: Any, by: Actor, job: Job) -> None:
    """What `deliveries.release` writes once it has found the file to be the one that was approved."""
    request = session.get(Request, job.request_id)
    until = now() + timedelta(days=request.data_set.days)
    session.add(
        ReleaseRecord(
            request_id=request.id,
            data_set_id=request.data_set_id,
            population=request.data_set.population,
            object_key="",
            file_name="masked.parquet",
            digest="ab" * 32,
            size=1,
            certificate="{}",
            signature={},
            expires=until,
        )
    )
    session.flush()
    jobs.finish(session, job.id, job.attempt, {})
    budget.commit(session, job.id)
    requested.complete(session, by, request, "ab" * 32)


@step
def cancel(walk: Walk, session: Any, by: Actor, who: str) -> None:
    running = list(session.scalars(select(Job.id).where(Job.state.in_(("queued", "running")))))
    if not running:
        raise CatalogError("nothing")
    flow.cancel(session, by, walk.draw.choice(running))


@step
def ask_summary(walk: Walk, session: Any, by: Actor, who: str) -> None:
    epsilon = walk.draw.choice((0.5, 1.0, 4.0))
    flow.ask_summary(
        session, by, "census", POLICY, protect="noise", epsilon=epsilon, delta=1e-6, threshold=11
    )


@step
def change(walk: Walk, session: Any, by: Actor, who: str) -> None:
    about: dict[str, Any] = walk.draw.choice(
        (
            {"approvals": walk.draw.choice((1, 2))},
            {"days": walk.draw.choice((30, 365))},
            {"terms": f"terms {walk.draw.randrange(3)}"},
            {"public": True},
        )
    )
    data_sets.change(session, by, "census", **about)
    requested.drift(session, by, "census")


@step
def new_version(walk: Walk, session: Any, by: Actor, who: str) -> None:
    if who != "paula" or walk.draw.random() < 0.7:
        raise CatalogError("not now")
    walk.versions += 1
    add_version(walk.place, session, "census", f"d{walk.versions}")
    requested.drift(session, by, "census")


@step
def grant(walk: Walk, session: Any, by: Actor, who: str) -> None:
    name = walk.draw.choice(DECIDERS)
    role = "approver" if name == "anna" else "operator"
    given = walk.draw.random() < 0.75
    data_sets.grant(session, by, "census", name, role, granted=given)


@step
def roles(walk: Walk, session: Any, by: Actor, who: str) -> None:
    name = walk.draw.choice(DECIDERS)
    usual = ["approver"] if name == "anna" else ["operator", "consumer"]
    accounts.change_roles(session, by, name, usual if walk.draw.random() < 0.8 else ["consumer"])


@step
def time_passes(walk: Walk, session: Any, by: Actor, who: str) -> None:
    running = session.scalars(select(Job).where(Job.state == "running")).all()
    for job in running:
        job.leased_until = now() - timedelta(seconds=1)
    for release in session.scalars(select(ReleaseRecord)):
        if walk.draw.random() < 0.2:
            release.expires = now() - timedelta(seconds=1)
    requested.expire(session)


@step
def mallory_takes_work(walk: Walk, session: Any, by: Actor, who: str) -> None:
    assert (
        flow.claim(session, "mallory", jobs.AGENT, provider=walk.actor("mallory").account) is None
    )
    raise CatalogError("nothing")


@step
def mallory_decides(walk: Walk, session: Any, by: Actor, who: str) -> None:
    mallory, number = walk.actor("mallory"), some(walk)
    acts: tuple[Callable[[], object], ...] = (
        lambda: requested.approve(session, mallory, number),
        lambda: requested.approve(session, mallory, number, _replayed(session)),
        lambda: requested.review(session, mallory, number),
        lambda: flow.choose(session, mallory, number, CONFIGURATION),
        lambda: flow.run(session, mallory, number),
        lambda: requested.renew(session, mallory, number, 30),
        lambda: requested.revoke(session, mallory, number, "x"),
        lambda: data_sets.change(session, mallory, "census", approvals=1),
        lambda: data_sets.grant(session, mallory, "census", "mallory", "operator"),
        lambda: data_sets.register(
            session, mallory, "mine", source="adult", public_key="cd" * 32, population="census"
        ),
        lambda: accounts.change_roles(session, mallory, "mallory", ["admin"]),
        lambda: flow.ask_summary(
            session,
            mallory,
            "census",
            POLICY,
            protect="noise",
            epsilon=0.1,
            delta=1e-6,
            threshold=11,
        ),
    )
    walk.draw.choice(acts)()
    raise AssertionError("mallory may decide")


def _replayed(session: Any) -> dict[str, Any]:
    """Return a signed approval that somebody gave, or one that was made up."""
    for approval in session.scalars(select(Approval)):
        if approval.signed is not None:
            return dict(approval.signed)
    return {"statement": {"kind": "approval"}, "signature": "00" * 64, "public_key": "ab" * 32}


@step
def mallory_widens_a_token(walk: Walk, session: Any, by: Actor, who: str) -> None:
    mallory = walk.actor("mallory")
    token, _ = accounts.make_token(session, mallory, "t", ["browse"])
    narrow = Actor(
        mallory.account, "mallory", mallory.roles, frozenset({"browse", "own-tokens"}), token.id
    )
    accounts.make_token(session, narrow, "wide", ["browse", "approve"])
    raise AssertionError("a token was widened")


def look(walk: Walk) -> list[str]:
    """Return what must never be, and is."""
    with walk.place.catalog.database.reading() as session:
        entries = session.scalars(select(LogEntry).order_by(LogEntry.number)).all()
        listed = session.scalars(select(Request)).all()
        wrong = [*_log(walk, session, entries), *_moves(walk, listed)]
        given = approvals(entries)
        for request in listed:
            wrong += _decided(session, request, given)
        wrong += _once(session, entries)
        wrong += _budget(session)
        wrong += [
            f"mallory has {grant.role}"
            for grant in session.scalars(select(Grant))
            if grant.account_id == walk.place.actors["mallory"].account
        ]
        if any("approve" in token.scopes for token in session.scalars(select(Token))):
            wrong.append("a token of mallory approves")
    return wrong


def approvals(entries: Any) -> dict[str, set[str]]:
    """Return who has said yes to each request since its ground was last changed, by the log alone."""
    given: dict[str, set[str]] = {}
    for entry in entries:
        said = given.setdefault(entry.request_id or "", set())
        if entry.action in ("approve", "approved by one of two"):
            said.add(entry.actor)
        elif entry.action in ("configuration checked", "return", "drift"):
            said.clear()
    return given


def _log(walk: Walk, session: Any, entries: Any) -> list[str]:
    wrong = [] if log.check(entries).intact else ["the log is broken"]
    if len(entries) < walk.entries:
        wrong.append("the log lost entries")
    walk.entries = len(entries)
    compared = consistency.compare(session, walk.place.catalog.objects)
    # The files of this walk are none, and those of its versions neither.
    expected = ("object ", "request")
    return wrong + [
        line
        for line in compared
        if not (line.startswith(expected) and ("object" in line or "its file was removed" in line))
    ]


def _moves(walk: Walk, listed: Any) -> list[str]:
    """Return the requests that moved in a way that no chain of steps allows."""
    wrong = []
    for request in listed:
        old = walk.states.get(request.id, RequestState.DRAFT)
        if request.state != old and request.state not in _reachable(RequestState(old)):
            wrong.append(f"from {old} to {request.state}")
        walk.states[request.id] = request.state
    return wrong


def _reachable(state: RequestState) -> set[str]:
    found, waiting = set(), [state]
    while waiting:
        here = waiting.pop()
        for move in RequestStep:
            try:
                there = after(here, move)
            except CatalogError:
                continue
            if there not in found:
                found.add(there)
                waiting.append(there)
    return {str(one) for one in found}


def _decided(session: Any, request: Request, given: dict[str, set[str]]) -> list[str]:
    wrong = []
    said = given.get(request.id, set())
    asked = request.asked.get("approvals", 2)
    if request.state in AHEAD or request.state == RequestState.RELEASED:
        if len(said) < asked:
            wrong.append(f"{request.state} with {len(said)} of {asked} approvals")
        if not said <= set(DECIDERS) or request.consumer.name in said:
            wrong.append(f"{request.state} by {sorted(said)} for {request.consumer.name}")
        if not (request.answer or {}).get("holds"):
            wrong.append(f"{request.state} with a rule that is broken")
    if request.state == RequestState.RUNNING and request.frozen is None:
        wrong.append("running without what was frozen")
    release = session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == request.id))
    if (request.state == RequestState.RELEASED) and release is None:
        wrong.append("released without a release")
    if release is not None and release.revoked is None:
        most = now() + timedelta(days=request.asked.get("days", 365), minutes=1)
        if release.expires > most:
            wrong.append("a release lasts longer than its provider lets it")
    return wrong


def _once(session: Any, entries: Any) -> list[str]:
    ends = Counter(e.detail["job"] for e in entries if e.action.endswith(" done"))
    wrong = [f"job {job} was done {count} times" for job, count in ends.items() if count > 1]
    counted = Counter(session.scalars(select(ReleaseRecord.request_id)))
    return wrong + [f"{number} was released twice" for number, n in counted.items() if n > 1]


def _budget(session: Any) -> list[str]:
    spends = session.scalars(select(SpendRecord)).all()
    used = sum(spend.epsilon for spend in spends)
    states = {job.id: job.state for job in session.scalars(select(Job))}
    fits = {"committed": ("done",), "reserved": ("queued", "running")}
    wrong = [] if used <= CEILING + 1e-9 else [f"{used} of {CEILING} are spent"]
    return wrong + [
        f"a spend is {spend.state}, its job {states[spend.job_id]}"
        for spend in spends
        if states[spend.job_id] not in fits[spend.state]
    ]


def walked(steps: int, seed: int, *, every: int = 1) -> tuple[Counter[str], list[str]]:
    """Walk; return what was done, and the steps that led to the first thing that must not be."""
    with tempfile.TemporaryDirectory(prefix="aegis-walk-") as folder:
        walk, way = Walk(Path(folder), random.Random(seed)), []
        try:
            for number in range(steps):
                way.append(walk.step())
                if number % every == 0 and (wrong := look(walk)):
                    return walk.done, [*wrong, *way[-20:]]
        finally:
            walk.close()
        return walk.done, []


def main() -> None:
    """Walk as many steps as the command line says, in walks of 250; exit code 1 where one fails."""
    steps, seed = int(sys.argv[1]), int(sys.argv[2])
    done: Counter[str] = Counter()
    for number in range(0, steps, 250):
        found, wrong = walked(min(250, steps - number), seed * 1_000_003 + number)
        done += found
        sys.stderr.write(f"{number + 250:,} steps\n")
        if wrong:
            sys.stdout.write(f"walk {number}: " + "\n  ".join(wrong) + "\n")
            sys.exit(1)
    for name, count in sorted(done.items()):
        sys.stdout.write(f"{count:6,} {name}\n")


if __name__ == "__main__":
    main()
