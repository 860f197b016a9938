"""Define the objectives of a search, and base classes for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.problem import Box, Problem, is_leaf
from aegis.measures import Direction, Measure
from aegis.registry import Registry

CUBED = 1e-10
"""A fit of n levels takes n ** 3 times this many seconds on a slow machine."""
_SCORE, _FITS = 5e-3, 2
"""The fixed work of a score, and the number of fits that a score by fold counts as."""
_INVERSE = 1e-3
"""The fixed work of a bound that needs a single inverse."""


class Objective(ABC):
    """A figure that a search maximises or minimises, with a bound for all configurations in a box.
    A box has a set of candidate masks for each attribute.
    """

    name: str
    sign: int
    """1 if the search maximises the figure, -1 if it minimises the figure."""
    bounded = True
    """Whether the bound is good enough to find the best configuration by splitting boxes; if not,
    the search lists configurations by another objective.
    """
    loose = False
    """Whether an objective that is not `bounded` at least has a finite bound for each box."""
    divides = False
    """Whether a set of many masks that are not nested has a much weaker bound than each of the
    masks alone.
    """
    follows_rule = False
    """Whether the figure depends on the rule, for example if it penalises suppressed rows."""

    def under(self, plan: PrivacyPlan) -> Objective:  # noqa: ARG002 - others depend on it
        """Return the same objective for searches under the rule of another plan."""
        return self

    @abstractmethod
    def bound(self, box: Box) -> float:
        """Return an upper bound of `sign * figure` for all configurations in a box (a set of
        candidate masks for each attribute). For a single configuration, return the exact value.
        """

    def upper(self, box: Box) -> float:
        """Return an upper bound of `sign * figure` for all configurations in a box (a set of
        candidate masks for each attribute), which takes little time to compute.

        The result is never below `bound`, which may take longer and is exact for a single
        configuration.
        """
        return self.bound(box)

    def guess(self, box: Box) -> float:
        """Return a quick estimate of `upper`, an upper bound for a box (a set of candidate masks
        for each attribute). The search uses the estimate only to choose how to split a box.

        The search compares the estimate for a box with the estimates for its halves. It does less
        harm to overestimate this difference than to underestimate it.
        """
        return self.upper(box)

    def effort(self, box: Box) -> float:  # noqa: ARG002 - others depend on it
        """Return about how many seconds `bound` takes for a box (a set of candidate masks for each
        attribute); 0 if the time is negligible.
        """
        return 0.0


@dataclass(frozen=True)
class ObjectiveType:
    """A registered objective that is not a measure, such as a loss that another tool minimises.

    Packages add objective types through the entry points `aegis.objectives`.

    Attributes
    ----------
    name
        The name by which users request it; options may follow in brackets.
    title, formula, reference
        What the objective is called in texts, its formula, and its source.
    make
        Function that creates the objective from the name with its options, the search space, and
        the plan with the privacy rule.
    check
        Function of the name with its options. It raises `PolicyError` if options are invalid,
        before the table is read.
    direction
        Whether the figure is minimised or maximised.
    of_label
        Whether the objective needs the label.
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


class OfConfigurations(Objective):
    """An objective that scores each configuration once."""

    def __init__(self) -> None:
        self._scored: dict[Box, float] = {}

    def bound(self, box: Box) -> float:
        """Return an upper bound of the figure in a box. For a single configuration, return its
        exact value.
        """
        if box not in self._scored:
            if not is_leaf(box):
                return self._over(box)
            self._scored[box] = self._score(box)
        return self._scored[box]

    @abstractmethod
    def _score(self, box: Box) -> float:
        """Return the signed figure of a single configuration."""

    @abstractmethod
    def _over(self, box: Box) -> float:
        """Return an upper bound of the measure, negated if smaller values are better, for all
        configurations in a box (a set of candidate masks for each attribute).
        """


class OfMeasure(OfConfigurations):
    """A measure of whole configurations as the objective of a search."""

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__()
        self.name = measure.name
        self.sign = measure.direction.sign
        self._problem = problem
        self._scorer = scorer
        self._measure = measure

    def _score(self, box: Box) -> float:
        chosen, settled = levels_of(self._problem, box)
        self._problem.work.add(score_work(chosen, chosen + settled))
        return self.sign * self._scorer.value(self._problem.choice(box), self._measure)

    def effort(self, box: Box) -> float:
        """Return about how many seconds it takes to score a configuration, which is a box of single
        candidates.
        """
        return seconds_of(self._problem, box)


def seconds_of(problem: Problem, box: Box) -> float:
    """Return about how many seconds it takes to score a configuration. For a box (a set of
    candidate masks for each attribute), return the time to score its finest masks.
    """
    return CUBED * float(sum(levels_of(problem, box))) ** 3


def levels_of(problem: Problem, box: Box) -> tuple[int, int]:
    """Return how many levels (masked values) the attributes with several candidate masks have in a
    configuration, and how many levels all other attributes have.
    """
    counts = [0, 0]
    for variable, domain in zip(problem.variables, box, strict=True):
        settled = len(variable.candidates) == 1
        counts[settled] += variable.candidates[domain.bit_length() - 1].n_levels
    return counts[0], counts[1]


def score_work(chosen: int, levels: int) -> float:
    """Return about how many seconds it takes to compute a score or a bound by fold.

    Parameters
    ----------
    chosen
        Number of levels of the attributes whose masks vary; all other levels are factorised once
        for all scores.
    levels
        Number of levels of all attributes.
    """
    return _SCORE + _FITS * CUBED * float(chosen) ** 2 * levels


def inverse_work(levels: int) -> float:
    """Return how much work it takes to compute a bound from one inverse for this many levels."""
    return _INVERSE + _FITS * CUBED * float(levels) ** 3
