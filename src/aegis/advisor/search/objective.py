"""The interface of all objectives of a search, and their common implementation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.problem import Box, Problem
from aegis.measures import Direction, Measure
from aegis.registry import Registry


class Objective(Protocol):
    """A function of boxes that bounds the configurations in them."""

    name: str
    sign: int
    """1 where the figure itself is maximised, -1 where it is minimised."""
    bounded: bool
    """Whether `bound` says anything about boxes; else every admissible leaf must be visited."""
    divides: bool
    """Whether many masks that do not compare are bounded far better one by one than together."""
    follows_rule: bool
    """Whether the figure itself depends on the rule, as where suppressed rows are charged."""

    def under(self, plan: PrivacyPlan) -> Objective:
        """Return the objective under another rule."""

    def bound(self, box: Box) -> float:
        """Return an upper bound of `sign * figure` over a box; exact for a single configuration."""

    def upper(self, box: Box) -> float:
        """Return an upper bound that is cheap of single configurations, too; at least `bound`."""

    def effort(self, box: Box) -> float:
        """Return about how many seconds `bound` takes; 0 if the time is negligible."""


class Priced(ABC):
    """An objective whose bound takes negligible time."""

    name: str
    sign: int
    bounded: bool
    divides: bool
    follows_rule = False

    def under(self, plan: PrivacyPlan) -> Objective:  # noqa: ARG002 - the protocol's signature
        """Return the objective itself, because it does not depend on the rule."""
        return self

    @abstractmethod
    def bound(self, box: Box) -> float:
        """Return an upper bound over a box; exact for a single configuration."""

    def upper(self, box: Box) -> float:
        """Return `bound`, because no other bound is cheaper."""
        return self.bound(box)

    def effort(self, box: Box) -> float:  # noqa: ARG002 - the protocol's signature
        """Return 0: counts and sums take little time."""
        return 0.0


@dataclass(frozen=True)
class ObjectiveType:
    """An objective that a search can optimise and that is no measure, such as the loss of another
    tool.

    Packages add them through the entry points `aegis.objectives`.

    Attributes
    ----------
    name
        What users write; options may follow in brackets.
    title, formula, reference
        As in the registry of measures.
    make
        Returns the objective from its name with options, for a search space and a rule.
    check
        Raises `PolicyError` for options that are not allowed, before the table is read.
    direction
        Whether the figure is minimised or maximised.
    of_label
        Whether it reads the label.
    """

    name: str
    title: str
    formula: str
    reference: str
    make: Callable[[str, Problem, PrivacyPlan], Objective]
    check: Callable[[str], object]
    direction: Direction = Direction.LOWER
    of_label: bool = False


OBJECTIVES: Registry[ObjectiveType] = Registry("objective")
"""What can be optimised besides measures, by name."""


class OfMeasure(Priced):
    """A measure of whole configurations, as the scorer scores them."""

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        self.name = measure.name
        self.sign = measure.direction.sign
        self._problem = problem
        self._scorer = scorer
        self._measure = measure
