"""Define the objectives that a search maximises, with bounds for whole boxes.

Every objective returns one number for a box, and the search maximises this number. It is an upper
bound for all configurations in the box; for a single configuration, it is the exact value. Figures
for which smaller values are better are negated here, and negated again in the result.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.auc_bound import FinestBound, has_reach
from aegis.advisor.search.column_bound import EveryColumn
from aegis.advisor.search.objective import OBJECTIVES, Objective, ObjectiveType, OfMeasure
from aegis.advisor.search.pairwise import Pairwise
from aegis.advisor.search.problem import Box, Problem, make_problem, members
from aegis.advisor.search.several import ShareOfLabel, SharesKept
from aegis.advisor.search.trace import Pillai
from aegis.advisor.several import SeveralScorer
from aegis.measures import (
    MEASURES,
    Direction,
    LabelKind,
    Measure,
    Need,
    Scope,
    Trace,
    explained_share,
    reachable_auc,
)
from aegis.measures.normal import cumulative
from aegis.summary import Candidate

_MOST = 1.0 - 1e-9
"""Largest share of the trace that is converted to an AUC."""


class Additive(Objective):
    """An objective that is a sum over attributes.

    The bound of a box is the sum of each attribute's best value in its domain. The bound is valid
    even if values do not grow with finer masks, so the search is exact for corrected measures, too.
    If the label has candidates, the bound is the largest of the sums for the candidates in its
    domain.
    """

    def __init__(self, name: str, sign: int, values: list[list[list[float]]]) -> None:
        # values[l][j][c]: signed value of candidate c of variable j under label candidate l
        self.name = name
        self.sign = sign
        self._values = values
        self._best: dict[tuple[int, int, int], float] = {}
        self._labelled = len(values) > 1

    def bound(self, box: Box) -> float:
        """Return the sum over attributes of the best value in each domain."""
        labels = members(box[-1]) if self._labelled else [0]
        return max(
            math.fsum(self._over(label, j, box[j]) for j in range(len(self._values[label])))
            for label in labels
        )

    def _over(self, label: int, variable: int, domain: int) -> float:
        key = (label, variable, domain)
        if key not in self._best:
            values = self._values[label][variable]
            self._best[key] = max(values[c] for c in members(domain))
        return self._best[key]


class Unbounded(OfMeasure):
    """A measure without a bound; to prove the best, a search must score every admissible
    configuration.
    """

    bounded = False

    def _over(self, box: Box) -> float:  # noqa: ARG002 - the bound of any box
        return math.inf


class BelowBound(OfMeasure):
    """A measure with an upper bound that is computed from the finest masks of a box.

    The held-out trace and the held-out R2 never exceed the plug-in figures, because penalties and
    held-out rows only lower a figure. Plug-in figures cannot grow when indicators are grouped. The
    expected AUC never exceeds `reachable_auc`, and the expected R2 never exceeds `explained_share`.
    These bounds ignore the effect of penalties and held-out rows, so a proof may need many more
    boxes than for `adjusted-pillai`. The bounds for the expected AUC and R2 are loose.
    """

    divides = True

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self.bounded = measure.trace is Trace.BELOW
        self.loose = not self.bounded
        self._of_number = measure.label is LabelKind.NUMBER

    @cached_property
    def _trace(self) -> Pillai:
        return Pillai(self._problem, "the plug-in trace", adjusted=False)

    @cached_property
    def _finest(self) -> FinestBound:
        most = explained_share if self._of_number else reachable_auc
        return FinestBound(self._problem, most)

    def _over(self, box: Box) -> float:
        by_trace = self.bounded and not self._of_number
        return self._trace.bound(box) if by_trace else self._finest.bound(box)

    def guess(self, box: Box) -> float:
        """Return `upper`; for an AUC, return twice the AUC that two classes with the plug-in trace
        would have.

        The trace is quicker to compute than the bound of an AUC.
        """
        if self.bounded or self._of_number:
            return self.upper(box)
        counts = self._problem.summary.label.counts
        explained = min(self._trace.bound(box) / max(len(counts) - 1, 1), _MOST)
        share = float(counts.max()) / max(float(counts.sum()), 1.0)
        odds = explained / (1.0 - explained) / max(share * (1.0 - share), 1.0 - _MOST)
        return 2.0 * float(cumulative(math.sqrt(odds / 2.0)))


def make_objective(name: str, problem: Problem, scorer: Scorer, plan: PrivacyPlan) -> Objective:
    """Return the objective called `name`: a measure, or an objective from a package.

    Raises
    ------
    PolicyError
        No measure or objective has that name, or its options are not allowed.
    """
    if name not in MEASURES:
        return objective_type(name).make(name, problem, plan)
    measure = MEASURES.get(name)
    if isinstance(scorer, SeveralScorer):
        return shares_kept(name, problem, scorer, plan)
    if measure.trace is Trace.BELOW or has_reach(name, problem):
        return BelowBound(problem, scorer, measure)
    if measure.trace is not None:
        return Pillai(problem, measure.name, adjusted=measure.trace is Trace.ADJUSTED)
    if Need.COLUMNS in measure.needs:
        return EveryColumn(problem, scorer, measure)
    if measure.of_pair is not None:
        return Pairwise(problem, scorer, measure)
    if measure.scope is Scope.ATTRIBUTE:
        return _additive_measure(problem, scorer, measure)
    return Unbounded(problem, scorer, measure)


def shares_kept(
    name: str, problem: Problem, scorer: SeveralScorer, plan: PrivacyPlan
) -> SharesKept:
    """Return an objective that combines the shares kept of several labels.

    Each label is scored by its measure. If `name` is a measure of label classes, it replaces each
    measure that has no bound: the search then lists configurations by `name`, and scores them
    afterwards.
    """
    chosen, labels = MEASURES.get(name), []
    for task in scorer.tasks:
        own = replace(make_problem(task.task.summary), work=problem.work)
        measure = task.measure
        inner = make_objective(measure.name, own, task.scorer, plan)
        if chosen.label is task.task.summary.label.kind and not inner.bounded:
            measure, inner = chosen, make_objective(name, own, task.scorer, plan)
        labels.append(ShareOfLabel(problem, own, task, measure, inner))
    return SharesKept(name, scorer, labels)


def objective_type(text: str) -> ObjectiveType:
    """Return the objective type with this name, after checking the options in its brackets.

    Raises
    ------
    PolicyError
        There is no such objective, or an option is not allowed.
    """
    added = OBJECTIVES.get(text.partition("(")[0].strip(), others=MEASURES.names())
    added.check(text)
    return added


def is_minimised(objective: str) -> bool:
    """Return whether smaller values of an objective are better."""
    if objective in MEASURES:
        return MEASURES.get(objective).direction is Direction.LOWER
    return objective_type(objective).direction is Direction.LOWER


def _additive_measure(problem: Problem, scorer: Scorer, measure: Measure) -> Additive:
    summary = problem.summary
    attributes = problem.variables[: len(summary.attributes)]
    labels: list[Candidate | None] = [None]
    if summary.label_attribute is not None:
        labels = [None if c.size == len(c.groups) else c for c in problem.variables[-1].candidates]
    total = math.fsum(v.attribute.weight for v in attributes)
    sign = measure.direction.sign
    values = [
        [
            [
                sign * v.attribute.weight / total * scorer.attribute(v.attribute, c, measure, label)
                for c in v.candidates
            ]
            for v in attributes
        ]
        for label in labels
    ]
    return Additive(measure.name, sign, values)
