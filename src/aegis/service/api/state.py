"""The state of the service, for programs that start it, watch it, or send it calls."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from aegis.service.api import shapes
from aegis.service.catalog import Action, logbook, signs
from aegis.service.catalog.access import authorise
from aegis.service.identity import ActorOf, CatalogOf
from aegis.service.metrics import MEDIA, CallMetrics
from aegis.service.routes import PUBLIC, Routes

routes = Routes(tags=["state"])


@routes.get("/live", PUBLIC)
async def live() -> dict[str, Any]:
    """Return that the process answers, without asking the database: restart a process that does
    not.
    """
    return {"status": "ok"}


@routes.get("/health", PUBLIC)
def ready(catalog: CatalogOf) -> dict[str, Any]:
    """Return whether the service, its database and its store of files answer, so that calls may
    be sent to it.
    """
    with catalog.database.reading() as session:
        logbook.ping(session)
    catalog.objects.ping()
    return {"status": "ok"}


@routes.get("/programs", Action.OPERATE)
def programs(actor: ActorOf, catalog: CatalogOf) -> list[dict[str, Any]]:
    """Return agents and workers, and when each was last seen; `silent` if it was killed or has
    lost its connection.
    """
    with catalog.database.reading() as session:
        return [shapes.program(program) for program in signs.listed(session, actor)]


@routes.get("/metrics", Action.OPERATE, response_class=Response)
def metrics(call: Request, actor: ActorOf, catalog: CatalogOf) -> Response:
    """Calls, jobs and requests as numbers, in the text format of Prometheus."""
    authorise(actor, Action.OPERATE)
    counted: CallMetrics = call.app.state.metrics
    return Response(counted.text(catalog), media_type=MEDIA)
