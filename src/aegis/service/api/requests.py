"""API calls for requests, from draft to release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from aegis.service.api import shapes
from aegis.service.api.data_sets import ExportKind, Limit, Offset, exported
from aegis.service.catalog import Action, Catalog, deliveries, exports, flow, jobs, requests
from aegis.service.catalog.access import Actor
from aegis.service.catalog.errors import WrongState
from aegis.service.catalog.records import Request, now
from aegis.service.catalog.states import RequestState
from aegis.service.identity import ActorOf, CatalogOf, SettingsOf
from aegis.service.routes import Routes

routes = Routes(prefix="/requests", tags=["requests"])


@routes.get("", Action.SEE_REQUEST)
def listed(
    actor: ActorOf,
    catalog: CatalogOf,
    state: Annotated[RequestState | None, Query()] = None,
    number: Annotated[str, Query(max_length=32)] = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Return the requests that you may see, newest first; `number` is the start of a request's number."""
    with catalog.database.reading() as session:
        listed, count = requests.listed(
            session, actor, state=state, number=number, offset=offset, limit=limit
        )
        return {"count": count, "requests": [shapes.shown(request) for request in listed]}


@routes.post("", Action.REQUEST)
def draft(given: shapes.RequestGiven, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Create a draft of a request; nobody reviews it until you submit it."""
    with catalog.database.writing() as session:
        asked = given.model_dump()
        return shapes.shown(requests.draft(session, actor, asked.pop("data_set"), **asked))


@routes.get("/{request_id}", Action.SEE_REQUEST)
def show(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Return a request with its newest job."""
    with catalog.database.reading() as session:
        request = requests.seen(session, actor, Action.SEE_REQUEST, request_id)
        job = jobs.latest(session, request_id, ("search", "check", "release"))
        shown = shapes.shown(request)
        return shown | {"job": None if job is None else shapes.shown(job)}


@routes.post("/{request_id}", Action.CHANGE_REQUEST)
def change(
    request_id: str, given: shapes.RequestGiven, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Change a draft, or a request that a reviewer sent back to you."""
    asked = given.model_dump(exclude_unset=True)
    asked.pop("data_set", None)
    with catalog.database.writing() as session:
        return shapes.shown(requests.change(session, actor, request_id, **asked))


@routes.post("/{request_id}/submit", Action.CHANGE_REQUEST)
def submit(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Submit a draft for review."""
    return _do(catalog, requests.submit, actor, request_id)


@routes.post("/{request_id}/withdraw", Action.CHANGE_REQUEST)
def withdraw(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Withdraw a request that you made."""
    return _do(catalog, requests.withdraw, actor, request_id)


@routes.post("/{request_id}/review", Action.REVIEW)
def review(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Start the review of a submitted request."""
    return _do(catalog, requests.review, actor, request_id)


@routes.post("/{request_id}/choose", Action.REVIEW)
def choose(
    request_id: str, given: shapes.Choice, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Set the configuration of a request, or start a search for the best one."""
    with catalog.database.writing() as session:
        if given.configuration is None:
            job = flow.ask_search(session, actor, request_id)
            request = requests.seen(session, actor, Action.REVIEW, request_id)
            return shapes.shown(request) | {"job": shapes.shown(job)}
        return shapes.shown(flow.choose(session, actor, request_id, given.configuration))


@routes.post("/{request_id}/approve", Action.APPROVE)
def approve(
    request_id: str, actor: ActorOf, catalog: CatalogOf, given: shapes.ApprovalGiven | None = None
) -> dict[str, Any]:
    """Approve a request as it is now; you can add a signature to your earlier unsigned approval."""
    signed = None if given is None else given.signed
    return _do(catalog, requests.approve, actor, request_id, signed)


@routes.get("/{request_id}/statement", Action.APPROVE)
def statement(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Return the statement that an approver signs, with the policy and configuration behind its digests."""
    with catalog.database.reading() as session:
        return requests.statement(session, actor, request_id)


@routes.post("/{request_id}/return", Action.REVIEW)
def send_back(
    request_id: str, given: shapes.Reason, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Send a request back to its consumer for changes, with your reason."""
    return _do(catalog, requests.send_back, actor, request_id, given.message)


@routes.post("/{request_id}/reject", Action.REJECT)
def reject(
    request_id: str, given: shapes.Reason, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Reject a request, with your reason."""
    return _do(catalog, requests.reject, actor, request_id, given.message)


@routes.post("/{request_id}/run", Action.RUN)
def run(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Start an approved release; if approved content has changed, send the request back instead."""
    return _do(catalog, flow.run, actor, request_id)


@routes.post("/{request_id}/retry", Action.RUN)
def retry(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Start a failed release again."""
    return _do(catalog, flow.retry, actor, request_id)


@routes.post("/{request_id}/revoke", Action.REVOKE)
def revoke(
    request_id: str, given: shapes.Reason, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Revoke a release before it expires, with your reason."""
    return _do(catalog, requests.revoke, actor, request_id, given.message)


@routes.post("/{request_id}/renew", Action.APPROVE)
def renew(
    request_id: str, given: shapes.Days, actor: ActorOf, catalog: CatalogOf
) -> dict[str, Any]:
    """Extend the time during which a release can be downloaded."""
    return _do(catalog, requests.renew, actor, request_id, given.days)


@routes.get("/{request_id}/release", Action.VERIFY)
def release(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Return the figures of a release, its certificate and its signature."""
    with catalog.database.reading() as session:
        request = requests.seen(session, actor, Action.VERIFY, request_id)
        made = requests.release_of(session, request)
        return shapes.shown(made) | {
            "certificate": made.certificate,
            "signature": made.signature,
            "public_key": deliveries.key_of(made, request.data_set),
        }


@routes.get("/{request_id}/exports/{kind}", Action.VERIFY)
def export(
    request_id: str, kind: ExportKind, actor: ActorOf, catalog: CatalogOf, settings: SettingsOf
) -> Response:
    """Describe a release for other catalogs, as Croissant, DCAT or Data Package."""
    with catalog.database.reading() as session:
        request = requests.seen(session, actor, Action.VERIFY, request_id)
        made = requests.file_of(session, request)
        told = exports.of_release(
            made, request.data_set, request.version, catalog.objects, settings.origin
        )
    return exported(told, kind)


@routes.post("/{request_id}/verify", Action.VERIFY)
def verify(request_id: str, actor: ActorOf, catalog: CatalogOf) -> dict[str, Any]:
    """Check that the stored file, its certificate and its signature match."""
    with catalog.database.reading() as session:
        request = requests.seen(session, actor, Action.VERIFY, request_id)
        made = requests.file_of(session, request)
        key = deliveries.key_of(made, request.data_set)
    wrong = deliveries.verify(catalog, made, key)
    return {"verified": not wrong, "wrong": wrong}


@routes.get("/{request_id}/download", Action.DOWNLOAD, response_class=StreamingResponse)
def download(request_id: str, actor: ActorOf, catalog: CatalogOf) -> Response:
    """Download the masked file of a request until the release expires."""
    return file_of(catalog, actor, request_id)


def file_of(catalog: Catalog, actor: Actor, request_id: str) -> Response:
    """Return the masked file of a request as a download, and log the download."""
    with catalog.database.writing() as session:
        requests.expire(session)
        request = requests.seen(session, actor, Action.DOWNLOAD, request_id)
        if request.state != RequestState.RELEASED:
            raise WrongState(
                f"The request is {request.state}: there is nothing to download.",
                hint="A release can be downloaded until it expires or is revoked.",
            )
        made = requests.release_of(session, request)
        requests.tell(session, actor, request, "downloaded", digest=made.digest)
    headers = {
        "Content-Disposition": f'attachment; filename="{made.file_name}"',
        "Content-Length": str(made.size),
        "X-Aegis-SHA256": made.digest,
        "Date-Downloaded": now().isoformat(timespec="seconds"),
    }
    pieces = catalog.objects.stream(made.object_key)
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)


def _do(
    catalog: Catalog, step: Callable[..., Request], actor: Actor, request_id: str, *more: Any
) -> dict[str, Any]:
    with catalog.database.writing() as session:
        return shapes.shown(step(session, actor, request_id, *more))
