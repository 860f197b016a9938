"""Define the records of a ledger; all are immutable."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

from aegis.errors import PolicyError
from aegis.options import check_fields


class EntryState(StrEnum):
    """The state of an entry in the ledger: reserved, begun, committed, cancelled or listed."""

    RESERVED = "reserved"
    """The cost counts, but no output has been released yet."""
    BEGUN = "begun"
    """Output has begun: the cost counts, whatever happens next."""
    COMMITTED = "committed"
    """The output was released."""
    CANCELLED = "cancelled"
    """The reservation was cancelled before any output, and costs nothing."""
    LISTED = "listed"
    """A release without differential privacy; it has no cost that could be added up."""


@dataclass(frozen=True)
class Spend:
    """The cost of an output.

    Attributes
    ----------
    mechanism
        The mechanism that produced the output, in words.
    rho
        Privacy cost in rho, the unit of zero-concentrated differential privacy (zCDP); above 0.
    unit
        The protected unit: `rows`, or `persons` with at most `rows_per_person` rows each.
    sensitivity, sigma
        Sensitivity and standard deviation of the noise, as readable text; empty until the output is
        released.
    rows_per_person
        Largest number of rows of one person; 1 for rows.

    Raises
    ------
    PolicyError
        The cost is not a positive number, or the unit is unknown.
    """

    mechanism: str
    rho: float
    unit: str = "rows"
    sensitivity: str = ""
    sigma: str = ""
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.rho <= sys.float_info.max:
            raise PolicyError(f"The cost rho is {self.rho}.", hint="Give a number above 0.")
        if self.unit not in ("rows", "persons"):
            raise PolicyError.unknown("unit", self.unit, ("rows", "persons"))


@dataclass(frozen=True)
class TableVersion:
    """The version of a population's table from which an output is made.

    Attributes
    ----------
    table
        SHA-256 of the table.
    key
        Fingerprint of the secret key with which counts are perturbed; empty without such a key.
    new
        Whether the caller states that the table is a new version of the table in the ledger.
    """

    table: str
    key: str = ""
    new: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class LedgerPopulation:
    """The persons or rows that a budget protects; all versions of their table share the budget.

    Attributes
    ----------
    name
        Name of the population.
    ceiling
        Largest total privacy cost of all outputs about the population, in rho.
    delta
        The delta that is used to convert rho to epsilon for display.
    unit
        The protected unit.
    """

    name: str
    ceiling: float
    delta: float
    unit: str


@dataclass(frozen=True)
class Entry:
    """An entry of the ledger: an output, or a reservation for an output.

    Attributes
    ----------
    number
        Number of the entry in the ledger.
    population
        Name of the population to which the entry is charged.
    state
        State of the entry.
    time
        Time when the entry was reserved or listed, UTC.
    spend
        The cost; None for an output without a privacy cost, such as a k-anonymous release.
    digest
        SHA-256 of the output, if there is one.
    note
        Description of the output, in words.
    table, key
        SHA-256 of the table, and fingerprint of the secret key; empty if unknown.
    """

    number: int
    population: str
    state: EntryState
    time: str
    spend: Spend | None
    digest: str = ""
    note: str = ""
    table: str = ""
    key: str = ""

    @property
    def rho(self) -> float:
        """The cost, in rho, that this entry takes from the budget: 0 if the entry was cancelled or
        has no cost.
        """
        if self.spend is None or self.state is EntryState.CANCELLED:
            return 0.0
        return self.spend.rho


@dataclass(frozen=True)
class Balance:
    """The spent and remaining budget of a population.

    Attributes
    ----------
    population
        The population.
    spent
        Total privacy cost, in rho, of all entries that are not cancelled.
    """

    population: LedgerPopulation
    spent: float

    @property
    def remaining(self) -> float:
        """The rest of the population's budget, in rho (zero-concentrated differential privacy)."""
        return max(self.population.ceiling - self.spent, 0.0)
