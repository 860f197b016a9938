"""Passwords that change, links, second factors, roles, and data sets that are handed over."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256

import pytest
from argon2 import PasswordHasher
from catalog_support import KEY, PASSWORD, POLICY, offered
from sqlalchemy import select

from aegis.service.catalog import (
    NotAllowed,
    NotSignedIn,
    NotThere,
    WrongState,
    accounts,
    budget,
    consistency,
    data_sets,
    flow,
    guessing,
    handing_over,
    jobs,
    logbook,
    password_links,
    passwords,
    populations,
    requests,
    second_factor,
)
from aegis.service.catalog.access import Action
from aegis.service.catalog.errors import CatalogError, TooOften
from aegis.service.catalog.records import (
    Account,
    DataSet,
    Grant,
    Guess,
    HalfSignIn,
    LogEntry,
    OwnedPopulation,
    PasswordLink,
    SecondFactor,
    SignIn,
    Token,
    now,
)

FAST = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
OTHER = "another sentence that is long"
WRONG = "a guess that is long enough"


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """Hash quickly, and have no time pass for who waits: neither is what these tests are of."""
    moment = now()
    monkeypatch.setattr(guessing, "now", lambda: moment)
    monkeypatch.setattr(passwords, "_HASHER", FAST)


@pytest.fixture
def mia(place):
    """A consumer with a password, and who acts for her."""
    with place.catalog.database.writing() as session:
        made = accounts.create(session, "mia", ["consumer"], password=PASSWORD)
        place.actors["mia"] = accounts.actor_of(made)
    return place


def owner_of(session, population):
    """Return the name of the account that owns a population."""
    owned = session.get(OwnedPopulation, population)
    return session.get(Account, owned.owner_id).name


def entries(place, action: str) -> list[dict]:
    with place.catalog.database.reading() as session:
        return [e.detail for e in session.scalars(select(LogEntry).filter_by(action=action))]


def alive(place, secret: str) -> bool:
    with place.catalog.database.reading() as session:
        try:
            accounts.session_of(session, secret)
        except NotSignedIn:
            return False
        return True


# Passwords


def test_a_changed_password_ends_every_other_session_and_renews_this_one(mia):
    database = mia.catalog.database
    thief = accounts.sign_in(database, "mia", PASSWORD)
    present = accounts.sign_in(database, "mia", PASSWORD)
    opened = accounts.change_password(database, mia.mia, PASSWORD, OTHER, keep=present.secret)
    assert opened is not None
    assert alive(mia, opened.secret)
    assert not alive(mia, thief.secret)
    assert not alive(mia, present.secret), "a secret that leaked before is over, too"
    with pytest.raises(NotSignedIn):
        accounts.sign_in(database, "mia", PASSWORD)
    assert accounts.sign_in(database, "mia", OTHER)
    assert entries(mia, "password changed") == [
        {"account": "mia", "ended": {"sessions": 2, "tokens": 0}}
    ]


@pytest.mark.parametrize(
    ("given", "new", "error", "words"),
    [
        (WRONG, OTHER, NotAllowed, "wrong"),
        (PASSWORD, "short", CatalogError, "5 characters"),
        (PASSWORD, PASSWORD, CatalogError, "same as the current one"),
        (PASSWORD, "passwordpassword", CatalogError, "common"),
    ],
)
def test_a_password_stays_where_the_change_is_refused(mia, given, new, error, words):
    database = mia.catalog.database
    with pytest.raises(error, match=words):
        accounts.change_password(database, mia.mia, given, new)
    assert accounts.sign_in(database, "mia", PASSWORD)


def test_another_sessions_secret_is_not_kept(mia):
    """A foreign cookie beside one's own password keeps no foreign session alive or renewed."""
    with mia.catalog.database.writing() as session:
        accounts.create(session, "max", ["consumer"], password=PASSWORD)
    foreign = accounts.sign_in(mia.catalog.database, "max", PASSWORD)
    database = mia.catalog.database
    assert accounts.change_password(database, mia.mia, PASSWORD, OTHER, keep=foreign.secret) is None
    assert alive(mia, foreign.secret)


def test_who_signs_in_elsewhere_has_no_password_to_give(place):
    with pytest.raises(NotAllowed, match="no password here"):
        accounts.require_password(place.catalog.database, place.paula, "")


def test_sessions_and_tokens_end_on_request(mia):
    database = mia.catalog.database
    first, second = (accounts.sign_in(database, "mia", PASSWORD) for _ in range(2))
    with database.writing() as session:
        accounts.make_token(session, mia.mia, "t", ["browse"])
        assert len(accounts.sessions_of(session, mia.mia)) == 2
        told = accounts.end_own_sessions(session, mia.mia, keep=first.secret, tokens=True)
        assert told == {"sessions": 1, "tokens": 1}
    assert alive(mia, first.secret)
    assert not alive(mia, second.secret)
    with database.writing() as session:
        with pytest.raises(NotAllowed):
            accounts.end_sessions(session, mia.clara, "mia")
        accounts.end_sessions(session, mia.ada, "mia")
    assert not alive(mia, first.secret)


# Guessing


def guess(database, address: str, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(NotSignedIn):
            accounts.sign_in(database, "mia", WRONG, address=address)


def test_the_guesser_waits_and_the_account_does_not(mia):
    database = mia.catalog.database
    guess(database, "192.0.2.7", guessing.FREE)
    with pytest.raises(TooOften) as told:
        accounts.sign_in(database, "mia", PASSWORD, address="192.0.2.7")
    assert "Wait" in told.value.hint
    assert accounts.sign_in(database, "mia", PASSWORD, address="192.0.2.8")
    assert entries(mia, "sign-ins slowed") == [{"account": "mia", "wrong": guessing.FREE}]


def test_each_wait_is_twice_as_long_and_ends(mia):
    database = mia.catalog.database
    guess(database, "192.0.2.7", guessing.FREE)
    waits = []
    for _ in range(12):
        with database.writing() as session:
            (stored,) = session.scalars(select(Guess))
            waits.append((stored.wait_until - stored.changed).total_seconds())
            stored.wait_until = now() - timedelta(hours=1)
        guess(database, "192.0.2.7")
    assert waits[:4] == [15, 30, 60, 120]
    assert waits[-1] == 900
    with database.writing() as session:
        session.scalars(select(Guess)).one().wait_until = now() - timedelta(hours=1)
    assert accounts.sign_in(database, "mia", PASSWORD, address="192.0.2.7")
    with database.reading() as session:
        assert session.scalars(select(Guess)).all() == []


@pytest.mark.parametrize("name", ["mia", "nobody"])
def test_waiting_tells_not_whether_a_name_is_there(mia, name):
    database = mia.catalog.database
    for _ in range(guessing.FREE):
        with pytest.raises(NotSignedIn):
            accounts.sign_in(database, name, WRONG, address="192.0.2.7")
    with pytest.raises(TooOften) as told:
        accounts.sign_in(database, name, WRONG, address="192.0.2.7")
    assert told.value.message == "Too many wrong passwords for this name came from your network."


def test_guesses_at_the_same_time_are_all_counted(mia):
    """Each is counted before its password is compared, so no burst gets through."""
    database = mia.catalog.database

    def attempt(_: int) -> type[Exception]:
        try:
            accounts.sign_in(database, "mia", WRONG, address="192.0.2.7")
        except CatalogError as error:
            return type(error)
        raise AssertionError

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(attempt, range(16)))
    assert told.count(NotSignedIn) < 16
    assert TooOften in told


def test_a_network_of_ipv6_is_one_guesser(mia):
    database = mia.catalog.database
    for last in range(guessing.FREE):
        guess(database, f"2001:db8:1:2::{last}")
    with pytest.raises(TooOften):
        accounts.sign_in(database, "mia", PASSWORD, address="2001:db8:1:2:ffff::9")
    assert guessing.key_of("::ffff:192.0.2.7", "mia") == guessing.key_of("192.0.2.7", "Mia ")


def test_old_guesses_are_forgotten(mia):
    database = mia.catalog.database
    guess(database, "192.0.2.7", 4)
    with database.writing() as session:
        session.scalars(select(Guess)).one().changed = now() - timedelta(days=2)
    guess(database, "192.0.2.9")
    guess(database, "192.0.2.7")
    with database.reading() as session:
        assert sorted(one.failures for one in session.scalars(select(Guess))) == [1, 1]


def test_a_stolen_session_does_not_guess_the_password_either(mia):
    database = mia.catalog.database
    for _ in range(guessing.FREE):
        with pytest.raises(NotAllowed):
            accounts.require_password(database, mia.mia, WRONG, address="192.0.2.7")
    with pytest.raises(TooOften):
        accounts.require_password(database, mia.mia, PASSWORD, address="192.0.2.7")


# Links


def invited(place, name: str = "nina", roles=("consumer",)):
    with place.catalog.database.writing() as session:
        return password_links.invite(session, place.ada, name, roles)


def test_an_invitation_sets_a_password_once(place):
    made = invited(place)
    database = place.catalog.database
    assert made.kind == "invitation"
    assert made.address("https://x.example") == f"https://x.example/set-password#{made.secret}"
    with pytest.raises(NotSignedIn):
        accounts.sign_in(database, "nina", "")
    with pytest.raises(CatalogError, match="characters"):
        password_links.redeem(database, made.secret, "short")
    assert password_links.redeem(database, made.secret, PASSWORD) == "nina"
    assert accounts.sign_in(database, "nina", PASSWORD)
    with pytest.raises(NotThere, match="no longer valid"):
        password_links.redeem(database, made.secret, OTHER)
    with database.reading() as session:
        assert made.secret not in str([vars(e) for e in session.scalars(select(LogEntry))])


def test_one_link_used_by_two_at_the_same_time_counts_once(place):
    made = invited(place)

    def use(number: int) -> bool:
        try:
            password_links.redeem(place.catalog.database, made.secret, f"{PASSWORD} {number}")
        except NotThere:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(use, range(4))) == 1


@pytest.mark.parametrize("ended", ["another", "over", "closed"])
def test_a_link_that_ended_sets_nothing(place, ended):
    made = invited(place)
    with place.catalog.database.writing() as session:
        if ended == "another":
            assert password_links.reset(session, place.ada, "nina").kind == "invitation"
        elif ended == "over":
            session.scalars(select(PasswordLink)).one().expires = now() - timedelta(seconds=1)
        else:
            accounts.disable(session, place.ada, "nina")
    with pytest.raises(NotThere):
        password_links.redeem(place.catalog.database, made.secret, PASSWORD)


def test_a_reset_ends_all_sessions_and_leaves_the_second_factor(mia):
    database = mia.catalog.database
    secret = enrolled(mia)
    opened = accounts.complete(
        database,
        accounts.sign_in(database, "mia", PASSWORD).secret,
        second_factor.code_at(secret, second_factor.step_now() + 1),
    )
    with database.writing() as session:
        made = password_links.reset(session, mia.ada, "mia")
    assert made.kind == "reset"
    assert accounts.sign_in(database, "mia", PASSWORD), "the present one counts until then"
    password_links.redeem(database, made.secret, OTHER)
    assert not alive(mia, opened.secret)
    assert isinstance(accounts.sign_in(database, "mia", OTHER), accounts.HalfOpen)


@pytest.mark.parametrize("name", ["paula", "otto", "anna", "clara", "aude"])
def test_only_an_admin_makes_links(mia, name):
    with mia.catalog.database.writing() as session:
        for refused in (
            lambda s, who: password_links.reset(s, who, "mia"),
            lambda s, who: password_links.invite(s, who, "new", ["admin"]),
            lambda s, who: accounts.reopen(s, who, "mia"),
            lambda s, who: handing_over.hand_over_all(s, who, "paula", "peter"),
        ):
            with pytest.raises(NotAllowed):
                refused(session, mia.actors[name])


def test_no_link_is_made_for_who_signs_in_elsewhere_or_is_closed(mia):
    with mia.catalog.database.writing() as session:
        accounts.sign_in_elsewhere(session, "issuer u-1", "olga")
        with pytest.raises(WrongState, match="identity provider"):
            password_links.reset(session, mia.ada, "olga")
        accounts.disable(session, mia.ada, "mia")
        with pytest.raises(WrongState, match="closed"):
            password_links.reset(session, mia.ada, "mia")


# Second factors

RFC_6238 = {59: "287082", 1111111109: "081804", 1234567890: "005924", 20000000000: "353130"}
"""Appendix B, SHA-1, the last six of eight digits."""


@pytest.mark.parametrize("moment", RFC_6238)
def test_codes_are_those_of_rfc_6238(moment):
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # 12345678901234567890
    assert second_factor.code_at(secret, moment // 30) == RFC_6238[moment]


@pytest.fixture
def clock(monkeypatch):
    """The time step of now, which a test moves."""
    step = [60_000_000]
    monkeypatch.setattr(second_factor, "step_now", lambda: step[0])
    return step


def enrolled(place) -> str:
    """Turn mia's second factor on; return its key."""
    with place.catalog.database.writing() as session:
        account = accounts.account_of(session, place.mia)
        begun = second_factor.begin(session, account, "aegis.example.org")
        code = second_factor.code_at(begun.secret, second_factor.step_now())
        codes = second_factor.confirm(session, account, code)
        place.actors["recovery"] = codes
    return begun.secret


def signed_in(place, code: str):
    database = place.catalog.database
    return accounts.complete(database, accounts.sign_in(database, "mia", PASSWORD).secret, code)


def test_a_second_factor_counts_once_it_is_confirmed(mia, clock):
    database = mia.catalog.database
    with database.writing() as session:
        account = accounts.account_of(session, mia.mia)
        begun = second_factor.begin(session, account, "aegis.example.org")
        assert begun.address == (
            f"otpauth://totp/aegis.example.org:mia?secret={begun.secret}&issuer=aegis.example.org"
        )
    with pytest.raises(CatalogError, match="does not belong to this key"):
        accounts.confirm_factor(database, mia.mia, "000000x")
    assert isinstance(accounts.sign_in(database, "mia", PASSWORD), accounts.OpenSession)
    secret = enrolled(mia)
    half = accounts.sign_in(database, "mia", PASSWORD)
    assert isinstance(half, accounts.HalfOpen)
    assert not alive(mia, half.secret), "half a sign-in is no session"
    clock[0] += 1
    opened = accounts.complete(database, half.secret, second_factor.code_at(secret, clock[0]))
    assert alive(mia, opened.secret)
    with pytest.raises(NotSignedIn, match="has expired"):
        accounts.complete(database, half.secret, second_factor.code_at(secret, clock[0] + 1))


def test_who_took_a_session_over_does_not_guess_the_code_that_turns_it_on(mia, clock):
    """A key that was begun and left lay there, and a million codes could be tried; the thief got the recovery codes."""
    database = mia.catalog.database
    with database.writing() as session:
        begun = second_factor.begin(
            session, accounts.account_of(session, mia.mia), "aegis.example.org"
        )
    for _ in range(5):
        with pytest.raises(CatalogError, match="does not belong to this key"):
            accounts.confirm_factor(database, mia.mia, "000000x")
    with pytest.raises(WrongState, match="You have not started to set up a second factor"):
        accounts.confirm_factor(database, mia.mia, second_factor.code_at(begun.secret, clock[0]))
    assert isinstance(accounts.sign_in(database, "mia", PASSWORD), accounts.OpenSession)
    assert [one["wrong"] for one in entries(mia, "codes refused")] == [5]
    assert enrolled(mia)


def test_a_code_is_taken_once(mia, clock):
    secret = enrolled(mia)
    with pytest.raises(NotSignedIn, match="The code is wrong"):
        signed_in(mia, second_factor.code_at(secret, clock[0]))  # the one that confirmed it
    clock[0] += 1
    code = second_factor.code_at(secret, clock[0])
    assert signed_in(mia, f" {code[:3]} {code[3:]} ")
    with pytest.raises(NotSignedIn, match="The code is wrong"):
        signed_in(mia, code)


@pytest.mark.parametrize(
    ("drift", "taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)]
)
def test_clocks_may_differ_by_half_a_minute(mia, clock, drift, taken):
    secret = enrolled(mia)
    clock[0] += 10
    code = second_factor.code_at(secret, clock[0] + drift)
    if taken:
        assert signed_in(mia, code)
    else:
        with pytest.raises(NotSignedIn):
            signed_in(mia, code)


def test_guessed_codes_end_the_codes_for_a_while_and_recovery_codes_go_on(mia, clock):
    secret = enrolled(mia)
    clock[0] += 5
    for _ in range(5):
        with pytest.raises(NotSignedIn):
            signed_in(mia, "not one")
    right = second_factor.code_at(secret, clock[0])
    with pytest.raises(NotSignedIn):
        signed_in(mia, right)
    assert entries(mia, "codes refused") == [{"account": "mia", "wrong": 5}]
    assert signed_in(mia, mia.actors["recovery"][0])
    assert signed_in(mia, right), "who has shown a recovery code is taken again"


def test_codes_are_taken_again_after_a_while(mia, clock):
    secret = enrolled(mia)
    clock[0] += 5
    for _ in range(5):
        with pytest.raises(NotSignedIn):
            signed_in(mia, "not one")
    with mia.catalog.database.writing() as session:
        session.scalars(select(SecondFactor)).one().refused_until = now() - timedelta(seconds=1)
    assert signed_in(mia, second_factor.code_at(secret, clock[0]))


def test_recovery_codes_count_once_and_end_with_others(mia, clock):
    enrolled(mia)
    first, second, *rest = mia.actors["recovery"]
    assert len(rest) == 8
    assert signed_in(mia, first.upper().replace("-", " "))
    with pytest.raises(NotSignedIn):
        signed_in(mia, first)
    with mia.catalog.database.writing() as session:
        account = accounts.account_of(session, mia.mia)
        assert second_factor.recovery_codes_left(session, account) == 9
        stored = session.scalars(select(SecondFactor)).one()
        kept = [one.split(":") for one in stored.recovery]
        assert len({salt for salt, _ in kept}) == 9, "each code has a salt"
        plain = [code.replace("-", "") for code in (second, *rest)]
        salted = [f"{salt}:{code}" for (salt, _), code in zip(kept, plain, strict=True)]
        assert [sha256(one.encode()).hexdigest() for one in salted] == [d for _, d in kept]
        assert {len(base64.b32decode(f"{code.upper()}======")) * 8 for code in plain} == {128}
        renewed = second_factor.renew_recovery(session, account)
    with pytest.raises(NotSignedIn):
        signed_in(mia, second)
    assert signed_in(mia, renewed[0])
    assert entries(mia, "recovery codes made") == [{"account": "mia", "old": 9, "new": 10}]
    assert clock


def test_a_code_of_another_salt_is_none(mia, clock):
    """A hash that is copied to another entry fits no code: the salt is part of it."""
    enrolled(mia)
    with mia.catalog.database.writing() as session:
        stored = session.scalars(select(SecondFactor)).one()
        (_, digest), (salt, _) = (one.split(":") for one in stored.recovery[:2])
        stored.recovery = [f"{salt}:{digest}"]
    for code in mia.actors["recovery"][:2]:
        with pytest.raises(NotSignedIn):
            signed_in(mia, code)
    assert clock


def test_half_a_sign_in_ends_by_time_and_with_the_account(mia, clock):
    secret = enrolled(mia)
    database = mia.catalog.database
    clock[0] += 2
    code = second_factor.code_at(secret, clock[0])
    half = accounts.sign_in(database, "mia", PASSWORD)
    with database.writing() as session:
        session.scalars(select(HalfSignIn)).one().created = now() - timedelta(minutes=6)
    with pytest.raises(NotSignedIn, match="has expired"):
        accounts.complete(database, half.secret, code)
    half = accounts.sign_in(database, "mia", PASSWORD)
    with database.writing() as session:
        accounts.disable(session, mia.ada, "mia")
    with pytest.raises(NotSignedIn, match="has expired"):
        accounts.complete(database, half.secret, code)


def test_a_second_factor_is_not_replaced_unseen_and_can_be_removed(mia, clock):
    enrolled(mia)
    with mia.catalog.database.writing() as session:
        account = accounts.account_of(session, mia.mia)
        with pytest.raises(WrongState, match="already have a second factor"):
            second_factor.begin(session, account, "x")
        second_factor.remove(session, account, "ada")
        with pytest.raises(WrongState):
            second_factor.remove(session, account, "ada")
    assert isinstance(accounts.sign_in(mia.catalog.database, "mia", PASSWORD), accounts.OpenSession)
    assert entries(mia, "second factor off") == [{"account": "mia", "old": True, "new": False}]
    assert clock


# Roles


def test_the_last_admin_stays(place):
    with place.catalog.database.writing() as session:
        accounts.create(session, "root", ["admin"], password=PASSWORD)
        root = accounts.actor_of(accounts.named(session, "root"))
        for attempt in (
            lambda: accounts.disable(session, root, "root"),
            lambda: accounts.change_roles(session, root, "root", ["consumer"]),
            lambda: accounts.disable(session, place.ada, "root"),
        ):
            with pytest.raises(WrongState, match="last admin who can sign in"):
                attempt()
        password_links.invite(session, root, "next", ["admin"])
        with pytest.raises(WrongState):  # who was invited cannot sign in yet
            accounts.disable(session, root, "root")
        accounts.create(session, "second", ["admin"], password=PASSWORD)
        accounts.change_roles(session, root, "root", ["consumer"])
        second = accounts.actor_of(accounts.named(session, "second"))
        with pytest.raises(WrongState):
            accounts.change_roles(session, second, "second", [])
        assert entries_of(session, "roles changed")[-1]["old"] == ["admin"]


def entries_of(session, action: str) -> list[dict]:
    return [e.detail for e in session.scalars(select(LogEntry).filter_by(action=action))]


def test_two_admins_who_demote_each_other_leave_one(place):
    database = place.catalog.database
    with database.writing() as session:
        for name in ("one", "two"):
            accounts.create(session, name, ["admin"], password=PASSWORD)
        actors = {n: accounts.actor_of(accounts.named(session, n)) for n in ("one", "two")}

    def demote(pair: tuple[str, str]) -> bool:
        try:
            with database.writing() as session:
                accounts.change_roles(session, actors[pair[0]], pair[1], [])
        except WrongState:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(demote, (("one", "two"), ("two", "one")))) == 1


def test_a_closed_account_comes_back_without_its_tokens(mia):
    database = mia.catalog.database
    opened = accounts.sign_in(database, "mia", PASSWORD)
    with database.writing() as session:
        _, secret = accounts.make_token(session, mia.mia, "t", ["browse"])
        accounts.disable(session, mia.ada, "mia")
        with pytest.raises(WrongState):
            accounts.reopen(session, mia.ada, "clara")
        accounts.reopen(session, mia.ada, "mia")
        with pytest.raises(NotSignedIn):
            accounts.token_actor(session, secret)
        assert session.scalars(select(Token)).one().revoked is not None
        assert session.scalars(select(SignIn)).all() == []
    assert not alive(mia, opened.secret)
    assert accounts.sign_in(database, "mia", PASSWORD)
    assert entries(mia, "account reopened") == [
        {"account": "mia", "old": True, "new": False, "roles": ["consumer"]}
    ]
    assert differing(mia) == []


def test_roles_that_a_provider_claims_follow_each_sign_in(place):
    with place.catalog.database.writing() as session:
        for roles in (["operator"], ["operator", "auditor"], []):
            accounts.sign_in_elsewhere(session, "issuer u-1", "olga", roles)
            assert accounts.named(session, "olga").roles == sorted(roles)
        with pytest.raises(WrongState, match="identity provider says"):
            accounts.change_roles(session, place.ada, "olga", ["admin"])
        told = [(e["old"], e["roles"]) for e in entries_of(session, "roles changed")]
        assert told == [
            ([], ["operator"]),
            (["operator"], ["auditor", "operator"]),
            (["auditor", "operator"], []),
        ]
        accounts.sign_in_elsewhere(session, "issuer u-1", "olga")
        accounts.change_roles(session, place.ada, "olga", ["consumer"])
    assert differing(place) == []


def test_a_name_has_no_slash(place):
    with place.catalog.database.writing() as session:
        with pytest.raises(CatalogError, match="cannot be an account") as told:
            accounts.create(session, "a/b", [])
        assert "no slash" in told.value.hint
        accounts.sign_in_elsewhere(session, "issuer u-2", "a/b")
        assert accounts.named(session, "ab")


def test_a_name_of_dots_from_an_identity_provider_becomes_another(place):
    with place.catalog.database.writing() as session:
        with pytest.raises(CatalogError, match="cannot be an account"):
            accounts.create(session, "..", [])
        accounts.sign_in_elsewhere(session, "issuer u-3", "..")
        assert accounts.named(session, "somebody")


def test_accounts_are_searched_by_name_and_role(place):
    with place.catalog.database.reading() as session:

        def found(words: str) -> list[str]:
            return [one.name for one in accounts.listed(session, place.ada, words)]

        assert found("AN") == ["anna"]
        assert found("operator") == ["boris", "otto"]
        assert found("operator bo") == ["boris"]
        assert found("bo " * 7 + "none") == []
        assert found("bo " * 8 + "none") == ["boris"]  # more words than it looks for
        assert found("%") == []


# Handing over


def differing(place) -> list[str]:
    with place.catalog.database.reading() as session:
        found = consistency.compare(session, place.catalog.objects)
    return [line for line in found if not line.startswith("object none")]


def test_a_data_set_is_handed_over_with_its_population(place):
    offered(place)
    with place.catalog.database.writing() as session:
        handing_over.hand_over(session, place.paula, "census", "peter", public_key="cd" * 32)
    with place.catalog.database.writing() as session:
        with pytest.raises(NotThere):
            handing_over.hand_over(session, place.paula, "census", "paula")
        changed = data_sets.change(session, place.peter, "census", days=7)
        assert (changed.public_key, changed.former_keys) == ("cd" * 32, [KEY])
        assert owner_of(session, "census") == "peter"
        (told,) = entries_of(session, "data set handed over")
        assert told["old"] == {"provider": "paula", "public_key": KEY}
        assert told["new"] == {"provider": "peter", "public_key": "cd" * 32}
    assert differing(place) == []


def test_an_admin_hands_over_all_of_who_left(place):
    offered(place)
    offered(place, "second", population="census")
    with place.catalog.database.writing() as session:
        accounts.disable(session, place.ada, "paula")
        assert handing_over.hand_over_all(session, place.ada, "paula", "peter") == [
            "census",
            "second",
        ]
        assert owner_of(session, "census") == "peter"
        assert not session.scalar(select(Grant).where(Grant.account_id == place.peter.account))
    assert differing(place) == []


def test_no_job_and_no_right_is_pushed_upon_another_provider(place):
    """Paula asked for a summary, made otto its operator, and let the agent of peter make it."""
    offered(place, ceiling=4.0)
    with place.catalog.database.writing() as session:
        how = {"protect": "noise", "epsilon": 3.0, "delta": 1e-6, "threshold": 11}
        job = flow.ask_summary(session, place.paula, "census", POLICY, **how)
        made = requests.draft(session, place.clara, "census", purpose="x")
        requests.submit(session, place.clara, made.id)
        handing_over.hand_over(session, place.paula, "census", "peter")
        assert (job.state, flow.claim(session, "a", jobs.AGENT, provider=place.peter.account)) == (
            "cancelled",
            None,
        )
        assert budget.balance(session, session.get(DataSet, "census")).reserved == 0
        assert not session.scalars(select(Grant)).all()
        for who in (place.otto, place.anna, place.paula):
            with pytest.raises(NotThere):
                data_sets.authorised(session, who, Action.STUDY, "census")
        handing_over.hand_over(session, place.ada, "census", "paula")
        data_sets.grant(session, place.paula, "census", "otto", "operator")
        job = flow.ask_summary(session, place.paula, "census", POLICY, **how)
        handing_over.hand_over(session, place.ada, "census", "peter")
        assert (job.state, len(session.scalars(select(Grant)).all())) == ("queued", 1)
    assert differing(place) == []


@pytest.mark.parametrize("name", ["otto", "anna", "clara", "aude", "peter"])
def test_nobody_else_hands_a_data_set_over(place, name):
    offered(place)
    with (
        place.catalog.database.writing() as session,
        pytest.raises((NotAllowed, NotThere)),
    ):
        handing_over.hand_over(session, place.actors[name], "census", "peter")


@pytest.mark.parametrize(
    ("to", "error"), [("clara", WrongState), ("paula", WrongState), ("nobody", NotThere)]
)
def test_a_data_set_goes_to_an_open_provider_alone(place, to, error):
    offered(place)
    with place.catalog.database.writing() as session, pytest.raises(error):
        handing_over.hand_over(session, place.paula, "census", to)


def test_the_provider_who_gets_it_does_not_stay_its_second_person(place):
    offered(place)
    with place.catalog.database.writing() as session:
        accounts.change_roles(session, place.ada, "anna", ["approver", "provider"])
        handing_over.hand_over(session, place.paula, "census", "anna")
        assert not session.scalars(select(Grant).where(Grant.role == "approver")).all()
    assert differing(place) == []


def test_a_foreign_population_is_not_entered_by_handing_over(place):
    offered(place)
    with place.catalog.database.writing() as session:
        populations.admit(session, place.paula, "census", "peter")
        data_sets.register(
            session, place.peter, "mine", source="x", public_key=KEY, population="census"
        )
        accounts.create(session, "pia", ["provider"])
        with pytest.raises(NotAllowed, match="belongs to another provider"):
            handing_over.hand_over(session, place.peter, "mine", "pia")


def test_the_owner_of_the_population_gets_a_data_set_of_it(place):
    offered(place)
    with place.catalog.database.writing() as session:
        populations.admit(session, place.paula, "census", "peter")
        data_sets.register(
            session, place.peter, "mine", source="x", public_key=KEY, population="census"
        )
        handing_over.hand_over(session, place.peter, "mine", "paula")
        assert owner_of(session, "census") == "paula"
    assert differing(place) == []


def test_who_is_acted_on_reads_of_it_in_the_log(mia):
    with mia.catalog.database.writing() as session:
        password_links.reset(session, mia.ada, "mia")
    with mia.catalog.database.reading() as session:
        read, _ = logbook.listed(session, mia.mia)
        assert "reset link made" in [entry.action for entry in read]
        other, _ = logbook.listed(session, mia.clara)
        assert "reset link made" not in [entry.action for entry in other]
