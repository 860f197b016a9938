"""Passwords, sessions and tokens."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from catalog_support import PASSWORD, offered
from sqlalchemy import select

from aegis.service.catalog import (
    NotAllowed,
    NotSignedIn,
    accounts,
    data_sets,
    password_links,
    passwords,
)
from aegis.service.catalog.access import AccountRole, ActedOn, Action, may, scopes_of
from aegis.service.catalog.errors import CatalogError, NotThere
from aegis.service.catalog.records import Account, SignIn, Token, now


@pytest.fixture
def mia(place):
    with place.catalog.database.writing() as session:
        accounts.create(session, "mia", ["consumer"], password=PASSWORD)
    return place


@pytest.mark.parametrize(
    ("password", "word"),
    [("short", "characters"), ("passwordpassword", "common"), ("x" * 300, "too long")],
)
def test_weak_passwords_are_refused(place, password, word):
    with (
        pytest.raises(CatalogError, match=word),
        place.catalog.database.writing() as session,
    ):
        accounts.create(session, "mia", ["consumer"], password=password)


@pytest.mark.parametrize(
    "password", ["Aegis-mia-2026!", "mia.mia.mia.mia.1", "service-provider", "AegisCatalog2026"]
)
def test_a_password_of_the_words_of_its_context_is_refused(place, password):
    """Wherever one is set: by an admin, by its person, by a link."""
    database = place.catalog.database
    with (
        pytest.raises(CatalogError, match="made of your name"),
        database.writing() as session,
    ):
        accounts.create(session, "mia", ["consumer"], password=password)
    with database.writing() as session:
        account = accounts.create(session, "mia", ["consumer"], password=PASSWORD)
        by, ada = accounts.actor_of(account), place.actors["ada"]
        link = password_links.reset(session, ada, "mia")
    with pytest.raises(CatalogError, match="made of your name"):
        accounts.change_password(database, by, PASSWORD, password)
    with pytest.raises(CatalogError, match="made of your name"):
        password_links.redeem(database, link.secret, password)
    assert password_links.redeem(database, link.secret, PASSWORD) == "mia"


@pytest.mark.parametrize(
    "password",
    ["83920475610283", "mia reads in the evening", "catalogue of a garden", "!!?-!!?-!!?-"],
)
def test_a_password_of_any_composition_is_taken(place, password):
    with place.catalog.database.writing() as session:
        assert accounts.create(session, "mia", ["consumer"], password=password).password


def test_a_session_opens_and_ends(mia):
    database = mia.catalog.database
    opened = accounts.sign_in(database, "mia", PASSWORD)
    with database.writing() as session:
        assert accounts.session_of(session, opened.secret).account.name == "mia"
        stored = session.scalars(select(SignIn)).one()
        assert opened.secret not in (stored.hash, stored.form_key)
        accounts.sign_out(session, opened.secret)
        with pytest.raises(NotSignedIn):
            accounts.session_of(session, opened.secret)


@pytest.mark.parametrize("field", ["seen", "created"])
def test_sessions_end_by_themselves(mia, field):
    database = mia.catalog.database
    opened = accounts.sign_in(database, "mia", PASSWORD)
    with database.writing() as session:
        stored = session.scalars(select(SignIn)).one()
        setattr(stored, field, now() - timedelta(hours=13))
        session.flush()
        with pytest.raises(NotSignedIn, match="ended"):
            accounts.session_of(session, opened.secret)


def test_each_sign_in_has_a_secret_of_its_own(mia):
    first = accounts.sign_in(mia.catalog.database, "mia", PASSWORD)
    second = accounts.sign_in(mia.catalog.database, "mia", PASSWORD)
    assert first.secret != second.secret
    assert first.form_key != second.form_key


@pytest.mark.parametrize("name", ["mia", "nobody"])
def test_wrong_names_and_passwords_are_answered_alike(mia, name):
    with pytest.raises(NotSignedIn) as told:
        accounts.sign_in(mia.catalog.database, name, "another sentence of words")
    assert told.value.message == "The name or the password is wrong."


def test_a_closed_account_is_out_at_once(mia):
    database = mia.catalog.database
    opened = accounts.sign_in(database, "mia", PASSWORD)
    with database.writing() as session:
        accounts.disable(session, mia.ada, "mia")
        with pytest.raises(NotSignedIn):
            accounts.session_of(session, opened.secret)
    with pytest.raises(NotSignedIn):
        accounts.sign_in(database, "mia", PASSWORD)


def test_only_admins_make_accounts(place):
    with place.catalog.database.writing() as session:
        for name in ("paula", "otto", "clara", "aude"):
            with pytest.raises(NotAllowed):
                accounts.create(session, "new", ["admin"], by=place.actors[name])
        assert accounts.create(session, "new", ["auditor"], by=place.ada).roles == ["auditor"]
        with pytest.raises(CatalogError, match="already"):
            accounts.create(session, "new", ["auditor"], by=place.ada)
        for name in ("NEW", "ｎｅｗ"):  # in the log, nobody tells it from the other
            with pytest.raises(CatalogError, match="differs only in capitals"):
                accounts.create(session, name, ["auditor"], by=place.ada)
        with pytest.raises(CatalogError, match="cannot be an account's name"):
            accounts.create(session, "..", ["auditor"], by=place.ada)  # part of a path
        with pytest.raises(CatalogError, match="Unknown role"):
            accounts.create(session, "other", ["king"], by=place.ada)


@pytest.mark.parametrize(
    "name",
    [
        "p\N{CYRILLIC SMALL LETTER A}ula",
        "paul\N{GREEK SMALL LETTER ALPHA}",
        "paula \N{CYRILLIC SMALL LETTER ES}",
        "paula\N{VARIATION SELECTOR-16}",
        "pau\N{COMBINING GRAPHEME JOINER}la",
        "paula\N{HANGUL FILLER}",
    ],
)
def test_no_name_mixes_alphabets_or_hides_characters(place, name):
    """Somebody could approve requests of an account that looks like a known one."""
    with place.catalog.database.writing() as session:
        with pytest.raises(CatalogError, match="mixes alphabets or contains invisible") as refused:
            accounts.create(session, name, ["consumer"], by=place.ada)
        assert "\\" in refused.value.message  # names the other letter, which looks the same
        accounts.sign_in_elsewhere(session, "issuer u-1", name)
        assert accounts.named(session, "somebody")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("copa", "сора"),  # Cyrillic
        ("сора", "cOpa"),
        ("BEPA", "ВЕРА"),
        ("NINA", "ΝΙΝΑ"),  # Greek
        ("ΕΤΑ", "eta"),
        ("ΟΑΕ", "ОАЕ"),  # Greek and Cyrillic
        ("Côpé", "Со\N{COMBINING CIRCUMFLEX ACCENT}ре\N{COMBINING ACUTE ACCENT}"),
        ("user1", "userl"),
    ],
)
def test_no_name_looks_like_another_in_another_alphabet(place, first, second):
    with place.catalog.database.writing() as session:
        accounts.create(session, first, ["consumer"], by=place.ada)
        with pytest.raises(CatalogError, match="letters and digits that look alike"):
            accounts.create(session, second, ["consumer"], by=place.ada)
        accounts.sign_in_elsewhere(session, "issuer u-1", second)
        names = [account.name for account in accounts.listed(session, place.ada, second)]
        assert any(re.fullmatch(rf"{second} \d+", name) for name in names)


@pytest.mark.parametrize(
    "name", ["Зоя Иванова", "Ελένη", "山田 はな", "José-2", "Kim 김 (IT)", "राम"]
)
def test_names_in_one_alphabet_are_names(place, name):
    with place.catalog.database.writing() as session:
        assert accounts.create(session, name, ["consumer"], by=place.ada).name == name


def test_tokens_are_narrow_hashed_and_end(place):
    with place.catalog.database.writing() as session:
        token, secret = accounts.make_token(session, place.paula, "agent", ["work"])
        assert secret not in str(vars(session.get(Token, token.id)))
        actor = accounts.token_actor(session, secret)
        assert actor.scopes == frozenset({"work"})
        with pytest.raises(NotAllowed):
            accounts.make_token(session, place.paula, "wider", [str(Action.ACCOUNTS)])
        with pytest.raises(NotAllowed):
            accounts.make_token(session, actor, "child", ["publish"])
        with pytest.raises(CatalogError, match="Unknown rights"):
            accounts.make_token(session, place.paula, "odd", ["fly"])
        token.expires = now() - timedelta(seconds=1)
        session.flush()
        with pytest.raises(NotSignedIn):
            accounts.token_actor(session, secret)


def test_a_revoked_token_is_over_and_nobody_elses_can_be(place):
    with place.catalog.database.writing() as session:
        token, secret = accounts.make_token(session, place.paula, "agent", ["work"])
        with pytest.raises(NotThere):
            accounts.revoke_token(session, place.otto, token.id)
        accounts.revoke_token(session, place.paula, token.id)
        with pytest.raises(NotSignedIn):
            accounts.token_actor(session, secret)


def test_a_token_sees_only_what_its_scopes_allow(place):
    offered(place)
    with place.catalog.database.writing() as session:
        _, secret = accounts.make_token(session, place.paula, "agent", ["work"])
        actor = accounts.token_actor(session, secret)
        with pytest.raises(NotAllowed):
            data_sets.authorised(session, actor, Action.BROWSE, "census")
        assert data_sets.authorised(session, actor, Action.WORK, "census").id == "census"


def test_all_scopes_are_within_the_roles(place):
    assert "accounts" in scopes_of(place.ada)
    assert "accounts" not in scopes_of(place.paula)


def test_accounts_without_a_password_do_not_sign_in(place):
    with place.catalog.database.reading() as session:
        assert session.scalars(select(Account)).first().password is None
    with pytest.raises(NotSignedIn):
        accounts.sign_in(place.catalog.database, "paula", "")


def test_unknown_names_cost_the_same_hash(mia, monkeypatch):
    """What takes time is one Argon2id of the same parameters, whoever is named."""
    seen = []

    class Seen(PasswordHasher):
        def verify(self, stored: str, given: str) -> bool:
            seen.append(stored)
            return super().verify(stored, given)

    monkeypatch.setattr(passwords, "_HASHER", Seen())
    for name in ("mia", "nobody"):
        with pytest.raises(NotSignedIn):
            accounts.sign_in(mia.catalog.database, name, "another sentence of words")
    known, unknown = (stored.rsplit("$", 2)[0] for stored in seen)
    assert known == unknown
    assert known.startswith("$argon2id$")


def test_what_a_token_makes_ends_with_it(place):
    with place.catalog.database.writing() as session:
        parent, secret = accounts.make_token(
            session, place.paula, "parent", ["work", "own-tokens"], days=2
        )
        with_it = accounts.token_actor(session, secret)
        child, inner = accounts.make_token(session, with_it, "child", ["work"], days=365)
        assert child.expires == parent.expires
        assert accounts.token_actor(session, inner).scopes == {"work"}
        accounts.revoke_token(session, place.paula, parent.id)
        session.flush()
        with pytest.raises(NotSignedIn):
            accounts.token_actor(session, inner)


def test_a_token_loses_what_its_owner_loses(place):
    offered(place)
    with place.catalog.database.writing() as session:
        _, secret = accounts.make_token(session, place.otto, "reviews", ["review", "browse"])
        accounts.change_roles(session, place.ada, "otto", ["consumer"])
        actor = accounts.token_actor(session, secret)
        assert not may(actor, Action.REVIEW, ActedOn(granted=frozenset({AccountRole.OPERATOR})))
