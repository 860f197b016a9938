"""Check the request of a search before the table is read, and search for the best admissible
configuration among all combinations of candidate masks. `objective` defines signed values.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from aegis.advisor.advice import Advice, disagreement, with_caveats
from aegis.advisor.advise import combinations, warnings_of
from aegis.advisor.confidence import Prefer
from aegis.advisor.encodings import exclusion_note
from aegis.advisor.figures import FirstByMasking, FirstByRelease, SearchFigures
from aegis.advisor.plan import PrivacyPlan, lost_alone
from aegis.advisor.ranked import Ranked
from aegis.advisor.released import (
    ReleasedRows,
    best_release,
    expected_auc,
    figure_on_all_rows,
    release_figure,
)
from aegis.advisor.scores import changed, later
from aegis.advisor.scoring import Choice
from aegis.advisor.search.branch import Found
from aegis.advisor.search.front import (
    FrontRange,
    Recommend,
    check_span,
    explain,
    put_first,
    trace_front,
)
from aegis.advisor.search.objective import OBJECTIVES
from aegis.advisor.search.objectives import objective_type
from aegis.advisor.search.problem import Box, Clock
from aegis.advisor.search.searcher import Searcher, SearchFile
from aegis.advisor.several import ServedLabel, notes_on_labels, tasks_of
from aegis.advisor.utility import UtilityFigure, measure_for
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError, member
from aegis.files import SILENT, Progress, check_output
from aegis.measures import MEASURES
from aegis.options import request_with
from aegis.policy import Policy, policy_mapping
from aegis.privacy.rule import rule_at
from aegis.requests import SearchOptions, SearchRequest
from aegis.summary import Summary


def check_request(policy: Policy, request: SearchRequest) -> None:
    """Raise `PolicyError` if no search can answer the request, before the table is read."""
    check_limits(request)
    if request.resume is not None:
        check_output(Path(request.resume), force=True, formats=None)
    preference(request)
    if isinstance(request.front, str):
        FrontRange.parse(request.front)
    objective_and_measure(policy, request.objective, request.measure)


def check_limits(request: SearchRequest) -> None:
    """Raise `PolicyError` if a request asks for fewer than one configuration, or has an invalid
    limit of time or work.
    """
    if request.top < 1:
        raise PolicyError(
            f"Aegis cannot return the best {request.top} configurations.",
            hint="Ask for at least 1.",
        )
    for name, limit in (("time limit", request.time_limit), ("work", request.work)):
        if limit is not None and not limit >= 0:
            raise PolicyError(f"The {name} {limit} is not valid.", hint="Give seconds, 0 or more.")


def preference(request: SearchRequest) -> Prefer:
    """Return which of several configurations with about the same score to recommend; by default,
    the one that masks least.
    """
    return member(Prefer, request.prefer or Prefer.LEAST_MASKING, "preference")


def objective_and_measure(
    policy: Policy, objective: str | None, measure: str | None
) -> tuple[str, str]:
    """Return the names of the objective that a search optimises and of the measure by which its
    results are scored. If the requested objective is None, it is the measure; if the requested
    measure is None, it is the objective, if that is a measure, or else the policy's measure.

    Raises
    ------
    PolicyError
        A name is unknown, or the objective does not fit the policy.
    """
    if objective is None:
        named = policy.measure_by(measure).name
        return named, named
    if objective not in MEASURES:
        policy.refuse_weight(f"Information loss {objective!r}")
        if objective_type(objective).of_label:
            policy.require_label(f"Information loss {objective!r}")
        return objective, policy.measure_by(measure).name
    objective = policy.measure_by(objective).name
    return objective, policy.measure_by(measure, objective).name


def objective_names() -> tuple[str, ...]:
    """Return the names of all objectives that `search` can maximise or minimise."""
    return (*MEASURES.names(), *OBJECTIVES.names())


SEARCHED = 0.8
"""Share of the time limit that the search may use; the rest is for standard errors and
explanations.
"""
SHARED = 2 / 3
"""The same share if there are several labels. It is smaller, because Aegis then also searches the
best configuration for each label.
"""


@one_blas_thread
def search_combinations(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: SearchRequest | None = None,
    *,
    progress: Progress = SILENT,
    prepared: Prepared | None = None,
    released: ReleasedRows | None = None,
    **options: Unpack[SearchOptions],
) -> Advice:
    """Return the best configurations that meet the rule, out of all combinations of candidate
    masks. If the objective has a bound, the search proves that they are the best.

    The method is branch and bound (`aegis.advisor.search.branch`). The objective scores the masks
    before suppression. The time limit covers the search, the explanation and the front together.
    Steps that would take longer are left out, and the advice says so.

    Parameters
    ----------
    summary
        The counts from which scores are computed.
    plan
        The plan that checks configurations against the rule.
    policy
        Roles, candidate masks, the privacy rule and the measure.
    request, options
        How to search: as a request, or as keywords with the names of its fields.
    progress
        Shows the best value so far, the bound and the gap between them.
    prepared
        Scores and bounds of an earlier search with the same summary, masks and measure, for one
        search at a time. The search first tries its best configurations, and replaces them.
    released
        Counts the rows of releases, to compare them (`best_release`); None: compare no releases.

    Returns
    -------
    Advice
        The advice; if requested, with `binding` (why the best masks are not finer) and `front`. If
        no configuration is admissible, the ranking contains the one that removes the fewest rows.

    Raises
    ------
    PolicyError
        The objective is unknown, `top` is below 1 or the time limit is negative.
    """
    request = request_with(SearchRequest, request, options)
    check_request(policy, request)
    started = time.perf_counter()
    if request.front is not None:
        check_span(FrontRange.of(request.front), plan.rule, summary.rows, plan.values)
    if prepared is None:
        prepared = prepare(summary, plan, policy, request, progress=progress)
    searched = _run(plan, request, prepared, progress, released)
    advice = _with_labels(searched.advice(summary, plan, policy, prepared), searched, request)
    advice = with_caveats(_explained(advice, searched, request, released))
    total = time.perf_counter() - started + sum(summary.timings.values())
    timings = {**summary.timings, "search": searched.figures.work.seconds, "total": total}
    return changed(advice, timings=timings)


@dataclass(frozen=True, eq=False)
class _Searched:
    """The result of a search, before it is turned into advice.

    Attributes
    ----------
    searcher
        The searcher, with scores and bounds under the rule.
    outcome
        The best configurations, the recommended one first, and how the search ended.
    figures
        The figures on the search.
    highest
        One entry: the best signed score and its configuration. Empty if no configuration is
        admissible.
    ranking
        The best configurations.
    clock
        The remaining time.
    preferred
        Why the first configuration is not the one with the best score; None if it is.
    """

    searcher: Searcher
    outcome: Found
    figures: SearchFigures
    highest: Sequence[tuple[float, Box]]
    ranking: Sequence[Ranked]
    clock: Clock
    preferred: FirstByMasking | FirstByRelease | None = None

    def advice(
        self, summary: Summary, plan: PrivacyPlan, policy: Policy, prepared: Prepared
    ) -> Advice:
        """Return the result as advice, without an explanation and without a front."""
        measure, scorer = self.searcher.measure, self.searcher.scorer
        return Advice(
            measure=measure.name,
            ranking=tuple(self.ranking),
            unmasked=later(prepared.searcher.unmasked),
            optimal=self.figures.optimal and not isinstance(self.preferred, FirstByRelease),
            combinations=combinations(summary),
            summary=summary.to_dict(),
            policy=policy_mapping(policy),
            warnings=(
                *warnings_of(summary, plan),
                *prepared.warnings,
                *exclusion_note(summary, measure),
                *disagreement(self.ranking, scorer, measure),
            ),
            search=self.figures,
            preferred=self.preferred,
        )


def _run(
    plan: PrivacyPlan,
    request: SearchRequest,
    prepared: Prepared,
    progress: Progress,
    released: ReleasedRows | None,
) -> _Searched:
    """Search for the best configurations under the rule of a plan. Put the recommended one first:
    among those that score about the same, and compared with releases that suppress fewer rows,
    which `released` counts.
    """
    searcher = prepared.searcher.under(plan, progress)
    clock, top = Clock.of_request(request, searcher.problem.work), request.top
    outcome, figures = searcher.run(
        plan.rule,
        top=top,
        time_limit=clock.part(SHARED if tasks_of(searcher.scorer) else SEARCHED),
        start=prepared.tried,
        prove=request.prove,
        file=prepared.file,
    )
    prepared.tried = tuple(box for _, box in outcome.best[:top]) or prepared.tried
    if outcome.interrupted:
        clock.stop()
    if not outcome.best:
        figures = searcher.settle_for_closest(outcome, figures, clock)
    if not outcome.best:
        return _Searched(searcher, outcome, figures, (), searcher.rank(outcome, clock), clock)
    highest = outcome.best[:1]
    figure = None
    preferred: FirstByMasking | FirstByRelease | None
    preferred = put_first(searcher, outcome, preference(request), top, clock)
    if released is not None and searcher.by_measure:
        figure, by_release = _put_release_first(searcher, outcome, released, request, clock)
        preferred = by_release or preferred
    ranking, lacking = searcher.with_errors(searcher.rank(outcome, clock), outcome, clock)
    figures = searcher.with_notes(figures, lacking)
    # Scores on all rows do not say which release is the best.
    if isinstance(preferred, FirstByRelease):
        ranking = [changed(ranked, tied_with_best=None) for ranked in ranking]
    if figure is not None:
        ranking = [changed(ranking[0], utility=figure), *ranking[1:]]
    return _Searched(searcher, outcome, figures, highest, ranking, clock, preferred)


def _put_release_first(
    searcher: Searcher,
    outcome: Found,
    released: ReleasedRows,
    request: SearchRequest,
    clock: Clock,
) -> tuple[UtilityFigure | None, FirstByRelease | None]:
    """Move the configuration with the best release to the front of `outcome.best`, if suppression
    makes the release of the first one worse than its score. Return the utility of the first release
    (None if it was not measured), and why it comes first (None if it did so before).

    The compared releases suppress fewer rows. They are those that a search under such a limit
    recommends, so they do not depend on how many configurations are requested.
    """
    listed, boxes = [box for _, box in outcome.best], []

    def sparing(rows: int) -> Choice | None:
        rule = rule_at(searcher.plan.rule, "suppression", rows / searcher.summary.rows)
        stricter = searcher.under(searcher.plan.under(rule), searcher.progress)
        other, _ = stricter.run(rule, top=1, time_limit=clock.part(), start=tuple(listed))
        if other.interrupted:
            clock.stop()
        if not other.best:
            return None
        put_first(stricter, other, preference(request), 1, clock)
        boxes.append(other.best[0][1])
        return searcher.problem.choice(boxes[-1])

    first = searcher.problem.choice(listed[0])
    best, figure, why = best_release(first, released, searcher.scorer, searcher.measure, sparing)
    if why is not None:
        box = next(box for box in boxes if searcher.problem.choice(box) == best)
        others = [(value, other) for value, other in outcome.best if other != box]
        outcome.best = [(searcher.objective.bound(box), box), *others][: request.top]
    return figure, why


def _with_labels(advice: Advice, searched: _Searched, request: SearchRequest) -> Advice:
    """Return the advice with two figures for each of several labels: the utility that the best
    configuration keeps, and the most that a search for this label alone reaches. The labels, the
    explanation and the front have equal shares of the remaining time.
    """
    searcher, clock, best = searched.searcher, searched.clock, advice.best
    tasks = tasks_of(searcher.scorer)
    if not tasks or best is None:
        return advice
    choice, start = (
        searcher.scorer.choose(best.configuration),
        tuple(box for _, box in searched.outcome.best),
    )
    labels: list[ServedLabel] = []
    steps = len(tasks) + request.explain_best + (request.front is not None)
    for index, task in enumerate(tasks):
        alone, part = searcher.for_label(index), clock.part(1 / (steps - index))
        outcome, figures = alone.run(alone.plan.rule, top=1, time_limit=part, start=start)
        if outcome.interrupted:
            clock.stop()
        most = None if not outcome.best else 100 * outcome.best[0][0]
        labels.append(ServedLabel.of(task, choice, most, proven=figures.optimal))
    notes = notes_on_labels(searcher.scorer, labels)
    return changed(advice, labels=tuple(labels), warnings=(*notes, *advice.warnings))


def _explained(
    advice: Advice, searched: _Searched, request: SearchRequest, released: ReleasedRows | None
) -> Advice:
    """Return the advice, completed as the request asks: with an explanation of its best
    configuration and the utility that each mask costs, and with the front. `released` counts the
    rows of releases.
    """
    searcher, outcome, clock = searched.searcher, searched.outcome, searched.clock
    if request.explain_best and outcome.best and not outcome.interrupted:
        scorer, measure = searcher.scorer, searcher.measure
        expected = expected_auc(scorer, measure, searched.ranking)
        binding = explain(searcher, outcome, searched.highest[0], clock)
        if advice.by_release:  # gains on all rows explain only masks that break the rule
            binding = replace(binding, finer=tuple(m for m in binding.finer if m.violations))
        alone = lost_alone(scorer, measure, searched.ranking)
        advice = changed(advice, binding=binding, expected=expected, lost_alone=alone)
    if request.front is None:
        return advice
    boxes = [box for _, box in searched.highest]
    bound = outcome.bound if searched.figures.exact else math.inf
    span = FrontRange.of(request.front)
    choose: Recommend | None = None
    if released is not None:
        choose = partial(_recommended, searched=searched, request=request, released=released)
    return changed(advice, front=trace_front(searcher, span, clock, boxes, bound, choose))


def _recommended(
    searcher: Searcher,
    box: Box,
    searched: _Searched,
    request: SearchRequest,
    released: ReleasedRows,
) -> tuple[Box, UtilityFigure, bool]:
    """Return the configuration to recommend at one point of a front, the utility of its release,
    and whether it was chosen by its release.

    `searcher` has the rule of the point, and `box` is the best by score under it. `searched` is the
    search under the policy's rule, whose recommendation also is that of the point with the same
    rule. `released` counts the rows of releases.
    """
    rule, rows = searcher.plan.rule, released.under(searcher.plan)
    figure: UtilityFigure | None = None
    by_release = False
    if searcher.by_measure and rule == searched.searcher.plan.rule and searched.outcome.best:
        box, figure = searched.outcome.best[0][1], searched.ranking[0].utility
        by_release = isinstance(searched.preferred, FirstByRelease)
    elif searcher.by_measure:
        alone = Found([(searcher.objective.bound(box), box)])
        figure, why = _put_release_first(searcher, alone, rows, request, searched.clock)
        box, by_release = alone.best[0][1], why is not None
    scorer, measure, choice = searcher.scorer, searcher.measure, searcher.problem.choice(box)
    if figure is None:
        removed = searcher.verdict(box, rule).suppressed_rows
        figure = release_figure(rows, choice, removed, scorer, measure)
    return box, figure or figure_on_all_rows(choice, scorer, measure), by_release


@dataclass(eq=False)
class Prepared:
    """Scores and bounds that several searches of one summary under different rules share.

    Attributes
    ----------
    searcher
        The searcher, with scores and bounds that do not depend on the rule.
    warnings
        Warnings about the measure.
    file
        The file that saves the unsearched parts of the search space; None for no file.
    tried
        The best configurations of the last search, which the next one tries first.
    """

    searcher: Searcher
    warnings: tuple[str, ...] = ()
    file: SearchFile | None = None
    tried: tuple[Box, ...] = ()


def prepare(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: SearchRequest | None = None,
    *,
    progress: Progress = SILENT,
) -> Prepared:
    """Compute once the scores and bounds that several searches of one summary share."""
    request = request_with(SearchRequest, request, {})
    objective, measure = request.objective, request.measure
    target, scored = objective_and_measure(policy, objective, measure)
    named = measure or policy.measure or (objective is not None and objective in MEASURES)
    chosen, lacking = measure_for(summary, scored if named else None)
    searcher = Searcher(summary, plan, target if objective else chosen.name, chosen.name, progress)
    file = None
    if request.resume is not None:
        of = f"{searcher.objective.name}, {request.top}"
        file = SearchFile.of(Path(request.resume), policy, searcher.problem, plan, of)
        file.read()  # so that another search's file is refused before the work begins
    if searcher.by_measure:
        with progress.step("Scoring the unmasked table"):
            searcher.unmasked()  # the scorer keeps it
    return Prepared(searcher, lacking, file)
