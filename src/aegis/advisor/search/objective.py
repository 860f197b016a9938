"""What every objective of a search answers, and what many of them answer alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from aegis.advisor.scoring import Scorer
from aegis.advisor.search.problem import Box, Problem
from aegis.measures import Measure


class Objective(Protocol):
    """A function of boxes that bounds the configurations in them."""

    name: str
    sign: int
    """1 where the figure itself is maximised, -1 where it is minimised."""
    bounded: bool
    """Whether `bound` says anything about boxes; else every admissible leaf must be visited."""
    divides: bool
    """Whether many masks that do not compare are bounded far better one by one than together."""

    def bound(self, box: Box) -> float:
        """Return an upper bound of `sign * figure` over a box; exact for a single configuration."""

    def upper(self, box: Box) -> float:
        """Return an upper bound that is cheap of single configurations, too; at least `bound`."""

    def effort(self, box: Box) -> float:
        """Return about how many seconds `bound` takes; 0 where that is not worth a thought."""


class Priced(ABC):
    """An objective whose bound is as cheap as any, and takes no time worth a thought."""

    @abstractmethod
    def bound(self, box: Box) -> float:
        """Return an upper bound over a box; exact for a single configuration."""

    def upper(self, box: Box) -> float:
        """Return `bound`: nothing is cheaper."""
        return self.bound(box)

    def effort(self, box: Box) -> float:  # noqa: ARG002 - the protocol's signature
        """Return 0: counts and sums take little time."""
        return 0.0


class OfMeasure(Priced):
    """A measure of whole configurations, as the scorer scores them."""

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        self.name = measure.name
        self.sign = measure.direction.sign
        self._problem = problem
        self._scorer = scorer
        self._measure = measure
