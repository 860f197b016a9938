"""Signing in at an identity provider: a small one of the tests' own, right and wrong in each part."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from service_support import running

from aegis.errors import EngineError, PolicyError
from aegis.service.catalog import Catalog, NotSignedIn, accounts
from aegis.service.catalog.records import Account
from aegis.service.oidc import Begun, Provider, address, person
from aegis.service.settings import ServiceSettings

CLIENT = "aegis"
SECRET = "between us"


class Issuer:
    """A provider where everybody is signed in already."""

    def __init__(self) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": "one"})
        self.other = ECKey.generate_key("P-256", {"kid": "one"})
        self.codes: dict[str, dict[str, str]] = {}
        self.change: dict[str, object] = {}
        self.forged = False
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                issuer.get(self)

            def do_POST(self) -> None:
                issuer.token(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def send(self, call: BaseHTTPRequestHandler, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        call.send_response(status)
        call.send_header("Content-Type", "application/json")
        call.send_header("Content-Length", str(len(text)))
        call.end_headers()
        call.wfile.write(text)

    def get(self, call: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(call.path)
        if parts.path.endswith("openid-configuration"):
            told = {"issuer": self.url, "authorization_endpoint": f"{self.url}/authorize"}
            told |= {"token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}/keys"}
            self.send(call, 200, told)
        elif parts.path == "/keys":
            self.send(call, 200, {"keys": [self.key.as_dict(private=False)]})
        else:
            asked = {k: v[0] for k, v in parse_qs(parts.query).items()}
            code = f"code-{len(self.codes)}"
            self.codes[code] = asked
            call.send_response(303)
            query = urlencode({"code": code, "state": asked["state"]})
            call.send_header("Location", f"{asked['redirect_uri']}?{query}")
            call.send_header("Content-Length", "0")
            call.end_headers()

    def token(self, call: BaseHTTPRequestHandler) -> None:
        text = call.rfile.read(int(call.headers["Content-Length"])).decode()
        given = {k: v[0] for k, v in parse_qs(text).items()}
        asked = self.codes.pop(given.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT}:{quote_plus(SECRET)}".encode()).decode()
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or call.headers["Authorization"] != f"Basic {basic}"
            or asked["code_challenge"] != proof
            or asked["code_challenge_method"] != "S256"
            or asked["redirect_uri"] != given["redirect_uri"]
        ):
            self.send(call, 400, {"error": "invalid_grant"})
            return
        moment = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "u-1", "nonce": asked["nonce"]}
        claims |= {"iat": moment, "exp": moment + 300, "preferred_username": "clara"}
        claims = {k: v for k, v in {**claims, **self.change}.items() if v is not None}
        key = self.other if self.forged else self.key
        signed = jwt.encode({"alg": "ES256", "kid": "one"}, claims, key)
        self.send(call, 200, {"access_token": "a", "token_type": "Bearer", "id_token": signed})


@pytest.fixture(scope="module")
def issuer():
    made = Issuer()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def signing(issuer, tmp_path):
    issuer.change, issuer.forged = {}, False
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    with catalog.database.writing() as session:
        accounts.create(session, "clara", ["admin"], password="a sentence that is long enough")
    settings = ServiceSettings(worker=False, provider=Provider(issuer.url, CLIENT, SECRET))
    with running(settings, catalog) as url:
        yield url, catalog


def walk(url: str, caller: httpx.Client) -> httpx.Response:
    """Go to the provider and back, as a browser does."""
    assert "Sign in at 127.0.0.1" in caller.get(f"{url}/sign-in").text
    away = caller.get(f"{url}/sign-in/oidc")
    assert away.status_code == 303
    back = caller.get(away.headers["location"])
    return caller.get(back.headers["location"])


def test_who_signs_in_elsewhere_has_an_account_without_a_role(signing):
    url, catalog = signing
    with httpx.Client(timeout=60) as caller:
        answer = walk(url, caller)
        assert answer.status_code == 200
        assert "samesite=strict" in answer.headers["set-cookie"].lower()
        assert caller.get(f"{url}/tokens").status_code in (200, 403)
        assert caller.get(f"{url}/accounts").status_code == 403
        walk(url, caller)
    with catalog.database.reading() as session:
        admin = accounts.named(session, "clara")
        everybody = session.query(type(admin)).all()
    assert admin.subject is None, "a name ties nobody to an account that is there"
    (made,) = [one for one in everybody if one.subject]
    assert made.roles == []
    assert made.name.startswith("clara ")


def test_a_closed_account_stays_out(signing):
    url, catalog = signing
    with httpx.Client(timeout=60) as caller:
        walk(url, caller)
        with catalog.database.writing() as session:
            (made,) = [
                one
                for one in session.query(type(accounts.named(session, "clara"))).all()
                if one.subject
            ]
            made.disabled = True
        assert walk(url, caller).status_code == 401


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://evil.example"},
        {"nonce": "replayed"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
    ],
)
def test_a_token_that_is_not_for_us_now_is_refused(issuer, signing, change):
    url, _ = signing
    issuer.change = change
    with httpx.Client(timeout=60) as caller:
        assert walk(url, caller).status_code == 401


def test_a_token_of_another_key_is_refused(issuer, signing):
    url, _ = signing
    issuer.forged = True
    with httpx.Client(timeout=60) as caller:
        assert walk(url, caller).status_code == 401


def test_an_answer_that_nobody_asked_for_is_refused(signing):
    url, _ = signing
    with httpx.Client(timeout=60) as caller:
        assert caller.get(f"{url}/sign-in/callback?code=x&state=y").status_code == 401
        caller.get(f"{url}/sign-in/oidc")
        assert caller.get(f"{url}/sign-in/callback?code=x&state=y").status_code == 401


def test_a_code_counts_once_and_for_its_verifier(issuer):
    issuer.change, issuer.forged = {}, False
    provider = Provider(issuer.url, CLIENT, SECRET)
    begun, back = Begun.new(), "http://127.0.0.1/back"
    where = httpx.get(address(provider, begun, back), timeout=60).headers["location"]
    given = {k: v[0] for k, v in parse_qs(urlsplit(where).query).items()}
    stolen = Begun(begun.state, begun.nonce, Begun.new().verifier)
    with pytest.raises(NotSignedIn):
        person(provider, stolen, back, **given)
    with pytest.raises(NotSignedIn):
        person(provider, begun, back, **given)


def test_a_provider_that_is_not_there_or_another_is_said(issuer):
    with pytest.raises(EngineError, match="does not answer"):
        address(Provider("http://127.0.0.1:9", CLIENT), Begun.new(), "x")
    with pytest.raises(EngineError, match="calls itself"):
        address(Provider(f"{issuer.url}/", CLIENT), Begun.new(), "x")
    with pytest.raises(PolicyError, match="TLS"):
        Provider("http://example.org", CLIENT)


def test_without_a_provider_there_is_none(tmp_path):
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    with running(ServiceSettings(worker=False), catalog) as url:
        assert "Sign in at" not in httpx.get(f"{url}/sign-in", timeout=60).text
        assert httpx.get(f"{url}/sign-in/oidc", timeout=60).status_code == 404


@pytest.mark.parametrize(
    ("held", "roles"),
    [
        (["staff", "aegis-op"], ["operator"]),
        ("aegis-aud", ["auditor"]),
        (["staff"], []),
        (None, []),
        (["aegis-op", 7, {"a": 1}, "admin"], ["operator"]),
        ({"aegis-op": True}, []),
    ],
)
def test_a_claim_gives_the_roles_that_were_named_and_no_others(held, roles):
    provider = Provider(
        "https://x.example",
        CLIENT,
        roles_claim="groups",
        roles={"aegis-op": "operator", "aegis-aud": "auditor"},
    )
    assert provider.roles_of({"groups": held}) == roles
    assert Provider("https://x.example", CLIENT).roles_of({"groups": held}) is None


@pytest.mark.parametrize(
    "given",
    [
        {"roles_claim": "groups"},
        {"roles": {"a": "admin"}},
        {"roles_claim": "g", "roles": {"a": "king"}},
    ],
)
def test_roles_of_a_claim_are_named_whole(given):
    with pytest.raises(PolicyError):
        Provider("https://x.example", CLIENT, **given)


def test_roles_follow_the_claim_of_each_sign_in(issuer, tmp_path):
    issuer.change, issuer.forged = {"groups": ["ops"]}, False
    catalog = Catalog.open(str(tmp_path / "c.db"), str(tmp_path / "o"))
    provider = Provider(issuer.url, CLIENT, SECRET, "groups", {"ops": "operator"})
    with running(ServiceSettings(worker=False, provider=provider), catalog) as url:
        for change, roles in (({"groups": ["ops"]}, ["operator"]), ({}, [])):
            issuer.change = change
            with httpx.Client(timeout=60) as caller:
                assert walk(url, caller).status_code == 200
            with catalog.database.reading() as session:
                made = accounts.named(session, "clara")
                assert (made.roles, made.roles_claimed) == (roles, True)


def test_two_long_names_of_a_provider_are_no_one_person(issuer, signing):
    """Cut to what the table holds they were the same, and the second signed in as the first."""
    url, catalog = signing
    statuses = []
    for last in "ab":
        issuer.change = {"sub": "x" * 250 + last}
        with httpx.Client(timeout=60) as caller:
            statuses.append(walk(url, caller).status_code)
    assert statuses == [401, 401]
    with catalog.database.reading() as session:
        assert session.query(Account).filter(Account.subject.is_not(None)).count() == 0
