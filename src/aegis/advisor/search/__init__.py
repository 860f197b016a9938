"""Exact search over all combinations of candidate masks."""

from aegis.advisor.search.front import FrontRange, rules_of
from aegis.advisor.search.request import check_request, objective_names
from aegis.advisor.search.search import Searcher, search_combinations

__all__ = [
    "FrontRange",
    "Searcher",
    "check_request",
    "objective_names",
    "rules_of",
    "search_combinations",
]
