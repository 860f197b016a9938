"""The settings of a service."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from aegis.service.catalog.limited import USUAL, WorkLimits
from aegis.service.notifying import Channel
from aegis.service.oidc import Provider


@dataclass(frozen=True)
class Operation:
    """How a service is operated: its proxies, logs, retention and notices.

    Attributes
    ----------
    proxies
        Addresses or networks of proxies that say who calls; None for this machine, behind TLS alone.
    access_log
        Where a line of JSON is written for each call: a file, "-" for standard output, None for nowhere.
    keep
        How long files of releases stay that have expired or were revoked; None for ever.
    channels
        By which people hear that a request waits for them.
    """

    proxies: tuple[str, ...] | None = None
    access_log: str | None = None
    keep: timedelta | None = None
    channels: tuple[Channel, ...] = ()


@dataclass(frozen=True)
class ServiceSettings:
    """How a service runs.

    Attributes
    ----------
    database, objects
        Where the catalog is kept: see `aegis.service.catalog.Catalog.open`.
    local
        One person's own machine: no accounts, loopback alone, tables of `folder`.
    folder
        The folder whose tables `local` opens; nothing outside of it.
    origin
        The URL under which browsers see the service, such as https://aegis.example.org.
    worker
        Whether this process works on background jobs, too.
    calls
        Most calls of one caller in a minute; calls that work hard count for several.
    provider
        The identity provider where people may sign in, too.
    processes
        How many processes answer calls.
    shared
        Files in which they count calls together: of callers, and of addresses; None for one process.
    work
        What one job of the worker, or the check of an upload, may take.
    operation
        How it is operated.
    """

    database: str = "aegis-catalog.db"
    objects: str | None = None
    local: bool = False
    folder: Path | None = None
    origin: str = "http://127.0.0.1:8080"
    worker: bool = True
    calls: int = 600
    provider: Provider | None = None
    processes: int = 1
    shared: tuple[Path, Path] | None = None
    work: WorkLimits | None = USUAL
    operation: Operation = Operation()

    @property
    def secure(self) -> bool:
        """Whether cookies require TLS; plain HTTP is for loopback and tests."""
        return self.origin.startswith("https://")
