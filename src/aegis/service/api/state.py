"""API calls on the state of the service, for process managers, monitoring and load balancers."""

from __future__ import annotations

from typing import Any

from fastapi.responses import Response

from aegis.service.api import shapes
from aegis.service.catalog import Action, logbook, signs
from aegis.service.catalog.access import authorise
from aegis.service.identity import CallOf, VisitOf
from aegis.service.metrics import MEDIA, CallMetrics
from aegis.service.routes import PUBLIC, Routes

routes = Routes(tags=["state"])


@routes.get("/live", PUBLIC)
async def live() -> dict[str, Any]:
    """Report that the process runs, even if the database does not answer; if this call fails,
    restart the process.
    """
    return {"status": "ok"}


@routes.get("/health", PUBLIC)
def ready(visit: VisitOf) -> dict[str, Any]:
    """Report that the database and the file store work and can be written, so that the service can
    answer calls; the status is 503 otherwise.
    """
    with visit.reading() as session:
        logbook.ping(session)
    visit.catalog.objects.ping()
    return {"status": "ok"}


@routes.get("/programs", Action.OPERATE)
def programs(call: CallOf) -> list[dict[str, Any]]:
    """Return agents and workers with the time of their last sign of life.

    `silent` is true for a program that was killed or has lost its connection.
    """
    return [shapes.as_json(program) for program in call.read(signs.listed)]


@routes.get("/metrics", Action.OPERATE, response_class=Response)
def metrics(call: CallOf) -> Response:
    """Return counts of calls, jobs and requests in Prometheus's text format."""
    authorise(call.actor, Action.OPERATE)
    counted: CallMetrics = call.request.app.state.metrics
    return Response(counted.text(call.catalog), media_type=MEDIA)
