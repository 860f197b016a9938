"""API calls for agents, which fetch jobs and upload results, and for people who follow jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import File, Form, UploadFile
from fastapi import Request as Call
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from aegis.service.api import shapes
from aegis.service.catalog import Action, Catalog, CatalogError, data_sets, deliveries, flow, jobs
from aegis.service.catalog.access import ActedOn, Actor, authorise
from aegis.service.catalog.errors import TooLarge
from aegis.service.identity import ActorOf, CatalogOf
from aegis.service.routes import Routes

routes = Routes(tags=["agents and jobs"])
_FOLLOWED = 900
_OWNER = 120
"""Largest number of characters of an agent's name in tables and log."""


@routes.post("/work", Action.WORK, responses={204: {"description": "There is no work."}})
def claim(given: shapes.WorkAsked, actor: ActorOf, catalog: CatalogOf) -> Response:
    """Fetch the next job for your own data sets; 204 if there is none."""
    authorise(actor, Action.WORK, ActedOn(provider=actor.account))
    with catalog.database.writing() as session:
        owner = f"{actor.name}/{given.owner}"[:_OWNER]
        job = flow.claim(session, owner, jobs.AGENT, provider=actor.account)
        if job is None:
            return Response(status_code=204)
        return Response(
            json.dumps(shapes.shown(job) | {"task": job.task}), media_type="application/json"
        )


@routes.post("/jobs/{job_id}/alive", Action.WORK)
def alive(job_id: str, given: shapes.Alive, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Report that the agent still works on a job, with its progress."""
    with catalog.database.writing() as session:
        deliveries.require_agent(session, actor, job_id)
        return shapes.shown(jobs.renew(session, job_id, given.attempt, given.progress))


@routes.post("/jobs/{job_id}/give-back", Action.WORK)
def give_back(
    job_id: str, given: shapes.GivenBack, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Return a job to the queue, so that another agent can fetch it at once."""
    with catalog.database.writing() as session:
        deliveries.require_agent(session, actor, job_id)
        return shapes.shown(jobs.give_back(session, job_id, given.attempt))


@routes.post("/jobs/{job_id}/failed", Action.WORK)
def failed(job_id: str, given: shapes.Failed, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Report that the agent could not do a job, and why."""
    deliveries.failed(catalog, actor, job_id, given.attempt, given.reason, spent=given.spent)
    return {}


@routes.post("/jobs/{job_id}/checked", Action.WORK)
def checked(
    job_id: str, given: shapes.Checked, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Report which configuration meets the rule, on its own and together with earlier releases."""
    return shapes.shown(deliveries.checked(catalog, actor, job_id, given.attempt, given.answer))


@routes.post("/uploads/{job_id}/summary", Action.WORK)
def upload_summary(
    job_id: str,
    actor: ActorOf,
    catalog: CatalogOf,
    attempt: Annotated[int, Form(ge=1)],
    policy: Annotated[str, Form()],
    signature: Annotated[str, Form(max_length=2000)],
    bundle: Annotated[UploadFile, File()],
) -> dict[str, Any]:
    """Upload the protected summary of a job, signed by the agent."""
    _require_agent(catalog, actor, job_id)
    version = deliveries.summary(
        catalog,
        actor,
        job_id,
        attempt,
        policy=policy,
        bundle=_content(bundle, catalog.limits.summary),
        signature=_signature(signature),
    )
    return shapes.shown(version)


@routes.post("/uploads/{job_id}/release", Action.WORK)
def upload_release(
    job_id: str,
    actor: ActorOf,
    catalog: CatalogOf,
    attempt: Annotated[int, Form(ge=1)],
    certificate: Annotated[str, Form()],
    signature: Annotated[str, Form(max_length=2000)],
    file: Annotated[UploadFile, File()],
) -> dict[str, Any]:
    """Upload the masked file of a job with its certificate and signature."""
    _require_agent(catalog, actor, job_id)
    made = deliveries.release(
        catalog,
        actor,
        job_id,
        attempt,
        file_name=file.filename or "",
        content=_content(file, catalog.limits.release),
        certificate=certificate,
        signature=_signature(signature),
    )
    return shapes.shown(made)


@routes.post("/keys", Action.WORK)
def rotate(given: shapes.Rotation, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Replace the signing key of the agent of your data sets."""
    with catalog.database.writing() as session:
        return {"data_sets": data_sets.rotate(session, actor, given.model_dump())}


@routes.get("/jobs/{job_id}", Action.SEE_REQUEST)
def show(job_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Return a job with its state and progress."""
    return _seen(catalog, actor, job_id)


@routes.post("/jobs/{job_id}/cancel", Action.RUN)
def cancel(job_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Cancel a job that has not finished."""
    with catalog.database.writing() as session:
        return shapes.shown(flow.cancel(session, actor, job_id))


@routes.post("/jobs/{job_id}/retry", Action.RUN)
def retry(job_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Repeat a search, check, audit or summary that failed or was cancelled."""
    with catalog.database.writing() as session:
        return shapes.shown(flow.retry_job(session, actor, job_id))


@routes.get("/jobs/{job_id}/events", Action.SEE_REQUEST, response_class=StreamingResponse)
def events(job_id: str, call: Call, actor: ActorOf, catalog: CatalogOf) -> Response:
    """Stream the progress of a job (server-sent events)."""
    first = _seen(catalog, actor, job_id)
    return StreamingResponse(
        _following(catalog, actor, job_id, call, first), media_type="text/event-stream"
    )


async def _following(
    catalog: Catalog, actor: Actor, job_id: str, call: Call, shown: dict[str, Any]
) -> AsyncIterator[str]:
    last = None
    for _ in range(_FOLLOWED):
        if shown != last:
            yield f"data: {json.dumps(shown)}\n\n"
            last = shown
        if shown["state"] not in ("queued", "running") or await call.is_disconnected():
            return
        await asyncio.sleep(0.5)
        shown = await run_in_threadpool(_seen, catalog, actor, job_id)


def _seen(catalog: Catalog, actor: Actor, job_id: str) -> dict[str, Any]:
    with catalog.database.reading() as session:
        job = flow.seen_job(session, actor, job_id, Action.SEE_REQUEST, Action.STUDY)
        return shapes.shown(job)


def _require_agent(catalog: Catalog, actor: Actor, job_id: str) -> None:
    """Raise an error, before the upload is read, unless the job belongs to the actor's data sets."""
    with catalog.database.reading() as session:
        deliveries.require_agent(session, actor, job_id)


def _content(file: UploadFile, most: int) -> bytes:
    """Return the content of an upload; raise an error if it is larger than `most` bytes."""
    if (file.size or 0) > most:
        raise TooLarge(f"The file has more than {most:,} bytes.", hint="Split the table.")
    return file.file.read()


def _signature(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CatalogError(
            "The signature is not JSON.",
            hint="Upload results with `aegis agent`, which signs them.",
        ) from error
    if not isinstance(value, dict):
        raise CatalogError(
            "The signature is not a JSON object.",
            hint="Upload results with `aegis agent`, which signs them.",
        )
    return value
