"""Search all combinations of candidate masks exactly."""

from aegis.advisor.search.front import FrontRange, front_under_owner, rules_of
from aegis.advisor.search.search import (
    Prepared,
    check_limits,
    check_request,
    prepare,
    search_combinations,
)
from aegis.advisor.search.searcher import Searcher

__all__ = [
    "FrontRange",
    "Prepared",
    "Searcher",
    "check_limits",
    "check_request",
    "front_under_owner",
    "prepare",
    "rules_of",
    "search_combinations",
]
