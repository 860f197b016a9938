"""API calls for requests, from draft to release."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from aegis.service.api import shapes
from aegis.service.api.data_sets import ExportKind, Limit, Offset, exported
from aegis.service.catalog import Action, deliveries, exports, flow, jobs, requests, waiting
from aegis.service.catalog.errors import WrongState
from aegis.service.catalog.records import Request, now
from aegis.service.catalog.states import RequestState
from aegis.service.identity import Call, CallOf
from aegis.service.routes import Routes
from aegis.words import json_fields

routes = Routes(prefix="/requests", tags=["requests"])


@routes.get("", Action.SEE_REQUEST)
def listed(
    call: CallOf,
    state: Annotated[RequestState | None, Query()] = None,
    number: Annotated[str, Query(max_length=32)] = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Return the requests that you may see, newest first; `number` is the start of a request's number."""
    listed, count = call.read(
        requests.listed, state=state, number=number, offset=offset, limit=limit
    )
    return {"count": count, "requests": [_as_json(call, request) for request in listed]}


@routes.post("", Action.REQUEST)
def draft(body: shapes.NewRequest, call: CallOf) -> dict[str, Any]:
    """Create a draft of a request; nobody reviews it until you submit it. With `submit`, submit it
    at once.
    """
    with call.writing() as session:
        fields = body.model_dump(exclude={"submit"})
        request = requests.draft(session, call.actor, fields.pop("data_set"), **fields)
        if body.submit:
            requests.submit(session, call.actor, request.id)
        return _as_json(call, request)


@routes.get("/{request_id}", Action.SEE_REQUEST)
def show(request_id: str, call: CallOf) -> dict[str, Any]:
    """Return a request with its newest job; `stuck` says why nobody can work on it, if so."""
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.SEE_REQUEST, request_id)
        job = jobs.latest(session, "search", "check", "release", request_id=request_id)
        session.refresh(request)  # the job may have ended after the request was read
        return _as_json(call, request) | {
            "job": None if job is None else shapes.as_json(job),
            "stuck": waiting.stuck(session, request),
        }


@routes.post("/{request_id}", Action.CHANGE_REQUEST)
def change(request_id: str, body: shapes.RequestGiven, call: CallOf) -> dict[str, Any]:
    """Change a draft, or a request that a reviewer sent back to you."""
    fields = body.model_dump(exclude_unset=True)
    fields.pop("data_set", None)
    return _as_json(call, call.write(requests.change, request_id, **fields))


@routes.post("/{request_id}/submit", Action.CHANGE_REQUEST)
def submit(request_id: str, call: CallOf) -> dict[str, Any]:
    """Submit a draft for review."""
    return _as_json(call, call.write(requests.submit, request_id))


@routes.post("/{request_id}/withdraw", Action.CHANGE_REQUEST)
def withdraw(request_id: str, call: CallOf) -> dict[str, Any]:
    """Withdraw a request that you made."""
    return _as_json(call, call.write(requests.withdraw, request_id))


@routes.post("/{request_id}/review", Action.REVIEW)
def review(request_id: str, call: CallOf) -> dict[str, Any]:
    """Start the review of a submitted request."""
    return _as_json(call, call.write(requests.review, request_id))


@routes.post("/{request_id}/choose", Action.REVIEW)
def choose(request_id: str, body: shapes.Choice, call: CallOf) -> dict[str, Any]:
    """Set the configuration of a request, or start a search for the best one."""
    if body.configuration is not None:
        call.read(flow.read_choice, request_id, body.configuration)
    with call.writing() as session:
        if body.configuration is None:
            job = flow.ask_search(session, call.actor, request_id)
            request = requests.authorised(session, call.actor, Action.REVIEW, request_id)
            return _as_json(call, request) | {"job": shapes.as_json(job)}
        return _as_json(call, flow.choose(session, call.actor, request_id, body.configuration))


@routes.post("/{request_id}/approve", Action.APPROVE)
def approve(
    request_id: str, call: CallOf, given: shapes.ApprovalGiven | None = None
) -> dict[str, Any]:
    """Approve a request as it is now; you can add a signature to your earlier unsigned approval."""
    signed = None if given is None else given.signed
    return _as_json(call, call.write(requests.approve, request_id, signed))


@routes.get("/{request_id}/statement", Action.APPROVE)
def statement(request_id: str, call: CallOf) -> dict[str, Any]:
    """Return the statement that an approver signs, and the policy and configuration that its
    digests identify.
    """
    return call.read(requests.statement, request_id)


@routes.post("/{request_id}/return", Action.REVIEW)
def send_back(request_id: str, body: shapes.Reason, call: CallOf) -> dict[str, Any]:
    """Send a request back to its consumer for changes, with your reason."""
    return _as_json(call, call.write(requests.send_back, request_id, body.message))


@routes.post("/{request_id}/reject", Action.REJECT)
def reject(request_id: str, body: shapes.Reason, call: CallOf) -> dict[str, Any]:
    """Reject a request, with your reason."""
    return _as_json(call, call.write(requests.reject, request_id, body.message))


@routes.post("/{request_id}/run", Action.RUN)
def run(request_id: str, call: CallOf) -> dict[str, Any]:
    """Start an approved release; if approved content has changed, send the request back instead."""
    return _as_json(call, call.write(flow.run, request_id))


@routes.post("/{request_id}/retry", Action.RUN)
def retry(request_id: str, call: CallOf) -> dict[str, Any]:
    """Start a failed release again."""
    return _as_json(call, call.write(flow.retry, request_id))


@routes.post("/{request_id}/revoke", Action.REVOKE)
def revoke(request_id: str, body: shapes.Reason, call: CallOf) -> dict[str, Any]:
    """Revoke a release before it expires, with your reason."""
    return _as_json(call, call.write(requests.revoke, request_id, body.message))


@routes.post("/{request_id}/renew", Action.APPROVE)
def renew(request_id: str, body: shapes.Days, call: CallOf) -> dict[str, Any]:
    """Extend the time during which a release can be downloaded."""
    return _as_json(call, call.write(requests.renew, request_id, body.days))


@routes.get("/{request_id}/release", Action.VERIFY)
def release(request_id: str, call: CallOf) -> dict[str, Any]:
    """Return the figures of a release, its certificate and its signature."""
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.VERIFY, request_id)
        record = requests.release_of(session, request)
        return shapes.as_json(record) | {
            "certificate": record.certificate,
            "signature": record.signature,
            "public_key": deliveries.key_of(record, request.data_set),
        }


@routes.get("/{request_id}/exports/{kind}", Action.VERIFY)
def export(request_id: str, kind: ExportKind, call: CallOf) -> Response:
    """Describe a release for other catalogs, as Croissant, DCAT or Data Package."""
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.VERIFY, request_id)
        record = requests.file_of(session, request)
        entry = exports.of_release(
            record, request.data_set, request.version, call.catalog.objects, call.settings.origin
        )
    return exported(entry, kind)


@routes.post("/{request_id}/verify", Action.VERIFY)
def verify(request_id: str, call: CallOf) -> dict[str, Any]:
    """Check that the release was not revoked, and that the stored file, its certificate and its
    signature match.
    """
    checked = verified(call, request_id)
    times = json_fields(checked["release"], "expires", "revoked")
    return {"verified": not checked["wrong"], "wrong": checked["wrong"], **times}


def verified(call: Call, request_id: str) -> dict[str, Any]:
    """Return a request, its release, the key that signed the release, and one line for each reason
    not to use the file: that the release was revoked, and each mismatch.
    """
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.VERIFY, request_id)
        record = requests.release_of(session, request)
        revoked = requests.revocation(request, record)
        if revoked is None:
            record = requests.file_of(session, request)
        key = deliveries.key_of(record, request.data_set)
    wrong = [] if revoked is None else [revoked]
    if record.object_key:
        wrong += deliveries.verify(call.catalog, record, key)
    return {"asked": request, "release": record, "key": key, "wrong": wrong, "moment": now()}


@routes.get("/{request_id}/download", Action.DOWNLOAD, response_class=StreamingResponse)
def download(request_id: str, call: CallOf) -> Response:
    """Download the masked file of a request until the release expires."""
    return file_of(call, request_id)


def file_of(call: Call, request_id: str) -> Response:
    """Return the masked file of a request as a download, and log the download."""
    with call.writing() as session:
        requests.expire(session)
        request = requests.authorised(session, call.actor, Action.DOWNLOAD, request_id)
        if request.state != RequestState.RELEASED:
            raise WrongState(
                f"The request is {request.state}: there is nothing to download.",
                hint="You can download a release until it expires or is revoked.",
            )
        record = requests.release_of(session, request)
        pieces = call.catalog.objects.stream(record.object_key)  # before the log says so
        requests.tell(session, call.actor, request, "downloaded", digest=record.digest)
    headers = {
        "Content-Disposition": f'attachment; filename="{record.file_name}"',
        "Content-Length": str(record.size),
        "X-Aegis-SHA256": record.digest,
        "Date-Downloaded": now().isoformat(timespec="seconds"),
    }
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)


def _as_json(call: Call, request: Request) -> dict[str, Any]:
    return shapes.request(request, masks=requests.sees_masks(call.actor, request))
