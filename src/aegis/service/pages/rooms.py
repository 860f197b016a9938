"""The pages of a service: those of the catalog, or the workbench for one's own tables."""

from __future__ import annotations

from fastapi import APIRouter

from aegis.service.pages import account, accounts, bench, data_sets, local, log, people, requests
from aegis.service.settings import ServiceSettings

PAGE_ROOMS = (people, account, accounts, log, data_sets, requests, bench)


def page_routers(settings: ServiceSettings) -> list[APIRouter]:
    """Return the routers of the pages."""
    if settings.local:
        return [local.routes.router]
    return [room.routes.router for room in PAGE_ROOMS]
