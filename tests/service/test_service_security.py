"""Rows of the security table: each route, each header, each way around."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from service_support import PASSWORD, POLICY, declared, running

from aegis.service.app import API, API_ROOMS, create_app
from aegis.service.catalog import Catalog
from aegis.service.catalog.access import PERMISSIONS, AccountRole, Action, Tie
from aegis.service.pages import PAGE_ROOMS
from aegis.service.rates import Rates, shared_files
from aegis.service.routes import PUBLIC
from aegis.service.settings import ServiceSettings

FREE = {"/api/v1/session", "/api/v1/session/end", "/api/v1/health", "/sign-in", "/sign-out"}
FREE |= {"/sign-in/oidc", "/sign-in/callback", "/sign-in/code", "/set-password"}
FREE |= {"/api/v1/live", "/api/v1/password-links"}


ROUTES = [*declared(API, API_ROOMS), *declared("", PAGE_ROOMS)]


def test_every_route_declares_what_it_needs(tmp_path):
    """A route that was added in another way would stand in the description alone."""
    app = create_app(ServiceSettings(database=str(tmp_path / "c.db"), worker=False))
    described = {
        (method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    assert described == {(m, p) for m, p, _ in ROUTES if p.startswith(API)}
    assert {path for _, path, action in ROUTES if action == PUBLIC} == FREE
    assert len(ROUTES) > 60
    app.state.catalog.database.close()


def test_every_action_is_one_of_the_table():
    named = {action for _, _, action in ROUTES} - {PUBLIC}
    assert named <= {str(action) for action in Action}


def test_nobody_gets_in_without_signing_in(place):
    with httpx.Client(base_url=place.url) as nobody:
        for method, path, action in ROUTES:
            if action == PUBLIC or not path.startswith("/api/"):
                continue
            # A body that cannot be parsed shows whether the service reads it before it refuses.
            place_of = path.replace("{", "").replace("}", "")
            answer = nobody.request(
                method, place_of, content="{", headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 401, (method, path)
            assert answer.headers["content-type"] == "application/problem+json"


def test_who_may_in_general_may_not_on_what_is_anothers(place):
    """Ties are held: an operator who is assigned to nothing sees nothing."""
    assert PERMISSIONS[Action.REVIEW][AccountRole.OPERATOR] is Tie.ASSIGNED
    number = place.ask()
    with place.client("paula") as paula:
        paula.grant("census", "otto", "operator", granted=False)
    with httpx.Client(headers={"Authorization": f"Bearer {place.tokens['otto']}"}) as otto:
        for path in (f"requests/{number}", "data-sets/census", "data-sets/census/ledger"):
            assert otto.get(f"{place.url}/api/v1/{path}").status_code == 404
    with place.client("paula") as paula:
        paula.grant("census", "otto", "operator")


@pytest.mark.parametrize("path", ["/sign-in", "/api/v1/health", "/static/style.css", "/nothing"])
def test_every_answer_is_sealed(place, path):
    headers = httpx.get(f"{place.url}{path}").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    if not path.startswith("/static"):
        assert headers["cache-control"] == "no-store"


def test_every_route_is_sealed(place):
    """Also where it refuses: each route, called by nobody."""
    with httpx.Client(base_url=place.url) as nobody:
        for method, path, _ in ROUTES:
            url = path.replace("{", "").replace("}", "")
            headers = nobody.request(method, url, headers={"Origin": place.url}).headers
            assert "default-src 'none'" in headers["content-security-policy"], path
            assert headers["cache-control"] == "no-store", path
            assert headers["x-content-type-options"] == "nosniff", path
            assert headers["x-frame-options"] == "DENY", path


def test_made_up_cookies_buy_no_further_tries(tmp_path):
    """Signing in is counted for the address, and hard work counts for more than one call."""
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    told = []
    with running(ServiceSettings(worker=False, calls=30), catalog) as url:
        for number in range(5):
            cookies = {"aegis_session": f"made up {number}"}
            form = {"name": "nobody", "password": "x"}
            with httpx.Client(base_url=url, cookies=cookies) as caller:
                answer = caller.post("/sign-in", data=form, headers={"Origin": url})
            told.append(answer.status_code)
    assert told == [401, 401, 401, 429, 429]
    assert int(answer.headers["retry-after"]) >= 1


@pytest.fixture
def browser(place):
    """A browser in which clara is signed in."""
    with httpx.Client(base_url=place.url, follow_redirects=False) as caller:
        yield signed_in(place, caller)


def signed_in(place, caller, name="clara") -> httpx.Client:
    form = {"name": name, "password": PASSWORD}
    answer = caller.post("/sign-in", data=form, headers={"Origin": place.url})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    return caller


def test_cookies_of_a_service_behind_tls_are_bound_to_it():
    from aegis.service.identity import cookie_name

    assert cookie_name(ServiceSettings(origin="https://aegis.example.org")).startswith("__Host-")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "https://a.example"},
        {},
    ],
)
def test_forms_from_elsewhere_are_refused(browser, headers):
    answer = browser.post("/data-sets/census/request", data={"purpose": "x"}, headers=headers)
    assert answer.status_code == 403


def test_a_form_without_the_key_of_its_session_is_refused(place, browser):
    form = {"purpose": "x", "form_key": "guessed", "terms_accepted": "true"}
    answer = browser.post("/data-sets/census/request", data=form, headers={"Origin": place.url})
    assert answer.status_code == 403
    assert "The form has expired" in answer.text


def test_signing_in_gives_a_session_of_its_own(place):
    fixed = "a-session-that-somebody-else-has-chosen"
    form = {"name": "clara", "password": PASSWORD}
    with httpx.Client(base_url=place.url, cookies={"aegis_session": fixed}) as caller:
        answer = caller.post("/sign-in", data=form, headers={"Origin": place.url})
    assert fixed not in answer.headers["set-cookie"]


def test_a_token_in_the_address_is_none(place):
    token = place.tokens["clara"]
    assert httpx.get(f"{place.url}/api/v1/me?token={token}").status_code == 401


def test_another_host_is_refused(place):
    answer = httpx.get(f"{place.url}/api/v1/health", headers={"Host": "rebound.example"})
    assert answer.status_code == 421


def test_callers_are_slowed_down():
    rates = Rates(calls=60)
    assert [rates.take("one") for _ in range(60)] == [0.0] * 60
    assert rates.take("one") > 0
    assert rates.take("other") == 0.0


def test_processes_that_share_a_file_count_calls_together():
    with shared_files() as (file, _), ThreadPoolExecutor(8) as pool:
        several = [Rates(60, file) for _ in range(4)]
        waits = list(pool.map(lambda n: several[n % 4].take("one"), range(200)))
        assert 60 <= waits.count(0.0) <= 62  # one comes back each second
        assert several[1].take("other") == 0.0
        for rates in several:
            rates.close()


def test_a_full_file_of_rates_gives_up_who_was_idle_longest():
    with shared_files() as (file, _):
        rates = Rates(60, file)
        for n in range(40_000):
            rates.take(f"caller {n}")
        assert [rates.take("new") for _ in range(60)] == [0.0] * 60
        assert rates.take("new") > 0
        rates.close()


def test_large_calls_are_refused_before_they_are_read(place):
    token = {"Authorization": f"Bearer {place.tokens['paula']}"}
    with httpx.Client(base_url=place.url) as caller:
        answer = caller.post("/api/v1/data-sets", headers=token, content=b" " * (9 << 20))
    assert answer.status_code == 413
    assert answer.json()["title"] == "TooLarge"


@pytest.mark.parametrize("source", ["../etc/passwd", "/etc/passwd", "http://169.254.169.254/x"])
def test_sources_are_names_of_the_agents_list_and_nothing_else(place, source):
    with place.client("paula") as paula, pytest.raises(Exception, match="not a name"):
        paula.register("other", source=source, public_key=place.key)


def test_hostile_names_are_shown_as_text(place, browser):
    nasty = "<script>alert(1)</script>{{7*7}}"
    with place.client("paula") as paula:
        paula.register("nasty", source="adult", public_key=place.key, title=nasty, public=True)
        paula.ask_summary("nasty", POLICY, protect="noise", epsilon=8.0)
        place.work()
        paula.publish("nasty")
    page = browser.get("/").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in page


def test_errors_hold_no_value_of_a_row(place):
    with httpx.Client(headers={"Authorization": f"Bearer {place.tokens['clara']}"}) as clara:
        answer = clara.get(f"{place.url}/api/v1/data-sets/%00")
    assert answer.status_code in (400, 404, 422)
    assert "Traceback" not in answer.text


def test_a_password_in_a_call_that_is_not_json_is_not_repeated(place):
    """A body of another content type was quoted in the error."""
    body = b'{"name": "clara", "password": "a secret of clara"}'
    headers = {"Content-Type": "text/plain"}
    answer = httpx.post(f"{place.url}/api/v1/session", content=body, headers=headers)
    assert answer.status_code == 422
    assert "secret" not in answer.text
    assert "Content-Type: application/json" in answer.json()["hint"]


def test_a_body_that_cannot_be_read_is_not_called_a_wrong_address(place):
    with place.client("clara") as clara:
        headers = {"Authorization": f"Bearer {place.tokens['clara']}"}
        answer = httpx.post(
            f"{place.url}/api/v1/requests",
            content=b"[" * 100_000,
            headers={**headers, "Content-Type": "application/json"},
        )
        assert clara.me()["name"] == "clara"
    assert answer.status_code == 400
    assert answer.json()["hint"] == "Check what you sent."
