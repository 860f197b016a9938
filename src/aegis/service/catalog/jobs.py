"""Queue jobs; an agent or a worker claims a job, renews its lease, and answers it once.

The lease says which program works on a job. A program that does not renew the lease in time loses
the job. The next program starts the job again with a higher attempt number. Answers of earlier
attempts are refused, so no job is answered twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from aegis.service.catalog import signs
from aegis.service.catalog.errors import NotThere, TooOften, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import DataSet, Job, Request, now

LEASE = timedelta(seconds=12)
"""Time after which a lease without a sign of life ends, so that another program can take over."""
SIGN_OF_LIFE = 3.0
"""Number of seconds between two signs of life; several of these intervals fit into a lease."""
LOOK_FOR_WORK = 3.0
"""Largest number of seconds after which an idle program looks for work again."""
MOST_ATTEMPTS = 5
"""Number of attempts after which a job has failed."""
MOST_WAITING = 200
"""Largest number of waiting jobs of one data set."""
AGENT = "agent"
WORKER = "worker"
_UNDER_WAY = Job.state.in_(("queued", "running"))


def enqueue(
    session: Session,
    kind: str,
    program: str,
    data_set_id: str,
    *,
    request_id: str | None = None,
    task: Mapping[str, Any] | None = None,
) -> Job:
    """Return a job for an agent or a worker: the same job if one waits or runs already, else a new
    one. Raise `TooOften` if too many jobs of this data set are waiting.
    """
    same = select(Job).where(
        Job.kind == kind,
        Job.data_set_id == data_set_id,
        Job.request_id == request_id if request_id is not None else Job.request_id.is_(None),
        _UNDER_WAY,
    )
    waiting, task = session.scalars(same).first(), dict(task or {})
    if waiting is not None and waiting.task == task:
        return waiting
    queued = select(func.count()).where(Job.data_set_id == data_set_id, Job.state == "queued")
    if (session.scalar(queued) or 0) >= MOST_WAITING:
        raise TooOften(
            f"{MOST_WAITING} jobs of {data_set_id} are already waiting.",
            hint="Wait until its agent and the workers have done some of them.",
        )
    job = Job(kind=kind, place=program, data_set_id=data_set_id, request_id=request_id, task=task)
    session.add(job)
    session.flush()
    return job


def claim(session: Session, owner: str, program: str, *, provider: str | None = None) -> Job | None:
    """Assign the oldest unassigned job for a `program` ("agent" or "worker") to the process
    `owner`; return None if there is none. Agents work only for the data sets of the account
    `provider`.
    """
    moment = now()
    signs.note(session, program, owner, provider)
    lost = (Job.state == "running") & (Job.leased_until < moment) & (Job.attempt < MOST_ATTEMPTS)
    free = or_(Job.state == "queued", lost)
    query = select(Job).where(Job.place == program, free)
    if provider is not None:
        data_set_ids = select(DataSet.id).where(DataSet.provider_id == provider)
        query = query.where(Job.data_set_id.in_(data_set_ids))
    job = session.scalars(query.order_by(Job.created, Job.id).limit(1)).first()
    if job is None:
        return None
    job.state, job.owner, job.attempt = "running", owner, job.attempt + 1
    job.leased_until = moment + LEASE
    tell(session, owner, job, "started", attempt=job.attempt)
    return job


def renew(session: Session, job_id: str, attempt: int, progress: Mapping[str, Any]) -> Job:
    """Extend a program's claim on a job, and store the progress. Raise `WrongState` if the job was
    cancelled or given to another program: stop working on it.
    """
    job = current(session, job_id, attempt)
    job.leased_until = now() + LEASE
    job.progress = dict(progress)
    if job.owner is not None:
        signs.note(session, job.place, job.owner)
    return job


def finish(session: Session, job_id: str, attempt: int, result: Mapping[str, Any]) -> Job:
    """Store the result of a job."""
    job = current(session, job_id, attempt)
    job.result = dict(result)
    _end(session, job, "done")
    return job


def fail(session: Session, job_id: str, attempt: int, error: str) -> Job:
    """Mark a job as failed, and store the reason."""
    job = current(session, job_id, attempt)
    job.error = error[:2000]
    _end(session, job, "failed")
    return job


def give_back(session: Session, job_id: str, attempt: int) -> Job:
    """Return a running job to the queue, because the program that works on it shuts down. Raise
    `WrongState` if the job was cancelled, or given to another program.
    """
    job = current(session, job_id, attempt)
    job.state, job.leased_until = "queued", None
    tell(session, job.owner or "system", job, "given back", attempt=job.attempt)
    return job


def cancel(session: Session, job: Job, by: str) -> bool:
    """Cancel a job that waits or runs; return whether it did. The program that works on it notices
    this when it next reports its progress.
    """
    if job.state not in ("queued", "running"):
        return False
    job.state, job.leased_until, job.ended = "cancelled", None, now()
    tell(session, by, job, "cancelled")
    return True


def over(session: Session) -> Sequence[Job]:
    """Return the jobs that have used all attempts, and whose last program did not report in time."""
    lost = select(Job).where(
        Job.state == "running", Job.leased_until < now(), Job.attempt >= MOST_ATTEMPTS
    )
    return session.scalars(lost).all()


def current(session: Session, job_id: str, attempt: int) -> Job:
    """Return a job if `attempt` is its current attempt; raise `WrongState` otherwise."""
    job = session.get_one(Job, job_id)
    if job.state != "running" or job.attempt != attempt:
        raise WrongState(
            f"Attempt {attempt} of the job is over: the job is {job.state}, at attempt {job.attempt}.",
            hint="Stop working on it and ask for work again.",
        )
    return job


def request_of(session: Session, job: Job) -> Request:
    """Return the request of a job that has one: of a search, a check or a release."""
    return session.get_one(Request, job.request_id)


@contextmanager
def visible_job(session: Session, job_id: str, hint: str) -> Iterator[Job]:
    """Yield a job to code that checks whether an actor may see it. Raise `NotThere`, with this
    `hint`, if there is no such job, or if that code raises `NotThere`, which would name the job's
    data set.
    """
    job = session.get(Job, job_id)
    unknown = NotThere("There is no job of this number that you may see.", hint=hint)
    if job is None:
        raise unknown
    try:
        yield job
    except NotThere as hidden:
        raise unknown from hidden


def latest(session: Session, *kinds: str, **of: str) -> Job | None:
    """Return the newest job of these kinds, `of` a `request_id` or a `data_set_id`."""
    query = select(Job).filter_by(**of).where(Job.kind.in_(kinds))
    return session.scalars(query.order_by(Job.created.desc()).limit(1)).first()


def under_way(session: Session, **of: str) -> Sequence[Job]:
    """Return the jobs `of` a `request_id` or a `data_set_id` that wait or run."""
    return session.scalars(select(Job).filter_by(**of).where(_UNDER_WAY)).all()


def tell(session: Session, by: str, job: Job, what: str, **detail: Any) -> None:
    """Log that something (`what`, such as "cancelled") happened to a job."""
    append(
        session,
        by,
        f"{job.kind} {what}",
        data_set=job.data_set_id,
        request=job.request_id,
        job=job.id,
        **detail,
    )


def _end(session: Session, job: Job, state: str) -> None:
    job.state, job.leased_until, job.ended = state, None, now()
    tell(session, job.owner or "system", job, state, attempt=job.attempt)
