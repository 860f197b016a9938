"""Transfer data sets to another provider, with the populations that the old provider owns, and
close the account of a provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from aegis.service.catalog import data_sets, flow, requests
from aegis.service.catalog.access import AccountRole, Action, Actor, authorise, may
from aegis.service.catalog.accounts import disable, named, owned_by
from aegis.service.catalog.errors import NotAllowed, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, DataSet, Grant, OwnedPopulation, Request
from aegis.words import counted


def hand_over(
    session: Session, by: Actor, identifier: str, to: str, *, public_key: str | None = None
) -> DataSet:
    """Transfer a data set to another provider; the agent of that provider then does its jobs. `by`
    is the provider or an admin. Without `public_key`, that of the receiver's agent in hexadecimal,
    the key stays the same. Signatures by the old key can still be verified.

    If the provider transfers the data set, its jobs are cancelled and all roles on it are revoked,
    so that the receiver's agent does not work for people whom the receiver did not choose. Raise
    `NotAllowed` if the population belongs to another provider, who has not admitted the receiver.
    Raise `WrongState` if the receiver cannot have data sets, or already has this one.
    """
    data_set = data_sets.authorised(session, by, Action.HAND_OVER, identifier)
    receiver = _receiver(session, to)
    if receiver.id == data_set.provider_id:
        raise WrongState(
            f"{to} is already the provider of {identifier}.", hint="Name another account."
        )
    if not may(data_sets.unscoped(by), Action.ACCOUNTS):
        flow.cancel_all(session, by, identifier)
        for grant in session.scalars(select(Grant).where(Grant.data_set_id == identifier)):
            _take_back(session, by, grant)
    return _hand(session, by, data_set, receiver, public_key)


def hand_over_all(session: Session, by: Actor, name: str, to: str) -> list[str]:
    """As an admin, transfer all data sets of a provider to another one; return their names."""
    authorise(by, Action.ACCOUNTS)
    giver, receiver = named(session, name), _receiver(session, to)
    if giver.id == receiver.id:
        raise WrongState("Both names are the same account.", hint="Name another account.")
    owned = owned_by(session, giver)
    for data_set in owned:
        _hand(session, by, data_set, receiver, None)
    return [data_set.id for data_set in owned]


@dataclass(frozen=True)
class LeftBehind:
    """The data sets of a provider, and the requests for them that wait for a reviewer, an approver or
    an agent. Without the provider, nobody can answer them.
    """

    data_sets: Sequence[DataSet]
    requests: Sequence[Request]

    @property
    def in_words(self) -> str:
        """The names of the data sets and the numbers of the requests."""
        named = ", ".join(each.id for each in self.data_sets)
        open_requests = counted(len(self.requests), "open request")
        numbers = ", ".join(each.id[:8] for each in self.requests)
        return f"{named}, with {open_requests}{numbers and ': '}{numbers}"


def left_by(session: Session, account: Account) -> LeftBehind:
    """Return what an account leaves behind if it is closed now."""
    owned = owned_by(session, account)
    return LeftBehind(owned, requests.unanswered(session, [each.id for each in owned]))


def close(session: Session, by: Actor, name: str, *, leave: bool = False) -> LeftBehind:
    """Close an account, and return what it leaves behind. Raise `WrongState` if it provides data
    sets, unless `leave` is set: they are then taken out of the catalog, their jobs are cancelled,
    and the requests for them go back to their consumers, with the reason.
    """
    authorise(by, Action.ACCOUNTS)
    account = named(session, name)
    remaining = left_by(session, account)
    if remaining.data_sets and not leave:
        raise WrongState(
            f"{name} provides {remaining.in_words}.",
            hint=f"Hand the data sets over first: aegis catalog hand-over {name} PROVIDER --all. Or "
            "close the account with --leave: its data sets are then taken out of the catalog, and the "
            "requests go back to their consumers.",
        )
    disable(session, by, name)
    for data_set in remaining.data_sets:
        data_sets.set_published(session, by, data_set, published=False)
        flow.cancel_all(session, by, data_set.id)
    for request in remaining.requests:
        requests.give_up(session, by, request, data_sets.unserved(request.data_set) or "")
    return remaining


def _receiver(session: Session, name: str) -> Account:
    account = named(session, name)
    if account.disabled or AccountRole.PROVIDER not in account.roles:
        raise WrongState(
            f"{name} is {'closed' if account.disabled else 'no provider'}.",
            hint="Ask an admin to give the role, or to reopen the account.",
        )
    return account


def _hand(
    session: Session, by: Actor, data_set: DataSet, receiver: Account, key: str | None
) -> DataSet:
    giver = data_set.provider
    old = {"provider": giver.name}
    new = {"provider": receiver.name}
    data_set.provider_id, data_set.provider = receiver.id, receiver
    if key is not None and key != data_set.public_key:
        old["public_key"], new["public_key"] = data_set.public_key, key
        data_set.former_keys = [*data_set.former_keys, data_set.public_key]
        data_sets.require_key(key)
        data_set.public_key = key
    append(session, by.name, "data set handed over", data_set=data_set.id, old=old, new=new)
    approves = session.get(Grant, (data_set.id, receiver.id, str(AccountRole.APPROVER)))
    if approves is not None:  # the provider cannot be the second person
        _take_back(session, by, approves)
    _population(session, by, data_set.population, giver, receiver)
    return data_set


def _take_back(session: Session, by: Actor, grant: Grant) -> None:
    account = session.get_one(Account, grant.account_id)
    about = {"data_set": grant.data_set_id, "account": account.name, "role": grant.role}
    session.delete(grant)
    session.flush()
    append(session, by.name, "grant taken back", **about)


def _population(session: Session, by: Actor, name: str, giver: Account, receiver: Account) -> None:
    """Give the receiver access to the budget of the population `name`. The receiver becomes its
    owner if the giver owned the population and has no other data set in it.
    """
    population = session.get(OwnedPopulation, name)
    if population is None or receiver.id == population.owner_id:
        return
    stays = session.scalar(
        select(DataSet.id).where(DataSet.population == name, DataSet.provider_id == giver.id)
    )
    if population.owner_id == giver.id and stays is None:
        population.owner_id = receiver.id
        population.members = [member for member in population.members if member != receiver.id]
        append(
            session,
            by.name,
            "population handed over",
            population=name,
            account=receiver.name,
            old=giver.name,
        )
    elif population.owner_id == giver.id:
        population.members = list(dict.fromkeys([*population.members, receiver.id]))
        append(session, by.name, "admitted", population=name, account=receiver.name)
    elif receiver.id not in population.members:
        raise NotAllowed(
            f"The population {name} belongs to another provider.",
            hint="First ask its owner to admit the account: aegis catalog admit.",
        )
