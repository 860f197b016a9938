"""Check the request of a search before the table is read."""

from __future__ import annotations

from pathlib import Path

from aegis.advisor.preference import Prefer
from aegis.advisor.search.front import FrontRange
from aegis.advisor.search.objective import OBJECTIVES
from aegis.advisor.search.objectives import objective_type
from aegis.errors import PolicyError
from aegis.files import check_output
from aegis.measures import MEASURES
from aegis.policy import Policy
from aegis.requests import SearchRequest


def check_request(policy: Policy, request: SearchRequest) -> None:
    """Raise `PolicyError` if no search can answer the request. This check does not read the
    table.
    """
    check_limits(request)
    if request.resume is not None:
        check_output(Path(request.resume), force=True, formats=None)
    preference(request)
    if isinstance(request.front, str):
        FrontRange.parse(request.front)
    objective_and_measure(policy, request.objective, request.measure)


def check_limits(request: SearchRequest) -> None:
    """Raise `PolicyError` if a search should return no configuration, or has an invalid limit."""
    if request.top < 1:
        raise PolicyError(
            f"Aegis cannot return the best {request.top} configurations.",
            hint="Ask for at least 1.",
        )
    for name, limit in (("time limit", request.time_limit), ("work", request.work)):
        if limit is not None and not limit >= 0:
            raise PolicyError(f"The {name} {limit} is not valid.", hint="Give seconds, 0 or more.")


def preference(request: SearchRequest) -> Prefer:
    """Return which of several configurations with about the same score Aegis recommends; by
    default, the one that masks least.
    """
    return Prefer.of(request.prefer or Prefer.LEAST_MASKING)


def objective_and_measure(
    policy: Policy, objective: str | None, measure: str | None
) -> tuple[str, str]:
    """Return the names of the objective that a search optimises and of the measure by which its
    results are scored.

    Parameters
    ----------
    policy
        The policy, with the measure to use if neither name is given.
    objective
        Requested objective: a measure or an information loss. If None, it is the measure.
    measure
        Requested measure; None for the objective, if it is a measure, or else the policy's measure.

    Raises
    ------
    PolicyError
        A name is unknown, or the objective does not fit the policy.
    """
    if objective is None:
        named = policy.measure_by(measure).name
        return named, named
    if objective not in MEASURES:
        policy.refuse_weight(f"Information loss {objective!r}")
        if objective_type(objective).of_label:
            policy.require_label(f"Information loss {objective!r}")
        return objective, policy.measure_by(measure).name
    objective = policy.measure_by(objective).name
    return objective, policy.measure_by(measure, objective).name


def objective_names() -> tuple[str, ...]:
    """Return the names of all objectives that `search` can maximise or minimise."""
    return (*MEASURES.names(), *OBJECTIVES.names())
