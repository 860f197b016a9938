"""A consumer changes a request on its page; an approver approves what the page showed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from service_support import PASSWORD, House, house

from aegis.service.catalog import CatalogError, WrongState


@pytest.fixture
def place(requested, tmp_path) -> Iterator[House]:
    with house(tmp_path, furnished=requested) as made:
        yield made


@contextmanager
def browsing(place: House, name: str) -> Iterator[httpx.Client]:
    sent = {"Origin": place.url}
    with httpx.Client(base_url=place.url, headers=sent, follow_redirects=True) as browser:
        browser.post("/sign-in", data={"name": name, "password": PASSWORD})
        yield browser


def hidden(page: str, name: str) -> str:
    return re.search(f'name="{name}" value="([^"]*)"', page).group(1)


def test_a_returned_request_is_changed_on_its_page(place, requested):
    """The page had only a button to submit it as it was, also where terms had come."""
    number = requested.request
    with place.client("otto") as otto, place.client("paula") as paula:
        otto.step(number, "return", message="Which models?")
        paula.change("census", terms="No attempt to find a person.")
    with browsing(place, "clara") as browser:
        page = browser.get(f"/requests/{number}").text
        assert f'href="/requests/{number}/change"' in page
        form = browser.get(f"/requests/{number}/change").text
        assert "Which models?" in form
        assert "No attempt to find a person." in form
        assert re.search(r"<textarea[^>]*>to learn</textarea>", form)
        sent = {"purpose": "to learn more", "models": ["lr"], "measure": "mi"}
        sent |= {"terms_accepted": "true", "form_key": hidden(form, "form_key")}
        assert "to learn more" in browser.post(f"/requests/{number}/change", data=sent).text
    with place.client("clara") as clara:
        shown = clara.shown(number)
        fields = ("state", "purpose", "models", "measure")
        assert [shown[f] for f in fields] == ["submitted", "to learn more", ["lr"], "mi"]


def test_others_change_no_request(place, requested):
    with place.client("otto") as otto:
        otto.step(requested.request, "return", message="Which models?")
    with browsing(place, "otto") as browser:
        page = browser.get(f"/requests/{requested.request}").text
        assert "/change" not in page
        assert browser.get(f"/requests/{requested.request}/change").status_code == 403


def test_an_approval_is_of_the_configuration_that_the_page_showed(place, requested):
    """Two operators at once: one chose another configuration after the other had loaded the page."""
    number = requested.request
    with browsing(place, "otto") as browser, place.client("otto") as otto:
        page = browser.get(f"/requests/{number}").text
        sent = {"seen_digest": hidden(page, "seen_digest"), "form_key": hidden(page, "form_key")}
        otto.step(number, "choose", configuration=OTHER)
        place.work()
        assert otto.shown(number)["answer"]["masks"]["sex"] == "suppress"
        answer = browser.post(f"/requests/{number}/approve", data=sent)
        assert answer.status_code == 409
        assert "Somebody has chosen another configuration" in answer.text
        assert otto.shown(number)["state"] == "in review"
        sent["seen_digest"] = hidden(browser.get(f"/requests/{number}").text, "seen_digest")
        browser.post(f"/requests/{number}/approve", data=sent)
        assert otto.shown(number)["state"] == "approved"


OTHER = "configurations: {other: {age: {bucketize: {width: 40}}, sex: suppress}}\n"


def test_new_terms_are_accepted_anew(place, requested):
    """A request went back because of new terms, and was submitted with the consent to the old ones."""
    number = requested.request
    with place.client("paula") as paula, place.client("clara") as clara:
        paula.change("census", title="Census")
        assert clara.shown(number)["terms_accepted"]
        paula.change("census", terms="No attempt to find a person.")
        assert clara.shown(number)["state"] == "returned"
        with pytest.raises(CatalogError, match="not accepted the terms"):
            clara.step(number, "submit")
        with browsing(place, "clara") as browser:
            form = browser.get(f"/requests/{number}/change").text
        assert "required> I accept" in form
        clara.change_request(number, purpose="to learn", terms_accepted=True)
        assert clara.step(number, "submit")["state"] == "submitted"


def test_an_approval_ends_the_search_that_another_operator_has_begun(place, requested):
    """The worker searched five times over for a request that was approved meanwhile."""
    number = requested.request
    with place.client("otto") as otto:
        search = otto.step(number, "choose")["job"]
        otto.step(number, "approve")
        assert otto.job(search["id"])["state"] == "cancelled"
        assert not place.worker.once()
        with pytest.raises(WrongState, match="for a request that is approved"):
            otto.retry(search["id"])
        assert otto.shown(number)["state"] == "approved"


@pytest.mark.parametrize(
    ("before", "back"),
    [
        ("{url}/requests/1?state=x", "/requests/1?state=x"),
        ("{url}/requests/{number}/review", "/requests/{number}/review"),
        ("https://evil.example/requests/1", None),
        ("{url}//evil.example/", None),
        ("javascript:alert(1)", None),
        (None, None),
    ],
)
def test_an_error_leads_back_to_the_page_with_the_form(place, requested, before, back):
    """The only way on was the first page, and what was typed was lost."""
    with browsing(place, "otto") as browser:
        key = hidden(browser.get(f"/requests/{requested.request}").text, "form_key")
        names = {"url": place.url, "number": requested.request}
        sent = {} if before is None else {"Referer": before.format(**names)}
        answer = browser.post(
            f"/requests/{requested.request}/review", data={"form_key": key}, headers=sent
        )
        assert answer.status_code == 409
        assert re.findall('href="([^"]*)" data-back', answer.text) == (
            [back.format(**names)] if back else []
        )
