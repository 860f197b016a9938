"""Pages on which you list, make, review and release requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Form, Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from aegis.measures import LabelKind, measures_of
from aegis.measures.catalog import LEARNERS
from aegis.service.api import shapes
from aegis.service.api.requests import file_of, verified
from aegis.service.catalog import Action, data_sets, flow, jobs, requests, waiting
from aegis.service.catalog.access import Actor, may
from aegis.service.catalog.errors import NotThere, WrongState
from aegis.service.catalog.records import DataSet, Request
from aegis.service.catalog.statements import digest
from aegis.service.catalog.states import RequestState, RequestStep, starts_of
from aegis.service.identity import Call, CallOf, FormCallOf
from aegis.service.pages.data_sets import Long
from aegis.service.pages.people import Offset, Text
from aegis.service.pages.render import PAGE, page, see
from aegis.service.routes import Routes

routes = Routes(include_in_schema=False)


def _approve(session: Session, by: Actor, request_id: str, signed: str, seen_digest: str) -> None:
    """Approve a request. `signed` is the signed approval that was pasted into the form, if any, and
    `seen_digest` the digest of the configuration that the page showed. Raise `WrongState` if another
    person has chosen another configuration since.
    """
    request = requests.authorised(session, by, Action.APPROVE, request_id)
    if seen_digest and seen_digest != digest(request.configuration or ""):
        raise WrongState(
            "Somebody has chosen another configuration since you loaded the page.",
            hint="Load the page of the request again, and look at the new configuration.",
        )
    hint = "Paste the output of `aegis catalog sign`."
    statement = shapes.json_object(signed, "The signed approval", hint) if signed.strip() else None
    requests.approve(session, by, request_id, statement)


def _cancel(session: Session, by: Actor, request_id: str) -> None:
    requests.authorised(session, by, Action.RUN, request_id)
    job = jobs.latest(session, "release", request_id=request_id)
    if job is None:
        raise NotThere("This request has no job to cancel.", hint="Load the page again.")
    flow.cancel(session, by, job.id)


_STEPS: Mapping[str, tuple[Any, ...]] = {
    "submit": (Action.CHANGE_REQUEST, starts_of(RequestStep.SUBMIT), requests.submit),
    "withdraw": (Action.CHANGE_REQUEST, starts_of(RequestStep.WITHDRAW), requests.withdraw),
    "review": (Action.REVIEW, starts_of(RequestStep.REVIEW), requests.review),
    "search": (Action.REVIEW, (RequestState.IN_REVIEW,), flow.ask_search),
    "choose": (Action.REVIEW, (RequestState.IN_REVIEW,), flow.choose, "configuration"),
    "approve": (Action.APPROVE, starts_of(RequestStep.APPROVE), _approve, "signed", "seen_digest"),
    "return": (Action.REVIEW, starts_of(RequestStep.RETURN), requests.send_back, "message"),
    "reject": (Action.REJECT, starts_of(RequestStep.REJECT), requests.reject, "message"),
    "run": (Action.RUN, starts_of(RequestStep.RUN), flow.run),
    "retry": (Action.RUN, starts_of(RequestStep.RETRY), flow.retry),
    "cancel": (Action.RUN, (RequestState.RUNNING,), _cancel),
    "revoke": (Action.REVOKE, starts_of(RequestStep.REVOKE), requests.revoke, "message"),
    "renew": (Action.APPROVE, starts_of(RequestStep.RENEW), requests.renew, "days"),
}
"""For each step the action whose permission it needs, the states in which its button shows, and its
function with the field of the form that it takes, if any.
"""


@routes.get("/requests", Action.SEE_REQUEST)
def listed(
    call: CallOf, state: Annotated[str, Query(max_length=20)] = "", offset: Offset = 0
) -> Response:
    """Show the requests that you may see."""
    chosen = state if state in list(RequestState) else None
    entries, count = call.read(requests.listed, state=chosen, offset=offset, limit=PAGE)
    return page(call, "requests.html", requests=entries, count=count, state=state, offset=offset)


@routes.get("/data-sets/{identifier}/request", Action.REQUEST)
def asking(identifier: str, call: CallOf) -> Response:
    """Show the form with which you request a release of a data set."""
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.REQUEST, identifier)
        return _form(call, session, data_set)


@routes.get("/requests/{request_id}/change", Action.CHANGE_REQUEST)
def changing(request_id: str, call: CallOf) -> Response:
    """Show the form with which you change a draft, or a request that was returned to you."""
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.CHANGE_REQUEST, request_id)
        return _form(call, session, request.data_set, request)


def _form(
    call: Call, session: Session, data_set: DataSet, request: Request | None = None
) -> Response:
    last = data_sets.newest(session, data_set.id)
    return page(
        call,
        "request_form.html",
        data_set=data_set,
        asked=request,
        models=[(str(model), words) for model, words in LEARNERS.items()],
        measures=[] if last is None else _measures(flow.policy_of(last.policy).label.kind),
    )


def _fields(
    purpose: Long,
    models: Annotated[list[str], Form(default_factory=list)],
    measure: Text = "",
    terms_accepted: Annotated[bool, Form()] = False,
) -> dict[str, Any]:
    """Collect the fields of the form of a request, by name."""
    named = {"purpose": purpose, "models": models, "terms_accepted": terms_accepted}
    return named | {"measure": measure or None}


FieldsOf = Annotated[dict[str, Any], Depends(_fields)]


@routes.post("/data-sets/{identifier}/request", Action.REQUEST)
def ask(identifier: str, call: FormCallOf, fields: FieldsOf) -> Response:
    """Create a request from the form and submit it."""
    with call.writing() as session:
        request = requests.draft(session, call.actor, identifier, **fields)
        requests.submit(session, call.actor, request.id)
    return see(f"/requests/{request.id}")


@routes.post("/requests/{request_id}/change", Action.CHANGE_REQUEST)
def change(request_id: str, call: FormCallOf, fields: FieldsOf) -> Response:
    """Change a request as the form says, and submit it."""
    with call.writing() as session:
        requests.change(session, call.actor, request_id, **fields)
        requests.submit(session, call.actor, request_id)
    return see(f"/requests/{request_id}")


@routes.get("/requests/{request_id}", Action.SEE_REQUEST)
def show(request_id: str, call: CallOf) -> Response:
    """Show a request: its content, results, and possible next steps."""
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.SEE_REQUEST, request_id)
        subject = data_sets.subject_of(session, call.actor, request.data_set, request)
        job = jobs.latest(session, "search", "check", "release", request_id=request_id)
        earlier = requests.earlier(session, request)
        try:
            release = requests.release_of(session, request)
        except NotThere:
            release = None
        drifted = request.state == RequestState.APPROVED and requests.drifted(session, request)
        approvals = requests.approvals_of(session, request)
        signatures = len(requests.signatures(session, request))
        holds = requests.holds(session, request)
        stuck = waiting.stuck(session, request)
    steps = [
        step
        for step, (action, states, *_) in _STEPS.items()
        if request.state in states
        and may(call.actor, action, subject)
        and (step != "approve" or holds)
    ]
    sees_masks = requests.sees_masks(call.actor, request)
    may_sign = request.configuration is not None and may(call.actor, Action.APPROVE, subject)
    signable = request.state in requests.SIGNED_IN
    return page(
        call,
        "request.html",
        asked=request,
        job=job,
        steps=steps,
        earlier=earlier,
        release=release,
        certificate=None if release is None else json.loads(release.certificate),
        drifted=drifted,
        seen_digest=digest(request.configuration or ""),
        stuck=stuck,
        approvals=approvals,
        may_sign=may_sign and holds and signable,
        must_sign=bool((request.answer or {}).get("signers")),
        breaks=request.configuration is not None and not holds and signable,
        signatures=signatures,
        needed=requests.needed(request),
        may_download=may(call.actor, Action.DOWNLOAD, subject),
        may_see_masks=sees_masks,
        answer=shapes.answer_of(request, masks=sees_masks),
        days=requests.days_of(request),
    )


@routes.post("/requests/{request_id}/{step}", Action.SEE_REQUEST)
def do(
    request_id: str,
    step: str,
    call: FormCallOf,
    message: Long = "",
    configuration: Long = "",
    days: Annotated[int, Form()] = 365,
    signed: Long = "",
    seen_digest: Text = "",
) -> Response:
    """Move a request one step further; the step checks the permission."""
    if step not in _STEPS:
        raise NotThere(f"There is no step {step!r}.", hint=f"Allowed: {', '.join(_STEPS)}.")
    form = {"message": message, "configuration": configuration, "days": days, "signed": signed}
    form["seen_digest"] = seen_digest
    _, _, function, *fields = _STEPS[step]
    if function is flow.choose:
        call.read(flow.read_choice, request_id, configuration)
    call.write(function, request_id, *(form[field] for field in fields))
    return see(f"/requests/{request_id}")


@routes.get("/requests/{request_id}/statement", Action.APPROVE)
def statement(request_id: str, call: CallOf) -> Response:
    """Download the statement that an approver signs."""
    offered = call.read(requests.statement, request_id)
    headers = {"Content-Disposition": f'attachment; filename="statement-{request_id[:8]}.json"'}
    return Response(json.dumps(offered, indent=2), media_type="application/json", headers=headers)


@routes.get("/requests/{request_id}/download", Action.DOWNLOAD)
def download(request_id: str, call: CallOf) -> Response:
    """Download the masked file."""
    return file_of(call, request_id)


@routes.get("/requests/{request_id}/certificate", Action.VERIFY)
def certificate(request_id: str, call: CallOf) -> Response:
    """Download the certificate of a release."""
    with call.reading() as session:
        request = requests.authorised(session, call.actor, Action.VERIFY, request_id)
        record = requests.release_of(session, request)
    headers = {"Content-Disposition": f'attachment; filename="certificate-{request_id[:8]}.json"'}
    return Response(record.certificate, media_type="application/json", headers=headers)


@routes.get("/requests/{request_id}/verification", Action.VERIFY)
def verification(request_id: str, call: CallOf) -> Response:
    """Show whether the stored file, its certificate and its signature match."""
    return page(call, "verification.html", **verified(call, request_id))


def _measures(label: LabelKind) -> list[tuple[str, str]]:
    """Return the names and titles of the measures that fit this kind of label, the default first."""
    fitting = sorted(measures_of(label), key=lambda measure: measure.name != label.default_measure)
    return [(measure.name, measure.title) for measure in fitting]
