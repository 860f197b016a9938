"""Populations: persons that several data sets are about, and that share one privacy budget.

Who names a population first owns it. Providers of other data sets join by the owner's consent; what
each has spent is shown to that provider and to the owner alone.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from aegis.service.catalog.access import Action, Actor, authorise
from aegis.service.catalog.accounts import named
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, OwnedPopulation


def join(session: Session, by: Actor, name: str, data_set: str) -> OwnedPopulation:
    """Return a population that a provider may spend the budget of; a new one is the provider's own.

    Raises
    ------
    NotAllowed
        It is another's, who has not consented.
    """
    population = session.get(OwnedPopulation, name)
    if population is None:
        population = OwnedPopulation(name=name, owner_id=by.account, members=[])
        session.add(population)
        session.flush()
        append(session, by.name, "population named", data_set=data_set, population=name)
    require_member(population, by.account)
    return population


def require_member(population: OwnedPopulation | None, account: str) -> None:
    """Raise unless an account owns a population, or has its owner's consent."""
    if population is None or account not in (population.owner_id, *population.members):
        raise NotAllowed(
            "The population of this name is another provider's.",
            hint="Choose another name, or have its owner admit you: aegis catalog admit.",
        )


def admit(
    session: Session, by: Actor, name: str, account: str, *, admitted: bool = True
) -> OwnedPopulation:
    """Let another provider's data sets share the budget of one's own population, or no longer."""
    authorise(by, Action.REGISTER)
    population = session.get(OwnedPopulation, name)
    if population is None or population.owner_id != by.account:
        raise NotThere(f"You own no population {name!r}.", hint="See the ledger of your data sets.")
    other = named(session, account)
    if "provider" not in other.roles:
        raise CatalogError(
            f"{account} is no provider.", hint="An admin gives accounts their roles."
        )
    old = list(population.members)
    population.members = [m for m in old if m != other.id] + ([other.id] if admitted else [])
    append(
        session,
        by.name,
        "admitted" if admitted else "admittance taken back",
        population=name,
        account=account,
    )
    return population


def owner_of(session: Session, name: str) -> Account | None:
    """Return the account that owns a population."""
    query = select(Account).join(OwnedPopulation, OwnedPopulation.owner_id == Account.id)
    return session.scalar(query.where(OwnedPopulation.name == name))
