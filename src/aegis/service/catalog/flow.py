"""Create the jobs that a step of a request or data set needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy.orm import Session

from aegis.masks import privacy_account
from aegis.policy import Configuration, Policy, dump_policy, load_configurations, load_policy
from aegis.policy.lines import read_yaml
from aegis.service.catalog import budget, data_sets, jobs, requests
from aegis.service.catalog.access import Action, Actor
from aegis.service.catalog.errors import CatalogError, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Job, Request
from aegis.service.catalog.states import RequestState

_READ = 8
"""Number of policies, and of configurations, that are not parsed again."""


def ask_summary(
    session: Session,
    by: Actor,
    data_set_id: str,
    policy: str,
    *,
    protect: str,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    threshold: int = 11,
) -> Job:
    """Create a job in which the agent summarises a data set under a policy and protects the
    summary: with noise (`epsilon`, `delta`), or by the `threshold` of its counts.

    Comments are removed from the policy, because they can contain values of rows. A caller calls
    `declared` before it opens a session that may write. Raise `WrongState` if the privacy budget is
    not sufficient, and `PolicyError` if the policy is not valid.
    """
    data_set = data_sets.authorised(session, by, Action.UPLOAD_SUMMARY, data_set_id)
    task: dict[str, Any] = {
        "policy": declared(policy),
        "source": data_set.source,
        "protect": protect,
    }
    task |= {"epsilon": epsilon, "delta": delta} if protect == "noise" else {"threshold": threshold}
    job = jobs.enqueue(session, "summarize", jobs.AGENT, data_set_id, task=task)
    budget.reserve(session, data_set, job.id, epsilon if protect == "noise" else 0.0)
    data_set.proposed = None
    append(session, by.name, "summary asked", data_set=data_set_id, job=job.id, protection=protect)
    return job


@lru_cache(maxsize=_READ)
def declared(policy: str) -> str:
    """Return the text of a policy of a summary, as Aegis writes it. Raise `PolicyError` if the
    policy is not valid, or has weights.

    A long policy takes seconds, in which nobody else could write. So callers call this function
    before they open a session that may write; in this session, the result is cached.
    """
    parsed = policy_of(policy)
    parsed.refuse_weight("A protected summary")
    return dump_policy(parsed)


def ask_search(session: Session, by: Actor, request_id: str) -> Job:
    """Create a job in which the worker searches for the best configuration by the summary."""
    request = requests.authorised(session, by, Action.REVIEW, request_id)
    requests.require_review(request)
    return _enqueue(session, request, "search", jobs.WORKER, {"by": by.name})


def choose(session: Session, by: Actor, request_id: str, configuration: str) -> Request:
    """Create a job in which the agent checks a configuration on the table. If the check succeeds,
    the configuration is stored with the request. Raise `PolicyError` if the configuration does not
    fit the policy of the data set, and `CatalogError` if the text contains several configurations.
    """
    request = read_choice(session, by, request_id, configuration)
    ask_check(session, request, [configuration], {"chosen_by": by.name}, may_search=False)
    return request


def read_choice(session: Session, by: Actor, request_id: str, configuration: str) -> Request:
    """Return a request if a configuration fits it and the actor may choose. For a long
    configuration, see `declared`.
    """
    request = requests.authorised(session, by, Action.REVIEW, request_id)
    _fitting(configuration, request.version.policy)
    return request


@lru_cache(maxsize=_READ)
def _fitting(configuration: str, policy: str) -> Configuration:
    """Return the only configuration in a YAML text, which must fit a policy, also as YAML."""
    return configuration_of(configuration, policy_of(policy))


def ask_check(
    session: Session,
    request: Request,
    listed: Sequence[str],
    about: Mapping[str, Any],
    *,
    may_search: bool,
) -> None:
    """Create a job in which the agent looks for the first configuration in `listed` (YAML) that
    meets the rule, alone and together with all earlier releases. With `may_search`, it searches all
    combinations of masks if none of them does. `about` states how the configurations were chosen.
    Raise `WrongState` if the request is not in review.
    """
    requests.require_review(request)
    before = requests.earlier(session, request)
    task = {
        "policy": request.version.policy,
        "source": request.data_set.source,
        "measure": request.measure,
        "configurations": list(listed),
        "about": dict(about),
        "may_search": may_search,
        "releases": [release.id for release in before],
        "certificates": [release.certificate for release in before],
    }
    _enqueue(session, request, "check", jobs.AGENT, task)


def _enqueue(
    session: Session, request: Request, kind: str, program: str, task: Mapping[str, Any]
) -> Job:
    """Create a job of this `kind` for a request. `program` says who does it: an agent or a worker.
    Raise `WrongState` if no agent can work on the data set any more.
    """
    data_sets.require_served(request.data_set)
    return jobs.enqueue(
        session, kind, program, request.data_set_id, request_id=request.id, task=task
    )


def run(session: Session, by: Actor, request_id: str) -> Request:
    """Create the job in which the agent makes an approved release. If approved content has changed,
    send the request back instead. Raise `WrongState` if the budget of the population is not
    sufficient for the noise of its masks.
    """
    return _started(session, requests.run(session, by, request_id))


def retry(session: Session, by: Actor, request_id: str) -> Request:
    """Create a new job for a release that has failed."""
    return _started(session, requests.retry(session, by, request_id))


def cancel(session: Session, by: Actor, job_id: str) -> Job:
    """Cancel a job; if it makes a release, the release fails and can be tried again."""
    job = authorised_job(session, by, job_id, Action.RUN, Action.UPLOAD_SUMMARY)
    _stop(session, by, job)
    return job


def cancel_all(session: Session, by: Actor, data_set_id: str) -> None:
    """Cancel all jobs of a data set, for an actor whose permission was checked."""
    for job in jobs.under_way(session, data_set_id=data_set_id):
        _stop(session, by, job)


def _stop(session: Session, by: Actor, job: Job) -> None:
    if jobs.cancel(session, job, by.name):
        _make_nothing(session, by, job, f"cancelled by {by.name}")


def claim(session: Session, owner: str, program: str, *, provider: str | None = None) -> Job | None:
    """Assign the oldest waiting job to the program `owner`; return None if no job waits. Before,
    mark the jobs that have used all their attempts as failed.
    """
    system = Actor("", owner, frozenset())
    for job in jobs.over(session):
        reason = f"given up after {job.attempt} attempts: each one ended without an answer"
        give_up(session, system, job, reason)
    return jobs.claim(session, owner, program, provider=provider)


def give_up(session: Session, by: Actor, job: Job, reason: str, *, spent: bool = False) -> None:
    """Record that a job failed, on the job and on its request. Refund its epsilon unless noise was
    drawn (`spent`): then the failure itself reveals something about the table.
    """
    jobs.fail(session, job.id, job.attempt, reason)
    if spent:
        budget.commit(session, job.id)
    _make_nothing(session, by, job, reason)


def _make_nothing(session: Session, by: Actor, job: Job, reason: str) -> None:
    """For a job that ended without output, refund the epsilon that was reserved and mark its
    release as failed.
    """
    budget.give_back(session, job.id)
    request = None if job.request_id is None else session.get(Request, job.request_id)
    if job.kind == "release" and request is not None and request.state == RequestState.RUNNING:
        requests.fail(session, by, request, reason)


def retry_job(session: Session, by: Actor, job_id: str) -> Job:
    """Create a job again after it failed or was cancelled; for releases, use `retry`. Raise
    `WrongState` if the job waits, runs or is done, its request is not in review, or the budget is
    not sufficient.
    """
    job = authorised_job(session, by, job_id, Action.RUN, Action.UPLOAD_SUMMARY)
    if job.kind == "release" or job.state not in ("failed", "cancelled"):
        raise WrongState(
            f"The {job.kind} is {job.state}.",
            hint="You can retry only a job that failed or was cancelled. Retry a release from its request.",
        )
    if job.request_id is not None:
        requests.require_review(jobs.request_of(session, job))
    data_set = data_sets.authorised(session, by, Action.BROWSE, job.data_set_id)
    again = jobs.enqueue(
        session, job.kind, job.place, job.data_set_id, request_id=job.request_id, task=job.task
    )
    if job.task.get("protect") == "noise":
        budget.reserve(session, data_set, again.id, job.task["epsilon"])
    jobs.tell(session, by.name, again, "asked again")
    return again


def authorised_job(
    session: Session, by: Actor, job_id: str, of_request: Action, other: Action
) -> Job:
    """Return a job if the actor may do the action `of_request` on its request or, for a job without
    a request, the action `other` on its data set; raise `NotThere` otherwise.
    """
    with jobs.visible_job(session, job_id, "See the request.") as job:
        if job.request_id is None:
            data_sets.authorised(session, by, other, job.data_set_id)
        else:
            requests.authorised(session, by, of_request, job.request_id)
    return job


@lru_cache(maxsize=_READ)
def policy_of(text: str) -> Policy:
    """Return the policy in a YAML text. It comes from another machine, so it must not refer to
    files or variables of this machine: raise `CatalogError` if it does or is not a mapping, and
    `PolicyError` if the policy is not valid.
    """
    data = read_yaml(text, "the policy").data
    if not isinstance(data, Mapping):
        raise CatalogError(
            "The policy is not a mapping.", hint="Give a policy as `aegis init` writes it."
        )
    return policy_in(data)


def policy_in(data: Mapping[str, Any]) -> Policy:
    """Return the policy in a mapping; raise the errors of `policy_of`."""
    _require_self_contained(data)
    if data.get("population") is not None:
        raise CatalogError(
            "The policy names the table of a population, but the agent cannot read that file.",
            hint="Leave out the key population, and the criteria that need it.",
        )
    policy = load_policy(data)
    policy.refuse_several("The service")
    return policy


def configuration_of(text: str, policy: Policy) -> Configuration:
    """Return the only configuration in a YAML text. Raise `PolicyError` if it does not fit the
    policy, and `CatalogError` if there are several.
    """
    located = read_yaml(text, "the configuration")
    _require_self_contained(located.data)
    chosen = load_configurations(located, policy)
    if len(chosen) != 1:
        raise CatalogError(
            f"You gave {len(chosen)} configurations.", hint="Give one configuration."
        )
    return next(iter(chosen.values()))


def _require_self_contained(data: Any) -> None:
    """Raise an error if a policy or configuration refers to a file or a secret of this machine."""
    waiting = [data]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("tokenise"), Mapping):
                raise CatalogError(
                    "The mask tokenise cannot be used here: its key is on your machine, not on the agent's.",
                    hint="Tokenise the column where the data is, before you register the table, or choose another mask.",
                )
            attributes = node.get("attributes")
            entries = attributes.values() if isinstance(attributes, Mapping) else ()
            if any(isinstance(e, Mapping) and isinstance(e.get("hierarchy"), str) for e in entries):
                raise CatalogError(
                    "The policy names the file of a hierarchy, but the agent cannot read that file.",
                    hint="Write the hierarchy itself into the policy; aegis catalog register does.",
                )
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)


def _started(session: Session, request: Request) -> Request:
    if request.state != RequestState.RUNNING:
        return request
    task = {
        "policy": request.version.policy,
        "source": request.data_set.source,
        "configuration": request.configuration,
        "measure": request.measure,
        "approvals": requests.signatures(session, request),
    }
    job = _enqueue(session, request, "release", jobs.AGENT, task)
    chosen = _fitting(request.configuration or "", request.version.policy)
    noise = privacy_account(chosen.masks)
    budget.reserve(session, request.data_set, job.id, 0.0 if noise is None else noise.epsilon)
    return request
