"""An admin closes the account of a provider: on the page, by command, and who reads of it."""

from __future__ import annotations

import re

import httpx
import pytest
from service_support import PASSWORD, house

from aegis.cli.main import run
from aegis.service.catalog import NotThere, WrongState


@pytest.fixture
def place(requested, tmp_path):
    with house(tmp_path, furnished=requested) as made:
        yield made


def test_the_command_names_what_a_provider_leaves_behind(place, requested, monkeypatch, capsys):
    monkeypatch.setenv("AEGIS_URL", place.url)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["ada"])
    assert run(["catalog", "close", "paula"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"paula provides census, with 1 open request: {requested.request[:8]}" in said
    assert "--leave" in said
    assert run(["catalog", "close", "paula", "--leave"]) == 0
    said = capsys.readouterr()
    assert requested.request[:8] in said.out + said.err
    with place.client("clara") as clara:
        shown = clara.shown(requested.request)
        assert (shown["state"], shown["job"]["ended"] is None) == ("returned", False)
        assert "The account of paula, the provider of census, is closed." in shown["message"]
        with pytest.raises(WrongState, match="The account of paula"):
            clara.step(requested.request, "submit")
        with pytest.raises(NotThere):
            clara.request("census", "to learn", terms_accepted=True)


def test_the_page_names_it_and_asks_for_a_second_thought(place, requested):
    sent = {"Origin": place.url}
    with httpx.Client(base_url=place.url, headers=sent, follow_redirects=True) as browser:
        browser.post("/sign-in", data={"name": "ada", "password": PASSWORD})
        page = browser.get("/accounts/paula").text
        part = page[page.index("Close the account") :]
        for words in ("First hand over the data sets.", "census", requested.request[:8], "clara"):
            assert words in part
        key = re.search(r'name="form_key" value="([^"]+)"', page).group(1)
        refused = browser.post("/accounts/paula/close", data={"form_key": key})
        assert refused.status_code == 409
        assert "paula provides census, with 1 open request" in refused.text
        closed = browser.post("/accounts/paula/close", data={"form_key": key, "leave": "true"})
        assert "The account is closed." in closed.text
        opened = browser.post("/accounts/paula/reopen", data={"form_key": key})
        assert "paula can publish its data sets again." in opened.text


def test_a_request_that_waits_for_a_closed_provider_says_so(place, requested):
    """An earlier version closed the account and left the request to wait."""
    from aegis.service.catalog import accounts, flow
    from aegis.service.catalog.records import Request

    with place.catalog.database.writing() as session:
        asked = session.get(Request, requested.request)
        flow.ask_check(session, asked, [asked.configuration], {}, may_search=False)
        accounts.named(session, "paula").disabled = True
    with httpx.Client(base_url=place.url, follow_redirects=True) as browser:
        browser.post("/sign-in", data={"name": "clara", "password": PASSWORD})
        page = browser.get(f"/requests/{requested.request}").text
    assert "The account of paula, the provider of census, is closed." in page


def test_a_request_that_nobody_may_review_says_so_to_its_consumer_and_the_provider(
    place, monkeypatch, capsys
):
    """A data set without an operator took requests, and nobody learned of them."""
    with place.client("paula") as paula, place.client("clara") as clara:
        number = clara.request("census", "to wait", terms_accepted=True)["id"]
        assert clara.shown(number)["stuck"] is None
        paula.grant("census", "otto", "operator", granted=False)
        assert "has no operator" in clara.shown(number)["stuck"]
        monkeypatch.setenv("AEGIS_URL", place.url)
        monkeypatch.setenv("AEGIS_TOKEN", place.tokens["clara"])
        assert run(["catalog", "status", number]) == 0
        assert "its data set has no operator" in " ".join(capsys.readouterr().out.split())
        pages = {}
        for name in ("clara", "paula"):
            with httpx.Client(base_url=place.url, follow_redirects=True) as browser:
                browser.post("/sign-in", data={"name": name, "password": PASSWORD})
                pages[name] = browser.get("/").text, browser.get(f"/requests/{number}").text
        assert "nobody can review it: give somebody the role operator" in pages["paula"][0]
        assert "nobody can review it" not in pages["clara"][0]
        for _, page in pages.values():
            assert "Nobody can review this request, because its data set has no operator." in page
        paula.grant("census", "otto", "operator")
        assert clara.shown(number)["stuck"] is None
