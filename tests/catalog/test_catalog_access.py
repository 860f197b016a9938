"""Who may do what: the whole table, walked."""

from __future__ import annotations

from itertools import product

import pytest

from aegis.catalog.access import (
    PERMISSIONS,
    AccountRole,
    ActedOn,
    Action,
    Actor,
    Tie,
    authorise,
    may,
)
from aegis.catalog.errors import NotAllowed

SUBJECTS = {
    "nothing": ActedOn(),
    "own data set": ActedOn(provider="me"),
    "own request": ActedOn(provider="you", consumer="me", granted=frozenset(AccountRole)),
    "granted": ActedOn(provider="you", consumer="you", granted=frozenset(AccountRole)),
    "visible": ActedOn(provider="you", visible=True),
    "other": ActedOn(provider="you", consumer="you"),
}


def allowed(role: AccountRole, tie: Tie, subject: ActedOn) -> bool:
    """Say by the words of the table what it allows: an implementation of its own."""
    match tie:
        case Tie.ANY:
            return True
        case Tie.VISIBLE:
            return subject.visible
        case Tie.ASSIGNED:
            return role in subject.granted and subject.consumer != "me"
        case Tie.OWN:
            owner = subject.consumer if role is AccountRole.CONSUMER else subject.provider
            return owner == "me"


@pytest.mark.parametrize(("role", "action"), list(product(AccountRole, Action)))
def test_each_role_may_what_the_table_says_and_nothing_else(role, action):
    actor = Actor("me", "me", frozenset({role}))
    for subject in SUBJECTS.values():
        tie = PERMISSIONS[action].get(role)
        assert may(actor, action, subject) is (tie is not None and allowed(role, tie, subject))


def test_every_action_has_its_row():
    assert set(PERMISSIONS) == set(Action)


def test_nobody_without_a_role_may_anything():
    actor = Actor("me", "me", frozenset())
    for action in Action:
        with pytest.raises(NotAllowed, match="may not"):
            authorise(actor, action, SUBJECTS["granted"])


def test_a_token_only_narrows():
    person = Actor("me", "me", frozenset({AccountRole.OPERATOR}))
    for action in Action:
        token = Actor("me", "me", frozenset({AccountRole.OPERATOR}), frozenset({str(action)}))
        for other in Action:
            expected = other is action and may(person, other, SUBJECTS["granted"])
            assert may(token, other, SUBJECTS["granted"]) is expected


def test_operators_decide_on_no_request_of_their_own():
    actor = Actor(
        "me", "me", frozenset({AccountRole.OPERATOR, AccountRole.APPROVER, AccountRole.CONSUMER})
    )
    for action in (Action.REVIEW, Action.APPROVE, Action.REJECT, Action.RUN, Action.REVOKE):
        assert not may(actor, action, SUBJECTS["own request"])
        assert may(actor, action, SUBJECTS["granted"])
