"""Rank and search from a protected summary, with standard errors, ties and verdicts of the rule."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aegis.advisor import Advice, Ranked
from aegis.advisor.caveats import with_caveats
from aegis.advisor.confidence import COMPARED, marked
from aegis.advisor.figures import EstimatedScores, MaskChange, SearchFigures
from aegis.advisor.generate import configurations_to_rank
from aegis.advisor.scores import AttributeScore
from aegis.arrays import Floats
from aegis.blas import one_blas_thread
from aegis.masks import Mask
from aegis.policy import Configuration, Policy, policy_mapping
from aegis.progress import SILENT, Progress
from aegis.requests import Configurations, RankRequest, SearchRequest
from aegis.safe.protect.model import ProtectedSummary
from aegis.safe.protect.scores import (
    DIFFERENT,
    MEASURE,
    Choice,
    ProtectedScorer,
    drawing_error,
    errors_of,
    replicated_scores,
)


@one_blas_thread
def rank_protected(
    summary: ProtectedSummary,
    configurations: Configurations | None = None,
    *,
    policy: Policy | None = None,
    generate_count: int | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Advice:
    """Rank configurations from a protected summary, best first.

    Parameters
    ----------
    summary
        The result of `aegis.safe.protect.protect` or `load_protected`.
    configurations
        The configurations to rank. By default the configurations of the policy, else those with
        stated verdicts, else generated ones, as for an exact summary.
    policy
        Provides `configurations` if no others are given.
    generate_count
        Rank this many generated combinations instead.
    seed
        Seed of the generated combinations.

    Raises
    ------
    PolicyError
        Both `configurations` and `generate_count` are given, or there are no configurations to
        rank; or a mask is not a candidate.
    """
    began = time.perf_counter()
    request = RankRequest(configurations=configurations, generate_count=generate_count, seed=seed)
    listed = configurations_to_rank(summary, policy, request, _stated(summary))
    named = [(configuration.name, summary.choose(configuration)) for configuration in listed]
    with progress.step("Scoring configurations", len(named)) as step:
        scorer = ProtectedScorer(summary)
        scored = []
        for name, choice in named:
            scored.append((_ranked(name, choice, scorer), choice))
            step.advance()
    scored.sort(key=lambda entry: entry[0].ranking_key(1))
    advice = _advice(scorer, scored, policy)
    return replace(advice, timings={"total": time.perf_counter() - began})


@one_blas_thread
def search_protected(
    summary: ProtectedSummary,
    *,
    policy: Policy | None = None,
    top: int = 5,
    time_limit: float | None = None,
    work: float | None = None,
    progress: Progress = SILENT,
) -> Advice:
    """Return the best configurations among all combinations, scored from a protected summary.

    If the summary has verdicts, only configurations that are known to be admissible are returned.
    The search is that of exact summaries. Scores from label tables alone have a bound, so branch and
    bound proves that the result is the best. Scores from codes have no bound. If there are at most
    200,000 combinations, the search scores all of them. Otherwise it scores those with the largest
    scores from label tables alone, and changes one mask of the best ones at a time.

    Parameters
    ----------
    summary
        The result of `aegis.safe.protect.protect` or `load_protected`.
    policy
        The policy to show in the advice.
    top, time_limit, work
        The number of configurations, and the limits, as in `SearchRequest`.

    Raises
    ------
    PolicyError
        `top` is below 1, or a limit is negative.
    """
    # Taking long to load, and only of searches.
    from aegis.advisor.search import check_limits
    from aegis.safe.protect.search import best_configurations

    began = time.perf_counter()
    request = SearchRequest(top=top, time_limit=time_limit, work=work)
    check_limits(request)
    scorer = ProtectedScorer(summary)
    leading, figures = best_configurations(scorer, request, progress)
    scored = [(_ranked(f"best-{i + 1}", c, scorer), c) for i, c in enumerate(leading)]
    advice = _advice(scorer, scored, policy, figures)
    return replace(advice, timings={"total": time.perf_counter() - began})


def _stated(summary: ProtectedSummary) -> list[Configuration]:
    """Return the configurations for which the owner states whether they meet the rule."""
    width = len(str(len(summary.verdicts)))
    return [
        summary.configuration(f"c{i + 1:0{width}d}", verdict.choice)
        for i, verdict in enumerate(summary.verdicts)
    ]


def _ranked(name: str, choice: Choice, scorer: ProtectedScorer) -> Ranked:
    """Score a configuration and return it as an entry of the ranking."""
    summary, score = scorer.summary, scorer.score(choice)
    alone, finest = scorer.attributes(choice), scorer.attributes(scorer.finest)
    pairs = zip(summary.all_attributes, choice, strict=True)
    return Ranked(
        configuration=summary.configuration(name, choice),
        score=score,
        utility_kept=scorer.utility_kept(score),
        admissible=summary.verdict(choice),
        smallest_class=None,
        suppressed_rows=None,
        violations=(),
        attributes={n: AttributeScore(alone[n], finest[n]) for n in alone},
        declared={a.name: str(a.candidates[place].declared) for a, place in pairs},
        against_finest=True,
    )


def _advice(
    scorer: ProtectedScorer,
    scored: Sequence[tuple[Ranked, Choice]],
    policy: Policy | None,
    search: SearchFigures | None = None,
) -> Advice:
    """Build the advice of a ranking, or of a search over combinations (with its figures `search`).
    `scored` has the entry and the choice of masks of each configuration, the best first.
    """
    summary = scorer.summary
    known = bool(scored) and scored[0][0].admissible is not False
    others = _other_masks(summary, scored[0][1]) if known else []
    first = [choice for _, choice in scored[:COMPARED]]
    replicated = replicated_scores(summary, [*first, *(other for *_, other in others)])
    errors, apart = errors_of(replicated)
    ranking = [ranked for ranked, _ in scored]
    if ranking:
        classes = len(summary.classes)
        drawn = [drawing_error(r.score, classes, summary.rows) for r in ranking[: len(first)]]
        ranking = marked(ranking, np.hypot(errors[: len(first)], drawn), DIFFERENT * apart)
    best = ranking[0].score if ranking else 0.0
    changes = _changes(scorer, best, others, apart[len(first) :])
    return with_caveats(
        Advice(
            measure=MEASURE,
            ranking=tuple(ranking),
            unmasked=scorer.unmasked,
            optimal=search is not None and search.optimal,
            combinations=summary.combinations,
            summary={**summary.to_dict(), "rows": round(summary.rows)},
            policy={} if policy is None else policy_mapping(policy),
            warnings=_warnings(summary),
            search=search,
            owner_rule=summary.owner,
            estimated=EstimatedScores(scorer.estimator, changes),
        )
    )


def _warnings(summary: ProtectedSummary) -> tuple[str, ...]:
    warnings = [
        "scores are estimates from a protected summary; kept and lost are measured against all that "
        "the masks together show"
    ]
    if not summary.verdicts:
        warnings.append(
            "the summary says nothing of the privacy rule: ask its owner for verdicts before a "
            "configuration is released"
        )
    elif any(v.admissible is None for v in summary.verdicts):
        warnings.append("for some configurations noise leaves open whether they meet the rule")
    if summary.protection.public:
        warnings.append(
            "values and cuts were taken as public: " + ", ".join(summary.protection.public)
        )
    return (*warnings, *summary.notes)


def _other_masks(summary: ProtectedSummary, choice: Choice) -> list[tuple[str, Mask, Choice]]:
    """Return, for every other mask of every attribute, the attribute, the mask, and the choice that
    differs only in this mask.
    """
    return [
        (attribute.name, candidate.declared, (*choice[:i], place, *choice[i + 1 :]))
        for i, attribute in enumerate(summary.all_attributes)
        for place, candidate in enumerate(attribute.candidates)
        if place != choice[i]
    ]


def _changes(
    scorer: ProtectedScorer,
    score: float,
    others: Sequence[tuple[str, Mask, Choice]],
    errors: Floats,
) -> tuple[MaskChange, ...]:
    """Return the effect of each of n other masks on the score of the best configuration, and its
    standard error, of which `errors` has one for each of them, shape (n,).
    """
    changes = []
    for (name, mask, other), error in zip(others, errors.tolist(), strict=True):
        changed = scorer.score(other)
        tied = abs(changed - score) <= DIFFERENT * error + 1e-12
        changes.append(MaskChange(name, str(mask), changed, changed - score, error, tied))
    return tuple(changes)
