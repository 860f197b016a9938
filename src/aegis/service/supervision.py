"""Restart the processes of a service that have ended or hang.

uvicorn's supervisor waits for the answer of one process before it checks the next, and handles
signals only after that. While one process starts or hangs, it replaces no other process, and
ignores the signal to end. The classes of this module do not wait.
"""

from __future__ import annotations

import pickle
from socket import socket
from time import monotonic

from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors.multiprocess import Multiprocess, Process

START = 300
"""Number of seconds that a process may take until its first answer.

On a busy machine, loading takes long. A process that is killed while it loads never starts.
"""
ANSWER = 30.0
"""Number of seconds for each further answer. A thread answers, so a late answer means a hang."""
END = 15.0
"""Number of seconds that a process may take to end; it answers calls for at most five of them."""


class WatchedProcess(Process):
    """A process that the supervisor pings without waiting for the answer."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._asked: float | None = None
        self._answered = False

    def is_alive(self, timeout: float = ANSWER) -> bool:
        """Return whether the process runs and has answered within `timeout` seconds."""
        if not self.process.is_alive():
            return False
        try:
            if self._asked is None:
                self.parent_conn.send(b"ping")
                self._asked = monotonic()
            elif self.parent_conn.poll(0):
                self.parent_conn.recv()
                self._asked, self._answered = None, True
        except (OSError, EOFError, pickle.UnpicklingError):
            return False
        waited = 0.0 if self._asked is None else monotonic() - self._asked
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
