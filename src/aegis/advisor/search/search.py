"""Find the best admissible configuration among all combinations of candidate masks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from aegis.advisor.advice import Advice
from aegis.advisor.advise import warnings_of
from aegis.advisor.caveats import with_caveats
from aegis.advisor.default import measure_for
from aegis.advisor.excluded_attributes import aside_note
from aegis.advisor.figures import SearchFigures
from aegis.advisor.generate import combinations
from aegis.advisor.merits import disagreement
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.rank import lost_alone
from aegis.advisor.ranked import Ranked
from aegis.advisor.released import expected_auc
from aegis.advisor.search.binding import explain
from aegis.advisor.search.branch import Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.front import FrontRange, check_span, trace_front
from aegis.advisor.search.problem import Box
from aegis.advisor.search.request import check_request, objective_and_measure, preference
from aegis.advisor.search.searcher import Searcher
from aegis.advisor.search.ties import put_first
from aegis.blas import one_blas_thread
from aegis.measures import MEASURES
from aegis.options import asked
from aegis.policy import Policy, policy_mapping
from aegis.progress import SILENT, Progress
from aegis.requests import SearchOptions, SearchRequest
from aegis.summary import Summary

SEARCHED = 0.8
"""Share of the time limit that the search may take; the rest is for what is said about its best."""


@one_blas_thread
def search_combinations(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: SearchRequest | None = None,
    *,
    progress: Progress = SILENT,
    prepared: Prepared | None = None,
    **options: Unpack[SearchOptions],
) -> Advice:
    """Return the best admissible configurations of all combinations, with a proof if the measure
    has a bound.

    Branch and bound (see `aegis.advisor.search.branch`) over boxes of candidates. The objective
    scores the masks before suppression. The time limit is of the search, what binds and the front
    together; what would take longer is left out and said.

    Parameters
    ----------
    summary
        The aggregates that scores come from.
    plan
        Holds configurations against the rule.
    policy
        Roles, candidate masks, the privacy rule and the measure.
    request, options
        What is searched: a request, or its fields as keywords.
    progress
        Receives incumbent, bound and gap.
    prepared
        What does not depend on the rule, of an earlier search of this summary under this policy's
        masks and measure; one search at a time. Its best are tried first, and it takes the new ones.

    Returns
    -------
    Advice
        With `search`, and where asked for `binding` and `front`. Without an admissible
        configuration the ranking holds the one that comes closest.

    Raises
    ------
    PolicyError
        The objective is unknown, `top` is below 1 or the time limit is negative.
    """
    given = asked(SearchRequest, request, options)
    check_request(policy, given)
    started = time.perf_counter()
    if given.front is not None:
        check_span(FrontRange.of(given.front), plan.rule, summary.rows, plan.values)
    if prepared is None:
        prepared = prepare(summary, plan, policy, given, progress=progress)
    searched = _run(plan, given, prepared, progress)
    advice = searched.advice(summary, plan, policy, prepared)
    advice = _explained(advice, searched, given)
    advice = with_caveats(advice)
    total = time.perf_counter() - started + sum(summary.timings.values())
    timings = {**summary.timings, "search": searched.figures.work.seconds, "total": total}
    return replace(advice, timings=timings)


@dataclass(frozen=True, eq=False)
class _Searched:
    """What a search came to.

    Attributes
    ----------
    searcher
        Scores and bounds under the rule.
    outcome
        The best configurations and how the search ended, ties settled.
    figures
        What is said of the search.
    highest
        The first configuration by score, before ties were settled; empty if none is admissible.
    ranking
        The best configurations.
    clock
        The time that is left.
    """

    searcher: Searcher
    outcome: Found
    figures: SearchFigures
    highest: Sequence[tuple[float, Box]]
    ranking: Sequence[Ranked]
    clock: Clock

    def advice(
        self, summary: Summary, plan: PrivacyPlan, policy: Policy, prepared: Prepared
    ) -> Advice:
        """Return the advice, without what explains the best."""
        shown, scorer = self.searcher.measure, self.searcher.scorer
        return Advice(
            measure=shown.name,
            ranking=tuple(self.ranking),
            unmasked=prepared.unmasked,
            optimal=self.figures.optimal,
            combinations=combinations(summary),
            summary=summary.to_dict(),
            policy=policy_mapping(policy),
            warnings=(
                *warnings_of(summary, plan),
                *prepared.warnings,
                *aside_note(summary, shown),
                *disagreement(self.ranking, scorer, shown),
            ),
            search=self.figures,
        )


def _run(
    plan: PrivacyPlan, request: SearchRequest, prepared: Prepared, progress: Progress
) -> _Searched:
    """Search the best under the rule of a plan, and settle its ties."""
    searcher = prepared.searcher.under(plan, progress)
    clock, top = Clock(request.time_limit), request.top
    share = None if request.time_limit is None else SEARCHED * request.time_limit
    outcome, figures = searcher.run(plan.rule, top=top, time_limit=share, start=prepared.tried)
    prepared.tried = tuple(box for _, box in outcome.best[:top]) or prepared.tried
    if outcome.interrupted:
        clock.stop()
    if not outcome.best:
        figures = searcher.settle_for_closest(outcome, figures, clock)
    if not outcome.best:
        return _Searched(searcher, outcome, figures, (), searcher.rank(outcome, clock), clock)
    highest = outcome.best[:1]
    why = put_first(searcher, outcome, preference(request), top, clock)
    ranking, lacking = searcher.with_errors(searcher.rank(outcome, clock), outcome, clock)
    figures = searcher.told(figures, why, lacking, prepared.unmasked)
    return _Searched(searcher, outcome, figures, highest, ranking, clock)


def _explained(advice: Advice, searched: _Searched, request: SearchRequest) -> Advice:
    """Return an advice with what binds its best and what its masks cost, and with the front."""
    searcher, outcome, clock = searched.searcher, searched.outcome, searched.clock
    if request.explain_best and outcome.best and not outcome.interrupted:
        scorer, shown = searcher.scorer, searcher.measure
        expected = expected_auc(scorer, shown, searched.ranking)
        binding = explain(searcher, outcome, searched.highest[0], clock)
        alone = lost_alone(scorer, shown, searched.ranking)
        advice = replace(advice, binding=binding, expected=expected, lost_alone=alone)
    if request.front is None:
        return advice
    known = [box for _, box in searched.highest]
    bound = outcome.bound if searched.figures.exact else math.inf
    span = FrontRange.of(request.front)
    return replace(advice, front=trace_front(searcher, span, clock, known, bound))


@dataclass(eq=False)
class Prepared:
    """The parts that searches of one summary under several rules share.

    Attributes
    ----------
    searcher
        Scores and bounds, which do not depend on the rule and are remembered.
    unmasked
        Score of the unmasked table.
    warnings
        What to say of the measure.
    tried
        The best of the last search, to be tried first by the next one.
    """

    searcher: Searcher
    unmasked: float
    warnings: tuple[str, ...] = ()
    tried: tuple[Box, ...] = ()


def prepare(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: SearchRequest | None = None,
    *,
    progress: Progress = SILENT,
) -> Prepared:
    """Return the parts that searches of a summary share; parameters as in `search_combinations`."""
    given = asked(SearchRequest, request, {})
    objective, measure = given.objective, given.measure
    wanted, scored = objective_and_measure(policy, objective, measure)
    named = measure or policy.measure or (objective is not None and objective in MEASURES)
    chosen, lacking = measure_for(summary, scored if named else None)
    searcher = Searcher(summary, plan, wanted if objective else chosen.name, chosen.name, progress)
    return Prepared(searcher, searcher.unmasked(), lacking)
