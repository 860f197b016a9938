"""Rank, search and trace a Pareto front from a protected summary, with standard errors, ties and
verdicts of the rule.

If the summary has no moments, a score depends only on two sums over attributes: it rises with the
sum of explained shares and falls with the sum of degrees of freedom. So the bound of a box uses, for
each attribute, the largest explained share and the smallest degrees of freedom of its candidates in
the box. Scores from moments have no bound. Then the search scores every configuration if there are
few, and otherwise those with the largest scores from label tables alone.

A front has the best configuration for each of several values of the rule, by the same search.
A protected summary has no joint counts of quasi-identifiers, so an estimate of the rows in small
classes decides which configurations count as meeting a rule. The provider's agent checks on the
data whether a configuration meets the rule.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_, or_

import numpy as np

from aegis.advisor import Advice, Ranked
from aegis.advisor.advice import with_caveats
from aegis.advisor.advise import configurations_to_rank
from aegis.advisor.confidence import COMPARED, marked
from aegis.advisor.figures import (
    EstimatedScores,
    Front,
    FrontPoint,
    MaskChange,
    SearchFigures,
    SearchWork,
)
from aegis.advisor.scores import AttributeScore
from aegis.advisor.search import check_limits
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.front import FrontRange, front_of, front_under_owner
from aegis.advisor.search.objective import OfConfigurations
from aegis.advisor.search.problem import Box, Clock, MaskVariable, SearchSpace, Work, members
from aegis.advisor.search.searcher import LISTED, figures_of
from aegis.advisor.search.shortlist import SPLITS, Shortlist
from aegis.arrays import Floats
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress, Step
from aegis.masks import Mask
from aegis.measures.target_coded import held_out_reached
from aegis.policy import Configuration, Policy, policy_mapping
from aegis.privacy import PrivacyRule
from aegis.privacy.rule import rule_at
from aegis.requests import Configurations, RankRequest, SearchRequest, Span
from aegis.safe.protect.cells import UNNAMED_SHOWN
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
from aegis.safe.protect.small_classes import ExpectedSmallClasses
from aegis.words import amount


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
    listed = configurations_to_rank(summary, policy, request, _stated_configurations(summary))
    named = [(configuration.name, summary.choose(configuration)) for configuration in listed]
    with progress.step("Scoring configurations", len(named)) as step:
        scorer = ProtectedScorer(summary)
        expected = ExpectedSmallClasses.of(summary, policy)
        scored = []
        for name, choice in named:
            scored.append((_ranked(name, choice, scorer, expected), choice))
            step.advance()
    scored.sort(key=lambda entry: entry[0].ranking_key(1))
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
    front: Span | str | None = None,
    rule_override: bool = False,
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
    top, time_limit, work, front
        The number of configurations to return, the limits of the search, and the values of the rule
        for which to return a front, as in `SearchRequest`.
    rule_override
        Whether the user accepts points of the front with a weaker rule than the owner's.

    Raises
    ------
    PolicyError
        `top` is below 1, a limit is negative, or the summary cannot estimate which configurations
        meet the rules of the front.
    """
    began = time.perf_counter()
    request = SearchRequest(top=top, time_limit=time_limit, work=work)
    check_limits(request)
    search = _Search(ProtectedScorer(summary), request, progress)
    expected = ExpectedSmallClasses.of(summary, policy)
    span = None if front is None else _range(front, summary, policy, rule_override)
    leading, figures = search.best(top, expected)
    scored = [
        (_ranked(f"best-{i + 1}", c, search.scorer, expected), c) for i, c in enumerate(leading)
    ]
    advice = _advice(search.scorer, scored, policy, expected, figures)
    if span is not None:
        advice = replace(advice, front=search.front(span, _rule(summary, policy), leading[:1]))
    return replace(advice, timings={"total": time.perf_counter() - began})


def _stated_configurations(summary: ProtectedSummary) -> list[Configuration]:
    """Return the configurations for which the owner states whether they meet the rule."""
    width = len(str(len(summary.verdicts)))
    return [
        summary.configuration(f"c{i + 1:0{width}d}", verdict.choice)
        for i, verdict in enumerate(summary.verdicts)
    ]


def _ranked(
    name: str, choice: Choice, scorer: ProtectedScorer, expected: ExpectedSmallClasses | None
) -> Ranked:
    """Return the configuration of a choice as a scored entry of the ranking, called `name`."""
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
        declared={a.name: str(a.candidates[index].declared) for a, index in pairs},
        against_finest=True,
        probable=None if expected is None else expected.fits(choice),
    )


def _advice(
    scorer: ProtectedScorer,
    scored: Sequence[tuple[Ranked, Choice]],
    policy: Policy | None,
    expected: ExpectedSmallClasses | None,
    search: SearchFigures | None = None,
) -> Advice:
    """Build the advice from scored choices, the best first; `search` is set if they were searched."""
    summary = scorer.summary
    has_admitted = bool(scored) and scored[0][0].admissible is not False
    others = _other_masks(summary, scored[0][1]) if has_admitted else []
    first = [choice for _, choice in scored[:COMPARED]]
    compared = [*first, *(other for *_, other in others)]
    replicated = replicated_scores(summary, [*compared, scorer.finest] if compared else [])
    errors, difference_errors = errors_of(replicated[:, : len(compared)])
    ranking = [ranked for ranked, _ in scored]
    if ranking:
        classes = len(summary.classes)
        sampling = [drawing_error(r.score, classes, summary.rows) for r in ranking[: len(first)]]
        score_errors = np.hypot(errors[: len(first)], sampling)
        ranking = marked(ranking, score_errors, DIFFERENT * difference_errors)
    best = ranking[0].score if ranking else 0.0
    changes = _changes(scorer, best, others, difference_errors[len(first) :])
    small = None if expected is None or not has_admitted else expected.under(first[0])
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
                share_error=_share_error(summary, replicated) if has_admitted else None,
                small_class_rows=small,
            ),
        )
    )


FITTING = "but in our tests, 1 of 77 such choices failed"
"""How many first choices with this margin did not meet the rule in the test of decision 0134."""


def _share_error(summary: ProtectedSummary, replicated: Floats) -> float | None:
    """Return twice the standard error, from protection, of the share of the score that is kept.

    `replicated` has the scores with new noise, shape (R, n): the first column is of the best
    configuration, the last of the finest masks. None if the summary names no value of a column.
    """
    hidden = any(
        len(a.table) < 2 and a.candidates[0].labels == (UNNAMED_SHOWN,)
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
        "scores are estimates from a protected summary. Shares kept and lost compare with all that "
        "the candidate masks show together, not with the original values"
    ]
    if small is not None and expected is not None:
        tested = FITTING if small <= expected.most else "so it may not meet the rule"
        warnings.insert(
            0,
            f"by estimate, {small:,.0f} rows are in classes of fewer than {expected.least} rows (the rule "
            f"allows {expected.allowed:,.0f} to be suppressed), {tested}. The estimate treats "
            "quasi-identifiers as independent, and covers class sizes only. The owner of the table "
            "can check with aegis apply, which names another listed configuration if the first fails",
        )
    if not summary.verdicts:
        warnings.append(
            "the summary does not state which configurations meet the privacy rule: before a release, "
            "its owner must check the configuration (aegis apply), or protect the table with --verdicts"
        )
    elif any(v.admissible is None for v in summary.verdicts):
        warnings.append("noise hides whether some configurations meet the privacy rule")
    if summary.protection.public:
        warnings.append(
            "the owner declared the values and cut points of these attributes public: "
            + ", ".join(summary.protection.public)
        )
    return (*warnings, *summary.notes)


def _other_masks(summary: ProtectedSummary, choice: Choice) -> list[tuple[str, Mask, Choice]]:
    """Return the choices that differ from `choice` in one attribute, with this and its other mask."""
    return [
        (attribute.name, candidate.declared, (*choice[:i], index, *choice[i + 1 :]))
        for i, attribute in enumerate(summary.all_attributes)
        for index, candidate in enumerate(attribute.candidates)
        if index != choice[i]
    ]


def _changes(
    scorer: ProtectedScorer,
    score: float,
    others: Sequence[tuple[str, Mask, Choice]],
    errors: Floats,
) -> tuple[MaskChange, ...]:
    """Return how each of `others` changes the score of the best configuration, with standard
    `errors`.
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
    """Return the candidate of each attribute in a box of one configuration."""
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
    """A score from label tables alone, with an upper bound for branch and bound."""

    def __init__(self, name: str, scorer: ProtectedScorer, work: Work) -> None:
        super().__init__(name, scorer, work)
        # For each candidate: the explained shares, and minus the degrees of freedom.
        self._parts = [
            np.array([(m.believed * m.strength, -m.freedom) for m in candidates])
            for candidates in scorer.candidates
        ]
        self._best: dict[tuple[int, int], Floats] = {}

    def _score(self, box: Box) -> float:
        return self._over(box)

    def _over(self, box: Box) -> float:
        summary = self._scorer.summary
        explained, spared = reduce(np.add, (self._most(*key) for key in enumerate(box)))
        return held_out_reached(explained, -spared, len(summary.classes), summary.rows)

    def _most(self, index: int, domain: int) -> Floats:
        """Return the largest parts of the score among the candidates of an attribute in `domain`."""
        key = index, domain
        if key not in self._best:
            self._best[key] = self._parts[index][members(domain)].max(axis=0)
        return self._best[key]


class FromCodes(_Estimated):
    """A score that also uses moments. It has no upper bound: if there are few configurations
    (`bounded`), branch and bound scores all.
    """

    divides = True

    def _score(self, box: Box) -> float:
        self._work.add(_SCORE)
        return self._scorer.score(choice_of(box))

    def _over(self, box: Box) -> float:  # noqa: ARG002 - the bound of any box
        return math.inf


class RuleByVerdicts:
    """Admits the configurations that meet the rule, as the owner states; all, if nothing is stated."""

    def __init__(self, summary: ProtectedSummary) -> None:
        self._summary = summary
        admitted = [verdict.choice for verdict in summary.verdicts if verdict.admissible]
        self.possible = len(admitted) if summary.verdicts else summary.combinations
        # For each candidate, the admitted configurations that have it, as a bit mask.
        self._having = [[0] * len(a.candidates) for a in summary.all_attributes]
        for number, choice in enumerate(admitted):
            for bits, index in zip(self._having, choice, strict=True):
                bits[index] |= 1 << number

    def narrow(self, box: Box) -> Box | None:
        """Return the box without the candidates that only configurations which are not admitted
        have; None if no configuration is admitted.
        """
        if not self._summary.verdicts:
            return box
        pairs = [(bits, members(domain)) for bits, domain in zip(self._having, box, strict=True)]
        inside = reduce(and_, (reduce(or_, (bits[c] for c in chosen)) for bits, chosen in pairs))
        narrowed = tuple(sum(1 << c for c in chosen if bits[c] & inside) for bits, chosen in pairs)
        return narrowed if inside else None

    def admits(self, box: Box) -> bool:
        """Return whether the configuration meets the rule as stated; True if nothing is."""
        return not self._summary.verdicts or self._summary.verdict(choice_of(box)) is True


class _Search:
    """Searches a protected summary under several rules, with the same scores and limits."""

    def __init__(self, scorer: ProtectedScorer, request: SearchRequest, progress: Progress) -> None:
        self.scorer = scorer
        self._progress = progress
        self._space = space_of(scorer.summary)
        self._objective: FromTables | FromCodes = FromTables(MEASURE, scorer, self._space.work)
        if scorer.estimator == "codes":
            self._objective = FromCodes(MEASURE, scorer, self._space.work)
        self._clock = Clock.of_request(request, self._space.work)

    def best(
        self, top: int, expected: ExpectedSmallClasses | None
    ) -> tuple[list[Choice], SearchFigures]:
        """Return the `top` best configurations, best first, and figures on the search.

        With `expected`, only those that meet the rule by this estimate, if there are any.
        """
        began = time.perf_counter()
        summary = self.scorer.summary
        rules: list[RuleByVerdicts | ExpectedSmallClasses] = [RuleByVerdicts(summary)]
        if expected is not None and not expected.fits_all:
            rules.insert(0, expected)
        with self._progress.step(f"Searching {amount(summary.combinations)} combinations") as step:
            for rule in rules:
                outcome = self._run(rule, top, self._clock, step)
                if outcome.best:
                    break
        seconds = time.perf_counter() - began
        work = SearchWork(
            summary.combinations,
            outcome.nodes,
            self._objective.scored,
            seconds,
            rule_monotone=True,
        )
        best = [choice_of(box) for _, box in outcome.best[:top]]
        figures = figures_of(outcome, self._objective, work, alone=top == 1)
        by_estimate = len(rules) > 1
        return best, _under_estimate(
            _under_verdicts(figures, summary), rule, by_estimate=by_estimate
        )

    def front(self, span: FrontRange, rule: PrivacyRule, recommended: Sequence[Choice]) -> Front:
        """Return, for each value in `span`, the best configuration that meets the `rule` with it by
        estimate; `recommended` is the one under the rule as it is, or empty.
        """
        points = []
        title = f"Tracing the front over {span.parameter}"
        with self._progress.step(title, len(span.values)) as step:
            for done, value in enumerate(span.values):
                varied = rule_at(rule, span.parameter, value)
                choices = recommended
                if varied != rule:
                    share = self._clock.part(1 / (len(span.values) - done))
                    choices = self._by_estimate(varied, share, step)
                points.append(self._point(value, choices))
                step.advance()
        return front_of(span, points, self._objective.sign)

    def _by_estimate(self, rule: PrivacyRule, clock: Clock, step: Step) -> list[Choice]:
        """Return the best configuration that meets the rule by estimate; empty if none was found."""
        summary = self.scorer.summary
        outcome = self._run(ExpectedSmallClasses(summary, rule), 1, clock, step)
        if outcome.interrupted:
            self._clock.stop()
        return [choice_of(box) for _, box in outcome.best[:1]]

    def _point(self, value: float, choices: Sequence[Choice]) -> FrontPoint:
        """Return the point of a front for a value of the rule, with its configuration if any."""
        if not choices:
            return FrontPoint(value, None, None, None, {}, None, None, proven=False)
        ranked = _ranked(f"{value:g}", choices[0], self.scorer, None)
        return FrontPoint(
            value,
            ranked.score,
            ranked.utility_kept,
            ranked.configuration,
            ranked.declared,
            smallest_class=None,
            suppressed_rows=None,
            proven=False,
        )

    def _run(
        self, rule: RuleByVerdicts | ExpectedSmallClasses, top: int, clock: Clock, step: Step
    ) -> Found:
        """Search under a rule: exactly if the score has a bound or there are few configurations."""
        objective = self._objective
        if isinstance(objective, FromCodes):
            objective.bounded = rule.possible <= ENUMERATED
        if objective.bounded:
            return BranchAndBound(
                self._space, objective, rule, top=top, clock=clock, step=step
            ).run()
        tables = FromTables("the estimate from label tables alone", self.scorer, self._space.work)
        shortlist = Shortlist(
            self._space,
            objective,
            rule,
            [tables],
            listed=max(LISTED, top),
            bounds=False,
            prove=False,
            clock=clock,
            step=step,
        )
        return shortlist.run((), SPLITS)


def _rule(summary: ProtectedSummary, policy: Policy | None) -> PrivacyRule:
    """Return the rule of a policy or, without one, of the summary's owner."""
    if policy is not None:
        return policy.privacy
    return PrivacyRule() if summary.owner is None else summary.owner.rule


def _range(
    front: Span | str, summary: ProtectedSummary, policy: Policy | None, rule_override: bool
) -> FrontRange:
    """Return the values of a front that are no weaker than the owner's rule; refuse other
    parameters.
    """
    span = FrontRange.of(front)
    if span.parameter not in ("k", "risk", "suppression"):
        raise PolicyError(
            f"A protected summary has no front over {span.parameter}: it has no classes, and from it "
            "Aegis can only estimate which classes are too small.",
            hint="Vary k, risk or suppression, or give the table or its exact summary (.aegis).",
        )
    return front_under_owner(summary.owner, span, _rule(summary, policy), override=rule_override)


def _under_estimate(
    figures: SearchFigures, rule: RuleByVerdicts | ExpectedSmallClasses, *, by_estimate: bool
) -> SearchFigures:
    """Return the figures. If an estimate decided which combinations were searched, they claim no
    proof, and a note says so.
    """
    if not by_estimate:
        return figures
    if isinstance(rule, RuleByVerdicts):
        note = "by estimate, no combination meets the rule on class sizes"
        return replace(figures, notes=(*figures.notes, note))
    note = (
        "the search used only combinations whose class sizes meet the rule by estimate. Rows whose "
        "values the file does not name count as rows in small classes. If the owner declares "
        "`values` in the policy and protects the table again, the search can use more combinations"
    )
    return _unproven(figures, note)


def _unproven(figures: SearchFigures, note: str) -> SearchFigures:
    """Return the figures without a proof, and with a note that says why."""
    notes = (*figures.notes, note)
    return replace(figures, optimal=False, exact=False, bound=None, gap=None, notes=notes)


def _under_verdicts(figures: SearchFigures, summary: ProtectedSummary) -> SearchFigures:
    """Return the figures, without proof if only some combinations have a verdict."""
    verdict_count = len(summary.verdicts)
    refused = sum(verdict.admissible is False for verdict in summary.verdicts)
    if figures.best is None and figures.complete and refused < summary.combinations:
        figures = replace(figures, stopped="verdicts")
    if verdict_count in (0, summary.combinations):
        return figures
    note = f"only the {verdict_count:,} combinations with a verdict of the owner were searched"
    return _unproven(figures, note)
