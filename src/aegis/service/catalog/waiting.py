"""List the requests that wait for a person to act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import false, select
from sqlalchemy.orm import Session

from aegis.service.catalog import data_sets, jobs, requests
from aegis.service.catalog.access import AccountRole, Action, Actor, may
from aegis.service.catalog.records import Approval, DataSet, Request
from aegis.service.catalog.states import RequestState

_MOST = 500
"""Largest number of requests that are examined, oldest first."""
_NO_OPERATOR = "Nobody can review this request, because its data set has no operator."
_CALLS: Mapping[RequestState, tuple[tuple[Action, str], ...]] = MappingProxyType(
    {
        RequestState.DRAFT: ((Action.CHANGE_REQUEST, "you can submit it"),),
        RequestState.RETURNED: ((Action.CHANGE_REQUEST, "change it and submit it again"),),
        RequestState.SUBMITTED: ((Action.REVIEW, "start the review"),),
        RequestState.IN_REVIEW: (
            (Action.REVIEW, "choose a configuration"),
            (Action.APPROVE, "approve or reject it"),
        ),
        RequestState.APPROVED: ((Action.RUN, "make the release"),),
        RequestState.FAILED: ((Action.RUN, "it failed: try again"),),
    }
)


@dataclass(frozen=True)
class Waiting:
    """A request that waits for one person to act: the path of the page to do so, its title, the
    reason in words, and the data set.
    """

    path: str
    title: str
    why: str
    data_set: str


def of(session: Session, by: Actor) -> list[Waiting]:
    """Return the requests that wait for the actor, oldest first."""
    waits = [*_proposals(session, by)]
    query = select(Request).where(requests.visible(by), Request.state.in_(list(_CALLS)))
    for request in session.scalars(query.order_by(Request.changed).limit(_MOST)):
        why = _why(session, by, request)
        if why:
            waits.append(
                Waiting(f"/requests/{request.id}", request.purpose, why, request.data_set_id)
            )
    return waits


def _why(session: Session, by: Actor, request: Request) -> str:
    """Return the action that a request needs from this person, in words; empty if it waits for
    other people or for a job.
    """
    subject = data_sets.subject_of(session, by, request.data_set, request)
    chosen = request.configuration is not None
    for action, why in _CALLS[RequestState(request.state)]:
        if request.state == RequestState.IN_REVIEW and (action is Action.APPROVE) != chosen:
            continue
        if may(by, action, subject) and not _answered(session, by, request, action):
            if action is Action.APPROVE and not requests.holds(session, request):
                return "its configuration breaks the rule: choose another one, or reject it"
            return why
    unseen = may(by, Action.PUBLISH, subject) and stuck(session, request) == _NO_OPERATOR
    return "nobody can review it: give somebody the role operator" if unseen else ""


def stuck(session: Session, request: Request) -> str | None:
    """Return why nobody can work on a request that waits for others than its consumer: its provider
    is closed, or no open account may review it. None if somebody can.
    """
    if request.state not in requests.WITH_OTHERS:
        return None
    why = data_sets.unserved(request.data_set)
    undecided = request.state in (RequestState.SUBMITTED, RequestState.IN_REVIEW)
    if why is None and undecided:
        operators = data_sets.holders(session, request, [AccountRole.OPERATOR])
        return None if operators else _NO_OPERATOR
    return why


def _answered(session: Session, by: Actor, request: Request, action: Action) -> bool:
    """Return whether the person `by` has nothing to do about `action` for a request now: a job for
    the request is queued or running, or the action is an approval that the person has given.
    """
    if jobs.under_way(session, request_id=request.id):
        return True
    approvals = select(Approval.id).where(
        Approval.request_id == request.id,
        Approval.account_id == by.account,
        Approval.step == "approve",
    )
    return action is Action.APPROVE and session.scalar(approvals) is not None


def _proposals(session: Session, by: Actor) -> Sequence[Waiting]:
    """Return the policies that operators propose to a provider."""
    mine = data_sets.permitted(by, Action.PUBLISH, DataSet.id, false())
    query = select(DataSet).where(mine, DataSet.proposed.is_not(None))
    return [
        Waiting(f"/data-sets/{d.id}", d.title, "an operator proposes a policy: review it", d.id)
        for d in session.scalars(query)
    ]
