"""Records of a ledger, frozen."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from aegis.errors import PolicyError
from aegis.options import check_fields


class EntryState(StrEnum):
    """The state of an entry in a ledger."""

    RESERVED = "reserved"
    """Its cost counts; nothing has been given out."""
    BEGUN = "begun"
    """Output has begun: the cost stays, whatever happens next."""
    COMMITTED = "committed"
    """The output was given out."""
    CANCELLED = "cancelled"
    """Given up before any output: it costs nothing."""
    LISTED = "listed"
    """A release without differential privacy, which has no cost that adds up."""


@dataclass(frozen=True)
class Spend:
    """The cost of an output.

    Attributes
    ----------
    mechanism
        What made it, in words.
    rho
        Its cost under zero-concentrated differential privacy, above 0.
    unit
        What is protected: `rows`, or `persons` (with the most rows of one in `rows_per_person`).
    sensitivity, sigma
        Of its rounds, as text for people; known once it was given out, and empty if nobody said it.
    rows_per_person
        Most rows of one person; 1 for rows.

    Raises
    ------
    PolicyError
        The cost is no positive number.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class TableVersion:
    """The version of a population's table that an output is made from.

    Attributes
    ----------
    table
        SHA-256 of the table.
    key
        Fingerprint of the secret that perturbs level counts; empty for other levels.
    new
        Whether the caller states that it is a new version of the table that the ledger knows.
    """

    table: str
    key: str = ""
    new: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class LedgerPopulation:
    """The people or rows that a budget belongs to; new versions of a table keep it.

    Attributes
    ----------
    name
        Its name.
    ceiling
        Most rho that may be spent on it.
    delta
        At which epsilon is shown.
    unit
        What is protected.
    """

    name: str
    ceiling: float
    delta: float
    unit: str


@dataclass(frozen=True)
class Entry:
    """One output, or one that was about to be.

    Attributes
    ----------
    number
        Its number in the ledger.
    population
        Whose budget it is on.
    state
        How far it is.
    time
        When it was reserved or listed, UTC.
    spend
        What it costs; None for an output without a cost that adds up.
    digest
        SHA-256 of the output, where there is one.
    note
        What it is, in words.
    table, key
        As of `TableVersion`; empty if nobody said it.
    """

    number: int
    population: str
    state: EntryState
    time: str
    spend: Spend | None
    digest: str
    note: str
    table: str = ""
    key: str = ""

    @property
    def rho(self) -> float:
        """The rho that counts for the balance; 0 if the entry was cancelled or has no cost."""
        if self.spend is None or self.state is EntryState.CANCELLED:
            return 0.0
        return self.spend.rho

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "number": self.number,
            "population": self.population,
            "state": str(self.state),
            "time": self.time,
            "spend": None if self.spend is None else self.spend.to_dict(),
            "digest": self.digest,
            "note": self.note,
            "table": self.table,
            "key": self.key,
        }


@dataclass(frozen=True)
class Balance:
    """The spent budget of a population.

    Attributes
    ----------
    population
        Whose budget it is.
    spent
        rho of all entries that count.
    """

    population: LedgerPopulation
    spent: float

    @property
    def left(self) -> float:
        """The rho that is left."""
        return max(self.population.ceiling - self.spent, 0.0)
