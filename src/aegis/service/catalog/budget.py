"""Privacy budget per population: reserved before noise is drawn, committed with the output.

A reservation whose output never came is given back; one whose output exists never is, whatever
becomes of the output. Epsilons of one population add up (basic composition).
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
    """The rest of a budget.

    Attributes
    ----------
    population
        Whose persons it is about.
    spent, reserved
        Epsilon of outputs that exist, and of work under way.
    ceiling
        The lowest ceiling of the data sets of its owner and, of a data set of another, of those of
        its provider; None if none has one.
    """

    population: str
    spent: float
    reserved: float
    ceiling: float | None

    @property
    def left(self) -> float | None:
        """The epsilon that may still be reserved; None without a ceiling."""
        return None if self.ceiling is None else self.ceiling - self.spent - self.reserved


def balance(session: Session, data_set: DataSet) -> BudgetLeft:
    """Return the rest of the budget of a data set's population.

    A provider who has joined it limits itself by a ceiling, and nobody else.
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
            or_(
                DataSet.provider_id.in_(owner),
                DataSet.provider_id == data_set.provider_id,
            ),
        )
    )
    return BudgetLeft(population, sums.get(COMMITTED, 0.0), sums.get(RESERVED, 0.0), ceiling)


def reserve(session: Session, data_set: DataSet, job_id: str, epsilon: float) -> SpendRecord | None:
    """Reserve a budget for a job, only once for all its attempts; None if nothing is spent.

    Raises
    ------
    WrongState
        It would go beyond the ceiling.
    NotAllowed
        The population is another's, who has not consented.
    """
    population = data_set.population
    if epsilon <= 0:
        return None
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None:
        return spend
    populations.require_member(session.get(OwnedPopulation, population), data_set.provider_id)
    left = balance(session, data_set).left
    if left is not None and epsilon > left + 1e-12:
        raise WrongState(
            f"The budget of {population} has {max(left, 0):.4g} left, and {epsilon:.4g} is asked.",
            hint="Choose a smaller epsilon, or masks without noise.",
        )
    spend = SpendRecord(population=population, job_id=job_id, epsilon=epsilon, state=RESERVED)
    session.add(spend)
    session.flush()
    return spend


def commit(session: Session, job_id: str) -> None:
    """Note that the output exists: its budget is spent for good."""
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None:
        spend.state = COMMITTED


def give_back(session: Session, job_id: str) -> None:
    """Refund a reservation whose output was never made."""
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None and spend.state == RESERVED:
        session.delete(spend)


def entries(session: Session, data_set: DataSet) -> Sequence[SpendRecord]:
    """Return reservations and costs in order of time: of all data sets for the owner of the
    population, of their own data sets for other providers.
    """
    query = select(SpendRecord).where(SpendRecord.population == data_set.population)
    if not _owns(session, data_set):
        own = select(Job.id).join(DataSet, DataSet.id == Job.data_set_id)
        query = query.where(
            SpendRecord.job_id.in_(own.where(DataSet.provider_id == data_set.provider_id))
        )
    return session.scalars(query.order_by(SpendRecord.created)).all()


def releases(session: Session, data_set: DataSet) -> Sequence[ReleaseRecord]:
    """Return releases of a population in order of time, as `entries` chooses them."""
    query = select(ReleaseRecord).where(ReleaseRecord.population == data_set.population)
    if not _owns(session, data_set):
        own = select(DataSet.id).where(DataSet.provider_id == data_set.provider_id)
        query = query.where(ReleaseRecord.data_set_id.in_(own))
    return session.scalars(query.order_by(ReleaseRecord.created)).all()


def _owns(session: Session, data_set: DataSet) -> bool:
    population = session.get(OwnedPopulation, data_set.population)
    return population is not None and population.owner_id == data_set.provider_id
