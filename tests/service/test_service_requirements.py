"""Requirements of docs/security-requirements.md that no test of a part shows: what the service does not do."""

from __future__ import annotations

import ast
import logging
import re
import ssl
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from service_support import PASSWORD

from aegis.errors import EngineError
from aegis.service.catalog import Catalog, accounts
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.records import Account
from aegis.service.client import Client

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "aegis" / "service"
TEXT = (ROOT / "docs" / "how-to" / "service-trust.md").read_text()


def calls() -> list[tuple[Path, ast.Call]]:
    """Return every call of the service's code, with its file."""
    return [
        (path, node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]


def named(node: ast.Call) -> str:
    return ast.unparse(node.func)


@contextmanager
def browser(place, name: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=place.url, headers={"Origin": place.url}, timeout=60) as made:
        assert made.post("/sign-in", data={"name": name, "password": PASSWORD}).status_code == 303
        yield made


def test_nothing_that_people_send_is_evaluated():
    """No expression, template or format is made of data; what is unpickled comes from our own processes."""
    made = calls()
    assert len(made) > 1000
    for path, node in made:
        name = named(node)
        assert name not in ("eval", "exec", "compile", "__import__"), path
        assert not name.endswith((".from_string", "os.system", ".popen")), path
        if name.startswith("re."):
            assert isinstance(node.args[0], ast.Constant), (path, node.lineno)
        if name.endswith(".format"):
            text = node.func.value
            text = text.args[0] if isinstance(text, ast.Call) and named(text) == "Markup" else text
            assert isinstance(text, ast.Constant), (path, node.lineno)
        if name.startswith("pickle.load"):
            assert ast.unparse(node.args[0]) == "sys.stdin.buffer", path


def test_scripts_come_from_the_package_and_keep_nothing_in_the_browser(place):
    files = {path.name: path.read_text() for path in (SOURCE / "static").iterdir()}
    assert set(files) == {"app.js", "htmx.min.js", "style.css"}
    for word in ("localStorage", "indexedDB", "document.cookie", "postMessage"):
        assert word not in files["app.js"], word
    with browser(place, "clara") as clara:
        sources = set(re.findall(r'src="([^"]+)"', clara.get("/").text))
    assert sources <= {"/static/app.js", "/static/htmx.min.js"}
    for template in (SOURCE / "templates").iterdir():
        assert not re.search(r"\bon(click|paste|load|change)=", template.read_text()), template


@pytest.mark.parametrize(
    "path", ["/.git/config", "/static/", "/static/../run.py", "/objects/", "/catalog.db", "/docs"]
)
def test_nothing_lies_beside_what_is_served(place, path):
    with browser(place, "ada") as ada:
        assert ada.get(path).status_code == 404


def test_methods_that_echo_a_call_are_refused(place):
    for path in ("/", "/api/v1/me"):
        assert httpx.request("TRACE", f"{place.url}{path}").status_code == 405


def test_a_parameter_that_comes_twice_is_read_in_one_way(place):
    """The last one counts, for what is checked and for what is done."""
    headers = {"Authorization": f"Bearer {place.tokens['aude']}"}
    url = f"{place.url}/api/v1/log?limit=1&limit="
    assert len(httpx.get(f"{url}2", headers=headers).json()["entries"]) == 2
    assert httpx.get(f"{url}100000", headers=headers).status_code == 422


@pytest.mark.parametrize("length", [64, 256])
def test_a_long_password_counts_as_it_was_typed(place, length):
    """Nothing is cut or changed, blanks at its ends neither."""
    name, password = f"long{length}", f" {'ä b' * length}"[: length - 1] + " "
    with place.catalog.database.writing() as session:
        accounts.create(session, name, ["consumer"], password=password)
    database = place.catalog.database
    assert accounts.sign_in(database, name, password)
    for other in (password.strip(), password[:-2] + "c ", password.upper()):
        with pytest.raises(CatalogError):
            accounts.sign_in(database, name, other)


def test_fields_of_passwords_are_hidden_and_may_be_filled_by_a_manager(place):
    with browser(place, "clara") as clara:
        pages = [httpx.get(f"{place.url}/sign-in").text, clara.get("/account").text]
    fields = [
        f for page in pages for f in re.findall(r"<input[^>]*name=\"(?:password|new)\"[^>]*>", page)
    ]
    assert len(fields) >= 3
    for field in fields:
        assert 'type="password"' in field
        assert re.search('autocomplete="(current|new)-password"', field)


def test_a_new_catalog_has_no_account(tmp_path):
    catalog = Catalog.open(str(tmp_path / "c.db"))
    with catalog.database.reading() as session:
        assert session.query(Account).count() == 0
    catalog.database.close()


def test_times_of_sessions_are_those_that_are_documented():
    told = TEXT.split("- **Sessions.**", 1)[1].split("\n- ", 1)[0]
    assert f"{accounts.IDLE.total_seconds() / 60:.0f} minutes" in told
    assert f"{accounts.LONGEST.total_seconds() / 3600:.0f} hours" in told


def test_each_page_of_who_is_signed_in_offers_to_sign_out(place):
    with browser(place, "ada") as ada:
        for path in ("/", "/log", "/accounts", "/tokens", "/account"):
            assert 'action="/sign-out"' in ada.get(path).text, path


def test_who_signs_out_is_forgotten_by_the_browser(place):
    with browser(place, "clara") as clara:
        key = clara.get("/account").text.split('name="form_key" value="', 1)[1].split('"', 1)[0]
        answer = clara.post("/sign-out", data={"form_key": key})
        assert answer.headers["Clear-Site-Data"] == '"cache", "cookies", "storage"'
        again = {"name": "clara", "password": PASSWORD}
        assert clara.post("/api/v1/session", json=again).status_code == 200
        assert "cookies" in clara.post("/api/v1/session/end").headers["Clear-Site-Data"]


@pytest.mark.parametrize("way", ["page", "api"])
def test_who_signs_in_again_has_one_session(place, way):
    """The secret that the browser had before is worth nothing then."""
    with browser(place, "clara") as clara:
        former = dict(clara.cookies)
        given = {"name": "clara", "password": PASSWORD}
        again = (
            clara.post("/sign-in", data=given)
            if way == "page"
            else clara.post("/api/v1/session", json=given)
        )
        assert again.status_code in (200, 303)
        assert dict(clara.cookies) != former
        assert clara.get("/api/v1/me").status_code == 200
    assert httpx.get(f"{place.url}/api/v1/me", cookies=former).status_code == 401


def test_the_service_is_installed_only_where_it_is_asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {
        re.split(r"[\[<>=~ ;]", line)[0] for line in project["optional-dependencies"]["service"]
    }
    always = {re.split(r"[\[<>=~ ;]", line)[0] for line in project["dependencies"]}
    assert {"fastapi", "uvicorn", "sqlalchemy"} <= {name.lower() for name in asked}
    assert not asked & always
    pinned = {
        line.split("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    assert {name.lower() for name in asked | always} <= pinned


def test_refusals_are_in_the_access_log_with_who_tried(place, tmp_path):
    """Who may not, what is malformed, what is another's, and what comes too often."""
    from test_service_operation import behind, lines_of

    log = tmp_path / "access.jsonl"
    with behind(place, access_log=str(log), calls=3) as url:
        headers = {"Authorization": f"Bearer {place.tokens['clara']}"}
        httpx.get(f"{url}/api/v1/accounts", headers=headers)
        httpx.get(f"{url}/api/v1/log?limit=x", headers=headers)
        statuses = [httpx.get(f"{url}/api/v1/me", headers=headers).status_code for _ in range(200)]
    assert 429 in statuses
    seen = lines_of(log)
    assert {403, 422, 429} <= {line["status"] for line in seen}
    assert {line["account"] for line in seen if line["status"] in (403, 422)} == {"clara"}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)", line["time"]) for line in seen)


def self_signed(folder: Path, name: str) -> Path:
    """Write a key and a certificate of this machine that no authority signed."""
    moment = datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(moment - timedelta(days=1)).add_extension(address, False)
    signed = made.not_valid_after(moment + timedelta(days=1)).sign(key, hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = folder / f"{name}.pem"
    path.write_bytes(private + signed.public_bytes(Encoding.PEM))
    return path


class Answering(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def test_an_agent_believes_the_pinned_certificate_and_no_other(tmp_path):
    own, other = self_signed(tmp_path, "own"), self_signed(tmp_path, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"https://127.0.0.1:{server.server_port}"
        assert Client(url, "t", certificate=own).health() == {}
        for believed in (other, None):
            with pytest.raises(EngineError, match="does not answer"):
                Client(url, "t", certificate=believed).health()
        server.shutdown()


class Kept(logging.Handler):
    """Keeps the first record that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.there = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.record = record
        self.there.set()


def test_an_error_that_nobody_expected_is_logged_and_not_told(place, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("canary")

    kept, logger = Kept(), logging.getLogger("uvicorn.error")
    logger.addHandler(kept)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("aegis.service.catalog.logbook.ping", broken)
            answer = httpx.get(f"{place.url}/api/v1/health")
        assert kept.there.wait(60)  # it is logged once it is answered
    finally:
        logger.removeHandler(kept)
    assert (answer.status_code, answer.json()["title"]) == (500, "InternalError")
    assert "canary" not in answer.text
    assert "canary" in str(kept.record.exc_info[1])
