"""Run a service until it is stopped, in one or several processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from dataclasses import dataclass, replace
from socket import socket
from time import monotonic
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from aegis.files import temporary_folder
from aegis.service.app import create_app, working
from aegis.service.catalog import Catalog, UploadLimits
from aegis.service.metrics import FOLDER
from aegis.service.rates import shared_files
from aegis.service.settings import ServiceSettings
from aegis.sources.embedded import lock_embedded

_LOOPBACK = ("127.0.0.1", "::1")
START = 300
"""Number of seconds that a process may take until its first answer.

On a busy machine, loading takes long. A process that is killed while it loads never starts.
"""
ANSWER = 30.0
"""Number of seconds for each further answer. A thread answers, so a late answer means a hang."""
END = 15.0
"""Number of seconds that a process may take to end; it answers calls for at most five of them."""


def serve(settings: ServiceSettings, host: str, port: int) -> None:
    """Answer calls on an address until the process is stopped.

    If the settings ask for several processes, this process starts the others, replaces them if they
    end, and runs background jobs.
    """
    if settings.processes == 1:
        uvicorn.run(_Application(settings)(), **_options(settings), host=host, port=port)
        return
    limits = UploadLimits(work=settings.work)
    # Before the other processes start, so that one of them alone updates the database's tables.
    catalog = Catalog.open(settings.database, settings.objects, limits=limits, connections=2)
    counting = temporary_folder("metrics")
    with shared_files() as shared, working(settings, catalog), counting as folder:
        os.environ[FOLDER] = str(folder)  # so that the processes add up their metrics
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
    """Creates the application in the process that serves it."""

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


def _end_with_parent() -> None:
    """Start a thread that ends this process once its parent has ended, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class WatchedProcess(Process):
    """A process that the supervisor pings without waiting for the answer."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._pinged: float | None = None
        self._answered = False

    def is_alive(self, timeout: float = ANSWER) -> bool:
        """Return whether the process runs and has answered the last ping within `timeout` seconds."""
        if not self.process.is_alive():
            return False
        try:
            if self._pinged is None:
                self.parent_conn.send(b"ping")
                self._pinged = monotonic()
            elif self.parent_conn.poll(0):
                self.parent_conn.recv()
                self._pinged, self._answered = None, True
        except (OSError, EOFError, pickle.UnpicklingError):
            return False
        waited = 0.0 if self._pinged is None else monotonic() - self._pinged
        return waited < (timeout if self._answered else START)


class Supervisor(Multiprocess):
    """The parent process of a service: it starts, checks and replaces the processes that answer
    calls.
    """

    def init_processes(self) -> None:
        """Start the configured number of processes."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace each process that has ended or hangs; end the service if no process can start."""
        for number, process in enumerate(self.processes):
            if self.should_exit.is_set() or process.is_alive(timeout=ANSWER):
                continue
            process.kill()
            process.join()
            if process.exitcode == STARTUP_FAILURE:  # the next one would fail in the same way
                self.should_exit.set()
                return
            self.processes[number] = self._started()

    def join_all(self) -> None:
        """Wait until all processes have ended, and kill those that hang."""
        end = monotonic() + END
        for process in self.processes:
            process.process.join(max(0.0, end - monotonic()))
            if process.process.is_alive():
                process.kill()
            process.join()

    def _started(self) -> WatchedProcess:
        process = WatchedProcess(self.config, self.sockets)
        process.start()
        return process
