"""Privacy budget per population: reserved before noise is drawn, committed with the output.

A reservation whose output never came is given back; one whose output exists never is, whatever
becomes of the output. Epsilons of one population add up (basic composition).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from aegis.catalog.errors import WrongState
from aegis.catalog.records import DataSet, ReleaseRecord, SpendRecord

RESERVED = "reserved"
COMMITTED = "committed"


@dataclass(frozen=True)
class BudgetLeft:
    """What is left of a budget.

    Attributes
    ----------
    population
        Whose persons it is about.
    spent, reserved
        Epsilon of outputs that exist, and of work under way.
    ceiling
        The lowest ceiling of the population's data sets; None where none has one.
    """

    population: str
    spent: float
    reserved: float
    ceiling: float | None

    @property
    def left(self) -> float | None:
        """What may still be reserved; None without a ceiling."""
        return None if self.ceiling is None else self.ceiling - self.spent - self.reserved


def balance(session: Session, population: str) -> BudgetLeft:
    """Return what is left for a population."""
    summed = (
        select(SpendRecord.state, func.sum(SpendRecord.epsilon))
        .where(SpendRecord.population == population)
        .group_by(SpendRecord.state)
    )
    sums = {state: float(epsilon) for state, epsilon in session.execute(summed)}
    ceiling = session.scalar(
        select(func.min(DataSet.ceiling)).where(DataSet.population == population)
    )
    return BudgetLeft(population, sums.get(COMMITTED, 0.0), sums.get(RESERVED, 0.0), ceiling)


def reserve(session: Session, population: str, job_id: str, epsilon: float) -> SpendRecord | None:
    """Reserve a budget for a job, once however often it is tried; None where nothing is spent.

    Raises
    ------
    WrongState
        It would go beyond the ceiling.
    """
    if epsilon <= 0:
        return None
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None:
        return spend
    left = balance(session, population).left
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
    """Give a reservation back whose output never came to exist."""
    spend = session.scalar(select(SpendRecord).where(SpendRecord.job_id == job_id))
    if spend is not None and spend.state == RESERVED:
        session.delete(spend)


def entries(session: Session, population: str) -> Sequence[SpendRecord]:
    """Return what was reserved and spent for a population, in order of time."""
    query = (
        select(SpendRecord)
        .where(SpendRecord.population == population)
        .order_by(SpendRecord.created)
    )
    return session.scalars(query).all()


def releases(session: Session, population: str) -> Sequence[ReleaseRecord]:
    """Return all releases of a population, in order of time."""
    query = (
        select(ReleaseRecord)
        .where(ReleaseRecord.population == population)
        .order_by(ReleaseRecord.created)
    )
    return session.scalars(query).all()
