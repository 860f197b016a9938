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
from service_support import PASSWORD

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


def test_a_session_holds_in_each_and_calls_are_counted_by_all(several):
    url, _ = several
    given = {"name": "ada", "password": PASSWORD}
    cookies = dict(httpx.post(f"{url}/api/v1/session", json=given).raise_for_status().cookies)
    # Each on a connection of its own, so that both processes answer some.
    assert {httpx.get(f"{url}/api/v1/me", cookies=cookies).status_code for _ in range(12)} == {200}
    path = f"{url}/api/v1/data-sets/none/costs"  # ten calls' worth
    statuses = [httpx.get(path).status_code for _ in range(80)]
    refused = statuses.count(429)
    assert set(statuses) == {401, 429}
    assert refused >= 10  # each process by itself would let 60 through


def test_who_is_killed_is_started_anew_and_nobody_outlives_the_first(several):
    url, process = several
    first = serving(process)
    os.kill(first[0], signal.SIGKILL)
    until(lambda: len(serving(process)) == 2 and serving(process) != first)
    until(lambda: answers(url))
    left = serving(process)
    process.kill()
    process.wait(timeout=30)
    until(lambda: not any(Path(f"/proc/{n}").exists() for n in left))
