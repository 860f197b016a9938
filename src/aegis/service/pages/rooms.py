"""Choose the pages that a service offers: those of the catalog, or the local workbench."""

from __future__ import annotations

from fastapi import APIRouter

from aegis.service.pages import account, accounts, bench, data_sets, local, log, people, requests
from aegis.service.settings import ServiceSettings

PAGE_ROOMS = (people, account, accounts, log, data_sets, requests, bench)


def page_routers(settings: ServiceSettings) -> list[APIRouter]:
    """Return the routers of the catalog's pages, or of the workbench if `local` is set."""
    if settings.local:
        return [local.routes.router]
    return [room.routes.router for room in PAGE_ROOMS]
