"""Jobs: work that one agent or worker takes, keeps alive, and answers once.

A lease says whose turn it is. Who does not renew it in time loses it, and the next one starts the
job anew with a higher attempt; an answer of the attempt before is refused, so that a job is
never answered twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from aegis.service.catalog import signs
from aegis.service.catalog.errors import NotThere, TooOften, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import DataSet, Job, now

LEASE = timedelta(seconds=12)
"""How long a job is somebody's without a sign of life: a kill costs this and the next look for work."""
SIGN_OF_LIFE = 3.0
"""Seconds between two signs of life: several fit into a lease."""
LOOK_FOR_WORK = 3.0
"""Most seconds between two looks for work."""
MOST_ATTEMPTS = 5
"""After so many attempts a job has failed."""
MOST_WAITING = 200
"""So many jobs of one data set may wait."""
AGENT = "agent"
WORKER = "worker"


def enqueue(
    session: Session,
    kind: str,
    place: str,
    data_set_id: str,
    *,
    request_id: str | None = None,
    task: Mapping[str, Any] | None = None,
) -> Job:
    """Add a job, unless the same one waits already.

    Raises
    ------
    TooOften
        Too many jobs of this data set wait.
    """
    same = select(Job).where(
        Job.kind == kind,
        Job.data_set_id == data_set_id,
        Job.request_id == request_id if request_id is not None else Job.request_id.is_(None),
        Job.state.in_(("queued", "running")),
    )
    waiting = session.scalars(same).first()
    if waiting is not None and waiting.task == dict(task or {}):
        return waiting
    queued = select(func.count()).where(Job.data_set_id == data_set_id, Job.state == "queued")
    if (session.scalar(queued) or 0) >= MOST_WAITING:
        raise TooOften(
            f"{MOST_WAITING} jobs of {data_set_id} wait already.",
            hint="Wait until its agent and the workers have done some of them.",
        )
    job = Job(
        kind=kind,
        place=place,
        data_set_id=data_set_id,
        request_id=request_id,
        task=dict(task or {}),
    )
    session.add(job)
    session.flush()
    return job


def claim(session: Session, owner: str, place: str, *, provider: str | None = None) -> Job | None:
    """Take the oldest job that nobody works on; None if there is none.

    Parameters
    ----------
    session
        A writing session.
    owner
        Name of the process that takes it.
    place
        "agent" or "worker".
    provider
        For agents: the account whose data sets they serve.
    """
    moment = now()
    signs.note(session, place, owner, provider)
    lost = (Job.state == "running") & (Job.leased_until < moment) & (Job.attempt < MOST_ATTEMPTS)
    free = or_(Job.state == "queued", lost)
    query = select(Job).where(Job.place == place, free)
    if provider is not None:
        own = select(DataSet.id).where(DataSet.provider_id == provider)
        query = query.where(Job.data_set_id.in_(own))
    job = session.scalars(query.order_by(Job.created, Job.id).limit(1)).first()
    if job is None:
        return None
    job.state, job.owner, job.attempt = "running", owner, job.attempt + 1
    job.leased_until = moment + LEASE
    append(
        session,
        owner,
        f"{job.kind} started",
        data_set=job.data_set_id,
        request=job.request_id,
        job=job.id,
        attempt=job.attempt,
    )
    return job


def renew(session: Session, job_id: str, attempt: int, progress: Mapping[str, Any]) -> Job:
    """Show that a job is alive, and how far it is.

    Raises
    ------
    WrongState
        It was cancelled, or given to another: stop working on it.
    """
    job = held(session, job_id, attempt)
    job.leased_until = now() + LEASE
    job.progress = dict(progress)
    if job.owner is not None:
        signs.note(session, job.place, job.owner)
    return job


def finish(session: Session, job_id: str, attempt: int, result: Mapping[str, Any]) -> Job:
    """Answer a job."""
    job = held(session, job_id, attempt)
    _end(job, "done", result=dict(result))
    _tell(session, job, "done")
    return job


def fail(session: Session, job_id: str, attempt: int, error: str) -> Job:
    """End a job as failed, with the reason."""
    job = held(session, job_id, attempt)
    _end(job, "failed", error=error[:2000])
    _tell(session, job, "failed")
    return job


def give_back(session: Session, job_id: str, attempt: int) -> Job:
    """Release a job so that another can take it at once; the present worker is told to end.

    Raises
    ------
    WrongState
        It was cancelled, or given to another.
    """
    job = held(session, job_id, attempt)
    job.state, job.leased_until = "queued", None
    _tell(session, job, "given back")
    return job


def cancel(session: Session, job: Job, by: str) -> Job:
    """Stop a job; who works on it hears of it at its next sign of life."""
    if job.state in ("queued", "running"):
        _end(job, "cancelled")
        append(
            session,
            by,
            f"{job.kind} cancelled",
            data_set=job.data_set_id,
            request=job.request_id,
            job=job.id,
        )
    return job


def over(session: Session) -> Sequence[Job]:
    """Return the jobs that were begun too often, and whose last lease has ended."""
    lost = select(Job).where(
        Job.state == "running", Job.leased_until < now(), Job.attempt >= MOST_ATTEMPTS
    )
    return session.scalars(lost).all()


def held(session: Session, job_id: str, attempt: int) -> Job:
    """Return a job if this attempt still holds it; raise `WrongState` otherwise."""
    job = session.get(Job, job_id)
    if job is None:
        raise NotThere("There is no such job.", hint="Ask for work again.")
    if job.state != "running" or job.attempt != attempt:
        raise WrongState(
            f"The job is {job.state}, at attempt {job.attempt}: attempt {attempt} is over.",
            hint="Stop working on it and ask for work again.",
        )
    return job


def latest(session: Session, request_id: str, kinds: Iterable[str]) -> Job | None:
    """Return the newest job of these kinds for a request."""
    query = select(Job).where(Job.request_id == request_id, Job.kind.in_(tuple(kinds)))
    return session.scalars(query.order_by(Job.created.desc()).limit(1)).first()


def latest_of_data_set(session: Session, data_set_id: str, kind: str) -> Job | None:
    """Return the newest job of a kind for a data set."""
    query = select(Job).where(Job.data_set_id == data_set_id, Job.kind == kind)
    return session.scalars(query.order_by(Job.created.desc()).limit(1)).first()


def _end(
    job: Job, state: str, *, result: dict[str, Any] | None = None, error: str | None = None
) -> None:
    job.state, job.result, job.error = state, result, error
    job.leased_until, job.ended = None, now()


def _tell(session: Session, job: Job, ending: str) -> None:
    append(
        session,
        job.owner or "system",
        f"{job.kind} {ending}",
        data_set=job.data_set_id,
        request=job.request_id,
        job=job.id,
        attempt=job.attempt,
    )
