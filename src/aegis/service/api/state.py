"""API calls on the state of the service, for process managers, monitoring and load balancers."""

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
    """Check that the process answers, even if its database does not. If this fails, restart it."""
    return {"status": "ok"}


@routes.get("/health", PUBLIC)
def ready(catalog: CatalogOf) -> dict[str, Any]:
    """Check that the service, its database and its file store answer, so that it can receive calls."""
    with catalog.database.reading() as session:
        logbook.ping(session)
    catalog.objects.ping()
    return {"status": "ok"}


@routes.get("/programs", Action.OPERATE)
def programs(actor: ActorOf, catalog: CatalogOf) -> list[dict[str, Any]]:
    """Return agents and workers, and when each was last seen; `silent` means killed or cut off."""
    with catalog.database.reading() as session:
        return [shapes.program(program) for program in signs.listed(session, actor)]


@routes.get("/metrics", Action.OPERATE, response_class=Response)
def metrics(call: Request, actor: ActorOf, catalog: CatalogOf) -> Response:
    """Return numbers of calls, jobs and requests in the text format of Prometheus."""
    authorise(actor, Action.OPERATE)
    counted: CallMetrics = call.app.state.metrics
    return Response(counted.text(catalog), media_type=MEDIA)
