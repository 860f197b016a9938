"""List or generate configurations, rank them by the predictive value that they keep under a privacy
rule, and find the risks that the best one leaves.

Generated configurations are the least masked ones first, then random ones without repetition.

A rule covers only the quasi-identifiers. Somebody who knows more about a person may find the person
by other released columns. A column may also repeat the label in other words. If this column is not
known when a model is used, every score is too high.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Protocol, Unpack

import numpy as np

from aegis.advisor.advice import Advice, disagreement, with_caveats, with_first
from aegis.advisor.confidence import Prefer, confidence_note, preferred_first, with_confidence
from aegis.advisor.encodings import exclusion_note
from aegis.advisor.figures import FirstByMasking, FirstByRelease
from aegis.advisor.label_leaks import MissingLeak, ResidualRisks, label_leaks, leak_sentences
from aegis.advisor.plan import PrivacyPlan, lost_alone, rank_choice
from aegis.advisor.ranked import ESTIMATES, EstimateCase, PrivacyChange, Ranked
from aegis.advisor.released import (
    KeptCodes,
    ReleasedRows,
    best_release,
    codes_known,
    expected_auc,
    kept_codes,
)
from aegis.advisor.scores import Later, changed, later
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.several import notes_on_labels, scorer_of, served_by_ranking, tasks_of
from aegis.advisor.utility import Rows, UtilityFigure, measure_for
from aegis.arrays import Integers
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError, member
from aegis.files import SILENT, Progress
from aegis.masking.masked import WithOriginals
from aegis.masks import Mask, privacy_account
from aegis.measures import Measure
from aegis.options import request_with
from aegis.policy import Configuration, Policy, Role, listed_configurations, policy_mapping
from aegis.privacy import PrivacyReport
from aegis.privacy import report as privacy_report
from aegis.privacy.inference import find_implications
from aegis.privacy.report import UNPROTECTED
from aegis.requests import Configurations, RankOptions, RankRequest
from aegis.summary import PERSON, Information, Summary
from aegis.summary.classes import WEIGHT
from aegis.summary.outside import (
    MOST_ROWS,
    NEAR_KEY,
    Outside,
    outside_of,
    outside_of_codes,
    patterns_of_tokens,
)
from aegis.words import Quoting, amount, counted

DEFAULT_COUNT = 50
"""Number of configurations to generate if neither the caller nor the policy gives configurations.
"""
LADDER_SHARE = 0.2
"""Largest share of the generated configurations that are not drawn at random."""


class CandidateMask(Protocol):
    """A candidate mask, and the groups that it forms."""

    @property
    def mask(self) -> Mask:
        """The mask, with the parameters that were fitted to the table."""

    @property
    def groups(self) -> Integers:
        """The number of the group of each of V values, shape (V,)."""

    @property
    def size(self) -> int:
        """The number of groups."""


class AttributeWithMasks(Protocol):
    """An attribute with its candidate masks."""

    @property
    def name(self) -> str:
        """The name of the column."""

    @property
    def role(self) -> Role:
        """The role of the attribute."""

    @property
    def candidates(self) -> Sequence[CandidateMask]:
        """The candidate masks, in the order of the policy."""


class WithCandidates(Protocol):
    """A summary of any format, with the candidate masks of its attributes."""

    @property
    def all_attributes(self) -> Sequence[AttributeWithMasks]:
        """The attributes that have candidate masks."""


def configurations_to_rank(
    summary: WithCandidates,
    policy: Policy | None,
    request: RankRequest,
    owner_listed: Sequence[Configuration] = (),
) -> list[Configuration]:
    """Return the configurations to rank: those that the request lists, or as many random ones as it
    wants; else those of the policy, else those in `owner_listed` (for which the owner of a
    protected summary states whether they meet the rule), else 50 random ones.

    Raises
    ------
    PolicyError
        The caller gives both configurations and a number to generate, or an empty list.
    """
    configurations, count = request.configurations, request.generate_count
    if configurations is not None and count is not None:
        raise PolicyError(
            "You gave both configurations and a number of configurations to generate.",
            hint="Give one of them.",
        )
    if configurations is not None:
        explicit = listed_configurations(configurations)
        if not explicit:
            raise PolicyError("The list of configurations is empty.", hint="Give at least one.")
        return list(explicit)
    if count is None:
        listed = () if policy is None else tuple(policy.configurations.values())
        if listed or owner_listed:
            return list(listed or owner_listed)
    return generate(summary, DEFAULT_COUNT if count is None else count, seed=request.seed or 0)


def combinations(summary: WithCandidates) -> int:
    """Return how many configurations the candidate masks make."""
    return math.prod(len(a.candidates) for a in summary.all_attributes)


def generate(summary: WithCandidates, count: int, *, seed: int = 0) -> list[Configuration]:
    """Return different configurations: first those that mask least, then others drawn at random. If
    there are fewer combinations than `count`, fewer are returned.

    The first configuration masks every attribute least. The next ones coarsen all quasi-identifiers
    step by step, and mask other attributes least. They make up at most a share `LADDER_SHARE` of
    `count`. In all others, each mask is drawn uniformly from its attribute's candidates.

    Raises
    ------
    PolicyError
        `count` is below 1.
    """
    if seed < 0:
        raise PolicyError(f"The seed {seed} is negative.", hint="Give a whole number from 0.")
    if count < 1:
        raise PolicyError(
            f"{count} configurations cannot be generated.", hint="Ask for at least 1."
        )
    attributes = summary.all_attributes
    total = combinations(summary)
    random = np.random.default_rng(seed)
    ladder = _ladder(attributes, max(1, int(count * LADDER_SHARE)))
    sizes = [len(a.candidates) for a in attributes]
    if total <= 4 * count:
        every = list(product(*map(range, sizes)))
        shuffled = [every[number] for number in random.permutation(total).tolist()]
        choices = list(dict.fromkeys([*ladder, *shuffled]))[:count]
    else:
        different = dict.fromkeys(ladder)
        while len(different) < count:
            different[tuple(int(random.integers(size)) for size in sizes)] = None
        choices = list(different)
    width = len(str(len(choices)))
    return [
        Configuration(
            f"c{i + 1:0{width}d}",
            {a.name: a.candidates[c].mask for a, c in zip(attributes, chosen, strict=True)},
        )
        for i, chosen in enumerate(choices)
    ]


def _ladder(attributes: Sequence[AttributeWithMasks], most: int) -> list[tuple[int, ...]]:
    """Return at most `most` combinations, each as one candidate index per attribute: the least
    masked one first, then ever coarser masks of the quasi-identifiers.
    """
    # From the candidate that shows the most values to the one that shows the fewest; ties as declared.
    orders = [
        np.argsort([-c.size for c in a.candidates], kind="stable").tolist() for a in attributes
    ]
    quasi = [a.role is Role.QUASI_IDENTIFIER for a in attributes]
    longest = max((len(o) for o, q in zip(orders, quasi, strict=True) if q), default=1)
    steps = min(most, longest)
    return list(
        dict.fromkeys(
            tuple(
                order[round(step * (len(order) - 1) / max(longest - 1, 1)) if masked else 0]
                for order, masked in zip(orders, quasi, strict=True)
            )
            for step in range(steps)
        )
    )


@one_blas_thread
def rank_configurations(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: RankRequest | None = None,
    *,
    configurations: Configurations | None = None,
    progress: Progress = SILENT,
    released: ReleasedRows | None = None,
    **options: Unpack[RankOptions],
) -> Advice:
    """Rank masking configurations by admissibility, then by the measure, then by name.

    Of configurations that score about the same, the one that masks least comes first by default.

    Parameters
    ----------
    summary, plan, policy
        The counts from which scores are computed; the plan that checks configurations against the
        rule; roles, candidate masks, the rule and the measure.
    request, configurations, options
        The configurations to rank, and the measure: as a request, or as keywords of its fields.
    progress
        Shows the progress, one step for each stage.
    released
        Counts the rows of releases, to compare them (`best_release`); None: compare no releases.

    Raises
    ------
    PolicyError
        A measure or a mask is unknown, or there is no configuration to rank.
    """
    request = request_with(RankRequest, request, options)
    if configurations is not None:
        request = replace(request, configurations=configurations)
    started = time.perf_counter()
    preference = member(Prefer, request.prefer or Prefer.SCORE, "preference")
    case = None if request.estimate is None else ESTIMATES.get(request.estimate)
    notes = _note_on_estimates(policy, case)
    chosen, lacking = measure_for(summary, request.measure, policy.measure)
    scorer, listed = scorer_of(summary), configurations_to_rank(summary, policy, request)
    scored = _scored(listed, scorer, plan, chosen, progress)
    if case is not None:
        scored = _by_estimate(scored, summary, case, request.measure or policy.measure, progress)
    scoring = time.perf_counter()
    exclusions, warnings = exclusion_note(summary, chosen), warnings_of(summary, plan)
    if case is None:
        ranking, certain, preferred = _settled(
            scored, scorer, chosen, preference, progress, released
        )
        rare = disagreement(ranking, scorer, chosen)
    else:  # of an order by estimates, errors of the measure say nothing
        ranking, certain, preferred, rare = [ranked for ranked, _ in scored], (), None, ()
    notes = (*notes, *lacking, *certain, *exclusions, *warnings, *rare)
    advice = _advice(ranking, scorer, chosen, policy, proven=case is None and not preferred)
    now = time.perf_counter()
    timings = {"scoring": scoring - started, "standard_errors": now - scoring}
    total = now - started + sum(summary.timings.values())
    advice = replace(advice, warnings=(*notes, *advice.warnings), preferred=preferred)
    return with_caveats(replace(advice, timings={**summary.timings, **timings, "total": total}))


def _settled(
    scored: Sequence[tuple[Ranked, Choice]],
    scorer: Scorer,
    measure: Measure,
    preference: Prefer,
    progress: Progress,
    released: ReleasedRows | None,
) -> tuple[list[Ranked], tuple[str, ...], FirstByMasking | FirstByRelease | None]:
    """Return three things: the ranking, with standard errors and marks of ties; notes on errors
    that were left out; and why the first configuration is not the one with the best score, None if
    it is.

    `scored` has the entries of the ranking, each with its candidates; `preference` says which of
    several tied configurations comes first; `released` counts the rows of releases, to compare
    them.
    """
    # Only admissible configurations can be recommended, so the others get errors only if none is.
    admissible = [choice for ranked, choice in scored if ranked.admissible]
    choices = admissible or [choice for _, choice in scored]
    ranking = [ranked for ranked, _ in scored]
    ranking = list(with_confidence(ranking, choices, scorer, measure, progress))
    certain = confidence_note(scorer, choices, measure)
    ranking, why = preferred_first(ranking, choices, scorer, measure, preference)
    if released is not None and ranking[0].admissible:
        ranking, by_release = _release_first(ranking, released, scorer, measure)
        return ranking, certain, by_release or why
    return ranking, certain, why


def _release_first(
    ranking: list[Ranked], released: ReleasedRows, scorer: Scorer, measure: Measure
) -> tuple[list[Ranked], FirstByRelease | None]:
    """Return the ranking with the best release first, if suppression makes the release of the first
    entry worse than its score; and why another entry than before comes first (None if none does).
    `released` counts the rows of releases that `scorer` scores by `measure`.
    """
    listed = [
        (scorer.choose(ranked.configuration), ranked) for ranked in ranking if ranked.admissible
    ]

    def sparing(rows: int) -> Choice | None:
        few = (choice for choice, ranked in listed if (ranked.suppressed_rows or 0) <= rows)
        return next(few, None)

    best, figure, why = best_release(listed[0][0], released, scorer, measure, sparing)
    first = next(ranked for choice, ranked in listed if choice == best)
    rest = [ranked for ranked in ranking if ranked is not first]
    listing = [first if figure is None else changed(first, utility=figure), *rest]
    if why is not None:  # scores on all rows do not say which release is the best
        listing = [changed(ranked, tied_with_best=None) for ranked in listing]
    return listing, why


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
    """Return the caution that belongs to a way of estimating scores (`case`); empty if it has none,
    or if scores are not estimated (`case` is None).

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
    """Score the configurations in `listed`, and check whether they meet the rule. Return each entry
    of the ranking with its candidates, best first.
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
    """Return the entries of a ranking, sorted by their estimated deviation from the unmasked table,
    the smallest first. Admissible configurations come before all others.

    `scored` has the entries with their candidates, `case` makes the estimates, and `measure` is the
    measure that the user named.
    """
    choices = {ranked.name: choice for ranked, choice in scored}
    estimates = case.estimates(summary, choices, measure=measure, progress=progress)
    entries = [(replace(r, estimate=estimates[r.name]), choice) for r, choice in scored]
    # What the estimates do not distinguish stays in the order of the measure.
    return sorted(entries, key=lambda s: s[0].ranking_key(0)[:-1])


def weight_notes(summary: Summary) -> list[str]:
    """Return notes that explain scores in which rows have survey weights; empty if rows have no
    weights.
    """
    weights = summary.weights
    if weights is None:
        return []
    effective = amount(round(weights.labelled.effective))
    notes = [
        f"scores are weighted by {weights.column!r}; with these weights "
        f"{counted(summary.rows - summary.label.unlabelled, 'row')} carry as much information as {effective} of "
        "equal weight (Kish's effective sample size), and standard errors are for that many"
    ]
    if weights.zeros:
        then = "a weight of 0 and count for privacy but not for scores"
        zeros = counted(weights.zeros, "row has", "rows have")
        notes.append(Quoting(f"{zeros} {then}", f"some rows have {then}"))
    if weights.population < summary.rows:
        notes.append(
            f"the weights add up to {weights.population:g}, no more than the number of rows: they are "
            "relative weights, and do not count people"
        )
    return notes


def rule_notes(summary: Summary, plan: PrivacyPlan) -> tuple[str, ...]:
    """Return a warning if the privacy rule protects nobody; otherwise the result is empty."""
    if not plan.rule.criteria:
        return ("the policy has no privacy criterion: every configuration is admissible",)
    if all(a.role != Role.QUASI_IDENTIFIER for a in summary.all_attributes):
        return (UNPROTECTED,)
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
            Quoting(
                f"{counted(summary.label.unlabelled, 'row without a label counts', 'rows without a label count')}"
                " for privacy but not for scores",
                "rows without a label count for privacy but not for scores",
            )
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


MISSING_LEAK = 0.9
"""Smallest reported difference between the share of nulls in a class and in all other rows. The
nulls alone then have an AUC of at least 0.95.
"""


def with_residual_risks(advice: Advice, released: ReleasedRows) -> Advice:
    """Return a copy of the advice with the risks of its best release that the privacy rule does not
    cover. The warnings of the advice begin with these risks.

    Parameters
    ----------
    advice
        A ranking.
    released
        The object that counts the rows of releases, with the policy.
    """
    risks = Later(lambda: _risks(advice, released))
    if advice.best is not None and not _rows_known(advice.best, released):
        risks.value  # noqa: B018 - the rows are read now, not when they may have changed
    updated = changed(advice, uncovered=later(lambda: risks.value[0]))
    return with_first(updated, lambda: (*risks.value[0].sentences, *risks.value[1]))


def _rows_known(best: Ranked, released: ReleasedRows) -> bool:
    """Return whether Aegis already knows the rows that the release of an entry (`best`) keeps, so
    that it need not read the table.
    """
    plan, policy = released.plan, released.policy
    if best.method is not None or released.source is None or policy is None:
        return True
    choice = Scorer(plan.summary).choose(best.configuration)
    return codes_known(released.coded_rows, plan, policy, choice)


def _risks(advice: Advice, released: ReleasedRows) -> tuple[ResidualRisks, tuple[str, ...]]:
    """Return the risks of the best release that the privacy rule does not cover, and the warnings
    about columns that alone explain one of several labels. `released` counts the rows of releases.
    """
    summary = released.plan.summary
    label = summary.label.column or None
    missing = _missing_leaks(summary)
    nothing = Outside(rows=None, unique_rows=None, label=label)
    best = advice.best
    if best is None or best.method is not None:
        unmasked = {attribute.name: attribute.unmasked for attribute in summary.all_attributes}
        leaks = _leaks(None, summary, unmasked)
        return ResidualRisks.of(nothing, leaks.get(label, {}), missing), _of_others(label, leaks)
    choice = Scorer(summary).choose(best.configuration)
    leaks = _leaks(advice.utility, summary, choice)
    outside = outside_of_release(released, choice)
    if outside is None:
        near = {
            name: candidate.size
            for name, candidate in choice.items()
            if candidate.noise is None and candidate.size >= NEAR_KEY * summary.rows > 1
        }
        outside = replace(nothing, near_keys=near)
    return ResidualRisks.of(outside, leaks.get(label, {}), missing), _of_others(label, leaks)


def _leaks(
    figure: UtilityFigure | None, summary: Summary, choice: Choice
) -> dict[str | None, Mapping[str, float]]:
    """Return, for each label, the columns that alone explain nearly all of it, each with the share
    of the label that it explains.

    `figure` is the utility of a release. If it was measured on the released rows, its columns are
    returned; the certificate names the same columns. Otherwise they are found on all rows under the
    masks in `choice`.
    """
    measured = figure is not None and figure.rows is Rows.RELEASED
    tasks = tasks_of(scorer_of(summary))
    if not tasks:
        leaks = figure.leaks if figure and measured else label_leaks(summary, choice)
        return {summary.label.column or None: leaks}
    return {
        task.column: figure.labels[task.column].leaks
        if figure and measured and task.column in figure.labels
        else label_leaks(task.task.summary, task.choice(choice))
        for task in tasks
    }


def _of_others(
    label: str | None, leaks: Mapping[str | None, Mapping[str, float]]
) -> tuple[str, ...]:
    """Return warnings about columns that alone explain one of several labels. `leaks` has these
    columns by label; those of `label` are left out, because `ResidualRisks` describes them.
    """
    others = {column: shares for column, shares in leaks.items() if column != label}
    return tuple(
        text for column, shares in others.items() for text in leak_sentences(shares, str(column))
    )


def outside_of_release(released: ReleasedRows, choice: Choice) -> Outside | None:
    """Read the rows that the release of a configuration (`choice`) keeps, and find the risks that
    the privacy rule does not cover.

    Return None if the table is not available or too large, or if a mask draws noise.
    """
    source, policy = released.source, released.policy
    if policy is None:
        return None
    codes = kept_codes(released.coded_rows, released.plan, policy, choice)
    if codes is not None:
        return _outside_of_codes(codes, released.plan.summary, policy, choice)
    noisy = any(candidate.noise is not None for candidate in choice.values())
    if source is None or noisy or source.rows > MOST_ROWS:
        return None
    originals = None
    if released.stored(choice) is None:
        originals = WithOriginals.of(source, released.masks(choice))
    table = released.table(choice, originals)
    copies = () if originals is None else tuple(originals.masks)
    outside = outside_of(
        source,
        [attribute.name for attribute in policy.quasi_identifiers],
        table=table.drop(*copies, *({WEIGHT} & set(table.columns))),
        person=None if policy.person is None else PERSON,
        tokens=patterns_of_tokens(policy),
        label=policy.label.column or None,
    )
    implied = None if originals is None else originals.implied(table)
    return None if outside is None else replace(outside, implied=implied)


def _outside_of_codes(
    codes: KeptCodes, summary: Summary, policy: Policy, choice: Choice
) -> Outside:
    """Return the risks of a release that the privacy rule does not cover, such as values that other
    columns imply. `codes` has the rows that the release keeps, with a code for each value. `choice`
    has the mask of each attribute.
    """
    names = dict.fromkeys((*summary.attributes, *policy.label.columns))
    masked = {name: codes.masked.codes[name] for name in names}
    hidden = {
        name: (codes.original.codes[name], masked[name])
        for name, candidate in choice.items()
        if str(candidate.mask) != "identity"
    }
    quasi = [attribute.name for attribute in policy.quasi_identifiers]
    outside = outside_of_codes(codes.masked, masked, quasi, summary.label.column or None)
    return replace(outside, implied=find_implications(hidden, masked))


def _missing_leaks(summary: Summary) -> dict[str, MissingLeak]:
    """Return, by name, the columns whose nulls alone reveal a class of the label, each with the
    class that they reveal and the shares of nulls in this class and in all other rows.
    """
    leaks = {}
    for name, attribute in summary.attributes.items():
        if not attribute.nulls or not len(attribute.values) or attribute.values[-1].is_valid:
            continue
        rows = attribute.joint.sum(axis=0)
        null = attribute.joint[-1]
        varying = np.flatnonzero((rows > 0) & (rows < rows.sum()))
        within = null[varying] / rows[varying]
        besides = (null.sum() - null[varying]) / (rows.sum() - rows[varying])
        if not len(varying) or np.abs(within - besides).max() < MISSING_LEAK:
            continue
        strongest = int(np.abs(within - besides).argmax())
        label_class = summary.label.classes[varying[strongest]]
        leaks[name] = MissingLeak(label_class, float(within[strongest]), float(besides[strongest]))
    return leaks


def with_privacy(advice: Advice, summary: Summary, plan: PrivacyPlan, policy: Policy) -> Advice:
    """Return a copy of the advice with reports on privacy before and after masking.

    Aegis computes them from the frequency table on which it checks the rule, so a summary is
    enough. A class with a single sensitive value is a risk to persons, so the warning about it
    comes first.
    """

    def change() -> PrivacyChange:
        scorer = Scorer(summary)
        before = privacy_report(plan.classes(scorer.unmasked, policy.sensitive))
        after = _after(advice, scorer, plan, policy)
        return PrivacyChange(before, after, finest=not plan.as_it_is)

    def cautions() -> tuple[str, ...]:
        after, best = privacy.value.after, advice.best
        if best is None or after is None:
            return ()
        missing = 0 if best.method is not None else best.suppressed_rows or 0
        return (*after.cautions, *policy.privacy.missing_classes(missing))

    privacy = Later(change)
    if summary.frequency is None or plan.by_population:
        privacy.value  # noqa: B018 - the engine counts the classes, or checks the population, now
    return with_first(changed(advice, privacy=later(lambda: privacy.value)), cautions)


def _after(
    advice: Advice, scorer: Scorer, plan: PrivacyPlan, policy: Policy
) -> PrivacyReport | None:
    """Return the privacy report of the best configuration, after its failing rows were suppressed.

    If no configuration is admissible, return the report, without suppression, of the one for which
    the fewest rows must be removed; None for an empty ranking.
    """
    ranked = advice.best or advice.closest
    if ranked is None:
        return None
    if ranked.method is not None:
        return ranked.method.report
    masked = plan.classes(scorer.choose(ranked.configuration), policy.sensitive)
    verdict = plan.rule.check(masked)
    return privacy_report(masked.keep(verdict.kept_classes) if verdict.admissible else masked)
