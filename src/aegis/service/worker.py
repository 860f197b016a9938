"""Do the service's background jobs: search and audit protected summaries, and end expired releases."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy.exc import SQLAlchemyError

from aegis.errors import AegisError
from aegis.service.catalog import Catalog, flow, jobs, limited, requests, retention, signs
from aegis.service.catalog.errors import WrongState

_PAUSE = 0.5
_EXPIRE_EVERY = 60.0
SEARCH_SECONDS = 60.0
"""Largest number of seconds of one search."""


@dataclass
class Worker:
    """A program that does the background jobs of the service, one at a time. When `over` is set,
    the worker returns its current job to the queue and ends. `keep` says how long files of expired
    or revoked releases are kept; None keeps them for ever.
    """

    catalog: Catalog
    name: str = field(default_factory=lambda: f"worker-{uuid4().hex[:8]}")
    over: threading.Event = field(default_factory=threading.Event)
    keep: timedelta | None = None
    _expired: float = 0.0

    def run(self, say: Callable[[str], None] = lambda line: None) -> None:  # noqa: ARG005
        """Do jobs until `over` is set; wait and go on if the database does not answer."""
        try:
            while not self.over.is_set():
                try:
                    worked = self.once()
                except (SQLAlchemyError, AegisError) as error:
                    say(f"{self.name}: {type(error).__name__}")
                    worked = False
                if not worked:
                    self.over.wait(_PAUSE)
        finally:
            self.leave(say)

    def leave(self, say: Callable[[str], None] = lambda line: None) -> None:  # noqa: ARG005
        """Delete the record of this worker's last sign of life, so that it is not reported as silent."""
        try:
            with self.catalog.database.writing() as session:
                signs.leave(session, jobs.WORKER, self.name)
        except (SQLAlchemyError, AegisError) as error:
            say(f"{self.name}: {type(error).__name__}")

    def once(self) -> bool:
        """Do one job; return False if no job is waiting."""
        self._expire()
        with self.catalog.database.writing() as session:
            job = flow.claim(session, self.name, jobs.WORKER)
            claimed = None if job is None else (job.id, job.attempt, job.kind)
        if claimed is None:
            return False
        job_id, attempt, kind = claimed
        work = {"search": self._search, "leak": self._leak}[kind]
        try:
            work(_Life(self.catalog, job_id, attempt, self.over))
        except WrongState:
            return True
        except (_EndingError, KeyboardInterrupt) as end:
            with self.catalog.database.writing() as session:
                jobs.give_back(session, job_id, attempt)
            if isinstance(end, KeyboardInterrupt):
                raise
        except SQLAlchemyError:
            raise  # the job is begun again once its lease is over
        except Exception as error:  # noqa: BLE001 - a bug ends one job, and not the worker
            self._fail(job_id, attempt, error)
        return True

    def _fail(self, job_id: str, attempt: int, error: Exception) -> None:
        """Record that a job failed, without the text of an unexpected error, which may contain
        anything.
        """
        expected = isinstance(error, AegisError)
        if not expected:
            traceback.print_exception(error)
        message = str(error) if expected else f"A bug of Aegis: {type(error).__name__}."
        with self.catalog.database.writing() as session:
            jobs.fail(session, job_id, attempt, message)

    def _search(self, life: _Life) -> None:
        with self.catalog.database.reading() as session:
            request = jobs.request_of(session, jobs.current(session, life.job, life.attempt))
            key = request.version.summary_key
        listed, about = self._limited("search", key, life, seconds=SEARCH_SECONDS)
        with self.catalog.database.writing() as session:
            request = jobs.request_of(session, jobs.current(session, life.job, life.attempt))
            flow.ask_check(session, request, listed, about, may_search=True)
            jobs.finish(session, life.job, life.attempt, {"candidates": len(listed)})

    def _leak(self, life: _Life) -> None:
        """Audit a new protected summary, and store what it reveals, for the page of its data set."""
        with self.catalog.database.reading() as session:
            task = jobs.current(session, life.job, life.attempt).task
        findings = self._limited("leak", task["key"], life)
        with self.catalog.database.writing() as session:
            jobs.finish(session, life.job, life.attempt, {"version": task["version"], **findings})

    def _limited(self, task: str, key: str, life: _Life, **options: Any) -> Any:
        bundle = self.catalog.objects.get(key)
        return limited.run(
            task, self.catalog.limits.work, alive=life.send, progress=life, bundle=bundle, **options
        )

    def _expire(self) -> None:
        if time.monotonic() - self._expired < _EXPIRE_EVERY:
            return
        self._expired = time.monotonic()
        with self.catalog.database.writing() as session:
            requests.expire(session)
        if self.keep is not None:
            retention.clean(self.catalog, self.keep)


class _EndingError(Exception):
    """The worker must end, so it returns its job to the queue."""


@dataclass
class _Life(limited.ThrottledProgress):
    """The progress of a job of a worker. Each report tells the service that the worker still does
    the job, and raises an error if the job was cancelled or the worker must end.
    """

    catalog: Catalog
    job: str
    attempt: int
    over: threading.Event

    def send(self, state: Mapping[str, Any]) -> None:
        """Store the progress of the job, so that no other worker gets it."""
        if self.over.is_set():
            raise _EndingError
        with self.catalog.database.writing() as session:
            jobs.renew(session, self.job, self.attempt, state)
