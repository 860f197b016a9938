"""The pages for people; they use the same functions as the API."""

from __future__ import annotations

from fastapi import APIRouter

from aegis.service.pages import account, accounts, bench, data_sets, local, log, people, requests
from aegis.service.pages.render import error_page
from aegis.service.settings import ServiceSettings

__all__ = ["PAGE_ROOMS", "error_page", "page_routers"]
PAGE_ROOMS = (people, account, accounts, log, data_sets, requests, bench)


def page_routers(settings: ServiceSettings) -> list[APIRouter]:
    """Return the routers of the catalog's pages, or of the workbench if `local` is set."""
    if settings.local:
        return [local.routes.router]
    return [room.routes.router for room in PAGE_ROOMS]
