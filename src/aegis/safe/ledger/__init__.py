"""Keep a ledger of the outputs about each population, and of its remaining privacy budget.

Costs are rhos of zero-concentrated differential privacy (zCDP).
"""

from aegis.safe.ledger.book import Ledger
from aegis.safe.ledger.record import EntryState, Spend, TableVersion

__all__ = ["EntryState", "Ledger", "Spend", "TableVersion"]
