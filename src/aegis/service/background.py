"""Run jobs and send notices in the background of a process of the service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aegis.service.catalog import Catalog
from aegis.service.notifying import Notifier
from aegis.service.settings import ServiceSettings
from aegis.service.worker import Worker

_PATIENCE = 10.0
"""Number of seconds in which a worker gives its job back, or a notice is sent, at the end."""


@contextmanager
def working(settings: ServiceSettings, catalog: Catalog) -> Iterator[None]:
    """Run background jobs and send notices, as set in the settings, while the context lasts."""
    programs: list[Worker | Notifier] = []
    if settings.worker:
        programs.append(Worker(catalog, keep=settings.operation.keep))
    if settings.operation.channels:
        programs.append(Notifier(catalog, settings.operation.channels, settings.origin))
    threads = [threading.Thread(target=program.run, daemon=True) for program in programs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for program, thread in zip(programs, threads, strict=True):
            program.over.set()
            thread.join(timeout=_PATIENCE)
        catalog.database.close()
