"""API calls for agents, which fetch jobs and upload results, and for people who follow jobs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, Any, TypeVar

from anyio.to_thread import run_sync
from fastapi import Depends, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from aegis.service.api import shapes
from aegis.service.api.shapes import json_object
from aegis.service.catalog import Action, data_sets, deliveries, flow, jobs
from aegis.service.catalog.access import ActedOn, authorise
from aegis.service.catalog.errors import CatalogError, TooLarge, TooOften
from aegis.service.identity import Call, CallOf, identified
from aegis.service.routes import Routes

routes = Routes(tags=["agents and jobs"])
_FOLLOWED = 900
_PAUSE = 0.5
_SIGNED = "Upload results with `aegis agent`, which signs them."
_AT_ONCE = 2
"""Number of uploads of one account that a process of the service checks at the same time."""
_CHECKED: Counter[str] = Counter()
_COUNTING = Lock()
_OWNER = 120
"""Largest number of characters of an agent's name in tables and log."""


@routes.post("/work", Action.WORK, responses={204: {"description": "There is no work."}})
def claim(body: shapes.WorkAsked, call: CallOf) -> Response:
    """Fetch the next job for your own data sets; 204 if there is none."""
    authorise(call.actor, Action.WORK, ActedOn(provider=call.actor.account))
    with call.writing() as session:
        owner = f"{call.actor.name}/{body.owner}"[:_OWNER]
        job = flow.claim(session, owner, jobs.AGENT, provider=call.actor.account)
        if job is None:
            return Response(status_code=204)
        return Response(
            json.dumps(shapes.as_json(job) | {"task": job.task}), media_type="application/json"
        )


@routes.post("/jobs/{job_id}/alive", Action.WORK)
def alive(job_id: str, body: shapes.Alive, call: CallOf) -> dict[str, Any]:
    """Report that the agent still works on a job, with its progress."""
    with call.writing() as session:
        deliveries.require_agent(session, call.actor, job_id)
        progress = body.progress.model_dump(exclude_unset=True)
        return shapes.as_json(jobs.renew(session, job_id, body.attempt, progress))


@routes.post("/jobs/{job_id}/give-back", Action.WORK)
def give_back(job_id: str, body: shapes.GivenBack, call: CallOf) -> dict[str, Any]:
    """Return a job to the queue, so that another agent can fetch it at once."""
    with call.writing() as session:
        deliveries.require_agent(session, call.actor, job_id)
        return shapes.as_json(jobs.give_back(session, job_id, body.attempt))


@routes.post("/jobs/{job_id}/failed", Action.WORK)
def failed(job_id: str, body: shapes.Failed, call: CallOf) -> dict[str, Any]:
    """Report that the agent could not do a job, and why."""
    call.write(deliveries.failed, job_id, body.attempt, body.reason, spent=body.spent)
    return {}


@routes.post("/jobs/{job_id}/checked", Action.WORK)
def checked(job_id: str, body: shapes.Checked, call: CallOf) -> dict[str, Any]:
    """Report which configuration meets the rule, on its own and together with earlier releases."""
    request = deliveries.checked(call.catalog, call.actor, job_id, body.attempt, body.answer)
    return shapes.as_json(request)


async def _form(job_id: str, call: CallOf) -> AsyncIterator[FormData]:
    """Read the form of an upload, but only if the caller's agent may work on the job."""
    await run_in_threadpool(call.read, deliveries.require_agent, job_id)
    # UTF-8 takes up to four bytes for a character.
    longest = 4 * call.catalog.limits.text
    async with call.request.form(max_files=1, max_fields=10, max_part_size=longest) as form:
        yield form


FormOf = Annotated[FormData, Depends(_form)]
_Upload = TypeVar("_Upload", bound=shapes.Uploaded)


def _multipart(kind: type[shapes.Uploaded]) -> dict[str, Any]:
    """Describe the form of an upload for OpenAPI."""
    content = {"multipart/form-data": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def _upload_fields(kind: type[_Upload], form: FormData) -> _Upload:
    """Return the fields of an upload; raise an error if one is missing or wrong."""
    try:
        return kind.model_validate(dict(form))
    except ValidationError as error:
        wrong = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(wrong) from error


@contextmanager
def _turn(account: str) -> Iterator[None]:
    """Count an upload of an account while it is checked. Raise an error if as many are being checked
    as one account may have: each takes a thread and, for a release, a process with its memory.
    """
    with _COUNTING:
        if _CHECKED[account] >= _AT_ONCE:
            raise TooOften(
                f"The service is checking {_AT_ONCE} uploads of your account.",
                hint="Upload again once they are checked.",
            )
        _CHECKED[account] += 1
    try:
        yield
    finally:
        with _COUNTING:
            _CHECKED[account] -= 1


@routes.post(
    "/uploads/{job_id}/summary", Action.WORK, openapi_extra=_multipart(shapes.SummaryUploaded)
)
def upload_summary(job_id: str, call: CallOf, form: FormOf) -> dict[str, Any]:
    """Upload the protected summary of a job, signed by the agent."""
    upload = _upload_fields(shapes.SummaryUploaded, form)
    with _turn(call.actor.account):
        version = deliveries.summary(
            call.catalog,
            call.actor,
            job_id,
            upload.attempt,
            policy=upload.policy,
            bundle=_content(upload.bundle, call.catalog.limits.summary),
            signature=json_object(upload.signature, "The signature", _SIGNED),
        )
    return shapes.as_json(version)


@routes.post(
    "/uploads/{job_id}/release", Action.WORK, openapi_extra=_multipart(shapes.ReleaseUploaded)
)
def upload_release(job_id: str, call: CallOf, form: FormOf) -> dict[str, Any]:
    """Upload the masked file of a job with its certificate and signature."""
    upload = _upload_fields(shapes.ReleaseUploaded, form)
    with _turn(call.actor.account):
        record = deliveries.release(
            call.catalog,
            call.actor,
            job_id,
            upload.attempt,
            file_name=upload.file.filename or "",
            content=_content(upload.file, call.catalog.limits.release),
            certificate=upload.certificate,
            signature=json_object(upload.signature, "The signature", _SIGNED),
        )
    return shapes.as_json(record)


@routes.post("/keys", Action.WORK)
def rotate(body: shapes.Rotation, call: CallOf) -> dict[str, Any]:
    """Replace the signing key of the agent of your data sets."""
    return {"data_sets": call.write(data_sets.rotate, body.model_dump())}


@routes.get("/jobs/{job_id}", Action.SEE_REQUEST)
def show(job_id: str, call: CallOf) -> dict[str, Any]:
    """Return a job with its state and progress."""
    return _job_as_json(call, job_id)


@routes.post("/jobs/{job_id}/cancel", Action.RUN)
def cancel(job_id: str, call: CallOf) -> dict[str, Any]:
    """Cancel a job that has not finished."""
    return shapes.as_json(call.write(flow.cancel, job_id))


@routes.post("/jobs/{job_id}/retry", Action.RUN)
def retry(job_id: str, call: CallOf) -> dict[str, Any]:
    """Repeat a search, check, audit or summary that failed or was cancelled."""
    return shapes.as_json(call.write(flow.retry_job, job_id))


@routes.get("/jobs/{job_id}/events", Action.SEE_REQUEST, response_class=StreamingResponse)
def events(job_id: str, call: CallOf) -> Response:
    """Stream the progress of a job (server-sent events)."""
    first = _job_as_json(call, job_id)
    return StreamingResponse(_following(call, job_id, first), media_type="text/event-stream")


async def _following(call: Call, job_id: str, job: dict[str, Any]) -> AsyncIterator[str]:
    last, following = None, call.request.app.state.following
    for _ in range(_FOLLOWED):
        if job != last:
            yield f"data: {json.dumps(job)}\n\n"
            last = job
        if job["state"] not in ("queued", "running") or await call.request.is_disconnected():
            return
        await asyncio.sleep(_PAUSE)
        try:
            job = await run_sync(_identified_job, call, job_id, limiter=following)
        except CatalogError:  # the session has ended, or the right to see the job
            return


def _identified_job(call: Call, job_id: str) -> dict[str, Any]:
    """Return a job after identifying the caller again, whose session or roles may have ended."""
    return _job_as_json(identified(call.request), job_id)


def _job_as_json(call: Call, job_id: str) -> dict[str, Any]:
    return shapes.as_json(call.read(flow.authorised_job, job_id, Action.SEE_REQUEST, Action.STUDY))


def _content(file: UploadFile, most: int) -> bytes:
    """Return the content of an upload; raise an error if it is larger than `most` bytes."""
    if (file.size or 0) > most:
        raise TooLarge(f"The file has more than {most:,} bytes.", hint="Split the table.")
    return file.file.read()
