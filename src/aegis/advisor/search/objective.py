"""Define the objectives of a search, and base classes for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.problem import Box, Problem
from aegis.advisor.search.trace import levels_of, score_work
from aegis.measures import Direction, Measure
from aegis.registry import Registry


class Objective(Protocol):
    """A figure to maximise, with an upper bound for all configurations of a box."""

    name: str
    sign: int
    """1 if the search maximises the figure, -1 if it minimises the figure."""
    bounded: bool
    """Whether `bound` is useful for boxes; if not, the search visits every admissible configuration."""
    divides: bool
    """Whether many masks that are not nested are bounded far better one by one than together."""
    follows_rule: bool
    """Whether the figure depends on the rule, for example if it penalises suppressed rows."""

    def under(self, plan: PrivacyPlan) -> Objective:
        """Return the objective under another rule."""

    def bound(self, box: Box) -> float:
        """Return an upper bound of `sign * figure` over a box; exact for a single configuration."""

    def upper(self, box: Box) -> float:
        """Return an upper bound that is quick to compute, also for a single configuration.

        It is never below `bound`.
        """

    def guess(self, box: Box) -> float:
        """Return a quicker estimate of `upper`, which the search uses only to choose a split.

        The search compares the estimates for a box and for its halves. It does less harm to
        overestimate the difference than to underestimate it.
        """

    def effort(self, box: Box) -> float:
        """Return the approximate seconds that `bound` takes; 0 if negligible."""


class Priced(ABC):
    """An objective whose bound takes almost no time."""

    name: str
    sign: int
    bounded: bool
    divides: bool
    follows_rule = False

    def under(self, plan: PrivacyPlan) -> Objective:  # noqa: ARG002 - the protocol's signature
        """Return this objective, because it does not depend on the rule."""
        return self

    @abstractmethod
    def bound(self, box: Box) -> float:
        """Return an upper bound over a box; exact for a single configuration."""

    def upper(self, box: Box) -> float:
        """Return `bound`, which is quick to compute."""
        return self.bound(box)

    def guess(self, box: Box) -> float:
        """Return `upper`, because there is no quicker estimate."""
        return self.upper(box)

    def effort(self, box: Box) -> float:  # noqa: ARG002 - the protocol's signature
        """Return 0, because counts and sums take little time."""
        return 0.0


@dataclass(frozen=True)
class ObjectiveType:
    """A registered objective that is not a measure, such as a loss that another tool minimises.

    Packages add objective types through the entry points `aegis.objectives`.

    Attributes
    ----------
    name
        The name that users write; options may follow in brackets.
    title, formula, reference
        As in the registry of measures.
    make
        Function that returns the objective for a name with options, a search space and a plan.
    check
        Function that raises `PolicyError` for invalid options, before the table is read.
    direction
        Whether the figure is minimised or maximised.
    of_label
        Whether it needs the label.
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
"""Objectives other than measures, by name."""


class OfMeasure(Priced):
    """A measure of whole configurations as an objective; the scorer computes its values."""

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        self.name = measure.name
        self.sign = measure.direction.sign
        self._problem = problem
        self._scorer = scorer
        self._measure = measure

    def _score(self, box: Box) -> float:
        """Return the score of a configuration, and count the work."""
        chosen, settled = levels_of(self._problem, box)
        self._problem.work.add(score_work(chosen, chosen + settled))
        return self._scorer.value(self._problem.choice(box), self._measure)
