"""The life of a request, held by a model that walks at random."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from catalog_support import CONFIGURATION, add_version, offered, world
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import select

from aegis.service.catalog import (
    NotAllowed,
    RequestState,
    WrongState,
    accounts,
    data_sets,
    log,
    requests,
)
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.records import LogEntry, Request
from aegis.service.catalog.states import FINAL, RequestStep, after

PEOPLE = ("clara", "carl", "otto", "anna", "boris", "paula", "aude", "ada")


STATES = """
draft      submit -> submitted, withdraw -> withdrawn
submitted  review -> in review, return -> returned, reject -> rejected, withdraw -> withdrawn
in review  approve -> approved, return -> returned, drift -> returned, reject -> rejected, withdraw -> withdrawn
returned   submit -> submitted, withdraw -> withdrawn
approved   run -> running, drift -> returned, reject -> rejected, withdraw -> withdrawn
running    complete -> released, fail -> failed
failed     retry -> approved, return -> returned, reject -> rejected, withdraw -> withdrawn
released   expire -> expired, renew -> released, revoke -> revoked
expired    renew -> released, revoke -> revoked
revoked
rejected
withdrawn
"""
"""What moves a request from each state, and to which: written here, not read from the product."""


def moves() -> dict[RequestState, dict[RequestStep, RequestState]]:
    """Return the steps that start from each state, and where they end."""
    parsed = {}
    for line in STATES.strip().splitlines():
        pairs = [move.split(" -> ") for move in line[11:].split(", ") if move]
        parsed[RequestState(line[:11].strip())] = {
            RequestStep(step): RequestState(end) for step, end in pairs
        }
    return parsed


def steps_from(state):
    return list(moves()[state])


def test_steps_and_states_are_those_of_the_table():
    assert set(moves()) == set(RequestState)
    for state in RequestState:
        for step in RequestStep:
            if step in moves()[state]:
                assert after(state, step) is moves()[state][step]
            else:
                with pytest.raises(WrongState):
                    after(state, step)
    assert {state for state, steps in moves().items() if not steps} == set(FINAL)


def test_every_state_is_reached_from_a_draft():
    reached, frontier = {RequestState.DRAFT}, [RequestState.DRAFT]
    while frontier:
        state = frontier.pop()
        for step in steps_from(state):
            following = after(state, step)
            if following not in reached:
                reached.add(following)
                frontier.append(following)
    assert reached == set(RequestState)


class Life(RuleBasedStateMachine):
    """Anybody tries any step in any order; what must never happen does not."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.place = world(Path(self._folder.name))
        offered(self.place, approvals=2, terms="for research")
        with self.place.catalog.database.writing() as session:
            self.number = requests.draft(
                session, self.place.clara, "census", purpose="to learn", terms_accepted=True
            ).id
        self.approved_by: set[str] = set()
        self.versions = 1

    def teardown(self) -> None:
        self.place.catalog.database.close()
        self._folder.cleanup()

    def _try(self, who: str, act) -> None:
        actor = self.place.actors[who]
        try:
            with self.place.catalog.database.writing() as session:
                act(session, actor)
        except CatalogError:
            return

    @rule(who=st.sampled_from(PEOPLE))
    def submit(self, who):
        self._try(who, lambda s, a: requests.submit(s, a, self.number))

    @rule(who=st.sampled_from(PEOPLE))
    def review(self, who):
        self._try(who, lambda s, a: requests.review(s, a, self.number))

    @rule(holds=st.booleans())
    def check(self, holds):
        def act(session, actor):
            request = session.get(Request, self.number)
            answer = {"holds": holds, "releases": []}
            requests.set_configuration(session, actor, request, CONFIGURATION, answer)
            self.approved_by.clear()

        self._try("otto", act)

    @rule(who=st.sampled_from(PEOPLE))
    def approve(self, who):
        def act(session, actor):
            requests.approve(session, actor, self.number)
            self.approved_by.add(who)

        self._try(who, act)

    @rule(who=st.sampled_from(PEOPLE))
    def run(self, who):
        self._try(who, lambda s, a: requests.run(s, a, self.number))

    @rule(who=st.sampled_from(PEOPLE), step=st.sampled_from(["send_back", "reject", "withdraw"]))
    def end(self, who, step):
        def act(session, actor):
            if step == "withdraw":
                requests.withdraw(session, actor, self.number)
            else:
                getattr(requests, step)(session, actor, self.number, "because")

        self._try(who, act)

    @precondition(lambda self: self.versions < 4)
    @rule()
    def new_version(self):
        self.versions += 1

        def act(session, actor):
            add_version(self.place, session, "census", f"d{self.versions}")
            requests.drift(session, actor, "census")

        self._try("paula", act)

    @invariant()
    def nothing_runs_without_two_other_persons(self):
        with self.place.catalog.database.reading() as session:
            request = session.get(Request, self.number)
            if request.state in (RequestState.APPROVED, RequestState.RUNNING):
                assert len(self.approved_by) >= 2
                assert self.approved_by <= {"otto", "anna", "boris"}
                assert request.answer["holds"]
            if request.state == RequestState.RUNNING:
                assert request.frozen["version"] is not None

    @invariant()
    def the_log_is_whole(self):
        with self.place.catalog.database.reading() as session:
            assert log.check(session.scalars(select(LogEntry).order_by(LogEntry.number))).intact


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_nobody_approves_a_request_of_their_own(place):
    offered(place)
    with place.catalog.database.writing() as session:
        number = requests.draft(session, place.boris, "census", purpose="mine").id
        requests.submit(session, place.boris, number)
        requests.review(session, place.otto, number)
        request = session.get(Request, number)
        answer = {"holds": True, "releases": []}
        requests.set_configuration(session, place.otto, request, CONFIGURATION, answer)
    with pytest.raises(NotAllowed), place.catalog.database.writing() as session:
        requests.approve(session, place.boris, number)
    with place.catalog.database.writing() as session:
        assert requests.approve(session, place.otto, number).state == RequestState.APPROVED


def test_what_was_approved_is_not_run_when_the_data_set_has_changed(place):
    offered(place)
    with place.catalog.database.writing() as session:
        number = requests.draft(session, place.clara, "census", purpose="p").id
        requests.submit(session, place.clara, number)
        requests.review(session, place.otto, number)
        request = session.get(Request, number)
        requests.set_configuration(
            session, place.otto, request, CONFIGURATION, {"holds": True, "releases": []}
        )
        requests.approve(session, place.otto, number)
        data_sets.change(session, place.paula, "census", terms="others")
    with place.catalog.database.writing() as session:
        assert requests.run(session, place.otto, number).state == RequestState.RETURNED


def test_terms_must_be_accepted(place):
    offered(place, terms="for research")
    with place.catalog.database.writing() as session:
        number = requests.draft(session, place.clara, "census", purpose="p").id
        with pytest.raises(CatalogError, match="terms"):
            requests.submit(session, place.clara, number)


def test_who_is_demoted_may_nothing_from_the_next_call_on(place):
    offered(place)
    with place.catalog.database.writing() as session:
        accounts.change_roles(session, place.ada, "otto", ["consumer"])
        demoted = accounts.actor_of(accounts.named(session, "otto"))
        number = requests.draft(session, place.clara, "census", purpose="p").id
        requests.submit(session, place.clara, number)
        with pytest.raises(CatalogError):
            requests.review(session, demoted, number)
