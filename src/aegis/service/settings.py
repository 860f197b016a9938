"""Hold the settings of a service."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from aegis.service.catalog.limited import USUAL, WorkLimits
from aegis.service.notifying import Channel
from aegis.service.oidc import Provider


@dataclass(frozen=True)
class Operation:
    """Settings for operating a service.

    Attributes
    ----------
    proxies
        Addresses or networks of proxies that may state the caller's address. None trusts only a
        proxy on this machine, and only if the service uses TLS.
    access_log
        A file, "-" for standard output, None for no log.
    keep
        How long files of expired or revoked releases are kept; None keeps them for ever.
    channels
        Channels through which notices are sent.
    """

    proxies: tuple[str, ...] | None = None
    access_log: str | None = None
    keep: timedelta | None = None
    channels: tuple[Channel, ...] = ()


@dataclass(frozen=True)
class ServiceSettings:
    """The settings of a service.

    Attributes
    ----------
    database, objects
        Location of the catalog: the database (path or URL) and the store of files (folder or URL).
    local, folder
        Whether the service is for one person on one machine. It then has no accounts, answers only
        on a loopback address, and opens only the tables of `folder`.
    origin
        URL of the service in browsers, such as https://aegis.example.org.
    worker
        Whether this process works on background jobs, too.
    calls
        Largest number of calls of one caller in a minute; expensive calls count more.
    provider
        The identity provider for signing in, or None.
    processes, shared
        Number of processes that answer calls, and the files in which they count calls, by caller and
        by address; None for one process.
    work
        Limits of one job of the worker, and of the check of an upload.
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
        """Whether cookies are sent only over TLS; plain HTTP is only for loopback and tests."""
        return self.origin.startswith("https://")
