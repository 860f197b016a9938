"""A few kills of service, worker and agent; `kills.py` makes a hundred. Disks and databases that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from service_support import PASSWORD

from aegis.errors import EngineError

SCRIPT = Path(__file__).with_name("kills.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_is_killed_loses_nothing():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "2", "2"], capture_output=True, text=True, timeout=400
    )
    told = json.loads(done.stdout)
    assert told["wrong"] == [], done.stderr
    assert sum(told["killed"].values()) == 2
    assert told["releases"] >= 1


def test_a_store_without_space_says_so_and_keeps_nothing_half(place, monkeypatch):
    """A file that cannot be kept fails its job with the reason, and can be tried again."""
    number = place.ask()
    with place.client("otto") as otto:
        otto.step(number, "approve")
        otto.step(number, "run")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("obstore.put", full)
            with pytest.raises(EngineError, match="did not accept the file"):
                place.agent.once()
        assert otto.shown(number)["state"] == "running"
    answer = httpx.get(f"{place.url}/api/v1/health")
    assert answer.status_code == 200
    _let_go(place, number)
    place.work()
    with place.client("otto") as otto:
        assert otto.shown(number)["state"] == "released"


@pytest.mark.parametrize("part", ["files", "database"])
def test_a_disk_that_became_read_only_is_said(place, monkeypatch, part):
    """Health said that all is well, and each job failed."""
    name = {"files": "objects", "database": "catalog.db"}[part]
    real = os.access

    def refused(path: str | Path, mode: int) -> bool:
        return Path(path).name != name and real(path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "access", refused)
        answer = httpx.get(f"{place.url}/api/v1/health")
    assert answer.status_code == 503
    told = {"files": "cannot write files", "database": "cannot write to its database"}
    assert told[part] in answer.json()["detail"]
    assert httpx.get(f"{place.url}/api/v1/health").json() == {"status": "ok"}


def test_a_database_that_is_gone_is_said_and_comes_back(place, monkeypatch):
    from sqlalchemy.exc import OperationalError
    from sqlalchemy.orm import Session

    def gone(*_: object, **__: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception("server closed the connection"))

    headers = {"Authorization": f"Bearer {place.tokens['clara']}"}
    with monkeypatch.context() as patched:
        patched.setattr(Session, "scalar", gone)
        patched.setattr(Session, "execute", gone)
        for path in ("/api/v1/health", "/api/v1/data-sets"):
            answer = httpx.get(f"{place.url}{path}", headers=headers)
            assert (answer.status_code, answer.json()["title"]) == (503, "OperationalError")
            assert "does not answer" in answer.json()["detail"]
            assert "secret" not in answer.text
        form = {"name": "clara", "password": PASSWORD}
        page = httpx.post(f"{place.url}/sign-in", data=form, headers={"Origin": place.url})
        assert page.status_code == 503
        assert "does not answer" in page.text
    assert httpx.get(f"{place.url}/api/v1/health").json() == {"status": "ok"}


def _let_go(place, number: str) -> None:
    from datetime import timedelta

    from sqlalchemy import select

    from aegis.service.catalog.records import Job, now

    with place.catalog.database.writing() as session:
        waiting = select(Job).where(Job.request_id == number, Job.state == "running")
        for job in session.scalars(waiting):
            job.leased_until = now() - timedelta(seconds=1)
