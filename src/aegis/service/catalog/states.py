"""Define the states of a request, and the steps between them.

One table lists all steps. Each step consults this table, and writes the new state and the log entry
in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import StrEnum
from types import MappingProxyType

from aegis.service.catalog.errors import WrongState


class RequestState(StrEnum):
    """The state of a request, from draft to release."""

    DRAFT = "draft"
    SUBMITTED = "submitted"
    IN_REVIEW = "in review"
    RETURNED = "returned"
    APPROVED = "approved"
    RUNNING = "running"
    RELEASED = "released"
    EXPIRED = "expired"
    REVOKED = "revoked"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


class RequestStep(StrEnum):
    """An action that moves a request from one state to another."""

    SUBMIT = "submit"
    REVIEW = "review"
    RETURN = "return"
    APPROVE = "approve"
    REJECT = "reject"
    WITHDRAW = "withdraw"
    RUN = "run"
    COMPLETE = "complete"
    FAIL = "fail"
    RETRY = "retry"
    DRIFT = "drift"
    EXPIRE = "expire"
    RENEW = "renew"
    REVOKE = "revoke"


_S = RequestState
_UNDECIDED = frozenset({_S.SUBMITTED, _S.IN_REVIEW, _S.FAILED})
_STEPS: Mapping[RequestStep, tuple[Set[RequestState], RequestState, str]] = MappingProxyType(
    {
        RequestStep.SUBMIT: ({_S.DRAFT, _S.RETURNED}, _S.SUBMITTED, "submitted"),
        RequestStep.REVIEW: ({_S.SUBMITTED}, _S.IN_REVIEW, "reviewed"),
        RequestStep.RETURN: (_UNDECIDED, _S.RETURNED, "returned"),
        RequestStep.APPROVE: ({_S.IN_REVIEW}, _S.APPROVED, "approved"),
        RequestStep.REJECT: (_UNDECIDED | {_S.APPROVED}, _S.REJECTED, "rejected"),
        RequestStep.WITHDRAW: (
            _UNDECIDED | {_S.DRAFT, _S.RETURNED, _S.APPROVED},
            _S.WITHDRAWN,
            "withdrawn",
        ),
        RequestStep.RUN: ({_S.APPROVED}, _S.RUNNING, "released"),
        RequestStep.COMPLETE: ({_S.RUNNING}, _S.RELEASED, "released"),
        RequestStep.FAIL: ({_S.RUNNING}, _S.FAILED, "marked as failed"),
        RequestStep.RETRY: ({_S.FAILED}, _S.APPROVED, "retried"),
        RequestStep.DRIFT: ({_S.APPROVED, _S.IN_REVIEW}, _S.RETURNED, "returned"),
        RequestStep.EXPIRE: ({_S.RELEASED}, _S.EXPIRED, "marked as expired"),
        RequestStep.RENEW: ({_S.RELEASED, _S.EXPIRED}, _S.RELEASED, "renewed"),
        RequestStep.REVOKE: ({_S.RELEASED, _S.EXPIRED}, _S.REVOKED, "revoked"),
    }
)
"""For each step the states in which it can start, the state in which it ends, and its name in error
messages.
"""

FINAL = frozenset({RequestState.REVOKED, RequestState.REJECTED, RequestState.WITHDRAWN})
"""States in which no step can start."""


def starts_of(step: RequestStep) -> Set[RequestState]:
    """Return the states of a request in which a step can start."""
    return _STEPS[step][0]


def done(step: RequestStep) -> str:
    """Return the participle that says what a step has done to a request, such as "approved"."""
    return _STEPS[step][2]


def after(state: RequestState, step: RequestStep) -> RequestState:
    """Return the state that follows a step. Raise `WrongState` if this state has no such step."""
    starts, end, done = _STEPS[step]
    if state not in starts:
        allowed = ", ".join(sorted(starts))
        raise WrongState(
            f"A request in the state {str(state)!r} cannot be {done}.",
            hint=f"Allowed states: {allowed}.",
        )
    return end
