"""The life of a request: its states, and who moves it from one to the next.

One table decides. Whatever moves a request goes through `Catalog`, which looks here, writes the
new state and the entry of the log in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from aegis.catalog.errors import WrongState


class State(StrEnum):
    """Where a request stands."""

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


class Step(StrEnum):
    """What moves a request."""

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


_STEPS: Mapping[Step, tuple[frozenset[State], State]] = MappingProxyType(
    {
        Step.SUBMIT: (frozenset({State.DRAFT, State.RETURNED}), State.SUBMITTED),
        Step.REVIEW: (frozenset({State.SUBMITTED}), State.IN_REVIEW),
        Step.RETURN: (frozenset({State.SUBMITTED, State.IN_REVIEW}), State.RETURNED),
        Step.APPROVE: (frozenset({State.IN_REVIEW}), State.APPROVED),
        Step.REJECT: (
            frozenset({State.SUBMITTED, State.IN_REVIEW, State.APPROVED}),
            State.REJECTED,
        ),
        Step.WITHDRAW: (
            frozenset(
                {State.DRAFT, State.SUBMITTED, State.IN_REVIEW, State.RETURNED, State.APPROVED}
            ),
            State.WITHDRAWN,
        ),
        Step.RUN: (frozenset({State.APPROVED}), State.RUNNING),
        Step.COMPLETE: (frozenset({State.RUNNING}), State.RELEASED),
        Step.FAIL: (frozenset({State.RUNNING}), State.FAILED),
        Step.RETRY: (frozenset({State.FAILED}), State.APPROVED),
        Step.DRIFT: (frozenset({State.APPROVED, State.IN_REVIEW}), State.RETURNED),
        Step.EXPIRE: (frozenset({State.RELEASED}), State.EXPIRED),
        Step.RENEW: (frozenset({State.RELEASED, State.EXPIRED}), State.RELEASED),
        Step.REVOKE: (frozenset({State.RELEASED, State.EXPIRED}), State.REVOKED),
    }
)
"""For each step the states from which it starts, and the state in which it ends."""

_DONE = MappingProxyType(
    {
        Step.SUBMIT: "submitted",
        Step.REVIEW: "taken up for review",
        Step.RETURN: "returned",
        Step.APPROVE: "approved",
        Step.REJECT: "rejected",
        Step.WITHDRAW: "withdrawn",
        Step.RUN: "carried out",
        Step.COMPLETE: "released",
        Step.FAIL: "given up",
        Step.RETRY: "tried again",
        Step.DRIFT: "sent back",
        Step.EXPIRE: "ended",
        Step.RENEW: "renewed",
        Step.REVOKE: "revoked",
    }
)
"""How errors call each step."""

FINAL = frozenset({State.REVOKED, State.REJECTED, State.WITHDRAWN})
"""States that nothing leaves."""


def after(state: State, step: Step) -> State:
    """Return the state after a step.

    Raises
    ------
    WrongState
        The step does not start from this state.
    """
    starts, end = _STEPS[step]
    if state not in starts:
        allowed = ", ".join(sorted(starts))
        raise WrongState(
            f"A request that is {state} cannot be {_DONE[step]}.",
            hint=f"Only one that is: {allowed}.",
        )
    return end


def steps_from(state: State) -> tuple[Step, ...]:
    """Return the steps that start from a state, in the order of the table."""
    return tuple(step for step, (starts, _) in _STEPS.items() if state in starts)
