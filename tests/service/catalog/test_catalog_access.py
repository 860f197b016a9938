"""Who may do what: the whole table, walked."""

from __future__ import annotations

from itertools import product

import pytest

from aegis.service.catalog import errors
from aegis.service.catalog.access import (
    PERMISSIONS,
    AccountRole,
    ActedOn,
    Action,
    Actor,
    Tie,
    authorise,
    may,
    scopes_of,
)
from aegis.service.catalog.errors import CatalogError, NotAllowed

SUBJECTS = {
    "nothing": ActedOn(),
    "own data set": ActedOn(provider="me"),
    "own request": ActedOn(provider="you", consumer="me", granted=frozenset(AccountRole)),
    "granted": ActedOn(provider="you", consumer="you", granted=frozenset(AccountRole)),
    "visible": ActedOn(provider="you", visible=True),
    "other": ActedOn(provider="you", consumer="you"),
}


TABLE = """
                  provider  operator  approver  consumer  auditor  admin
register          any       -         -         -         -        -
edit-data-set     own       assigned  -         -         -        -
publish           own       -         -         -         -        -
upload-summary    own       -         -         -         -        -
browse            own       assigned  assigned  visible   any      any
study             own       assigned  assigned  -         -        -
request           -         -         -         visible   -        -
change-request    -         -         -         own       -        -
see-request       own       assigned  assigned  own       any      -
review            -         assigned  -         -         -        -
approve           -         assigned  assigned  -         -        -
reject            own       assigned  assigned  -         -        -
run               own       assigned  -         -         -        -
work              own       -         -         -         -        -
download          -         -         -         own       -        -
verify            own       assigned  assigned  own       any      -
revoke            own       assigned  assigned  -         -        -
see-ledger        own       assigned  assigned  -         any      -
see-log           own       assigned  assigned  own       any      any
accounts          -         -         -         -         -        any
own-tokens        any       any       any       any       any      any
own-account       any       any       any       any       any      any
hand-over         own       -         -         -         -        any
operate           -         -         -         -         any      any
"""
"""Who may do what, by the tie that it takes: written here, not read from the product."""


def table() -> dict[tuple[str, str], str]:
    """Return the tie of each action and role; `-` where the role may not."""
    header, *lines = TABLE.strip().splitlines()
    roles = header.split()
    return {
        (action, role): tie
        for action, *ties in map(str.split, lines)
        for role, tie in zip(roles, ties, strict=True)
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
        case Tie.OWNER:
            owner = subject.consumer if role is AccountRole.CONSUMER else subject.provider
            return owner == "me"


@pytest.mark.parametrize(("role", "action"), list(product(AccountRole, Action)))
def test_each_role_may_what_the_table_says_and_nothing_else(role, action):
    actor = Actor("me", "me", frozenset({role}))
    for subject in SUBJECTS.values():
        tie = table()[action, role]
        assert may(actor, action, subject) is (tie != "-" and allowed(role, Tie(tie), subject))


@pytest.mark.parametrize("role", AccountRole)
def test_a_token_may_have_what_the_table_gives_its_maker(role):
    permitted = [str(action) for action in Action if table()[action, role] != "-"]
    assert scopes_of(Actor("me", "me", frozenset({role}))) == permitted


def test_a_thing_is_not_visible_unless_it_is_said():
    consumer = Actor("me", "me", frozenset({AccountRole.CONSUMER}))
    assert not may(consumer, Action.BROWSE, ActedOn(provider="you"))
    assert not may(consumer, Action.BROWSE)


def test_a_refusal_says_whom_it_is_for():
    operator = frozenset({AccountRole.OPERATOR})
    with pytest.raises(
        NotAllowed, match="This token of me does not have the right approve"
    ) as refused:
        authorise(Actor("me", "me", operator, frozenset({"run", "browse"})), Action.APPROVE)
    assert "This one has: browse, run." in str(refused.value.hint)
    consumer = Actor("me", "me", frozenset({AccountRole.CONSUMER}), frozenset({"browse"}))
    with pytest.raises(NotAllowed, match="me lacks the right 'accounts' here") as refused:
        authorise(consumer, Action.ACCOUNTS)
    assert refused.value.hint == "These roles have it: admin."
    with pytest.raises(NotAllowed, match="me lacks the right 'own-tokens'") as refused:
        authorise(Actor("me", "me", frozenset()), Action.OWN_TOKENS)
    assert "provider, operator, approver" in str(refused.value.hint)
    with pytest.raises(NotAllowed, match="me lacks the right 'hand-over'") as refused:
        authorise(Actor("me", "me", operator), Action.HAND_OVER)
    assert refused.value.hint == "These roles have it: provider, admin."


def test_the_table_has_every_action_and_role():
    assert set(table()) == set(product(Action, AccountRole))
    assert set(PERMISSIONS) == set(Action)


def test_nobody_without_a_role_may_anything():
    actor = Actor("me", "me", frozenset())
    for action in Action:
        with pytest.raises(NotAllowed, match="lacks the right"):
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


def test_each_refusal_has_the_status_that_callers_know() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert {kind.__name__: kind.status for kind in kinds if issubclass(kind, CatalogError)} == {
        "CatalogError": 400,
        "NotSignedIn": 401,
        "NotAllowed": 403,
        "NotThere": 404,
        "WrongState": 409,
        "TooLarge": 413,
        "TooOften": 429,
    }
