"""Rank configurations by the predictive value that they keep, under a privacy rule."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from aegis.advisor.advice import Advice
from aegis.advisor.caveats import disagreement, with_caveats
from aegis.advisor.confidence import confidence_note, with_confidence
from aegis.advisor.default import measure_for
from aegis.advisor.estimates import ESTIMATES, EstimateCase
from aegis.advisor.excluded_attributes import aside_note
from aegis.advisor.generate import combinations, configurations_to_rank
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.preference import Prefer, preferred_first
from aegis.advisor.rank import lost_alone, rank_choice
from aegis.advisor.ranked import Ranked
from aegis.advisor.released import expected_auc
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.served import notes_on_labels, served_by_ranking
from aegis.advisor.several import scorer_of
from aegis.blas import one_blas_thread
from aegis.masks import privacy_account
from aegis.measures import Measure
from aegis.options import asked
from aegis.policy import Configuration, Policy, Role, policy_mapping
from aegis.progress import SILENT, Progress
from aegis.requests import Configurations, RankOptions, RankRequest
from aegis.summary import Information, Summary
from aegis.words import amount, counted


@one_blas_thread
def rank_configurations(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: RankRequest | None = None,
    *,
    configurations: Configurations | None = None,
    progress: Progress = SILENT,
    **options: Unpack[RankOptions],
) -> Advice:
    """Rank masking configurations by admissibility, then by the measure, then by name.

    Among configurations that score about the same, the preferred one comes first.

    Parameters
    ----------
    summary, plan, policy
        The counts from which scores are computed; the plan that checks configurations against the
        rule; roles, candidate masks, the rule and the measure.
    request, configurations, options
        The configurations to rank, and the measure: as a request, or as keywords of its fields.
    progress
        Shows the progress, one step for each stage.

    Raises
    ------
    PolicyError
        A measure or a mask is unknown, or there is no configuration to rank.
    """
    given = asked(RankRequest, request, options)
    if configurations is not None:
        given = replace(given, configurations=configurations)
    started = time.perf_counter()
    case = None if given.estimate is None else ESTIMATES.get(given.estimate)
    notes = _note_on_estimates(policy, case)
    chosen, lacking = measure_for(summary, given.measure, policy.measure)
    preference = Prefer.of(given.prefer or Prefer.SCORE)
    scorer, listed = scorer_of(summary), configurations_to_rank(summary, policy, given)
    scored = _scored(listed, scorer, plan, chosen, progress)
    if case is not None:
        named = given.measure or policy.measure
        scored = _by_estimate(scored, summary, case, named, progress)
    scoring = time.perf_counter()
    aside, warnings = aside_note(summary, chosen), warnings_of(summary, plan)
    if case is None:
        ranking, certain, why = _settled(scored, scorer, chosen, preference, progress)
        rare = disagreement(ranking, scorer, chosen)
        notes = (*notes, *lacking, *certain, *aside, *why, *warnings, *rare)
    else:  # of an order by estimates, errors of the measure say nothing
        ranking = [ranked for ranked, _ in scored]
        notes = (*notes, *lacking, *aside, *warnings)
    advice = _advice(ranking, scorer, chosen, policy, proven=case is None and not why)
    now = time.perf_counter()
    timings = {
        **summary.timings,
        "scoring": scoring - started,
        "standard_errors": now - scoring,
        "total": now - started + sum(summary.timings.values()),
    }
    return with_caveats(replace(advice, warnings=(*notes, *advice.warnings), timings=timings))


def _settled(
    scored: Sequence[tuple[Ranked, Choice]],
    scorer: Scorer,
    measure: Measure,
    preference: Prefer,
    progress: Progress,
) -> tuple[list[Ranked], tuple[str, ...], tuple[str, ...]]:
    """Return the ranking with standard errors and ties marked, notes on the errors, and a note on
    why a tied configuration comes first.

    `scored` has the entries of the ranking, each with its candidates.
    """
    choices = _compared_choices(scored)
    ranking = [ranked for ranked, _ in scored]
    ranking = list(with_confidence(ranking, choices, scorer, measure, progress))
    certain = confidence_note(scorer, choices, measure)
    ranking, why = preferred_first(ranking, choices, scorer, measure, preference)
    return ranking, certain, () if why is None else (why,)


def _advice(
    ranking: Sequence[Ranked], scorer: Scorer, measure: Measure, policy: Policy, *, proven: bool
) -> Advice:
    """Return a ranking as advice. `proven` says whether the ranking is in the order of the measure,
    so that its first entry is proven best if all combinations were ranked.
    """
    possible, labels = combinations(scorer.summary), served_by_ranking(scorer, ranking)
    return Advice(
        measure=measure.name,
        ranking=tuple(ranking),
        unmasked=scorer.value(scorer.unmasked, measure),
        lost_alone=lost_alone(scorer, measure, ranking),
        expected=expected_auc(scorer, measure, ranking),
        optimal=proven
        and ranking[0].admissible is True
        and len({tuple(map(str, r.masks.items())) for r in ranking}) >= possible,
        combinations=possible,
        summary=scorer.summary.to_dict(),
        policy=policy_mapping(policy),
        labels=labels,
        warnings=notes_on_labels(scorer, labels),
    )


def _note_on_estimates(policy: Policy, case: EstimateCase | None) -> tuple[str, ...]:
    """Return a caution about ranking by estimates; empty if the estimate has none, or if scores are
    not estimated (`case` is None).

    Raises
    ------
    PolicyError
        The policy has no label, or weights its rows.
    """
    if case is None:
        return ()
    policy.require_label("An estimate")
    policy.refuse_weight("An estimate")
    return () if case.caution is None else (case.caution,)


def _scored(
    listed: Sequence[Configuration],
    scorer: Scorer,
    plan: PrivacyPlan,
    measure: Measure,
    progress: Progress,
) -> list[tuple[Ranked, Choice]]:
    """Score the configurations and check the rule. Return each entry of the ranking with its
    candidates, best first.
    """
    choices = [scorer.choose(configuration) for configuration in listed]
    scored, sign = [], measure.direction.sign
    with progress.step("Scoring configurations", len(listed)) as step:
        for configuration, choice in zip(listed, choices, strict=True):
            ranked = rank_choice(configuration.name, choice, scorer, plan, measure)
            scored.append((ranked.ranking_key(sign), ranked, choice))
            step.advance()
    scored.sort(key=lambda entry: entry[0])
    return [(ranked, choice) for _, ranked, choice in scored]


def _by_estimate(
    scored: list[tuple[Ranked, Choice]],
    summary: Summary,
    case: EstimateCase,
    measure: str | None,
    progress: Progress,
) -> list[tuple[Ranked, Choice]]:
    """Return the entries of a ranking in the order of their estimated deviations from the unmasked
    table, the smallest first. Admissible configurations come before all others.

    `case` makes the estimates, and `measure` is the measure that the user named.
    """
    choices = {ranked.name: choice for ranked, choice in scored}
    estimates = case.estimates(summary, choices, measure=measure, progress=progress)
    told = [(replace(ranked, estimate=estimates[ranked.name]), choice) for ranked, choice in scored]
    # What the estimates do not distinguish stays in the order of the measure.
    return sorted(told, key=lambda s: s[0].ranking_key(0)[:2])


def _compared_choices(scored: Sequence[tuple[Ranked, Choice]]) -> list[Choice]:
    """Return the candidates of those configurations for which standard errors are computed, in the
    order of the ranking. `scored` has the entries of the ranking, each with its candidates.

    Only admissible configurations can be recommended. So the others get standard errors only if no
    configuration is admissible.
    """
    admissible = [choice for ranked, choice in scored if ranked.admissible]
    return admissible or [choice for _, choice in scored]


def weight_notes(summary: Summary) -> list[str]:
    """Return notes that explain scores in which rows have survey weights; empty if rows have no
    weights.
    """
    weights = summary.weights
    if weights is None:
        return []
    own = amount(round(weights.labelled.effective))
    notes = [
        f"scores are weighted by {weights.column!r}; with these weights "
        f"{counted(summary.rows - summary.label.unlabelled, 'row')} carry as much information as {own} of "
        "equal weight (Kish's effective sample size), and standard errors are for that many"
    ]
    if weights.zeros:
        notes.append(
            f"{counted(weights.zeros, 'row has', 'rows have')} a weight of 0 and count for privacy but not "
            "for scores"
        )
    if weights.population < summary.rows:
        notes.append(
            f"the weights add up to {weights.population:g}, less than the number of rows: they are "
            "relative weights, and do not count people"
        )
    return notes


def rule_notes(summary: Summary, plan: PrivacyPlan) -> tuple[str, ...]:
    """Return a warning if the privacy rule protects nobody; otherwise the result is empty."""
    if not plan.rule.criteria:
        return ("the policy has no privacy criterion: every configuration is admissible",)
    if all(a.role != Role.QUASI_IDENTIFIER for a in summary.all_attributes):
        return (
            "the policy has no quasi-identifiers: all rows form one class, so any masks meet the rule",
        )
    return ()


def warnings_of(summary: Summary, plan: PrivacyPlan) -> tuple[str, ...]:
    """Return warnings that the table was sampled, that rows have weights, or that rows and columns
    were left out.
    """
    notes = []
    if summary.unnamed:
        notes.append(
            f"{counted(len(summary.unnamed), 'column is', 'columns are')} not in the policy, so neither "
            f"scored nor released: {', '.join(summary.unnamed)}"
        )
    if summary.label.unlabelled:
        notes.append(
            f"{counted(summary.label.unlabelled, 'row without a label counts', 'rows without a label count')}"
            " for privacy but not for scores"
        )
    notes += weight_notes(summary)
    if summary.sampled:
        notes.append(
            "multi-attribute scores come from a seeded sample of "
            f"{counted(summary.pairs.rows, 'row')}"
        )
    if summary.information is not Information.RAW:
        notes.append(
            f"the summary has no raw counts of unmasked values (information: {summary.information}): "
            "utility kept and lost are relative to the finest masks, not to the unmasked table"
        )
    if plan.in_engine:
        notes.append(
            "classes were counted in the engine: the frequency table is too large for memory"
        )
    for attribute in summary.all_attributes:
        for candidate in attribute.candidates:
            account = privacy_account({attribute.name: candidate.mask})
            notes += [] if account is None else account.notes
    return tuple(dict.fromkeys(notes))
