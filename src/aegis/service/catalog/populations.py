"""Populations: groups of persons whose data sets share one privacy budget.

The first provider who names a population owns it. Providers of other data sets join with the
owner's consent. Only a provider and the owner see how much that provider has spent.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from aegis.service.catalog.access import Action, Actor, authorise
from aegis.service.catalog.accounts import named
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere
from aegis.service.catalog.log import append
from aegis.service.catalog.records import OwnedPopulation


def join(session: Session, by: Actor, name: str, data_set: str) -> OwnedPopulation:
    """Return a population whose budget the provider may spend; create it if it does not exist.
    Raise `NotAllowed` if it belongs to another provider, who has not given consent.
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
    """Raise an error unless the account owns the population or was admitted by its owner."""
    if population is None or account not in (population.owner_id, *population.members):
        raise NotAllowed(
            "The population of this name belongs to another provider.",
            hint="Choose another name, or ask its owner to admit you: aegis catalog admit.",
        )


def admit(
    session: Session, by: Actor, name: str, account: str, *, admitted: bool = True
) -> OwnedPopulation:
    """Let the data sets of the provider `account` spend the budget of the population `name`, or
    with `admitted=False` no longer.
    """
    authorise(by, Action.REGISTER)
    population = session.get(OwnedPopulation, name)
    if population is None or population.owner_id != by.account:
        raise NotThere(f"You own no population {name!r}.", hint="See the ledger of your data sets.")
    other = named(session, account)
    if "provider" not in other.roles:
        raise CatalogError(f"{account} is not a provider.", hint="Ask an admin to give the role.")
    old = list(population.members)
    population.members = [m for m in old if m != other.id] + ([other.id] if admitted else [])
    action = "admitted" if admitted else "admittance taken back"
    append(session, by.name, action, population=name, account=account)
    return population
