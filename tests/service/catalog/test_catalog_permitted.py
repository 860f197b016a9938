"""Lists and single objects answer alike who may see what: from one table of permissions."""

from __future__ import annotations

from itertools import product

import pytest
from catalog_support import KEY, World, add_version
from sqlalchemy import false, select

from aegis.service.catalog import accounts, data_sets, requests
from aegis.service.catalog.access import Action, Actor, may
from aegis.service.catalog.records import Account, DataSet, Grant, Request

GRANTS = (None, "operator", "approver", "consumer")
ROLES = ("provider", "operator", "approver", "consumer", "auditor", "admin")


@pytest.fixture
def filled(place) -> World:
    """A catalog with data sets of each visibility and grants, and requests of each kind for them."""
    with place.catalog.database.writing() as session:
        for published, public, granted in product((False, True), (False, True), GRANTS):
            name = f"{granted}-{published}-{public}".lower()
            data_sets.register(
                session, place.paula, name, source="t", public_key=KEY, public=public
            )
            version = add_version(place, session, name)
            session.get(DataSet, name).published = published
            if granted is not None:
                for who in ("otto", "anna", "carl", "boris"):
                    account = accounts.named(session, who).id
                    session.add(Grant(data_set_id=name, account_id=account, role=granted))
            for who, state in product(("clara", "boris"), ("draft", "submitted", "withdrawn")):
                session.add(
                    Request(
                        data_set_id=name,
                        version_id=version.id,
                        consumer_id=accounts.named(session, who).id,
                        purpose="to learn",
                        state=state,
                        asked={} if state == "draft" or who == "boris" else {"days": 1},
                    )
                )
    return place


def everybody(place: World, session) -> list[Actor]:
    """Return each account, also with each single role and without any."""
    actors = []
    for account in session.scalars(select(Account)):
        actor = accounts.actor_of(account)
        alone = [frozenset({role}) for role in ROLES]
        actors += [
            Actor(actor.account, actor.name, roles) for roles in (actor.roles, frozenset(), *alone)
        ]
    return actors


def test_a_list_has_exactly_the_objects_that_one_may_see(filled):
    with filled.catalog.database.reading() as session:
        sets = session.scalars(select(DataSet)).all()
        asked = session.scalars(select(Request)).all()
        assert (len(sets), len(asked)) == (16, 96)
        subjects = {}
        for by in everybody(filled, session):
            if by.account not in subjects:
                subjects[by.account] = (
                    {d.id: data_sets.subject_of(session, by, d) for d in sets},
                    {r.id: data_sets.subject_of(session, by, r.data_set, r) for r in asked},
                )
            of_sets, of_requests = subjects[by.account]
            for action in Action:
                condition = data_sets.permitted(by, action, DataSet.id, false())
                listed = set(session.scalars(select(DataSet.id).where(condition)))
                assert listed == {name for name, s in of_sets.items() if may(by, action, s)}
            seen = set(session.scalars(select(Request.id).where(requests.visible(by))))
            assert seen == {
                name for name, s in of_requests.items() if may(by, Action.SEE_REQUEST, s)
            }


def test_a_search_counts_what_it_lists(filled):
    with filled.catalog.database.reading() as session:
        for by in everybody(filled, session):
            listed, count = data_sets.search(session, by)
            assert len(listed) == count
