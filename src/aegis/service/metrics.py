"""Count for Prometheus the calls to the service, and the waiting jobs and requests.

Metrics contain no names of persons, data sets or requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from aegis.service.catalog import Catalog, jobs, signs
from aegis.service.catalog.records import Job, LogEntry, Request, now

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that names the folder in which the processes of one service count together.

`prometheus_client` reads it when it is loaded.
"""
MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
_SECONDS = (0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class CallMetrics:
    """Counts the calls to one application, and measures how long the calls take."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "aegis_calls",
            "Calls that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "aegis_call_seconds",
            "Seconds until a call was answered.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Add one call to the counts, after the application has answered it."""
        method = method if method in _METHODS else "other"  # callers may make up names without end
        self._calls.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self, catalog: Catalog) -> bytes:
        """Return all metrics in Prometheus's text format, summed over the processes of the service."""
        calls = self._registry
        if os.environ.get(FOLDER):
            calls = CollectorRegistry()
            MultiProcessCollector(calls)  # type: ignore[no-untyped-call]
        with catalog.database.reading() as session:
            stored = SimpleNamespace(collect=lambda: _gauges(session))
            return generate_latest(calls) + generate_latest(stored)


def _programs(session: Session) -> Iterator[GaugeMetricFamily]:
    """Yield the number of agents and workers, and the seconds since each kind was last seen."""
    moment, seen_programs = now(), signs.programs(session)
    count = GaugeMetricFamily(
        "aegis_programs", "Agents and workers that were seen.", labels=("place", "state")
    )
    last = GaugeMetricFamily(
        "aegis_last_seen_seconds", "Time since an agent or a worker was seen.", labels=("place",)
    )
    for program in (jobs.AGENT, jobs.WORKER):
        there = [sign for sign in seen_programs if sign.place == program]
        silent = sum(sign.silent for sign in there)
        count.add_metric((program, "running"), len(there) - silent)
        count.add_metric((program, "silent"), silent)
        if there:
            last.add_metric((program,), (moment - there[0].seen).total_seconds())
    yield from (count, last)


def _gauges(session: Session) -> Iterator[GaugeMetricFamily]:
    jobs = GaugeMetricFamily("aegis_jobs", "Jobs by place and state.", labels=("place", "state"))
    counted = select(Job.place, Job.state, func.count()).group_by(Job.place, Job.state)
    for program, state, count in session.execute(counted):
        jobs.add_metric((program, state), count)
    yield jobs
    waits = GaugeMetricFamily(
        "aegis_oldest_job_seconds", "Age of the oldest job that waits.", labels=("place",)
    )
    oldest = select(Job.place, func.min(Job.created)).where(Job.state == "queued")
    for program, since in session.execute(oldest.group_by(Job.place)):
        waits.add_metric((program,), (now() - since).total_seconds())
    yield waits
    yield from _programs(session)
    requests = GaugeMetricFamily("aegis_requests", "Requests by state.", labels=("state",))
    for state, count in session.execute(
        select(Request.state, func.count()).group_by(Request.state)
    ):
        requests.add_metric((state,), count)
    yield requests
    entries = session.scalar(select(func.max(LogEntry.number))) or 0
    yield GaugeMetricFamily("aegis_log_entries", "Entries of the log.", value=entries)
