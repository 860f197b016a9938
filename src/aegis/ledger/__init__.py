"""What has left the house of each population, and what may still leave it."""

from aegis.ledger.book import Ledger
from aegis.ledger.record import Balance, Entry, Population, Spend, State

__all__ = ["Balance", "Entry", "Ledger", "Population", "Spend", "State"]
