"""People hear that a request waits for them, by mail and by webhook."""

from __future__ import annotations

import json
import smtplib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from catalog_support import CONFIGURATION, offered, world
from sqlalchemy import select

from aegis.errors import PolicyError
from aegis.service import notifying
from aegis.service.catalog import consistency, notices, requests
from aegis.service.catalog.records import LogEntry, Request
from aegis.service.notifying import Mail, Notifier, Webhook, load_channels, signature_of

SECRET = "0123456789abcdef"


class Kept:
    """A channel that keeps what it is given, and fails when told to."""

    def __init__(self, name: str = "kept", fails: int = 0) -> None:
        self.name, self.fails = name, fails
        self.sent: list[tuple[str, tuple[str, ...], str]] = []

    def send(self, notice, page: str) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("away")
        self.sent.append((notice.words, notice.to, page))


@pytest.fixture
def place(tmp_path):
    made = world(tmp_path)
    offered(made, approvals=2)
    yield made
    made.catalog.database.close()


def notifier(place, *channels) -> Notifier:
    made = Notifier(place.catalog, channels, "https://aegis.example.org")
    made.once()
    return made


def act(place, step, *given):
    with place.catalog.database.writing() as session:
        return step(session, *given)


def submitted(place) -> str:
    number = act(place, lambda s: requests.draft(s, place.clara, "census", purpose="secret").id)
    act(place, requests.submit, place.clara, number)
    return number


def checked(place, number: str, *, holds: bool = True) -> None:
    def answer(session):
        request = session.get(Request, number)
        found = {"holds": holds, "releases": []}
        requests.set_configuration(session, place.otto, request, CONFIGURATION, found)

    act(place, answer)


def test_each_hears_what_waits_for_them(place):
    kept = Kept()
    told = notifier(place, kept)
    number = submitted(place)
    told.once()
    act(place, requests.review, place.otto, number)
    checked(place, number)
    told.once()
    act(place, requests.approve, place.otto, number)
    told.once()
    act(place, requests.approve, place.anna, number)
    told.once()
    page = f"https://aegis.example.org/requests/{number}"
    assert kept.sent == [
        ("waits for review", ("boris", "otto"), page),
        ("waits for approval", ("anna", "boris"), page),
        ("waits for a second approval", ("anna", "boris"), page),
        ("is approved: make the release", ("boris", "otto"), page),
    ]
    act(place, requests.reject, place.anna, number, "no")
    assert told.once() == 1
    assert kept.sent[-1][:2] == ("was rejected", ("clara",))
    with place.catalog.database.reading() as session:
        wrong = consistency.compare(session, place.catalog.objects)
        assert [line for line in wrong if not line.startswith("object ")] == []


def test_nobody_is_told_of_what_is_over_or_breaks_the_rule(place):
    kept = Kept()
    told = notifier(place, kept)
    number = submitted(place)
    act(place, requests.review, place.otto, number)
    checked(place, number, holds=False)
    assert (told.once(), kept.sent) == (0, [])


def test_nothing_is_told_twice_nor_of_the_time_before(place):
    submitted(place)
    first, second = Kept(), Kept()
    assert notifier(place, first).once() == 0
    submitted(place)
    assert Notifier(place.catalog, (first,), "https://a").once() == 1
    assert Notifier(place.catalog, (second,), "https://a").once() == 0
    assert (len(first.sent), second.sent) == (1, [])


def test_a_channel_that_is_away_is_tried_again_and_given_up_while_others_go_on(place):
    works, fails = Kept("works"), Kept("fails", fails=2)
    told = notifier(place, works, fails)
    submitted(place)
    assert [told.once() for _ in range(3)] == [0, 0, 1]
    assert (len(works.sent), len(fails.sent)) == (1, 1)
    fails.fails = 10**6
    submitted(place)
    assert [told.once() for _ in range(5)] == [0, 0, 0, 0, 1]
    assert len(works.sent) == 2
    with place.catalog.database.reading() as session:
        query = select(LogEntry).where(LogEntry.action == notices.NOTICES_SENT)
        entry = session.scalars(query.order_by(LogEntry.number.desc())).first()
    assert entry.detail["failed"] == ["fails"]


def test_many_entries_that_concern_nobody_hold_nothing_up(place, monkeypatch):
    monkeypatch.setattr(notices, "_MOST", 3)
    kept = Kept()
    told = notifier(place, kept)
    for _ in range(3):
        number = submitted(place)
        act(place, requests.withdraw, place.clara, number)
    submitted(place)
    assert [told.once(), told.once()] == [0, 1]


def test_two_services_note_a_notice_once(place):
    told = notifier(place, Kept())
    submitted(place)
    with place.catalog.database.reading() as session:
        up_to = notices.told_up_to(session)
        (_, notice), *_ = notices.since(session, up_to)
    assert act(place, notices.note, notice, up_to, [])
    assert not act(place, notices.note, notice, up_to, [])
    assert told.once() == 0


def notice() -> notices.Notice:
    return notices.Notice(7, "ab" * 32, "4f2c9a" + "0" * 26, "census", "waits", ("anna", "otto"))


def test_a_mail_goes_to_those_whose_address_is_known(monkeypatch):
    sent, talked = [], []

    class Server:
        def __init__(self, host, port, **_) -> None:
            talked.append((host, port))

        def __enter__(self):
            return self

        def __exit__(self, *_) -> None:
            talked.append("closed")

        def starttls(self, *, context) -> None:
            talked.append(context.check_hostname)

        def login(self, user, password) -> None:
            talked.append((user, password))

        def send_message(self, message) -> None:
            sent.append(message)

    monkeypatch.setattr(smtplib, "SMTP", Server)
    mail = Mail("smtp", 587, "starttls", "aegis@x.org", {"otto": "otto@x.org"}, "aegis", "pass")
    mail.send(notice(), "https://a/requests/4f2c9a")
    assert talked == [("smtp", 587), True, ("aegis", "pass"), "closed"]
    (message,) = sent
    assert message["To"] == "otto@x.org"
    assert message["Subject"] == "[Aegis] Request 4f2c9a00 for census waits"
    assert "https://a/requests/4f2c9a" in message.get_content()
    Mail("smtp", 587, "starttls", "aegis@x.org", {}).send(notice(), "x")
    assert len(sent) == 1


def test_a_mail_server_that_is_not_there_is_an_error_of_the_channel():
    with pytest.raises(ConnectionRefusedError):
        Mail("127.0.0.1", 1, "none", "a@x.org", {"otto": "o@x.org"}).send(notice(), "x")


def test_an_address_with_a_line_break_adds_no_header(place):
    bad = Mail("127.0.0.1", 1, "none", "a@x.org", {"otto": "o@x.org\nBcc: all@x.org"})
    with pytest.raises(ValueError, match="linefeed"):
        bad._message(notice(), "x", bad.addresses["otto"])


class Receiver(ThreadingHTTPServer):
    def __init__(self, status: int) -> None:
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((dict(self.headers), body))
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


@pytest.mark.parametrize("status", [204, 307, 500])
def test_a_webhook_is_signed_and_follows_nothing(status):
    receiver = Receiver(status)
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}/", SECRET)
    try:
        if status == 204:
            hook.send(notice(), "https://a/requests/4f2c9a")
        else:
            with pytest.raises(OSError, match="HTTPStatusError"):
                hook.send(notice(), "x")
    finally:
        receiver.shutdown()
        receiver.server_close()
    ((headers, body),) = receiver.received
    assert headers["X-Aegis-Signature"] == signature_of(SECRET, headers["X-Aegis-Time"], body)
    assert headers["X-Aegis-Signature"] != signature_of("other", headers["X-Aegis-Time"], body)
    told = json.loads(body)
    assert told["event"] == "ab" * 32
    assert told["to"] == ["anna", "otto"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "does not say how"),
        ("pigeon: {}", "does not say how"),
        ("webhook: {url: 'http://chat.example.org'}", "must start with https"),
        ("webhook: {}", "has the keys none"),
        ("webhook: {url: 'https://x', key: y}", "has the keys key, url"),
        ("mail: {server: x, from: y}", "has the keys from, server"),
        ("mail: {server: x, from: y, to: [z]}", "an address for each account"),
        ("mail: {server: x, from: y, to: {z: w}, port: 0}", "needs a port"),
        ("mail: {server: x, from: y, to: {z: w}, encryption: none}", "with the encryption 'none'"),
        ("mail: {server: x, from: y, to: {z: w}, encryption: rot13}", "'rot13'"),
    ],
)
def test_a_file_of_channels_that_cannot_be_is_refused(tmp_path, monkeypatch, text, words):
    monkeypatch.setenv("AEGIS_WEBHOOK_SECRET", SECRET)
    file = tmp_path / "notify.yaml"
    file.write_text(text)
    with pytest.raises(PolicyError, match=words):
        load_channels(file)


def test_a_file_of_channels_is_read_and_needs_a_secret(tmp_path, monkeypatch):
    file = tmp_path / "notify.yaml"
    file.write_text(
        "mail: {server: smtp.x.org, from: a@x.org, user: a, to: {otto: o@x.org}}\n"
        "webhook: {url: 'https://chat.x.org/hook'}\n"
    )
    monkeypatch.setenv("AEGIS_SMTP_PASSWORD", "pass")
    monkeypatch.setenv("AEGIS_WEBHOOK_SECRET", "short")
    with pytest.raises(PolicyError, match="at least 16 characters"):
        load_channels(file)
    monkeypatch.setenv("AEGIS_WEBHOOK_SECRET", SECRET)
    mail, hook = load_channels(file)
    assert (mail.port, mail.encryption, mail.password) == (587, "starttls", "pass")
    assert hook == Webhook("https://chat.x.org/hook", SECRET)
    assert notifying.Mail is type(mail)
