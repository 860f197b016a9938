"""Read the settings file of an agent, and replace its signing key."""

from __future__ import annotations

import glob
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aegis.errors import PolicyError
from aegis.files import read_text
from aegis.policy.lines import read_yaml
from aegis.service.agent_book import AgentBook, write_private
from aegis.service.catalog.limited import WorkLimits
from aegis.service.client import Client
from aegis.service.pins import (
    Approvers,
    PinnedSource,
    certificate_of,
    load_approvers,
    load_sources,
    require_signed,
)
from aegis.signing import PrivateKey, PublicKey, load_private_key, load_public_key, make_keys

_SAVING = 0.5
"""Number of seconds that a program may take to save a settings file."""
_TRIES = 6
"""How often a changed file is read until two readings agree and can be used."""
_SETTINGS = (
    "url",
    "key",
    "sources",
    "name",
    "approvers",
    "approvals",
    "ledger",
    "certificate",
    "former_keys",
)
"""Keys of an agent's file; the first three are required."""
_FORMER = ".former-"
"""What a rotation puts between the name of a former key and its first digits."""


@dataclass(frozen=True)
class AgentSettings:
    """The settings of an agent: service, key, tables, and trusted approvers.

    Attributes
    ----------
    token
        A token of the provider with the scope "work".
    sources
        The tables by their names in the catalog. The agent never opens anything else.
    ledger
        Folder of the agent's own ledger.
    name
        Name of this agent in the log.
    certificate
        The only certificate (PEM) that the service may present; None trusts those that the machine
        trusts.
    work
        Limits of one job. With limits, each job runs in a separate process.
    file, text
        The file with these settings, and its content; None and empty without a file.
    former_keys
        Public keys with which earlier agents of these tables signed their releases.
    """

    url: str
    token: str
    key: PrivateKey
    sources: Mapping[str, PinnedSource]
    approvers: Approvers
    ledger: Path
    name: str = field(default_factory=socket.gethostname)
    certificate: Path | None = None
    work: WorkLimits | None = None
    file: Path | None = None
    text: str = ""
    former_keys: tuple[PublicKey, ...] = ()

    def __post_init__(self) -> None:
        scheme = urlsplit(self.url).scheme
        if scheme != "https" and not (scheme == "http" and is_loopback(self.url)):
            raise PolicyError(
                f"The agent does not call {self.url!r}: with http:// it calls only this machine.",
                hint="Give an address such as https://HOST. To pin the certificate of the service, "
                "set `certificate` in the agent's file.",
            )

    @classmethod
    def load(cls, path: Path, token: str, work: WorkLimits | None = None) -> AgentSettings:
        """Read the settings of an agent from YAML. Raise `PolicyError` if a key is missing or
        unknown, a key or policy cannot be read, or a table has no policies that the agent may use.
        """
        return cls._of(path, read_text(path, "agent", PolicyError), token, work)

    @classmethod
    def _of(cls, path: Path, text: str, token: str, work: WorkLimits | None) -> AgentSettings:
        """Return the settings in `text`, the content of the file `path`."""
        document = _settings_in(text, path)
        folder = path.parent
        more = {"name": str(document["name"])} if "name" in document else {}
        pinned, key_file = document.get("certificate"), folder / str(document["key"])
        return cls(
            str(document["url"]),
            token,
            load_private_key(key_file),
            load_sources(document["sources"], folder),
            load_approvers(document.get("approvers"), document.get("approvals"), folder),
            folder / str(document.get("ledger", "agent-ledger")),
            certificate=None if pinned is None else folder / str(pinned),
            work=work,
            file=path.absolute(),
            text=text,
            former_keys=_former_keys(key_file, document.get("former_keys"), folder),
            **more,
        )

    def made_elsewhere(
        self, certificates: Sequence[str], recorded: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return those of the service's certificates that are of releases by earlier agents: not of
        the releases in this agent's own ledger (`recorded`). Raise `RefusedError` if a certificate
        is of no release of this agent, and no key that the agent knows has signed it.

        The check of releases together counts the rows that share masked values. If the service
        could name any masks, each check would tell it the exact count of a group of persons that it
        chose.
        """
        keys = (self.key.public, *self.former_keys)
        listed = [_release_terms(release) for release in recorded]
        read = [certificate_of(text) for text in certificates]
        others = [each for each in read if _release_terms(each) not in listed]
        for document in others:
            require_signed(document, keys)
        return others

    def renewed(self) -> AgentSettings:
        """Return the settings with the tables, policies, floors and approvers of the present file.

        If somebody is saving the file, wait: part of a file may lack approvers, or be no settings
        at all. Raise `PolicyError`, as `load` does, if the file still cannot be read after some
        seconds.
        """
        if self.file is None:
            return self
        for _ in range(_TRIES):
            try:
                text = read_text(self.file, "agent", PolicyError)
                if text != self.text:
                    time.sleep(_SAVING)
                if text == self.text or text == read_text(self.file, "agent", PolicyError):
                    return self._with(text)
            except PolicyError:
                time.sleep(_SAVING)
        return self._with(read_text(self.file, "agent", PolicyError))

    def _with(self, text: str) -> AgentSettings:
        """Return a copy with the tables and approvers in `text`, the content of the settings file."""
        assert self.file is not None
        read = AgentSettings._of(self.file, text, self.token, self.work)
        return replace(self, sources=read.sources, approvers=read.approvers, text=text)


def _release_terms(certificate: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what decides which rows a release shows: its masks, its suppressed rows and its rule."""
    rule = certificate.get("policy", {}).get("privacy")
    return certificate["configuration"]["masks"], certificate.get("suppressed_rows"), rule


def _former_keys(key_file: Path, files: object, folder: Path) -> tuple[PublicKey, ...]:
    """Return the public keys of earlier agents: in the `files` of the setting `former_keys`, and
    those that a rotation left next to `key_file`.
    """
    if files is not None and not isinstance(files, list):
        raise PolicyError(
            "`former_keys` of the agent's file is not a list.", hint="Write [FILE.pub, ...]."
        )
    rotated = sorted(key_file.parent.glob(f"{glob.escape(key_file.name)}{_FORMER}*"))
    listed = [load_public_key(folder / str(file)) for file in files or ()]
    return (*listed, *(load_private_key(file).public for file in rotated))


def _settings_in(text: str, path: Path) -> dict[str, Any]:
    """Return the settings in `text`, the content of the file `path`."""
    document = read_yaml(text, str(path)).data
    if not isinstance(document, dict) or not set(_SETTINGS[:3]) <= document.keys():
        raise PolicyError(
            f"{path} is not an agent's file.",
            hint=f"It needs: {', '.join(_SETTINGS[:3])}; and may have: {', '.join(_SETTINGS[3:])}.",
        )
    unknown = document.keys() - set(_SETTINGS)
    if unknown:
        raise PolicyError(
            f"{path} has the unknown key {sorted(map(str, unknown))[0]!r}.",
            hint=f"Allowed: {', '.join(_SETTINGS)}.",
        )
    return document


def rotate_key(path: Path, token: str) -> int:
    """Replace the key of an agent; return the number of data sets that accept the new key. Raise
    `PolicyError` if the agent's file or its key cannot be read, and `EngineError` if the service
    does not answer; the key is then not changed.

    The old key stays in the same folder, with `.former-` in its name, and still verifies earlier
    releases. If a rotation was interrupted, another call completes it.
    """
    settings = AgentSettings.load(path, token)
    AgentBook(settings.ledger).secret(settings.key)  # before its key goes
    key_file = path.parent / str(_settings_in(read_text(path, "agent", PolicyError), path)["key"])
    fresh = key_file.with_name(f"{key_file.name}.new")
    if not fresh.exists():
        write_private(fresh, make_keys()[0])
    new = load_private_key(fresh)
    with Client(settings.url, token, certificate=settings.certificate) as client:
        changed = client.rotate(settings.key, new)
    key_file.rename(key_file.with_name(f"{key_file.name}{_FORMER}{settings.key.public.text[:8]}"))
    fresh.rename(key_file)
    return changed


def is_loopback(url: str) -> bool:
    """Return whether a URL has a loopback address of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
