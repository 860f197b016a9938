"""A draft is a request that was not sent: only its consumer learns of it."""

from __future__ import annotations

import httpx
import pytest
from service_support import PASSWORD, House, house

from aegis.service.catalog import NotThere

SECRET = "a purpose that nobody may read yet"
OTHERS = ("paula", "otto", "anna", "aude")


@pytest.fixture
def place(furnished, tmp_path) -> House:
    with house(tmp_path, furnished=furnished) as made:
        yield made


def numbers_seen(place: House, name: str) -> list[str]:
    with place.client(name) as client:
        return [request["id"] for request in client.requests()]


def text_of_pages(place: House, name: str) -> str:
    """Return the text of each page on which requests are listed, as a person sees them."""
    with httpx.Client(base_url=place.url, follow_redirects=True) as browser:
        browser.post("/sign-in", data={"name": name, "password": PASSWORD})
        paths = ("/", "/requests", "/data-sets/census", "/requests?state=draft")
        return "".join(browser.get(path).text for path in paths)


@pytest.mark.parametrize("withdrawn", [False, True])
def test_only_its_consumer_sees_a_request_that_was_never_sent(place, withdrawn):
    with place.client("clara") as clara:
        number = clara.draft("census", SECRET, terms_accepted=True)["id"]
        if withdrawn:
            clara.step(number, "withdraw")
        assert clara.shown(number)["purpose"] == SECRET
    assert number in numbers_seen(place, "clara")
    assert SECRET in text_of_pages(place, "clara")
    for name in OTHERS:
        assert number not in numbers_seen(place, name)
        assert SECRET not in text_of_pages(place, name)
        with place.client(name) as other, pytest.raises(NotThere):
            other.shown(number)


def test_the_log_of_a_draft_is_read_by_its_consumer_and_those_who_oversee(place):
    with place.client("clara") as clara:
        number = clara.draft("census", SECRET, terms_accepted=True)["id"]
    seen = {}
    for name in ("clara", "paula", "otto", "anna", "aude", "ada"):
        with place.client(name) as client:
            seen[name] = any(entry["request"] == number for entry in client.log())
    assert seen == {
        "clara": True,
        "paula": False,
        "otto": False,
        "anna": False,
        "aude": True,
        "ada": True,
    }


@pytest.mark.parametrize("then", [None, "withdraw"])
def test_a_request_that_was_sent_stays_visible_to_those_who_work_on_it(place, then):
    with place.client("clara") as clara:
        number = clara.draft("census", SECRET, terms_accepted=True)["id"]
        clara.step(number, "submit")
        if then:
            clara.step(number, then)
    for name in OTHERS:
        assert number in numbers_seen(place, name)
        with place.client(name) as other:
            assert other.shown(number)["purpose"] == SECRET
            assert "request drafted" in [e["action"] for e in other.log() if e["request"] == number]
