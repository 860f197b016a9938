"""The account of a provider is closed: what it leaves behind, and who waits for it."""

from __future__ import annotations

import pytest
from catalog_support import CONFIGURATION, offered
from sqlalchemy import select

from aegis.service.catalog import (
    WrongState,
    accounts,
    budget,
    consistency,
    data_sets,
    flow,
    handing_over,
    requests,
)
from aegis.service.catalog.records import Account, DataSet, Job, LogEntry, Request

ANSWER = {"holds": True, "releases": []}


def requested(place, session, until: str) -> Request:
    """Return a request of clara in the state `until`."""
    made = requests.draft(session, place.clara, "census", purpose=until)
    steps = {
        "submitted": lambda: requests.submit(session, place.clara, made.id),
        "in review": lambda: requests.review(session, place.otto, made.id),
        "approved": lambda: approved(place, session, made),
        "running": lambda: flow.run(session, place.otto, made.id),
        "failed": lambda: flow.cancel_all(session, place.otto, "census"),
    }
    for state, step in steps.items():
        if made.state == until:
            break
        step()
        assert made.state == state
    return made


def approved(place, session, made: Request) -> None:
    requests.set_configuration(session, place.otto, made, CONFIGURATION, ANSWER)
    requests.approve(session, place.otto, made.id)


@pytest.mark.parametrize("state", ["submitted", "in review", "approved", "running", "failed"])
def test_an_open_request_goes_back_with_the_reason_when_its_provider_is_closed(place, state):
    offered(place)
    with place.catalog.database.writing() as session:
        made = requested(place, session, state)
        with pytest.raises(
            WrongState, match=f"paula provides census, with 1 open request: {made.id[:8]}"
        ):
            handing_over.close(session, place.ada, "paula")
        assert not accounts.named(session, "paula").disabled
        left = handing_over.close(session, place.ada, "paula", leave=True)
        assert [each.id for each in left.requests] == [made.id]
        assert accounts.named(session, "paula").disabled
        assert not session.get(DataSet, "census").published
        assert made.state == "returned"
        assert made.message.startswith("The account of paula, the provider of census, is closed.")
        assert not session.scalars(select(Job).where(Job.state.in_(("queued", "running")))).all()
        assert budget.balance(session, session.get(DataSet, "census")).reserved == 0
        with pytest.raises(WrongState, match="The account of paula"):
            requests.submit(session, place.clara, made.id)
    assert differing(place) == []


def test_a_returned_request_is_submitted_again_to_another_provider(place):
    offered(place)
    with place.catalog.database.writing() as session:
        made = requested(place, session, "in review")
        handing_over.close(session, place.ada, "paula", leave=True)
        handing_over.hand_over_all(session, place.ada, "paula", "peter")
        data_sets.publish(session, place.peter, "census")
        requests.submit(session, place.clara, made.id)
        assert requests.review(session, place.otto, made.id).state == "in review"
    assert differing(place) == []


def test_an_account_without_data_sets_is_closed_at_once(place):
    offered(place)
    with place.catalog.database.writing() as session:
        left = handing_over.close(session, place.ada, "peter")
        assert (list(left.data_sets), list(left.requests)) == ([], [])
        assert accounts.named(session, "peter").disabled


def test_what_waits_for_its_consumer_or_is_released_stays_as_it_is(place):
    offered(place)
    with place.catalog.database.writing() as session:
        draft = requests.draft(session, place.clara, "census", purpose="a draft")
        withdrawn = requested(place, session, "submitted")
        requests.withdraw(session, place.clara, withdrawn.id)
        released = requested(place, session, "running")
        requests.complete(session, place.paula, released, "d")
        left = handing_over.close(session, place.ada, "paula", leave=True)
        assert list(left.requests) == []
        states = [request.state for request in (draft, withdrawn, released)]
        assert states == ["draft", "withdrawn", "released"]


def test_nobody_waits_for_a_provider_who_was_closed_by_an_earlier_version(place):
    """Its data sets are still published, and requests for them in review."""
    offered(place)
    with place.catalog.database.writing() as session:
        made = requested(place, session, "in review")
        session.scalar(select(Account).where(Account.name == "paula")).disabled = True
        for ask in (
            lambda: requests.draft(session, place.clara, "census", purpose="x"),
            lambda: flow.ask_search(session, place.otto, made.id),
            lambda: flow.choose(session, place.otto, made.id, CONFIGURATION),
        ):
            with pytest.raises(WrongState, match="The account of paula") as refused:
                ask()
            assert "Ask an admin to hand the data set over" in refused.value.hint


def test_a_provider_of_data_sets_keeps_its_role(place):
    offered(place)
    with place.catalog.database.writing() as session:
        with pytest.raises(WrongState, match="paula provides census") as refused:
            accounts.change_roles(session, place.ada, "paula", ["consumer"])
        assert "aegis catalog hand-over paula PROVIDER --all" in refused.value.hint
        handing_over.hand_over_all(session, place.ada, "paula", "peter")
        assert accounts.change_roles(session, place.ada, "paula", ["consumer"]).roles == [
            "consumer"
        ]


def test_a_role_that_the_identity_provider_takes_is_named_as_the_reason(place):
    offered(place)
    with place.catalog.database.writing() as session:
        accounts.named(session, "paula").roles = []
        with pytest.raises(WrongState, match="paula, the provider of census, has lost the role"):
            requests.draft(session, place.clara, "census", purpose="x")


def differing(place) -> list[str]:
    """Return where state and log differ, apart from files, which these summaries have none of."""
    with place.catalog.database.reading() as session:
        assert session.scalars(select(LogEntry)).all()
        return [
            line
            for line in consistency.compare(session, place.catalog.objects)
            if "object" not in line
        ]
