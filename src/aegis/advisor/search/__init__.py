"""Exact search over all combinations of candidate masks."""

from aegis.advisor.search.front import FrontRange
from aegis.advisor.search.search import (
    Searcher,
    check_request,
    objective_names,
    search_combinations,
)

__all__ = ["FrontRange", "Searcher", "check_request", "objective_names", "search_combinations"]
