"""Send mail to people and webhooks to programs when a request waits or has ended.

A message contains the request, the data set, the event and the URL of the page. It does not contain
the purpose, figures or data of rows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import smtplib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy.exc import SQLAlchemyError

from aegis.errors import AegisError, PolicyError
from aegis.files import read_text
from aegis.policy.lines import read_yaml
from aegis.service.agent_settings import is_loopback
from aegis.service.catalog import Catalog, notices
from aegis.service.catalog.notices import Notice
from aegis.service.catalog.records import now

_EVERY = 5.0
_SECONDS = 10.0
"""Largest number of seconds that a mail server or a receiver may take."""
_TRIES = 5
"""Number of attempts to send a notice."""
_DONE = -1
_MAIL = ("server", "port", "encryption", "user", "from", "to")
_ENCRYPTION = ("starttls", "tls", "none")
_WEBHOOK = ("url",)


@dataclass(frozen=True)
class Mail:
    """Sends mail to accounts with a known address. `encryption` is "starttls", "tls", or "none" for
    a server on this machine. `addresses` has the mail address of each account. `user` and
    `password` are None for a server without authentication.
    """

    server: str
    port: int
    encryption: str
    sender: str
    addresses: Mapping[str, str]
    user: str | None = None
    password: str | None = None
    name: str = "mail"

    def send(self, notice: Notice, page: str) -> None:
        """Send a message with the URL `page` to each recipient of the notice."""
        addresses = [self.addresses[name] for name in notice.to if name in self.addresses]
        if not addresses:
            return
        try:
            with self._connected() as server:
                for address in addresses:
                    server.send_message(self._message(notice, page, address))
        except smtplib.SMTPException as error:
            raise OSError(type(error).__name__) from error

    def _message(self, notice: Notice, page: str, address: str) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = f"[Aegis] {notice.title}"
        message["From"], message["To"] = self.sender, address
        message["Message-ID"] = f"<{notice.hash}@aegis>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(f"{notice.title}.\n\n{page}\n")
        return message

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        context = ssl.create_default_context()
        opened: smtplib.SMTP
        if self.encryption == "tls":
            opened = smtplib.SMTP_SSL(self.server, self.port, timeout=_SECONDS, context=context)
        else:
            opened = smtplib.SMTP(self.server, self.port, timeout=_SECONDS)
        with opened as server:
            if self.encryption == "starttls":
                server.starttls(context=context)
            if self.user is not None:
                server.login(self.user, self.password or "")
            yield server


@dataclass(frozen=True)
class Webhook:
    """Calls a program over HTTP, and signs each call with a shared secret: the header
    `X-Aegis-Signature` is the HMAC-SHA-256 of the time in `X-Aegis-Time`, a full stop and the body.
    """

    url: str
    secret: str
    name: str = "webhook"

    def send(self, notice: Notice, page: str) -> None:
        """Call the program with a notice and the URL `page` as JSON."""
        fields = {
            "event": notice.hash,
            "title": notice.title,
            "request": notice.request,
            "data_set": notice.data_set,
            "to": list(notice.to),
            "page": page,
        }
        body, moment = json.dumps(fields).encode(), now().isoformat(timespec="seconds")
        headers = {
            "Content-Type": "application/json",
            "X-Aegis-Time": moment,
            "X-Aegis-Signature": signature_of(self.secret, moment, body),
        }
        try:
            answer = httpx.post(self.url, content=body, headers=headers, timeout=_SECONDS)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise OSError(type(error).__name__) from error


Channel = Mail | Webhook
"""A way to send notices. It has a name in the log, and raises `OSError` if it cannot send."""


def signature_of(secret: str, moment: str, body: bytes) -> str:
    """Return the `X-Aegis-Signature` of a body sent at `moment`, the value of `X-Aegis-Time`.
    Receivers can compare it.
    """
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


@dataclass
class Notifier:
    """Sends notices about new log entries through each channel until it is stopped. `origin` is the
    URL of the service, for links.
    """

    catalog: Catalog
    channels: tuple[Channel, ...]
    origin: str
    over: threading.Event = field(default_factory=threading.Event)
    _tried: dict[int, dict[str, int]] = field(default_factory=dict)
    _looked: int = 0

    def run(self, say: Callable[[str], None] = lambda line: None) -> None:  # noqa: ARG005
        """Send new notices until the notifier is stopped. If a database or server does not answer,
        wait and try again.
        """
        while not self.over.is_set():
            try:
                self.once()
            except (SQLAlchemyError, AegisError) as error:
                say(f"notices: {type(error).__name__}")
            self.over.wait(_EVERY)

    def once(self) -> int:
        """Send the new notices once. Return how many were sent or given up for good."""
        with self.catalog.database.writing() as session:
            up_to = notices.begin(session)
        with self.catalog.database.reading() as session:
            waiting = notices.since(session, max(up_to, self._looked))
        sent = 0
        for entry, notice in waiting:
            if notice is not None:
                if not self._sent(notice, up_to):
                    break
                up_to, sent = entry, sent + 1
            self._looked = entry
        return sent

    def _sent(self, notice: Notice, up_to: int) -> bool:
        """Send a notice on each channel, and record this after `up_to`, the last recorded entry of
        the log. Return False if a channel must be tried again later.
        """
        tries = self._tried.setdefault(notice.entry, {})
        page = f"{self.origin}/requests/{notice.request}"
        for channel in self.channels:
            if 0 <= tries.get(channel.name, 0) < _TRIES:
                try:
                    channel.send(notice, page)
                except (OSError, ValueError):  # ValueError: an address that no header takes
                    tries[channel.name] = tries.get(channel.name, 0) + 1
                else:
                    tries[channel.name] = _DONE
        failed = [name for name, count in tries.items() if count != _DONE]
        if any(tries[name] < _TRIES for name in failed):
            return False
        del self._tried[notice.entry]
        with self.catalog.database.writing() as session:
            return notices.note(session, notice, up_to, failed)


def load_channels(path: Path) -> tuple[Channel, ...]:
    """Return the channels configured in a file; secrets come from the environment. Raise
    `PolicyError` if the file has no channel, or one that cannot be used.
    """
    document = read_yaml(read_text(path, "notices", PolicyError), str(path)).data
    makers: Mapping[str, Callable[[Mapping[str, Any], Path], Channel]] = {
        "mail": _mail,
        "webhook": _webhook,
    }
    if not isinstance(document, Mapping) or not document or document.keys() - makers.keys():
        raise PolicyError(
            f"{path} does not say how to send notices.", hint=f"Allowed: {', '.join(makers)}."
        )
    return tuple(makers[name](about, path) for name, about in document.items())


def _mail(about: Any, path: Path) -> Mail:
    _require_keys(about, path, "mail", _MAIL, ("server", "from", "to"))
    encryption, server = str(about.get("encryption", "starttls")), str(about["server"])
    if encryption not in _ENCRYPTION or (
        encryption == "none" and not is_loopback(f"http://{server}")
    ):
        raise PolicyError(
            f"{path}: mail goes to {server} with the encryption {encryption!r}.",
            hint="Allowed: starttls, tls, and on this machine alone none.",
        )
    port = about.get("port", 465 if encryption == "tls" else 587)
    if not isinstance(port, int) or not 0 < port < 65_536 or not isinstance(about["to"], Mapping):
        raise PolicyError(
            f"{path}: mail needs a port, and an address for each account under to.",
            hint="For example: to: {otto: otto@example.org}.",
        )
    addresses = {str(name): str(address) for name, address in about["to"].items()}
    user = about.get("user")
    return Mail(
        server,
        port,
        encryption,
        str(about["from"]),
        addresses,
        None if user is None else str(user),
        os.environ.get("AEGIS_SMTP_PASSWORD"),
    )


def _webhook(about: Any, path: Path) -> Webhook:
    _require_keys(about, path, "webhook", _WEBHOOK, _WEBHOOK)
    url, secret = str(about["url"]), os.environ.get("AEGIS_WEBHOOK_SECRET", "")
    if not url.startswith("https://") and not (url.startswith("http://") and is_loopback(url)):
        raise PolicyError(
            f"{path}: the webhook {url!r} must start with https://.",
            hint="Use https. You can use http only for an address of this machine.",
        )
    if len(secret) < 16:
        raise PolicyError(
            "A webhook needs a secret of at least 16 characters.",
            hint="Set AEGIS_WEBHOOK_SECRET, for example to what openssl rand -hex 32 prints.",
        )
    return Webhook(url, secret)


def _require_keys(
    about: Any, path: Path, name: str, allowed: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    keys = set(about) if isinstance(about, Mapping) else set()
    if not set(needed) <= keys <= set(allowed):
        raise PolicyError(
            f"{path}: {name} has the keys {', '.join(sorted(map(str, keys))) or 'none'}.",
            hint=f"Needed: {', '.join(needed)}; allowed: {', '.join(allowed)}.",
        )
