"""Steps that set work going: what a provider, an operator or a worker asks, and the job it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from aegis.catalog import budget, data_sets, jobs, requests
from aegis.catalog.access import Action, Actor
from aegis.catalog.errors import CatalogError, NotThere, WrongState
from aegis.catalog.log import append
from aegis.catalog.records import Job, Request
from aegis.catalog.states import State
from aegis.masks import privacy_account
from aegis.policy import Configuration, Policy, load_configurations, load_policy
from aegis.policy.lines import read_yaml


def ask_summary(
    session: Session,
    by: Actor,
    data_set_id: str,
    policy: str,
    *,
    protect: str,
    epsilon: float,
    delta: float,
    threshold: int,
) -> Job:
    """Have the agent summarise a data set under a policy, and protect the summary.

    Raises
    ------
    WrongState
        The budget of the population does not suffice.
    PolicyError
        The policy is not valid.
    """
    data_set = data_sets.seen(session, by, Action.UPLOAD_SUMMARY, data_set_id)
    policy_of(policy)
    task: dict[str, Any] = {"policy": policy, "source": data_set.source, "protect": protect}
    task |= {"epsilon": epsilon, "delta": delta} if protect == "noise" else {"threshold": threshold}
    job = jobs.enqueue(session, "summarize", jobs.AGENT, data_set_id, task=task)
    budget.reserve(session, data_set.population, job.id, epsilon if protect == "noise" else 0.0)
    append(session, by.name, "summary asked", data_set=data_set_id, job=job.id, protection=protect)
    return job


def ask_search(session: Session, by: Actor, request_id: str) -> Job:
    """Have the worker search the best configuration for a request, from the protected summary."""
    request = requests.seen(session, by, Action.REVIEW, request_id)
    if request.state != State.IN_REVIEW:
        raise WrongState(
            f"A request that is {request.state} is not searched for.",
            hint="Take it up for review first.",
        )
    return jobs.enqueue(
        session,
        "search",
        jobs.WORKER,
        request.data_set_id,
        request_id=request.id,
        task={"by": by.name},
    )


def choose(session: Session, by: Actor, request_id: str, configuration: str) -> Request:
    """Have a configuration checked beside the data; it is set when the agent has answered.

    Raises
    ------
    PolicyError
        The configuration does not fit the policy of the data set.
    CatalogError
        The file holds several configurations.
    """
    request = requests.seen(session, by, Action.REVIEW, request_id)
    configuration_of(configuration, policy_of(request.version.policy))
    ask_check(session, request, [configuration], {"chosen_by": by.name}, may_search=False)
    return request


def ask_check(
    session: Session,
    request: Request,
    listed: Sequence[str],
    about: Mapping[str, Any],
    *,
    may_search: bool,
) -> Job:
    """Have the agent find the first configuration that meets the rule with earlier releases.

    Raises
    ------
    WrongState
        The request is not in review.
    """
    if request.state != State.IN_REVIEW:
        raise WrongState(
            f"A request that is {request.state} gets no configuration.",
            hint="Take it up for review first.",
        )
    before = requests.earlier(session, request)
    task = {
        "policy": request.version.policy,
        "source": request.data_set.source,
        "measure": request.measure,
        "configurations": list(listed),
        "about": dict(about),
        "may_search": may_search,
        "releases": [one.id for one in before],
        "certificates": [one.certificate for one in before],
    }
    return jobs.enqueue(
        session, "check", jobs.AGENT, request.data_set_id, request_id=request.id, task=task
    )


def run(session: Session, by: Actor, request_id: str) -> Request:
    """Have the agent make an approved release; the request goes back where it has changed.

    Raises
    ------
    WrongState
        The budget of the population does not suffice for the noise of its masks.
    """
    return _started(session, requests.run(session, by, request_id))


def retry(session: Session, by: Actor, request_id: str) -> Request:
    """Have the agent try a failed release once more."""
    return _started(session, requests.retry(session, by, request_id))


def cancel(session: Session, by: Actor, job_id: str) -> Job:
    """Stop a job; a release under way fails, and may be tried again."""
    job = session.get(Job, job_id)
    if job is None or job.request_id is None:
        raise NotThere("There is no such job of a request.", hint="See the request.")
    request = requests.seen(session, by, Action.RUN, job.request_id)
    if job.state not in ("queued", "running"):
        return job
    jobs.cancel(session, job, by.name)
    budget.give_back(session, job.id)
    if job.kind == "release" and request.state == State.RUNNING:
        requests.fail(session, by, request, f"cancelled by {by.name}")
    return job


def policy_of(text: str) -> Policy:
    """Return the policy of a YAML text; raise `PolicyError` for anything else."""
    data = read_yaml(text, "the policy").data
    if not isinstance(data, Mapping):
        raise CatalogError("The policy is no mapping.", hint="Give a file as aegis init makes it.")
    return load_policy(data)


def configuration_of(text: str, policy: Policy) -> Configuration:
    """Return the one configuration of a YAML text.

    Raises
    ------
    PolicyError
        It does not fit the policy.
    CatalogError
        It holds several.
    """
    chosen = load_configurations(read_yaml(text, "the configuration"), policy)
    if len(chosen) != 1:
        raise CatalogError(
            f"{len(chosen)} configurations are given.", hint="Give one to be released."
        )
    return next(iter(chosen.values()))


def _started(session: Session, request: Request) -> Request:
    if request.state != State.RUNNING:
        return request
    task = {
        "policy": request.version.policy,
        "source": request.data_set.source,
        "configuration": request.configuration,
        "measure": request.measure,
    }
    job = jobs.enqueue(
        session, "release", jobs.AGENT, request.data_set_id, request_id=request.id, task=task
    )
    budget.reserve(session, request.data_set.population, job.id, _epsilon(request))
    return request


def _epsilon(request: Request) -> float:
    """Return what the noise masks of a request spend."""
    chosen = configuration_of(request.configuration or "", policy_of(request.version.policy))
    account = privacy_account(chosen.masks)
    return 0.0 if account is None else account.epsilon
