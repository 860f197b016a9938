"""Exact search over all combinations of candidate masks."""

from aegis.advisor.search.front import FrontRange
from aegis.advisor.search.search import Searcher, objective_names, search

__all__ = ["FrontRange", "Searcher", "objective_names", "search"]
