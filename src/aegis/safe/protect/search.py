"""Define what the core's search needs to know of a protected summary: space, objectives and verdicts.

If the summary has no moments, a score depends only on two sums over attributes: it rises with the
sum of explained shares and falls with the sum of degrees of freedom. So the bound of a box uses, for
each attribute, the largest explained share and the smallest degrees of freedom of its candidates in
the box. Scores from moments have no bound. Then the search scores every configuration if there are
few, and otherwise those with the largest scores from label tables alone.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import reduce
from operator import and_, or_

import numpy as np

from aegis.advisor.figures import SearchFigures, SearchWork
from aegis.advisor.search.branch import BranchAndBound
from aegis.advisor.search.clock import Clock, Work
from aegis.advisor.search.objective import OfConfigurations
from aegis.advisor.search.problem import Box, MaskVariable, SearchSpace, members
from aegis.advisor.search.searcher import LISTED, figures_of
from aegis.advisor.search.shortlist import SPLITS, Shortlist
from aegis.arrays import Floats
from aegis.measures.target_coded import held_out_reached
from aegis.progress import Progress
from aegis.requests import SearchRequest
from aegis.safe.protect.model import ProtectedSummary
from aegis.safe.protect.scores import MEASURE, Choice, ProtectedScorer
from aegis.words import amount

ENUMERATED = 200_000
"""Largest number of combinations that a search scores one by one, if scores have no bound."""
_SCORE = 5e-5
"""Work of one score from moments."""


def choice_of(box: Box) -> Choice:
    """Return the choice of masks of a box that contains a single configuration."""
    return tuple(domain.bit_length() - 1 for domain in box)


def space_of(summary: ProtectedSummary) -> SearchSpace:
    """Return what a search of a protected summary chooses from."""
    return SearchSpace([MaskVariable(a, a.candidates) for a in summary.all_attributes])


class _Estimated(OfConfigurations):
    """A score that is estimated from a protected summary."""

    sign = 1

    def __init__(self, name: str, scorer: ProtectedScorer, work: Work) -> None:
        super().__init__()
        self.name = name
        self._scorer = scorer
        self._work = work

    @property
    def scored(self) -> int:
        """The number of configurations that were scored."""
        return len(self._scored)


class FromTables(_Estimated):
    """The score from label tables alone, which has a bound."""

    def __init__(self, name: str, scorer: ProtectedScorer, work: Work) -> None:
        super().__init__(name, scorer, work)
        # For each candidate: the explained shares, and minus the degrees of freedom.
        self._parts = [
            np.array([(m.believed * m.strength, -m.freedom) for m in own])
            for own in scorer.candidates
        ]
        self._best: dict[tuple[int, int], Floats] = {}

    def _score(self, box: Box) -> float:
        return self._over(box)

    def _over(self, box: Box) -> float:
        summary = self._scorer.summary
        explained, spared = reduce(np.add, (self._most(*key) for key in enumerate(box)))
        return held_out_reached(explained, -spared, len(summary.classes), summary.rows)

    def _most(self, index: int, domain: int) -> Floats:
        """Return the largest of both figures among the candidates of a domain."""
        key = index, domain
        if key not in self._best:
            self._best[key] = self._parts[index][members(domain)].max(axis=0)
        return self._best[key]


class FromCodes(_Estimated):
    """The score from label tables and moments, which has no bound.

    If there are few configurations, branch and bound scores all of them: set `bounded`.
    """

    divides = True

    def _score(self, box: Box) -> float:
        self._work.add(_SCORE)
        return self._scorer.score(choice_of(box))

    def _over(self, box: Box) -> float:  # noqa: ARG002 - the bound of any box
        return math.inf


class RuleByVerdicts:
    """Admits the configurations that meet the rule according to the owner's verdicts; without
    verdicts, all of them.
    """

    def __init__(self, summary: ProtectedSummary) -> None:
        self._summary = summary
        admitted = [verdict.choice for verdict in summary.verdicts if verdict.admissible]
        self.possible = len(admitted) if summary.verdicts else summary.combinations
        # For each candidate, the admitted configurations that have it, as a bit mask.
        self._having = [[0] * len(a.candidates) for a in summary.all_attributes]
        for number, choice in enumerate(admitted):
            for own, place in zip(self._having, choice, strict=True):
                own[place] |= 1 << number

    def narrow(self, box: Box) -> Box | None:
        """Return the box without the candidates that no admitted configuration in it has."""
        if not self._summary.verdicts:
            return box
        pairs = [(own, members(domain)) for own, domain in zip(self._having, box, strict=True)]
        inside = reduce(and_, (reduce(or_, (own[c] for c in chosen)) for own, chosen in pairs))
        narrowed = tuple(sum(1 << c for c in chosen if own[c] & inside) for own, chosen in pairs)
        return narrowed if inside else None

    def admits(self, box: Box) -> bool:
        """Return whether a configuration is known to meet the rule, or there are no verdicts."""
        return not self._summary.verdicts or self._summary.verdict(choice_of(box)) is True


def best_configurations(
    scorer: ProtectedScorer, request: SearchRequest, progress: Progress
) -> tuple[list[Choice], SearchFigures]:
    """Search all combinations of masks; return the best ones, best first, and the figures."""
    began = time.perf_counter()
    summary, top = scorer.summary, request.top
    space = space_of(summary)
    verdicts = RuleByVerdicts(summary)
    objective: _Estimated = FromTables(MEASURE, scorer, space.work)
    if scorer.estimator == "codes":
        objective = FromCodes(MEASURE, scorer, space.work)
        objective.bounded = verdicts.possible <= ENUMERATED
    with progress.step(f"Searching {amount(summary.combinations)} combinations") as step:
        clock = Clock.asked(request, space.work)
        if objective.bounded:
            search = BranchAndBound(space, objective, verdicts, top=top, clock=clock, step=step)
            outcome = search.run()
        else:
            outcome = Shortlist(
                space,
                objective,
                verdicts,
                [FromTables("the estimate from label tables alone", scorer, space.work)],
                listed=max(LISTED, top),
                bounds=False,
                prove=False,
                clock=clock,
                step=step,
            ).run((), SPLITS)
    seconds = time.perf_counter() - began
    work = SearchWork(
        summary.combinations, outcome.nodes, objective.scored, seconds, rule_monotone=True
    )
    best = [choice_of(box) for _, box in outcome.best[:top]]
    return best, _under_verdicts(figures_of(outcome, objective, work, alone=top == 1), summary)


def _under_verdicts(figures: SearchFigures, summary: ProtectedSummary) -> SearchFigures:
    """Return the figures of a search; they prove nothing of combinations without a verdict."""
    stated = len(summary.verdicts)
    refused = sum(verdict.admissible is False for verdict in summary.verdicts)
    if figures.best is None and figures.complete and refused < summary.combinations:
        figures = replace(figures, stopped="verdicts")
    if stated in (0, summary.combinations):
        return figures
    note = f"only the {stated:,} combinations with a verdict of the owner were searched"
    return replace(
        figures, optimal=False, exact=False, bound=None, gap=None, notes=(*figures.notes, note)
    )
