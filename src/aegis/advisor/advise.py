"""Rank configurations by the predictive value that they keep, under a privacy rule."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aegis.advisor.advice import Advice
from aegis.advisor.aside import aside_note
from aegis.advisor.confidence import confidence_note, with_confidence
from aegis.advisor.default import measure_for
from aegis.advisor.doubts import with_doubts
from aegis.advisor.generate import combinations, generate
from aegis.advisor.merits import disagreement
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.preference import Prefer, preferred_first
from aegis.advisor.rank import lost_alone, rank_choice
from aegis.advisor.ranked import Ranked
from aegis.advisor.released import expected_auc
from aegis.advisor.scoring import Choice, Scorer
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.masks import privacy_account
from aegis.policy import Configuration, Policy, Role, policy_mapping
from aegis.progress import SILENT, Progress
from aegis.summary import Information, Summary
from aegis.words import counted

DEFAULT_COUNT = 50
"""Configurations that are generated when neither the caller nor the policy names any."""


@one_blas_thread
def rank_configurations(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    *,
    configurations: Mapping[str, Configuration] | Sequence[Configuration] | None = None,
    generate_count: int | None = None,
    measure: str | None = None,
    estimate: str | None = None,
    prefer: str | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Advice:
    """Rank masking configurations, admissible ones first and the best first among them.

    Parameters
    ----------
    summary
        The aggregates that scores come from.
    plan
        Holds configurations against the rule.
    policy
        Roles, candidate masks, the privacy rule and the measure.
    configurations
        The configurations to rank; by default those of the policy, else 50 generated ones.
    generate_count
        Rank this many generated configurations instead.
    measure
        Name of a registered measure; by default the policy's, else the default of rankings.
    estimate
        Rank by the estimated deviation from the raw table instead, the smallest first: Algorithm 1
        of the AEGIS paper. A name in `aegis.advisor.ranked_estimate.CASES`.
    prefer
        Which comes first of configurations that score about the same: `least-masking`,
        `most-private`, or `score`, the default.
    seed
        Seed of the generator.
    progress
        Receives one step per stage.

    Returns
    -------
    Advice
        Ordered by admissibility, then by the measure in its direction, then by name; the preferred
        one of the ties before all others.

    Raises
    ------
    PolicyError
        A measure or a mask is unknown, or no configuration is given.
    """
    started = time.perf_counter()
    notes: tuple[str, ...] = ()
    if estimate is not None:
        from aegis.advisor.ranked_estimate import ONE_MASK, case_of

        policy.require_label("An estimate")
        notes = (ONE_MASK,) if case_of(estimate).own_mask else ()
    chosen, lacking = measure_for(summary, measure, policy.measure)
    notes = (*notes, *lacking)
    preference = Prefer.SCORE if prefer is None else Prefer.of(prefer)
    listed = _listed(summary, policy, configurations, generate_count, seed)
    scorer = Scorer(summary)
    choices = [scorer.choose(configuration) for configuration in listed]
    scorer.common.expect(choices)
    scored = []
    with progress.step("Scoring configurations", len(listed)) as step:
        for configuration, choice in zip(listed, choices, strict=True):
            scored.append((rank_choice(configuration.name, choice, scorer, plan, chosen), choice))
            step.advance()
    sign = chosen.direction.sign
    scored.sort(key=lambda s: s[0].ranking_key(sign))
    if estimate is not None:
        scored = _by_estimate(scored, summary, estimate, measure or policy.measure, progress)
    scoring = time.perf_counter()
    ranking, why = [ranked for ranked, _ in scored], None
    if estimate is None:  # of an order by estimates, errors of the measure say nothing
        choices = _compared_choices(scored)
        ranking = list(with_confidence(ranking, choices, scorer, chosen, progress))
        notes = (*notes, *confidence_note(scorer, choices, chosen))
        ranking, why = preferred_first(ranking, choices, scorer, chosen, preference)
    notes = (*notes, *aside_note(summary, chosen))
    possible = combinations(summary)
    now = time.perf_counter()
    return with_doubts(
        Advice(
            measure=chosen.name,
            ranking=tuple(ranking),
            unmasked=scorer.value(scorer.unmasked, chosen),
            lost_alone=lost_alone(scorer, chosen, ranking),
            expected=expected_auc(scorer, chosen, ranking),
            optimal=estimate is None
            and why is None
            and ranking[0].admissible
            and len({tuple(map(str, r.masks.items())) for r in ranking}) >= possible,
            combinations=possible,
            summary=summary.to_dict(),
            policy=policy_mapping(policy),
            warnings=(
                *notes,
                *(() if why is None else (why,)),
                *warnings_of(summary, plan),
                *(disagreement(ranking, scorer, chosen) if estimate is None else ()),
            ),
            timings={
                **summary.timings,
                "scoring": scoring - started,
                "standard_errors": now - scoring,
                "total": now - started + sum(summary.timings.values()),
            },
        )
    )


def _by_estimate(
    scored: list[tuple[Ranked, Choice]],
    summary: Summary,
    case: str,
    measure: str | None,
    progress: Progress,
) -> list[tuple[Ranked, Choice]]:
    """Return configurations with their estimates, the smallest deviation first."""
    from aegis.advisor.ranked_estimate import estimate_choices, estimated_measure

    choices = {ranked.name: choice for ranked, choice in scored}
    estimates = estimate_choices(
        summary, choices, case, measure=estimated_measure(measure), progress=progress
    )
    told = [(replace(ranked, estimate=estimates[ranked.name]), choice) for ranked, choice in scored]
    # What the estimates do not tell apart stays in the order of the measure.
    return sorted(told, key=lambda s: (not s[0].admissible, estimates[s[0].name].place))


def _compared_choices(scored: Sequence[tuple[Ranked, Choice]]) -> list[Choice]:
    """Return what the configurations mask with whose errors are worth their time, in their order.

    One of those that meet the rule is chosen; which of the others is ahead matters only where none
    does.
    """
    admissible = [choice for ranked, choice in scored if ranked.admissible]
    return admissible or [choice for _, choice in scored]


def _listed(
    summary: Summary,
    policy: Policy,
    configurations: Mapping[str, Configuration] | Sequence[Configuration] | None,
    count: int | None,
    seed: int,
) -> list[Configuration]:
    """Return the configurations to rank, from the first of: caller, generator, policy."""
    if configurations is not None and count is not None:
        raise PolicyError(
            "Both explicit configurations and a number to generate were given.",
            hint="Give one of them.",
        )
    if configurations is not None:
        explicit = (
            configurations.values() if isinstance(configurations, Mapping) else configurations
        )
        if not explicit:
            raise PolicyError("No configurations were given.", hint="Give at least one.")
        return list(explicit)
    if count is None and policy.configurations:
        return list(policy.configurations.values())
    return generate(summary, DEFAULT_COUNT if count is None else count, seed=seed)


def warnings_of(summary: Summary, plan: PrivacyPlan) -> tuple[str, ...]:
    """Return what a reader should know: samples, left-out rows and columns, unchecked privacy."""
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
    if summary.sampled:
        notes.append(
            "multi-attribute scores come from a seeded sample of "
            f"{counted(summary.pairs.rows, 'row')}"
        )
    if summary.information is not Information.RAW:
        notes.append(
            f"the summary carries {summary.information} beside what the masks show: what is kept "
            "and lost is measured against the finest that the masks show, not the unmasked table"
        )
    if plan.in_engine:
        notes.append(
            "classes were counted in the engine: the frequency table is too large for memory"
        )
    if plan.rule.criteria and not any(
        a.role == Role.QUASI_IDENTIFIER for a in summary.all_attributes
    ):
        notes.append(
            "the policy has no quasi-identifiers: all rows are one class, and the rule is met by that alone"
        )
    if not plan.rule.criteria:
        notes.append("the policy has no privacy criterion: every configuration is admissible")
    for attribute in summary.all_attributes:
        for candidate in attribute.candidates:
            account = privacy_account({attribute.name: candidate.mask})
            notes += [] if account is None else account.notes
    return tuple(dict.fromkeys(notes))
