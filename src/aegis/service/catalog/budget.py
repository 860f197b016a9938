"""Keep the privacy budget of each population.

A cost is reserved before noise is drawn, and committed together with the output. A reservation is
refunded only if its job led neither to an output nor to a refusal that depended on noise. The
epsilons of one population add up (basic composition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from aegis.service.catalog import populations
from aegis.service.catalog.errors import WrongState
from aegis.service.catalog.records import DataSet, Job, OwnedPopulation, ReleaseRecord, SpendRecord

RESERVED = "reserved"
COMMITTED = "committed"


@dataclass(frozen=True)
class BudgetLeft:
    """The privacy budget of a population (the people whom one or more data sets describe).

    Attributes
    ----------
    spent, reserved
        Epsilon of all existing outputs, and epsilon of all work in progress.
    ceiling
        The largest epsilon allowed: the lowest ceiling of the data sets that the population's owner
        or the provider of this data set has. None if none of them has a ceiling.
    """

    population: str
    spent: float
    reserved: float
    ceiling: float | None

    @property
    def remaining(self) -> float | None:
        """The epsilon that can still be reserved; None if there is no ceiling."""
        return None if self.ceiling is None else self.ceiling - self.spent - self.reserved


def balance(session: Session, data_set: DataSet) -> BudgetLeft:
    """Return the budget of the population that a data set describes. The ceiling of a provider who
    is not the population's owner limits only that provider.
    """
    population = data_set.population
    summed = (
        select(SpendRecord.state, func.sum(SpendRecord.epsilon))
        .where(SpendRecord.population == population)
        .group_by(SpendRecord.state)
    )
    sums = {state: float(epsilon) for state, epsilon in session.execute(summed)}
    owner = select(OwnedPopulation.owner_id).where(OwnedPopulation.name == population)
    ceiling = session.scalar(
        select(func.min(DataSet.ceiling)).where(
            DataSet.population == population,
            or_(DataSet.provider_id.in_(owner), DataSet.provider_id == data_set.provider_id),
        )
    )
    return BudgetLeft(population, sums.get(COMMITTED, 0.0), sums.get(RESERVED, 0.0), ceiling)


def reserve(session: Session, data_set: DataSet, job_id: str, epsilon: float) -> SpendRecord | None:
    """Reserve epsilon for a job, once for all its attempts; return None if the job costs nothing.
    Raise `WrongState` if the reservation would exceed the largest epsilon that the provider allows,
    and `NotAllowed` if the population belongs to another provider, who has not given consent.
    """
    population = data_set.population
    if epsilon <= 0:
        return None
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None:
        return spend
    populations.require_member(session.get(OwnedPopulation, population), data_set.provider_id)
    remaining = balance(session, data_set).remaining
    if remaining is not None and epsilon > remaining + 1e-12:
        raise WrongState(
            f"The budget of {population} has epsilon {max(remaining, 0):.4g} left, but the job needs {epsilon:.4g}.",
            hint="Choose a smaller epsilon, or masks without noise.",
        )
    spend = SpendRecord(population=population, job_id=job_id, epsilon=epsilon, state=RESERVED)
    session.add(spend)
    session.flush()
    return spend


def commit(session: Session, job_id: str) -> None:
    """Record that a job's output exists, so that its epsilon is spent for good."""
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None:
        spend.state = COMMITTED


def give_back(session: Session, job_id: str) -> None:
    """Refund the reservation of a job that had no output."""
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None and spend.state == RESERVED:
        session.delete(spend)


def entries(session: Session, data_set: DataSet) -> Sequence[SpendRecord]:
    """Return the reservations and costs in the budget of a data set's population, oldest first: of
    all its data sets if this data set's provider owns it, else only of this provider's.
    """
    query = select(SpendRecord).where(SpendRecord.population == data_set.population)
    if not _owns(session, data_set):
        job_ids = select(Job.id).join(DataSet, DataSet.id == Job.data_set_id)
        query = query.where(
            SpendRecord.job_id.in_(job_ids.where(DataSet.provider_id == data_set.provider_id))
        )
    return session.scalars(query.order_by(SpendRecord.created)).all()


def releases(session: Session, data_set: DataSet) -> Sequence[ReleaseRecord]:
    """Return the releases that use the budget of a data set's population, oldest first; of which
    data sets, `entries` says.
    """
    query = select(ReleaseRecord).where(ReleaseRecord.population == data_set.population)
    if not _owns(session, data_set):
        data_set_ids = select(DataSet.id).where(DataSet.provider_id == data_set.provider_id)
        query = query.where(ReleaseRecord.data_set_id.in_(data_set_ids))
    return session.scalars(query.order_by(ReleaseRecord.created)).all()


def _owns(session: Session, data_set: DataSet) -> bool:
    population = session.get(OwnedPopulation, data_set.population)
    return population is not None and population.owner_id == data_set.provider_id
