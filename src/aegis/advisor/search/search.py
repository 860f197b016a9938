"""Find the best admissible configuration among all combinations of candidate masks."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from aegis.advisor.advice import Advice
from aegis.advisor.advise import warnings_of
from aegis.advisor.aside import aside_note
from aegis.advisor.default import measure_for
from aegis.advisor.doubts import with_doubts
from aegis.advisor.generate import combinations
from aegis.advisor.merits import disagreement
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.preference import Prefer
from aegis.advisor.rank import lost_alone
from aegis.advisor.released import expected_auc
from aegis.advisor.search.binding import explain
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.front import FrontRange, check_span, trace_front
from aegis.advisor.search.problem import Box
from aegis.advisor.search.request import (
    check_request,
    objective_and_measure,
)
from aegis.advisor.search.searcher import Searcher
from aegis.advisor.search.ties import put_first
from aegis.blas import one_blas_thread
from aegis.measures import MEASURES
from aegis.policy import Policy, policy_mapping
from aegis.progress import SILENT, Progress
from aegis.summary import Summary

SEARCHED = 0.8
"""Share of the time limit that the search may take; the rest is for what is said about its best."""


@one_blas_thread
def search_combinations(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    *,
    objective: str | None = None,
    measure: str | None = None,
    top: int = 5,
    time_limit: float | None = None,
    front: FrontRange | str | None = None,
    explain_best: bool = False,
    prefer: str = Prefer.LEAST_MASKING,
    progress: Progress = SILENT,
    prepared: Prepared | None = None,
) -> Advice:
    """Return the best admissible configurations of all combinations, proven where the measure has a bound.

    Branch and bound (see `aegis.advisor.search.branch`) over boxes of candidates. The objective
    scores the masks before suppression.

    Parameters
    ----------
    summary
        The aggregates that scores come from.
    plan
        Holds configurations against the rule.
    policy
        Roles, candidate masks, the privacy rule and the measure.
    objective
        A registered measure, or an information loss: `nu-entropy`, `loss`, `precision`,
        `discernibility`, `classification`, `class-entropy`. By default the measure.
    measure
        Scores what was found. By default the objective where that is a measure, else the policy's;
        where it names none, the measure that ranks by default.
    top
        How many of the best configurations to return, at least 1.
    time_limit
        Seconds for the search, what binds and the front together; then the best so far is returned
        with its bound and gap, and what would take longer is left out and said. Ctrl-C does the
        same. Reading and summarising the table and scoring it unmasked come before.
    front
        Trace the Pareto front over a parameter of the rule, such as "k=2..50".
    explain_best
        Whether to find out what binds the best configuration, what each of its masks costs alone, and
        what models are expected to reach.
    prefer
        Which comes first of configurations that score about the same (`tie_margin`): `least-masking`,
        `most-private`, or `score`. Only where the objective is the measure.
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
    check_request(policy, objective, measure, top, time_limit, front, prefer)
    span = FrontRange.parse(front) if isinstance(front, str) else front
    started = time.perf_counter()
    if span is not None:
        check_span(span, plan.rule, summary.rows, plan.values)
    if prepared is None:
        prepared = prepare(
            summary, plan, policy, objective=objective, measure=measure, progress=progress
        )
    searcher, unmasked = prepared.searcher.under(plan, progress), prepared.unmasked
    shown = searcher.measure
    clock = Clock(time_limit)
    share = None if time_limit is None else SEARCHED * time_limit
    outcome, figures = searcher.run(plan.rule, top=top, time_limit=share, start=prepared.tried)
    prepared.tried = tuple(box for _, box in outcome.best[:top]) or prepared.tried
    if outcome.interrupted:
        clock.stop()
    if not outcome.best:
        figures = searcher.settle_for_closest(outcome, figures, clock)
    highest, why = outcome.best[:1], None  # by score, before ties are settled
    if outcome.best:
        why = put_first(searcher, outcome, Prefer.of(prefer), top, clock)
    ranking = searcher.rank(outcome, clock)
    if outcome.best:
        ranking, lacking = searcher.with_errors(ranking, outcome, clock)
        figures = searcher.told(figures, why, lacking, unmasked)
    advice = Advice(
        measure=shown.name,
        ranking=tuple(ranking),
        unmasked=unmasked,
        optimal=figures.optimal,
        combinations=combinations(summary),
        summary=summary.to_dict(),
        policy=policy_mapping(policy),
        warnings=(
            *warnings_of(summary, plan),
            *prepared.warnings,
            *aside_note(summary, shown),
            *disagreement(ranking, searcher.scorer, shown),
        ),
        search=figures,
    )
    if explain_best and outcome.best and not outcome.interrupted:
        expected = expected_auc(searcher.scorer, shown, ranking)
        binding = explain(searcher, outcome, highest[0], clock)
        alone = lost_alone(searcher.scorer, shown, ranking)
        advice = replace(advice, binding=binding, expected=expected, lost_alone=alone)
    if span is not None:
        known = [box for _, box in highest]
        bound = outcome.bound if figures.exact else math.inf
        advice = replace(advice, front=trace_front(searcher, span, clock, known, bound))
    advice = with_doubts(advice)
    total = time.perf_counter() - started + sum(summary.timings.values())
    timings = {**summary.timings, "search": figures.seconds, "total": total}
    return replace(advice, timings=timings)


@dataclass(eq=False)
class Prepared:
    """What searches of one summary under several rules share.

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
    *,
    objective: str | None = None,
    measure: str | None = None,
    progress: Progress = SILENT,
) -> Prepared:
    """Return what searches of a summary share; parameters as those of `search_combinations`."""
    asked, scored = objective_and_measure(policy, objective, measure)
    named = measure or policy.measure or (objective is not None and objective in MEASURES)
    chosen, lacking = measure_for(summary, scored if named else None)
    searcher = Searcher(summary, plan, asked if objective else chosen.name, chosen.name, progress)
    return Prepared(searcher, searcher.unmasked(), lacking)
