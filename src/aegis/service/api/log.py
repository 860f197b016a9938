"""The log."""

from __future__ import annotations

from typing import Any

from aegis.catalog import Action, logbook
from aegis.service.api import shapes
from aegis.service.api.data_sets import Limit, Offset
from aegis.service.identity import ActorOf, CatalogOf
from aegis.service.routes import PUBLIC, Routes

routes = Routes(tags=["log"])


@routes.get("/log", Action.SEE_LOG)
def listed(
    actor: ActorOf, catalog: CatalogOf, offset: Offset = 0, limit: Limit = 50
) -> dict[str, Any]:
    """What happened to what one may see, the newest first."""
    with catalog.database.reading() as session:
        listed, count = logbook.listed(session, actor, offset=offset, limit=limit)
        return {"count": count, "entries": [shapes.log_entry(entry) for entry in listed]}


@routes.post("/log/verify", Action.SEE_LOG)
def verify(actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Whether the log is whole."""
    with catalog.database.reading() as session:
        checked = logbook.verify(session, actor)
        return {
            "whole": checked.whole,
            "entries": checked.entries,
            "head": checked.head,
            "broken": checked.broken,
            "reason": checked.reason,
        }


@routes.get("/health", PUBLIC)
def health(catalog: CatalogOf) -> dict[str, Any]:
    """Whether the service and its database answer."""
    with catalog.database.reading() as session:
        logbook.ping(session)
    return {"status": "ok"}
