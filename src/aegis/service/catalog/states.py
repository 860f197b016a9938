"""Define the states of a request, and the steps between them.

One table lists all steps. Each step checks this table, and writes the new state and the log entry
in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from aegis.service.catalog.errors import WrongState


class RequestState(StrEnum):
    """The state of a request."""

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


_STEPS: Mapping[RequestStep, tuple[frozenset[RequestState], RequestState]] = MappingProxyType(
    {
        RequestStep.SUBMIT: (
            frozenset({RequestState.DRAFT, RequestState.RETURNED}),
            RequestState.SUBMITTED,
        ),
        RequestStep.REVIEW: (frozenset({RequestState.SUBMITTED}), RequestState.IN_REVIEW),
        RequestStep.RETURN: (
            frozenset({RequestState.SUBMITTED, RequestState.IN_REVIEW}),
            RequestState.RETURNED,
        ),
        RequestStep.APPROVE: (frozenset({RequestState.IN_REVIEW}), RequestState.APPROVED),
        RequestStep.REJECT: (
            frozenset({RequestState.SUBMITTED, RequestState.IN_REVIEW, RequestState.APPROVED}),
            RequestState.REJECTED,
        ),
        RequestStep.WITHDRAW: (
            frozenset(
                {
                    RequestState.DRAFT,
                    RequestState.SUBMITTED,
                    RequestState.IN_REVIEW,
                    RequestState.RETURNED,
                    RequestState.APPROVED,
                }
            ),
            RequestState.WITHDRAWN,
        ),
        RequestStep.RUN: (frozenset({RequestState.APPROVED}), RequestState.RUNNING),
        RequestStep.COMPLETE: (frozenset({RequestState.RUNNING}), RequestState.RELEASED),
        RequestStep.FAIL: (frozenset({RequestState.RUNNING}), RequestState.FAILED),
        RequestStep.RETRY: (frozenset({RequestState.FAILED}), RequestState.APPROVED),
        RequestStep.DRIFT: (
            frozenset({RequestState.APPROVED, RequestState.IN_REVIEW}),
            RequestState.RETURNED,
        ),
        RequestStep.EXPIRE: (frozenset({RequestState.RELEASED}), RequestState.EXPIRED),
        RequestStep.RENEW: (
            frozenset({RequestState.RELEASED, RequestState.EXPIRED}),
            RequestState.RELEASED,
        ),
        RequestStep.REVOKE: (
            frozenset({RequestState.RELEASED, RequestState.EXPIRED}),
            RequestState.REVOKED,
        ),
    }
)
"""For each step the states in which it can start, and the state in which it ends."""

_DONE = MappingProxyType(
    {
        RequestStep.SUBMIT: "submitted",
        RequestStep.REVIEW: "taken up for review",
        RequestStep.RETURN: "returned",
        RequestStep.APPROVE: "approved",
        RequestStep.REJECT: "rejected",
        RequestStep.WITHDRAW: "withdrawn",
        RequestStep.RUN: "carried out",
        RequestStep.COMPLETE: "released",
        RequestStep.FAIL: "given up",
        RequestStep.RETRY: "tried again",
        RequestStep.DRIFT: "sent back",
        RequestStep.EXPIRE: "ended",
        RequestStep.RENEW: "renewed",
        RequestStep.REVOKE: "revoked",
    }
)
"""Names of the steps in error messages."""

FINAL = frozenset({RequestState.REVOKED, RequestState.REJECTED, RequestState.WITHDRAWN})
"""States that no step leaves."""


def starts_of(step: RequestStep) -> frozenset[RequestState]:
    """Return the states in which a step can start."""
    return _STEPS[step][0]


def after(state: RequestState, step: RequestStep) -> RequestState:
    """Return the state that follows a step.

    Raises
    ------
    WrongState
        The step cannot start in this state.
    """
    starts, end = _STEPS[step]
    if state not in starts:
        allowed = ", ".join(sorted(starts))
        raise WrongState(
            f"A request that is {state} cannot be {_DONE[step]}.",
            hint=f"Only one that is: {allowed}.",
        )
    return end
