"""Search all combinations of candidate masks exactly."""

from aegis.advisor.search.front import rules_of
from aegis.advisor.search.search import (
    Prepared,
    check_limits,
    check_request,
    prepare,
    search_combinations,
)
from aegis.advisor.search.searcher import Searcher

__all__ = [
    "Prepared",
    "Searcher",
    "check_limits",
    "check_request",
    "prepare",
    "rules_of",
    "search_combinations",
]
