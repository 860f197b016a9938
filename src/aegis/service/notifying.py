"""Notices by mail to people, and by webhook to programs, when a request waits or has ended.

A message names the request, the data set and what has happened, with the address of the page: no purpose,
no figure, nothing of a row.
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
from typing import Any, Protocol

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
"""Most seconds that a mail server or a receiver may take."""
_TRIES = 5
"""So often a notice is sent before it is given up."""
_DONE = -1
_MAIL = ("server", "port", "encryption", "user", "from", "to")
_ENCRYPTION = ("starttls", "tls", "none")
_WEBHOOK = ("url",)


class Channel(Protocol):
    """A way to send notices."""

    @property
    def name(self) -> str:
        """The name of the channel in the log."""
        ...

    def send(self, notice: Notice, page: str) -> None:
        """Send a notice, with the address of the request's page; raise `OSError` if that fails."""
        ...


@dataclass(frozen=True)
class Mail:
    """Sends messages to persons whose address is known.

    Attributes
    ----------
    server, port
        The mail server.
    encryption
        "starttls", "tls", or "none" for one on this machine.
    sender
        From whom messages come.
    addresses
        Addresses by the name of the account.
    user, password
        How to sign in there; None for a server that asks for nothing.
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
        """Send a message to each recipient of the notice."""
        known = [self.addresses[name] for name in notice.to if name in self.addresses]
        if not known:
            return
        try:
            with self._connected() as server:
                for address in known:
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
    """Calls of a program, signed with a secret that it shares.

    `X-Aegis-Signature` is the HMAC with SHA-256 of the time in `X-Aegis-Time`, a full stop and the body.

    Attributes
    ----------
    url
        Where it is.
    secret
        What both know.
    """

    url: str
    secret: str
    name: str = "webhook"

    def send(self, notice: Notice, page: str) -> None:
        """Call the program with a notice as JSON."""
        told = {
            "event": notice.hash,
            "title": notice.title,
            "request": notice.request,
            "data_set": notice.data_set,
            "to": list(notice.to),
            "page": page,
        }
        body, moment = json.dumps(told).encode(), now().isoformat(timespec="seconds")
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


def signature_of(secret: str, moment: str, body: bytes) -> str:
    """Return the signature that a receiver compares with `X-Aegis-Signature`."""
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


@dataclass
class Notifier:
    """Sends notices from the log until it is told to end.

    Attributes
    ----------
    catalog
        Whose log.
    channels
        By which ways.
    origin
        Where pages are.
    """

    catalog: Catalog
    channels: tuple[Channel, ...]
    origin: str
    over: threading.Event = field(default_factory=threading.Event)
    _tried: dict[int, dict[str, int]] = field(default_factory=dict)
    _looked: int = 0

    def run(self, say: Callable[[str], None] = lambda line: None) -> None:  # noqa: ARG005
        """Send new notices until told to end; continue when a database or server is back."""
        while not self.over.is_set():
            try:
                self.once()
            except (SQLAlchemyError, AegisError) as error:
                say(f"notices: {type(error).__name__}")
            self.over.wait(_EVERY)

    def once(self) -> int:
        """Send new notices once; return how many were sent or given up."""
        with self.catalog.database.writing() as session:
            up_to = notices.begin(session)
        with self.catalog.database.reading() as session:
            waiting = notices.since(session, max(up_to, self._looked))
        sent = 0
        for entry, notice in waiting:
            if notice is not None:
                if not self._told(notice, up_to):
                    break
                up_to, sent = entry, sent + 1
            self._looked = entry
        return sent

    def _told(self, notice: Notice, up_to: int) -> bool:
        """Send a notice by each channel, and note it; False where it is to be tried once more."""
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
    """Return the channels of a file; secrets come from the environment.

    Raises
    ------
    PolicyError
        The file names no channel, or one that cannot be used.
    """
    document = read_yaml(read_text(path, "notices", PolicyError), str(path)).data
    makers: Mapping[str, Callable[[Mapping[str, Any], Path], Channel]] = {
        "mail": _mail,
        "webhook": _webhook,
    }
    if not isinstance(document, Mapping) or not document or document.keys() - makers.keys():
        raise PolicyError(
            f"{path} names no way to send notices.", hint=f"Allowed: {', '.join(makers)}."
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
            f"{path}: the webhook {url!r} is no https:// address.",
            hint="Plain http goes to this machine alone.",
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
    given = set(about) if isinstance(about, Mapping) else set()
    if not set(needed) <= given <= set(allowed):
        raise PolicyError(
            f"{path}: {name} has the keys {', '.join(sorted(map(str, given))) or 'none'}.",
            hint=f"Needed: {', '.join(needed)}; allowed: {', '.join(allowed)}.",
        )


class NotifierThread:
    """A notifier in the process of the service, as a thread."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._thread = threading.Thread(target=notifier.run, name="aegis-notices", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End after the notice at hand."""
        self._notifier.over.set()
        self._thread.join(timeout=_SECONDS)
