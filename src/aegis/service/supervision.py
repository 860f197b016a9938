"""Supervision of the processes of one service: a process that has ended or hangs is replaced.

The supervisor of uvicorn waits for the answer of one process before it looks at the next, and looks at signals after that:
while one process started or hung, no other one was replaced, and the service did not end when it was told to.
"""

from __future__ import annotations

import pickle
from socket import socket
from time import monotonic

from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors.multiprocess import Multiprocess, Process

START = 300
"""Seconds until the first answer of a process: on a busy machine it loads for long, and one that is ended
meanwhile never starts."""
ANSWER = 30.0
"""Seconds for each further answer. A thread that does nothing else gives it: who does not give it hangs."""
END = 15.0
"""Seconds that a process has to end after it was told to; it answers its calls for at most five of them."""


class WatchedProcess(Process):
    """A process that is asked whether it answers, without blocking."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._asked: float | None = None
        self._answered = False

    def is_alive(self, timeout: float = ANSWER) -> bool:
        """Return whether the process runs, and has not owed an answer for too long."""
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
    """The first process of a service: it listens, and the others answer."""

    def init_processes(self) -> None:
        """Start the processes."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace each process that has ended or hangs; end if none can start."""
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
        """Wait until all processes have ended; one that hangs is killed."""
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
