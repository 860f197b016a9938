"""Rank, search and trace a Pareto front from a protected summary, with standard errors, ties and
verdicts of the rule.

Define what the core's search needs to know of a protected summary: space, objectives and verdicts.

If the summary has no moments, a score depends only on two sums over attributes: it rises with the
sum of explained shares and falls with the sum of degrees of freedom. So the bound of a box uses, for
each attribute, the largest explained share and the smallest degrees of freedom of its candidates in
the box. Scores from moments have no bound. Then the search scores every configuration if there are
few, and otherwise those with the largest scores from label tables alone.

Estimate the trade-off between privacy and utility from a protected summary.

A protected summary has no joint counts of quasi-identifiers, so the size of the smallest class
cannot be computed from it. Instead, this module computes how many rows are expected to agree with a
row in every quasi-identifier, as if attributes were independent: the number of rows times the
probability that two rows agree. Real attributes depend on each other, so more rows agree. The
provider's agent checks on the data whether a configuration meets the rule.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np

from aegis.advisor import Advice, Ranked
from aegis.advisor.advice import with_caveats
from aegis.advisor.advise import configurations_to_rank
from aegis.advisor.confidence import COMPARED, marked
from aegis.advisor.figures import EstimatedScores, MaskChange, SearchFigures, SearchWork
from aegis.advisor.scores import AttributeScore
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.objective import OfConfigurations
from aegis.advisor.search.problem import Box, Clock, MaskVariable, SearchSpace, Work, members
from aegis.advisor.search.searcher import LISTED, figures_of
from aegis.advisor.search.shortlist import SPLITS, Shortlist
from aegis.arrays import Floats, Ints
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress, Step
from aegis.masks import Mask
from aegis.measures.target_coded import held_out_reached
from aegis.policy import Configuration, Policy, policy_mapping
from aegis.requests import Configurations, RankRequest, SearchRequest
from aegis.safe.protect.cells import UNNAMED_SHOWN
from aegis.safe.protect.model import ProtectedAttribute, ProtectedCandidate, ProtectedSummary
from aegis.safe.protect.scores import (
    DIFFERENT,
    MEASURE,
    Choice,
    ProtectedScorer,
    drawing_error,
    errors_of,
    replicated_scores,
)
from aegis.safe.protect.small_classes import ExpectedSmallClasses
from aegis.words import amount, json_fields


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
        The configurations to rank. By default, they are those of the policy, else those for which
        the summary states whether they meet the rule, else generated ones.
    policy
        Provides `configurations` if no others are given.
    generate_count
        Rank this many generated combinations instead.
    seed
        Seed of the generated combinations.

    Raises
    ------
    PolicyError
        Both `configurations` and `generate_count` are given, there are no configurations to rank,
        or a mask is not a candidate.
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
    expected = ExpectedSmallClasses.of(summary, policy)
    scored.sort(key=lambda entry: (_fails(expected, entry[1]), entry[0].ranking_key(1)))
    advice = _advice(scorer, scored, policy, expected)
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

    If the summary states whether configurations meet the rule, only those that do are returned. The
    result is proven to be the best if the summary has no statistics of two attributes together
    (moments), or at most 200,000 combinations. Otherwise, the search scores promising combinations,
    and changes one mask of the best ones at a time.

    Parameters
    ----------
    summary
        The result of `aegis.safe.protect.protect` or `load_protected`.
    policy
        The policy to show in the advice.
    top, time_limit, work
        The number of configurations to return, and the limits of the search, as in `SearchRequest`.

    Raises
    ------
    PolicyError
        `top` is below 1, or a limit is negative.
    """
    # Taking long to load, and only of searches.
    from aegis.advisor.search import check_limits

    began = time.perf_counter()
    request = SearchRequest(top=top, time_limit=time_limit, work=work)
    check_limits(request)
    scorer = ProtectedScorer(summary)
    expected = ExpectedSmallClasses.of(summary, policy)
    leading, figures = best_configurations(scorer, request, progress, expected)
    scored = [(_ranked(f"best-{i + 1}", c, scorer), c) for i, c in enumerate(leading)]
    advice = _advice(scorer, scored, policy, expected, figures)
    return replace(advice, timings={"total": time.perf_counter() - began})


def _fails(expected: ExpectedSmallClasses | None, choice: Choice) -> bool:
    """Return whether a configuration lacks the margin with which it meets the rule on class sizes by
    estimate. `choice` has the index of each attribute's candidate mask.
    """
    return expected is not None and expected.under(choice) > expected.most


def _stated(summary: ProtectedSummary) -> list[Configuration]:
    """Return the configurations for which the owner states whether they meet the rule."""
    width = len(str(len(summary.verdicts)))
    return [
        summary.configuration(f"c{i + 1:0{width}d}", verdict.choice)
        for i, verdict in enumerate(summary.verdicts)
    ]


def _ranked(name: str, choice: Choice, scorer: ProtectedScorer) -> Ranked:
    """Return the configuration called `name` as an entry of the ranking, with its score. `choice`
    has the index of each attribute's candidate mask.
    """
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
    expected: ExpectedSmallClasses | None,
    search: SearchFigures | None = None,
) -> Advice:
    """Build the advice from scored configurations, the best first. `scored` has, for each, the
    entry of the ranking and the index of each attribute's mask. `expected` estimates the rows in
    small classes. `search` has the figures of the search that found them, if there was one.
    """
    summary = scorer.summary
    known = bool(scored) and scored[0][0].admissible is not False
    others = _other_masks(summary, scored[0][1]) if known else []
    first = [choice for _, choice in scored[:COMPARED]]
    compared = [*first, *(other for *_, other in others)]
    replicated = replicated_scores(summary, [*compared, scorer.finest] if compared else [])
    errors, apart = errors_of(replicated[:, : len(compared)])
    ranking = [ranked for ranked, _ in scored]
    if ranking:
        classes = len(summary.classes)
        drawn = [drawing_error(r.score, classes, summary.rows) for r in ranking[: len(first)]]
        ranking = marked(ranking, np.hypot(errors[: len(first)], drawn), DIFFERENT * apart)
    best = ranking[0].score if ranking else 0.0
    changes = _changes(scorer, best, others, apart[len(first) :])
    small = None if expected is None or not known else expected.under(first[0])
    return with_caveats(
        Advice(
            measure=MEASURE,
            ranking=tuple(ranking),
            unmasked=scorer.unmasked,
            optimal=search is not None and search.optimal,
            combinations=summary.combinations,
            summary={**summary.to_dict(), "rows": round(summary.rows)},
            policy={} if policy is None else policy_mapping(policy),
            warnings=_warnings(summary, expected, small),
            search=search,
            owner_rule=summary.owner,
            estimated=EstimatedScores(
                scorer.estimator,
                changes,
                share_error=_share_error(summary, replicated) if known else None,
                small_class_rows=small,
            ),
        )
    )


FITTING = "but in our tests, 1 of 77 such choices failed"
"""How many first choices with this margin did not meet the rule in the test of decision 0134."""


def _share_error(summary: ProtectedSummary, replicated: Floats) -> float | None:
    """Return twice the standard error, from protection, of the share of the score that the first
    configuration keeps, in percentage points. `replicated` has the scores with newly drawn noise,
    shape (R, n): the first column of this configuration, the last of the finest masks. Return None
    if the summary names no value of a column, because the share then says nothing of this column.
    """
    hidden = any(
        len(a.table) < 2 and a.candidates[0].shown == (UNNAMED_SHOWN,)
        for a in summary.all_attributes
    )
    if hidden or (replicated[:, -1] <= 0).any():
        return None
    shares = np.clip(100 * replicated[:, 0] / replicated[:, -1], 0, 100)
    return float(2 * shares.std(ddof=1))


def _warnings(
    summary: ProtectedSummary, expected: ExpectedSmallClasses | None, small: float | None
) -> tuple[str, ...]:
    warnings = [
        "scores are estimates from a protected summary; kept and lost are measured against all that "
        "the masks together show"
    ]
    if small is not None and expected is not None:
        tested = FITTING if small <= expected.most else "so it may not meet the rule"
        warnings.insert(
            0,
            f"by estimate, {small:,.0f} rows are in classes below {expected.least} "
            f"({expected.allowed:,.0f} may be suppressed), {tested}. The estimate takes "
            "quasi-identifiers as independent, and covers class sizes only. The owner of the table "
            "finds out with aegis apply, which names another listed configuration if the first fails",
        )
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
    """Return all choices of masks that differ from `choice` in one attribute, each with the
    attribute and the other mask.
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
    """Return how the score of the best configuration, `score`, changes if one of its masks is
    replaced. `others` has n replacements: attribute, mask, and the resulting choice of masks.
    `errors` has the standard error of each change, shape (n,).
    """
    changes = []
    for (name, mask, other), error in zip(others, errors.tolist(), strict=True):
        changed = scorer.score(other)
        tied = abs(changed - score) <= DIFFERENT * error + 1e-12
        changes.append(MaskChange(name, str(mask), changed, changed - score, error, tied))
    return tuple(changes)


ENUMERATED = 200_000
"""Largest number of combinations that a search scores one by one, if scores have no bound."""
_SCORE = 5e-5
"""Work of one score from moments."""


def choice_of(box: Box) -> Choice:
    """Return the index of each attribute's candidate mask. `box` has a bit mask for each attribute,
    in which only the bit with this index is set.
    """
    return tuple(domain.bit_length() - 1 for domain in box)


def space_of(summary: ProtectedSummary) -> SearchSpace:
    """Return the search space of a protected summary: its attributes and their candidate masks."""
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
    """A score for the search that is estimated only from rows by cell (set of values) and label
    class. It has an upper bound for a set of configurations, which branch and bound needs.
    """

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
        """Return the largest value of each part of the score (explained association, minus degrees
        of freedom) among some candidate masks of the attribute `index`. Bit i of `domain` is set if
        candidate i is among them.
        """
        key = index, domain
        if key not in self._best:
            self._best[key] = self._parts[index][members(domain)].max(axis=0)
        return self._best[key]


class FromCodes(_Estimated):
    """A score for the search that also uses statistics of two attributes together (moments). It has
    no upper bound for a set of configurations. If there are few configurations, branch and bound
    scores all of them, if the attribute `bounded` is set.
    """

    divides = True

    def _score(self, box: Box) -> float:
        self._work.add(_SCORE)
        return self._scorer.score(choice_of(box))

    def _over(self, box: Box) -> float:  # noqa: ARG002 - the bound of any box
        return math.inf


class RuleByVerdicts:
    """Admits the configurations that meet the privacy rule, as the owner of the summary states. If
    the owner states nothing, admits all configurations.
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
        """Return a box (a bit mask of candidate masks for each attribute) without the candidates
        that occur in none of its admitted configurations. Return None if it has no admitted
        configuration.
        """
        if not self._summary.verdicts:
            return box
        pairs = [(own, members(domain)) for own, domain in zip(self._having, box, strict=True)]
        inside = reduce(and_, (reduce(or_, (own[c] for c in chosen)) for own, chosen in pairs))
        narrowed = tuple(sum(1 << c for c in chosen if own[c] & inside) for own, chosen in pairs)
        return narrowed if inside else None

    def admits(self, box: Box) -> bool:
        """Return whether the configuration in `box` is known to meet the rule; True if the summary
        states nothing on the rule. `box` has one candidate for each attribute.
        """
        return not self._summary.verdicts or self._summary.verdict(choice_of(box)) is True


class RuleByEstimate:
    """Admits the configurations that meet the rule on class sizes by an estimate. The owner of the
    summary states nothing on the rule.
    """

    def __init__(self, summary: ProtectedSummary, expected: ExpectedSmallClasses) -> None:
        self._expected = expected
        self.possible = summary.combinations

    def narrow(self, box: Box) -> Box | None:
        """Return a box (a bit mask of candidate masks for each attribute); None if none of its
        configurations meets the rule by estimate.
        """
        return box if self._expected.fits(box) else None

    def admits(self, box: Box) -> bool:
        """Return whether the configuration in `box` meets the rule by estimate."""
        return self._expected.fits(box)


def best_configurations(
    scorer: ProtectedScorer,
    request: SearchRequest,
    progress: Progress,
    expected: ExpectedSmallClasses | None = None,
) -> tuple[list[Choice], SearchFigures]:
    """Search all combinations of masks. Return the best ones, best first, and figures on the
    search.

    With `expected`, only those that meet the rule on class sizes by this estimate are returned, if
    there are any.
    """
    began = time.perf_counter()
    summary, top = scorer.summary, request.top
    space = space_of(summary)
    rules: list[RuleByVerdicts | RuleByEstimate] = [RuleByVerdicts(summary)]
    if expected is not None and not expected.fits_all:
        rules.insert(0, RuleByEstimate(summary, expected))
    with progress.step(f"Searching {amount(summary.combinations)} combinations") as step:
        clock = Clock.of_request(request, space.work)
        for rule in rules:
            outcome, objective = _searched(scorer, space, rule, top, clock, step)
            if outcome.best:
                break
    seconds = time.perf_counter() - began
    work = SearchWork(
        summary.combinations, outcome.nodes, objective.scored, seconds, rule_monotone=True
    )
    best = [choice_of(box) for _, box in outcome.best[:top]]
    figures = _under_verdicts(figures_of(outcome, objective, work, alone=top == 1), summary)
    return best, _under_estimate(figures, rule, by_estimate=len(rules) > 1)


def _searched(
    scorer: ProtectedScorer,
    space: SearchSpace,
    rule: RuleByVerdicts | RuleByEstimate,
    top: int,
    clock: Clock,
    step: Step,
) -> tuple[Found, _Estimated]:
    """Search the best configurations that a rule admits: all of them, if the score has a bound or
    there are few. Return them, and the objective, which remembers their scores.
    """
    objective: _Estimated = FromTables(MEASURE, scorer, space.work)
    if scorer.estimator == "codes":
        objective = FromCodes(MEASURE, scorer, space.work)
        objective.bounded = rule.possible <= ENUMERATED
    if objective.bounded:
        search = BranchAndBound(space, objective, rule, top=top, clock=clock, step=step)
        return search.run(), objective
    shortlist = Shortlist(
        space,
        objective,
        rule,
        [FromTables("the estimate from label tables alone", scorer, space.work)],
        listed=max(LISTED, top),
        bounds=False,
        prove=False,
        clock=clock,
        step=step,
    )
    return shortlist.run((), SPLITS), objective


def _under_estimate(
    figures: SearchFigures, rule: RuleByVerdicts | RuleByEstimate, *, by_estimate: bool
) -> SearchFigures:
    """Return the figures of a search. If an estimate of class sizes decided which combinations were
    searched (`by_estimate`), they claim no proof, and a note says so.
    """
    if not by_estimate:
        return figures
    if isinstance(rule, RuleByVerdicts):
        note = "by estimate, no combination meets the rule on class sizes"
        return replace(figures, notes=(*figures.notes, note))
    note = (
        "only combinations that meet the rule on class sizes by estimate were searched. Rows whose "
        "values have no published name count as rows in small classes: if the owner declares "
        "`values` in the policy and protects the table again, the search can use more combinations"
    )
    return replace(
        figures, optimal=False, exact=False, bound=None, gap=None, notes=(*figures.notes, note)
    )


def _under_verdicts(figures: SearchFigures, summary: ProtectedSummary) -> SearchFigures:
    """Return the figures of a search. If the summary states only for some combinations whether they
    meet the rule, the figures claim no proof.
    """
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


_WIDTH = 400
"""Largest number of partial choices that are kept from one attribute to the next."""


@dataclass(frozen=True)
class ProtectedPoint:
    """A configuration on the front of privacy and utility: no other one is better in both.

    Attributes
    ----------
    alike
        Expected number of rows that agree with a random row in all quasi-identifiers, if the
        quasi-identifiers were independent. The row itself counts, so the number is at least 1.
    score, utility_kept
        The score from the protected summary, and this score in percent of the score without masks;
        None if the score without masks is not positive.
    configuration
        The fitted masks.
    declared
        Masks by attribute, as written in the policy.
    """

    alike: float
    score: float
    utility_kept: float | None
    configuration: Configuration
    declared: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        masks = {"masks": self.configuration.spec()}
        return json_fields(self, "alike", "score", "utility_kept") | masks


@one_blas_thread
def front_protected(
    summary: ProtectedSummary, quasi_identifiers: Collection[str], *, count: int = 8
) -> tuple[ProtectedPoint, ...]:
    """Return configurations on the front of utility and privacy, from the most useful to the most
    private.

    No configuration on the front is worse than another one in both utility and privacy. Utility is
    the score of a ranking. Privacy is the expected number of rows that agree in all
    quasi-identifiers.

    Parameters
    ----------
    summary
        The protected summary.
    quasi_identifiers
        Names of the attributes by which somebody may recognise rows. All other attributes count
        only for utility.
    count
        Largest number of configurations.

    Raises
    ------
    PolicyError
        `count` is below 2.
    """
    if count < 2:
        raise PolicyError(f"A front of {count} points was asked for.", hint="Ask for 2 or more.")
    scorer = ProtectedScorer(summary)
    chances = _log_chances(summary, quasi_identifiers)
    choices = [_improved(c, scorer, chances) for c in _spread(scorer, chances, count)]
    scored = [(_alike(summary, chances, c), scorer.score(c), c) for c in choices]
    points: list[ProtectedPoint] = []
    for alike, score, choice in sorted(scored, key=lambda s: (-s[0], -s[1])):
        if not points or score > points[-1].score:
            points.append(_point(scorer, alike, score, choice, len(points)))
    return tuple(reversed(points))


def _point(
    scorer: ProtectedScorer, alike: float, score: float, choice: Choice, number: int
) -> ProtectedPoint:
    summary = scorer.summary
    pairs = zip(summary.all_attributes, choice, strict=True)
    return ProtectedPoint(
        alike,
        score,
        scorer.utility_kept(score),
        summary.configuration(f"front-{number + 1}", choice),
        {a.name: str(a.candidates[place].declared) for a, place in pairs},
    )


def _alike(summary: ProtectedSummary, chances: Sequence[Floats], choice: Choice) -> float:
    """Return how many rows would agree with a random row in all quasi-identifiers if these were
    independent. `choice` has the index of each attribute's candidate mask. `chances` has, by
    attribute and candidate, the log probability that two rows agree.
    """
    log = math.fsum(own[place] for own, place in zip(chances, choice, strict=True))
    return max(summary.rows * math.exp(log), 1.0)


def _log_chances(summary: ProtectedSummary, quasi_identifiers: Collection[str]) -> list[Floats]:
    """Return, for each attribute and each of its candidate masks, the log probability that two rows
    have the same masked value, from noisy counts. It is 0 for attributes that are not
    quasi-identifiers.
    """
    return [
        np.array([_log_chance(a, c) if a.name in quasi_identifiers else 0.0 for c in a.candidates])
        for a in summary.all_attributes
    ]


def _log_chance(attribute: ProtectedAttribute, candidate: ProtectedCandidate) -> float:
    cells = np.maximum(attribute.table.sum(axis=1), 0).astype(np.float64)
    shown = np.bincount(candidate.groups, weights=cells, minlength=candidate.size)
    total = shown.sum()
    # Where noise leaves no rows at all, nothing distinguishes rows.
    return 0.0 if total <= 0 else math.log(float(((shown / total) ** 2).sum()))


def _improved(choice: Choice, scorer: ProtectedScorer, chances: Sequence[Floats]) -> Choice:
    """Change one or two masks of a configuration at a time, as long as its score rises and at least
    as many rows agree in all quasi-identifiers. `choice` has the index of each attribute's mask.
    `chances` has, by attribute and mask, the log probability that two rows agree.
    """
    from aegis.advisor.search.neighbours import LocalSearch, others  # taking long to load

    least = _alike(scorer.summary, chances, choice) * (1 - 1e-9)

    def score(box: Box) -> float:
        return scorer.score(choice_of(box))

    def value(box: Box) -> float:
        enough = _alike(scorer.summary, chances, choice_of(box)) >= least
        return score(box) if enough else -math.inf

    start = tuple(1 << place for place in choice)
    local = LocalSearch(space_of(scorer.summary), score, value)
    return choice_of(local.improved(start, others, pairs=True))


def _spread(scorer: ProtectedScorer, chances: Sequence[Floats], count: int) -> list[Choice]:
    """Return at most `count` choices of masks such that none is worse than another one in both
    privacy and utility, spread over the whole range of privacy. `chances` has, by attribute and
    mask, the log probability that two rows agree. If there are many choices, only part of them is
    examined.
    """
    private, useful = np.zeros(1), np.zeros(1)
    places = np.zeros((1, 0), dtype=np.int64)
    for index, own in enumerate(chances):
        strengths = np.array([scorer.alone(index, place) for place in range(len(own))])
        private = (private[:, None] + own).ravel()
        useful = (useful[:, None] + strengths).ravel()
        own_places = np.tile(np.arange(len(own)), len(places))[:, None]
        places = np.hstack([np.repeat(places, len(own), axis=0), own_places])
        staying = _thinned(private, useful, _WIDTH)
        private, useful, places = private[staying], useful[staying], places[staying]
    staying = _thinned(private, useful, count)
    return [tuple(chosen) for chosen in places[staying].tolist()]


def _thinned(private: Floats, useful: Floats, most: int) -> Ints:
    """Return the indices of at most `most` choices, spread evenly over privacy, that are not worse
    than another one in both privacy and utility. `private` and `useful` have the privacy and the
    utility of each choice.
    """
    order = np.lexsort((-useful, -private))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(useful[order])[:-1]])
    front = order[useful[order] > best_before]
    if len(front) <= most:
        return front
    along = private[front]
    wanted = np.linspace(along[0], along[-1], most)
    # `along` falls: the nearest at or above each wanted one, first and last included.
    nearest = np.searchsorted(-along, -wanted, side="right") - 1
    return front[np.unique(np.clip(nearest, 0, len(front) - 1))]
