"""Run a service until it is stopped, in one or several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from fastapi import FastAPI

from aegis.service.app import create_app, working
from aegis.service.catalog import Catalog, UploadLimits
from aegis.service.metrics import FOLDER
from aegis.service.rates import shared_files
from aegis.service.settings import ServiceSettings
from aegis.service.supervision import START, Supervisor
from aegis.sources.embedded import lock_embedded

_LOOPBACK = ("127.0.0.1", "::1")


def serve(settings: ServiceSettings, host: str, port: int) -> None:
    """Answer calls on an address until the process is stopped.

    The embedded database engine of this process can open only the tables of `--local`.

    If there are several processes, this one listens, restarts the others if they end, and runs
    background jobs. The processes share their state in the database and in the files of `rates`.
    """
    if settings.processes == 1:
        uvicorn.run(_Application(settings)(), **_options(settings), host=host, port=port)
        return
    with shared_files() as shared, _working(settings), _counting():
        quiet = replace(settings.operation, channels=())
        each = replace(settings, shared=shared, worker=False, operation=quiet)
        config = uvicorn.Config(
            _Application(each),
            factory=True,
            workers=settings.processes,
            timeout_worker_healthcheck=START,
            **_options(settings),
            host=host,
            port=port,
        )
        Supervisor(config, sockets=[config.bind_socket()]).run()


@dataclass(frozen=True)
class _Application:
    """Creates the application in the process that serves it.

    Attributes
    ----------
    settings
        The settings of the service.
    """

    settings: ServiceSettings

    def __call__(self) -> FastAPI:
        folder = self.settings.folder
        app = create_app(self.settings)  # refuses settings before the engine is locked for good
        lock_embedded([] if folder is None else [folder])
        if self.settings.shared is not None:
            threading.Thread(target=_end_with_parent, daemon=True).start()
        return app


def _options(settings: ServiceSettings) -> dict[str, Any]:
    return {
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "date_header": True,
        "proxy_headers": settings.secure or settings.operation.proxies is not None,
        "forwarded_allow_ips": list(settings.operation.proxies or _LOOPBACK),
        "timeout_graceful_shutdown": 5,
        # Longer than proxies keep idle connections: one that closes as a call comes looks like a failure.
        "timeout_keep_alive": 75,
    }


@contextmanager
def _working(settings: ServiceSettings) -> Iterator[None]:
    """Run background jobs next to the processes that answer; update the database's tables first."""
    catalog = Catalog.open(
        settings.database, settings.objects, limits=UploadLimits(work=settings.work), connections=2
    )
    with working(settings, catalog):
        yield


@contextmanager
def _counting() -> Iterator[None]:
    """Set up Prometheus so that the processes of this service add up their metrics."""
    with tempfile.TemporaryDirectory(prefix="aegis-metrics-") as folder:
        os.environ[FOLDER] = folder
        yield


def _end_with_parent() -> None:
    """End this process once the parent process has ended, even if the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
