"""The ledger: what has left your organisation of each population, and what may still leave."""

from aegis.safe.ledger.book import Ledger
from aegis.safe.ledger.record import (
    Balance,
    Entry,
    EntryState,
    LedgerPopulation,
    Spend,
    TableVersion,
)

__all__ = [
    "Balance",
    "Entry",
    "EntryState",
    "Ledger",
    "LedgerPopulation",
    "Spend",
    "TableVersion",
]
