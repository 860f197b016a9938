"""A service of several processes, as `aegis serve --processes` runs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import uvicorn
from service_support import PASSWORD
from uvicorn.config import STARTUP_FAILURE

from aegis.service import run as supervision
from aegis.service.catalog import Catalog, accounts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def several(tmp_path):
    """Yield the address of a service of two processes, and the process that started them."""
    database = str(tmp_path / "catalog.db")
    catalog = Catalog.open(database)
    with catalog.database.writing() as session:
        accounts.create(session, "ada", ["admin"], password=PASSWORD)
    catalog.database.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    start = "from aegis.cli.main import main; main()"
    arguments = ("serve", "--database", database, "--processes", "2", "--port", port, "--quiet")
    process = subprocess.Popen([sys.executable, "-c", start, *arguments])
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: len(serving(process)) == 2 and answers(url))
        yield url, process
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(url):
    try:
        return httpx.get(f"{url}/sign-in").status_code == 200
    except httpx.HTTPError:
        return False


def serving(process):
    """Return the processes that answer; not the one that counts their resources."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [n for n in map(int, listed) if "spawn_main" in Path(f"/proc/{n}/cmdline").read_text()]


def until(condition, seconds=300):
    """Wait for a condition; how long processes take to start is the machine's business."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_processes_serve_as_one_and_whoever_is_killed_is_started_anew(several):
    """One service for all of it: three processes take seconds to start."""
    url, process = several
    first = serving(process)
    os.kill(first[0], signal.SIGKILL)
    until(lambda: len(serving(process)) == 2 and serving(process) != first)
    until(lambda: answers(url))
    a_session_holds_in_each_and_calls_are_counted_by_all(url)
    left = serving(process)
    process.kill()
    process.wait(timeout=30)
    until(lambda: not any(Path(f"/proc/{n}").exists() for n in left))


def a_session_holds_in_each_and_calls_are_counted_by_all(url):
    given = {"name": "ada", "password": PASSWORD}
    cookies = dict(httpx.post(f"{url}/api/v1/session", json=given).raise_for_status().cookies)
    # Each on a connection of its own, so that both processes answer some.
    assert {httpx.get(f"{url}/api/v1/me", cookies=cookies).status_code for _ in range(12)} == {200}
    path = f"{url}/api/v1/data-sets/none/costs"  # ten calls' worth
    # Each process by itself would let 60 through, and more as time passes: the first refusal is enough.
    statuses = (httpx.get(path).status_code for _ in range(2 * 60 - 1))
    assert next(status for status in statuses if status != 401) == 429


class Child:
    """A process as the supervisor sees it."""

    def __init__(self) -> None:
        self.killed = False
        self.exitcode = None
        self.pid = 1

    def is_alive(self) -> bool:
        return not self.killed

    def start(self) -> None:
        """Run."""

    def kill(self) -> None:
        self.killed, self.exitcode = True, self.exitcode or -9

    def join(self, timeout: float | None = None) -> None:
        """Wait for nothing: that a process that hangs does not end is seen by `is_alive`."""


@pytest.fixture
def clock(monkeypatch):
    """A time that passes when a test says so."""
    told = [1000.0]
    monkeypatch.setattr(supervision, "monotonic", lambda: told[0])
    return told


@pytest.fixture
def supervisor(monkeypatch, clock):
    """A supervisor of two processes, neither of which answers by itself."""
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.get_subprocess", lambda *_: Child())
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
    made = supervision.Supervisor(uvicorn.Config("none:app", workers=2), sockets=[])
    made.init_processes()
    return made


def answer(process) -> None:
    """Do what the thread of a process that runs does."""
    process.child_conn.recv()
    process.child_conn.send(True)


def test_a_process_may_start_for_long_and_must_answer_soon_from_then_on(supervisor, clock):
    first, second = supervisor.processes
    supervisor.keep_subprocess_alive()
    clock[0] += supervision.START - 1
    answer(first)
    supervisor.keep_subprocess_alive()
    assert supervisor.processes == [first, second]
    clock[0] += 2
    supervisor.keep_subprocess_alive()  # the second one has never answered
    assert supervisor.processes[0] is first
    assert second.process.killed
    third = supervisor.processes[1]
    assert third is not second
    clock[0] += supervision.ANSWER + 1
    supervisor.keep_subprocess_alive()  # the first one answered once, and no more; the third one starts
    assert first.process.killed
    assert supervisor.processes[1] is third


def test_one_process_that_hangs_keeps_no_other_from_being_replaced(supervisor):
    hangs, ends = supervisor.processes
    ends.process.kill()
    supervisor.keep_subprocess_alive()
    assert supervisor.processes[0] is hangs
    assert supervisor.processes[1] is not ends


def test_a_process_that_hangs_is_killed_at_the_end(supervisor, clock):
    supervisor.join_all()
    assert [process.process.killed for process in supervisor.processes] == [True, True]


def test_a_process_that_cannot_start_ends_the_service(supervisor):
    (first, _) = supervisor.processes
    first.process.kill()
    first.process.exitcode = STARTUP_FAILURE
    supervisor.keep_subprocess_alive()
    assert supervisor.should_exit.is_set()
