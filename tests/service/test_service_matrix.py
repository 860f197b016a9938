"""The permission matrix, generated from the routes and walked over the running service.

For each route, each role, and a data set and request that are the caller's own or another's: who may
not is refused before anything happens, and who may is not.
"""

from __future__ import annotations

import httpx
import pytest
from fastapi.routing import APIRoute
from service_support import PASSWORD, PEOPLE, POLICY, PROBES, declared, request_of

from aegis.service.app import API, API_ROOMS, create_app
from aegis.service.catalog.access import PERMISSIONS, AccountRole, Action, Tie
from aegis.service.pages import PAGE_ROOMS
from aegis.service.routes import PUBLIC
from aegis.service.settings import ServiceSettings

NARROWER = {("POST", "/requests/{request_id}/{step}")}
"""Routes that see the thing by their own action, and decide by the step that is asked for."""


ROUTES = [*declared(API, API_ROOMS), *declared("", PAGE_ROOMS)]


def walked(router) -> list[APIRoute]:
    """Return the routes of an application, also of routers within it."""
    found = []
    for route in getattr(router, "routes", ()):
        found += [route] if isinstance(route, APIRoute) else walked(route)
        inner = getattr(route, "original_router", None)
        found += walked(inner) if inner is not None else []
    return found


def test_a_route_without_a_declared_action_is_found(tmp_path):
    app = create_app(ServiceSettings(database=str(tmp_path / "c.db"), worker=False))
    known = {(method, path.removeprefix(API)) for method, path, _ in ROUTES}
    for route in walked(app.router):
        for method in route.methods - {"HEAD"}:
            assert (method, route.path.removeprefix(API)) in known, route.path
    assert len(walked(app.router)) >= len(ROUTES)
    app.state.catalog.database.close()


def allowed(role: AccountRole, action: str, *, own: bool) -> bool:
    tie = PERMISSIONS[Action(action)].get(role)
    return tie is Tie.ANY or (tie is not None and own)


@pytest.fixture(scope="module")
def things(place):
    """One data set that everybody is tied to, and one of which nobody of them knows."""
    place.offer("unlisted", public=False)
    with place.client("paula") as paula:
        paula.grant("unlisted", "otto", "operator", granted=False)
        paula.grant("unlisted", "anna", "approver", granted=False)
    return {True: "census", False: "unlisted"}


def numbers(place, things) -> dict[bool, tuple[str, str]]:
    """Return a request and a job of each data set."""
    found = {}
    for own, name in things.items():
        found[own] = request_of(place, name)
    return found


@pytest.mark.parametrize("name", PEOPLE)
def test_the_matrix_holds(place, things, name):
    role = AccountRole(PEOPLE[name][0])
    ids = numbers(place, things)
    tried = {True: 0, False: 0}
    with httpx.Client(base_url=place.url, timeout=60) as caller:
        form = {"name": name, "password": PASSWORD}
        caller.post("/sign-in", data=form, headers={"Origin": place.url})
        for method, path, action in ROUTES:
            if action == PUBLIC:
                continue
            for own, data_set in things.items():
                # paula owns both data sets: what is another's is not hers to try.
                if role is AccountRole.PROVIDER and not own:
                    continue
                may = allowed(role, action, own=own)
                if may and method == "POST":
                    continue  # done by the walk of a request, in the order of its steps
                answer = ask(place, caller, method, path, data_set, ids[own])
                tried[may] += 1
                told = (name, method, path, data_set, answer.status_code, answer.text[:300])
                if may:
                    assert answer.status_code not in (401, 403, 422), told
                elif (method, path) in NARROWER and allowed(role, "see-request", own=own):
                    assert answer.status_code == 403, told
                elif "{" in path:
                    assert answer.status_code in (403, 404), told
                elif method == "POST" and not path.endswith("/log/verify"):
                    # A request names its data set in the call, not in the path.
                    hidden = "data_set" in PROBES.get((method, path.removeprefix(API)), {})
                    assert answer.status_code in ((403, 404) if hidden else (403,)), told
                else:
                    assert answer.status_code in (200, 403), told
                    assert "unlisted" not in answer.text or own, told
    assert tried[False] > 15
    assert tried[True] > 4


def ask(place, caller, method, path, data_set, numbers) -> httpx.Response:
    request_id, job_id = numbers
    url = path.format(
        identifier=data_set,
        request_id=request_id,
        job_id=job_id,
        name="clara",
        token_id="0" * 32,
        step="approve",
        kind="croissant",
    )
    headers = {"Origin": place.url}
    probe = PROBES.get((method, path.removeprefix(API)), {})
    if "data_set" in probe:
        probe = {**probe, "data_set": data_set}
    if method == "GET":
        return caller.get(url, headers=headers)
    if path.startswith(API) and "/uploads/" not in path:
        return caller.post(url, json=probe, headers=headers)
    files = probe.get("files")
    fields = {k: v for k, v in probe.items() if k != "files"} | {"form_key": key_of(caller)}
    return caller.post(url, data=fields, files=files, headers=headers)


def key_of(caller: httpx.Client) -> str:
    """Return the key that forms of the session carry."""
    text = caller.get("/tokens").text
    return text.split('name="form_key" value="', 1)[1].split('"', 1)[0]


def test_every_probe_is_of_a_route():
    known = {(method, path.removeprefix(API)) for method, path, _ in ROUTES}
    assert set(PROBES) <= known
    assert POLICY


def test_who_is_demoted_is_out_within_the_session(place):
    """A session of a browser has the roles of the account as they are now."""
    place.offer("demotion")
    number, _ = request_of(place, "demotion")
    with httpx.Client(base_url=place.url) as otto, place.client("ada") as ada:
        form = {"name": "otto", "password": PASSWORD}
        otto.post("/sign-in", data=form, headers={"Origin": place.url})
        assert otto.get(f"/requests/{number}").status_code == 200
        ada.change_roles("otto", ["consumer"])
        try:
            assert otto.get(f"/requests/{number}").status_code == 404
            assert otto.get("/data-sets/demotion/workbench").status_code == 403
        finally:
            ada.change_roles("otto", ["operator"])
