"""What may be said of a data set and of a request, at both ends of what is allowed; who sees which."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from catalog_support import KEY, add_version, offered
from test_catalog_duties import approved, chosen, release

from aegis.service.catalog import WrongState, accounts, data_sets, requests
from aegis.service.catalog.access import Action
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere
from aegis.service.catalog.records import ReleaseRecord, Request, now
from aegis.service.catalog.states import RequestState
from aegis.signing import PrivateKey, load_private_key, make_keys, sign_bytes

NAMED = "a" * 80


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("approvals", [1, 2], [0, 3, -1]),
        ("days", [1, 3650], [0, 3651]),
        ("ceiling", [0.001, 999.9], [0, -1, 1000]),
    ],
)
def test_terms_lie_within_their_limits(place, name, allowed, refused):
    offered(place)
    for value in allowed:
        with place.catalog.database.writing() as session:
            assert (
                getattr(data_sets.change(session, place.paula, "census", **{name: value}), name)
                == value
            )
    for value in refused:
        with place.catalog.database.writing() as session, pytest.raises(CatalogError):
            data_sets.change(session, place.paula, "census", **{name: value})
    with (
        place.catalog.database.writing() as session,
        pytest.raises(CatalogError, match="A data set has no setting 'provider_id'"),
    ):
        data_sets.change(session, place.paula, "census", provider_id=place.peter.account)


def test_a_data_set_is_registered_once_under_a_name_of_80_letters_at_most(place):
    with place.catalog.database.writing() as session:
        made = data_sets.register(session, place.paula, NAMED, source="a_b", public_key=KEY)
        assert (made.title, made.population, made.published) == (NAMED, NAMED, False)
        assert made.provider_id == place.paula.account
        for title, population in (("T", ""), ("", "people")):
            other = data_sets.register(
                session,
                place.paula,
                f"x{len(title)}",
                source="t",
                public_key=KEY,
                title=title,
                population=population,
            )
            assert (other.title, other.population) == (title or other.id, population or other.id)
        with pytest.raises(CatalogError, match="already"):
            data_sets.register(session, place.paula, NAMED, source="t", public_key=KEY)
        for short in ("ab" * 31, KEY + "ab"):
            with pytest.raises(CatalogError, match="not an Ed25519 key"):
                data_sets.register(session, place.paula, "other", source="t", public_key=short)
        for nobody in (place.otto, place.clara, place.ada):
            with pytest.raises(NotAllowed):
                data_sets.register(session, nobody, "mine", source="t", public_key=KEY)


def test_a_data_set_without_a_summary_is_not_published(place):
    with place.catalog.database.writing() as session:
        data_sets.register(session, place.paula, "empty", source="t", public_key=KEY, public=True)
        with pytest.raises(WrongState, match="no protected summary yet"):
            data_sets.publish(session, place.paula, "empty")
        data_sets.publish(session, place.paula, "empty", published=False)
        assert data_sets.newest(session, "empty") is None
        with pytest.raises(NotThere):
            requests.draft(session, place.clara, "empty", purpose="x")
        add_version(place, session, "empty")
        assert data_sets.publish(session, place.paula, "empty").published
        assert not data_sets.publish(session, place.paula, "empty", published=False).published


def test_versions_are_numbered_and_listed_from_the_newest(place):
    offered(place)
    offered(place, "other")
    with place.catalog.database.writing() as session:
        add_version(place, session, "census", "d2")
        listed = data_sets.versions(session, place.clara, "census")
        assert [(v.number, v.summary_digest) for v in listed] == [(2, "d2"), (1, "d1")]
        newest = data_sets.newest_of(session, ["census", "other", "none"])
        assert {name: v.number for name, v in newest.items()} == {"census": 2, "other": 1}


def test_who_is_granted_what(place):
    offered(place)
    with place.catalog.database.writing() as session:
        for role in ("provider", "admin", "auditor", "owner"):
            with pytest.raises(CatalogError, match="cannot be granted"):
                data_sets.grant(session, place.paula, "census", "otto", role)
        with pytest.raises(CatalogError, match="carl does not have the role operator"):
            data_sets.grant(session, place.paula, "census", "carl", "operator")
        with pytest.raises(NotAllowed):
            data_sets.grant(session, place.otto, "census", "anna", "approver")
        both = accounts.create(session, "pia", ("provider", "approver", "operator"))
        pia = accounts.actor_of(both)
        data_sets.register(session, pia, "pias", source="t", public_key=KEY)
        with pytest.raises(CatalogError, match="cannot be its approver"):
            data_sets.grant(session, pia, "pias", "pia", "approver")
        data_sets.grant(session, pia, "pias", "pia", "operator")
        data_sets.grant(session, pia, "pias", "anna", "approver")


def test_a_grant_that_is_taken_back_or_given_twice(place):
    offered(place)
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.paula, "census", public=False)
        for granted, seen in ((True, 1), (True, 1), (False, 0), (False, 0), (True, 1)):
            data_sets.grant(session, place.paula, "census", "clara", "consumer", granted=granted)
            session.flush()
            assert data_sets.search(session, place.clara)[1] == seen


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("paula", ["draft", "open", "shut"]),
        ("peter", []),
        ("otto", ["shut"]),
        ("anna", []),
        ("clara", ["open"]),
        ("carl", ["open", "shut"]),
        ("boris", ["open"]),
        ("aude", ["draft", "open", "shut"]),
        ("ada", ["draft", "open", "shut"]),
    ],
)
def test_each_account_finds_what_it_may_browse(place, name, listed):
    with place.catalog.database.writing() as session:
        for identifier, public in (("draft", True), ("open", True), ("shut", False)):
            data_sets.register(
                session, place.paula, identifier, source="t", public_key=KEY, public=public
            )
            add_version(place, session, identifier)
            if identifier != "draft":
                data_sets.publish(session, place.paula, identifier)
        data_sets.grant(session, place.paula, "shut", "carl", "consumer")
        data_sets.grant(session, place.paula, "shut", "otto", "operator")
        page, count = data_sets.search(session, place.actors[name])
        assert ([one.id for one in page], count) == (listed, len(listed))
        for identifier in ("draft", "open", "shut"):
            if identifier in listed:
                assert data_sets.authorised(session, place.actors[name], Action.BROWSE, identifier)
            else:
                with pytest.raises(NotThere):
                    data_sets.authorised(session, place.actors[name], Action.BROWSE, identifier)
        with pytest.raises(NotThere):
            data_sets.authorised(session, place.actors[name], Action.BROWSE, "none")


def test_a_page_of_data_sets_and_its_words(place):
    for name in ("c1", "c2", "c3"):
        offered(place, name, description=f"rows of {name}", label="income")
    with place.catalog.database.reading() as session:
        page, count = data_sets.search(session, place.clara, offset=1, limit=1)
        assert ([one.id for one in page], count) == (["c2"], 3)
        for words, found in (
            ("rows c3", ["c3"]),
            ("income", ["c1", "c2", "c3"]),
            ("c1 c2", []),
            ("one two three four five six seven eight", []),
            (" ".join(["rows"] * 8 + ["absent"]), ["c1", "c2", "c3"]),
        ):
            assert [one.id for one in data_sets.search(session, place.clara, words)[0]] == found


def test_a_token_without_the_scope_neither_searches_nor_lists(place):
    offered(place)
    with place.catalog.database.reading() as session:
        narrow = replace(place.clara, scopes=frozenset({Action.REQUEST}))
        with pytest.raises(NotAllowed):
            data_sets.search(session, narrow)
        with pytest.raises(NotAllowed):
            requests.listed(session, narrow)
        with pytest.raises(NotAllowed):
            data_sets.authorised(session, narrow, Action.BROWSE, "census")
        wide = replace(place.clara, scopes=frozenset({Action.BROWSE, Action.SEE_REQUEST}))
        assert data_sets.search(session, wide)[1] == 1
        assert requests.listed(session, wide) == ([], 0)


def made_key(path: Path) -> PrivateKey:
    path.write_bytes(make_keys()[0])
    path.chmod(0o600)
    return load_private_key(path)


def test_a_key_is_rotated_with_both_signatures(place, tmp_path):
    old, new, stranger = (made_key(tmp_path / name) for name in ("old", "new", "stranger"))
    texts = [key.public.text for key in (old, new, stranger)]
    with place.catalog.database.writing() as session:
        for identifier, by, key in (
            ("one", place.paula, texts[0]),
            ("two", place.paula, texts[2]),
            ("his", place.peter, texts[0]),
        ):
            data_sets.register(session, by, identifier, source="t", public_key=key)
        asked = data_sets.rotation_of(*texts[:2])
        good = [sign_bytes(asked, key).to_dict() for key in (old, new)]
        foreign = sign_bytes(asked, stranger).to_dict()
        for signed in (
            [good[0]],
            [*good, good[0]],
            [good[0], foreign],
            [foreign, good[1]],
            [],
            None,
        ):
            with pytest.raises(CatalogError, match="rotat"):
                data_sets.rotate(
                    session, place.paula, {"old": texts[0], "new": texts[1], "signatures": signed}
                )
        given = {"old": texts[0], "new": texts[1], "signatures": good}
        with pytest.raises(NotAllowed):
            data_sets.rotate(session, place.otto, given)
        assert data_sets.rotate(session, place.paula, given) == 1
        held = {n: session.get(data_sets.DataSet, n) for n in ("one", "two", "his")}
        assert [held[n].public_key for n in held] == [texts[1], texts[2], texts[0]]
        assert (held["one"].former_keys, held["two"].former_keys) == ([texts[0]], [])


@pytest.mark.parametrize("text", ["", "  \n", "x" * 4001])
def test_a_purpose_and_a_reason_are_said_in_4000_characters(place, text):
    offered(place)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        with pytest.raises(CatalogError, match="purpose"):
            requests.draft(session, place.clara, "census", purpose=text)
        with pytest.raises(CatalogError, match="reason"):
            requests.reject(session, place.otto, number, text)
        with pytest.raises(CatalogError, match="reason"):
            requests.send_back(session, place.otto, number, text)
        made = requests.draft(session, place.clara, "census", purpose=" " + "x" * 3999)
        assert made.purpose == "x" * 3999
        returned = requests.send_back(session, place.otto, number, " " + "y" * 3999)
        assert (returned.state, returned.message) == (RequestState.RETURNED, "y" * 3999)


def test_a_request_is_changed_while_it_is_the_consumers(place):
    offered(place)
    with place.catalog.database.writing() as session:
        made = requests.draft(session, place.clara, "census", purpose="to learn", models=["lr"])
        requests.change(session, place.clara, made.id, measure="mi", terms_accepted=1)
        told = (made.purpose, made.label, made.measure, made.models, made.terms_accepted)
        assert told == ("to learn", None, "mi", ["lr"], True)
        for other in (place.carl, place.otto):
            with pytest.raises(NotThere):
                requests.change(session, other, made.id, purpose="mine")
        requests.submit(session, place.clara, made.id)
        with pytest.raises(NotAllowed):
            requests.change(session, place.otto, made.id, purpose="mine")
        with pytest.raises(WrongState, match="cannot be changed"):
            requests.change(session, place.clara, made.id, purpose="more")
        requests.review(session, place.otto, made.id)
        requests.send_back(session, place.otto, made.id, "say more")
        assert requests.change(session, place.clara, made.id, purpose="more").purpose == "more"


def test_a_request_is_handed_in_for_a_published_data_set_and_its_newest_version(place):
    offered(place)
    with place.catalog.database.writing() as session:
        made = requests.draft(session, place.clara, "census", purpose="to learn")
        data_sets.publish(session, place.paula, "census", published=False)
        with pytest.raises(WrongState, match="is not published"):
            requests.submit(session, place.clara, made.id)
        data_sets.publish(session, place.paula, "census")
        newest = add_version(place, session, "census", "d2")
        made.configuration, made.answer = "of before", {"holds": True}
        requests.submit(session, place.clara, made.id)
        assert (made.version_id, made.configuration, made.answer) == (newest.id, None, None)
        assert made.asked == data_sets.terms_of(made.data_set)


def test_a_configuration_is_set_in_review_alone_and_ends_approvals(place):
    offered(place, approvals=2)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        request = session.get(Request, number)
        requests.approve(session, place.otto, number)
        assert requests.approvals_of(session, request) == ["otto"]
        with pytest.raises(NotAllowed, match="approved this already"):
            requests.approve(session, place.otto, number)
        requests.set_configuration(
            session, place.otto, request, "configurations: {}", {"holds": False}
        )
        assert requests.approvals_of(session, request) == []
        with pytest.raises(WrongState, match="does not meet the rule"):
            requests.approve(session, place.otto, number)
        requests.reject(session, place.otto, number, "no")
        with pytest.raises(WrongState, match="cannot choose a configuration"):
            requests.set_configuration(session, place.otto, request, "x", {"holds": True})


def test_what_was_not_chosen_or_has_changed_is_not_approved(place):
    offered(place)
    with place.catalog.database.writing() as session:
        made = requests.draft(session, place.clara, "census", purpose="to learn")
        requests.submit(session, place.clara, made.id)
        requests.review(session, place.otto, made.id)
        with pytest.raises(WrongState, match="No configuration is chosen"):
            requests.approve(session, place.otto, made.id)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        data_sets.change(session, place.paula, "census", days=7)
        with pytest.raises(WrongState, match="changed the terms"):
            requests.approve(session, place.otto, number)
        data_sets.change(
            session, place.paula, "census", days=session.get(Request, number).asked["days"]
        )
        add_version(place, session, "census", "d2")
        with pytest.raises(WrongState, match="data set has changed"):
            requests.approve(session, place.otto, number)


def test_a_check_counts_for_the_releases_that_it_looked_at(place):
    offered(place)
    first, second = chosen(place), chosen(place)
    release(place, approve(place, first))
    with place.catalog.database.writing() as session:
        with pytest.raises(WrongState, match="Other releases"):
            requests.approve(session, place.otto, second)
        request = session.get(Request, second)
        earlier = [one.id for one in requests.earlier(session, request)]
        assert len(earlier) == 1
        answer = {"holds": True, "releases": earlier}
        requests.set_configuration(session, place.otto, request, "configurations: {}", answer)
        assert requests.approve(session, place.otto, second).state == RequestState.APPROVED


def approve(place, number):
    with place.catalog.database.writing() as session:
        requests.approve(session, place.otto, number)
    return number


def test_a_release_expires_at_its_time_and_not_before(place):
    number = approved(place)
    with place.catalog.database.writing() as session:
        record = requests.release_of(session, session.get(Request, number))
        record.expires = now() + timedelta(minutes=5)
        session.flush()
        assert requests.expire(session) == 0
        record.expires = now() - timedelta(minutes=5)
        session.flush()
        assert requests.expire(session) == 1
        assert requests.expire(session) == 0
        assert session.get(Request, number).state == RequestState.EXPIRED


def test_what_has_no_release_says_so(place):
    offered(place)
    number = chosen(place)
    with place.catalog.database.writing() as session:
        assert session.query(ReleaseRecord).count() == 0
        with pytest.raises(NotThere, match="no release of this request"):
            requests.release_of(session, session.get(Request, number))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("paula", 3),
        ("peter", 0),
        ("otto", 2),
        ("anna", 2),
        ("clara", 2),
        ("carl", 1),
        ("boris", 2),
        ("aude", 3),
        ("ada", 0),
    ],
)
def test_each_account_lists_the_requests_that_concern_it(place, name, count):
    """Operators and approvers those of their data sets, consumers their own, auditors all."""
    offered(place)
    with place.catalog.database.writing() as session:
        data_sets.register(session, place.paula, "other", source="t", public_key=KEY, public=True)
        add_version(place, session, "other")
        data_sets.publish(session, place.paula, "other")
        for by, data_set in (
            (place.clara, "census"),
            (place.carl, "census"),
            (place.clara, "other"),
        ):
            sent = requests.draft(session, by, data_set, purpose="x")
            requests.submit(session, by, sent.id)
        page, number = requests.listed(session, place.actors[name])
        assert (len(page), number) == (count, count)
        assert requests.listed(session, place.actors[name], data_set="none") == ([], 0)
        assert requests.listed(session, place.actors[name], state="released") == ([], 0)
        assert requests.listed(session, place.actors[name], state="submitted")[1] == count
        assert len(requests.listed(session, place.actors[name], offset=1)[0]) == max(0, count - 1)
