"""Run jobs and send notices in the background of a process of the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aegis.service.catalog import Catalog
from aegis.service.notifying import Notifier, NotifierThread
from aegis.service.settings import ServiceSettings
from aegis.service.worker import WorkerThread


@contextmanager
def working(settings: ServiceSettings, catalog: Catalog) -> Iterator[None]:
    """Run background jobs and send notices, as set in the settings, while the context lasts."""
    threads: list[WorkerThread | NotifierThread] = []
    if settings.worker:
        threads.append(WorkerThread(catalog, keep=settings.operation.keep))
    if settings.operation.channels:
        threads.append(
            NotifierThread(Notifier(catalog, settings.operation.channels, settings.origin))
        )
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop()
        catalog.database.close()
