"""Rank and search from a protected summary, with standard errors, ties and verdicts of the rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from aegis.advisor import Advice, Ranked
from aegis.advisor.caveats import with_caveats
from aegis.advisor.confidence import COMPARED, marked
from aegis.advisor.figures import EstimatedScores, MaskChange, SearchFigures, SearchWork
from aegis.advisor.generate import configurations_to_rank
from aegis.advisor.scores import AttributeScore
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.policy import Configuration, Policy, policy_mapping
from aegis.progress import SILENT, Progress, Step
from aegis.requests import Configurations, RankRequest
from aegis.safe.protect.bounded import TablesSearch
from aegis.safe.protect.model import ProtectedSummary
from aegis.safe.protect.scores import (
    DIFFERENT,
    MEASURE,
    Choice,
    ProtectedScorer,
    Replicates,
    drawing_error,
)
from aegis.words import amount

ENUMERATED = 200_000
"""Largest number of combinations that a search scores one by one."""


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
            scored.append((name, choice, scorer.score(choice)))
            step.advance()
    advice = _advice(summary, scorer, scored, policy)
    return replace(advice, timings={"total": time.perf_counter() - began})


@one_blas_thread
def search_protected(
    summary: ProtectedSummary,
    *,
    policy: Policy | None = None,
    top: int = 5,
    time_limit: float | None = None,
    progress: Progress = SILENT,
) -> Advice:
    """Return the best configurations among all combinations, scored from a protected summary.

    If the summary has verdicts, only configurations that are known to be admissible are returned.
    Scores from label tables alone have a bound, so the search proves that its result is the best.
    Scores from codes have no bound. If there are at most 200,000 combinations, the search scores
    all of them, if time allows. Otherwise it exchanges one mask at a time, and proves nothing.

    Parameters
    ----------
    summary
        The result of `aegis.safe.protect.protect` or `load_protected`.
    policy
        The policy to show in the advice.
    top
        Number of best configurations to return.
    time_limit
        Seconds after which the best configurations so far are returned; None for no limit.

    Raises
    ------
    PolicyError
        `top` is below 1.
    """
    if top < 1:
        raise PolicyError(
            f"The best {top} configurations were asked for.", hint="Ask for 1 or more."
        )
    began = time.perf_counter()
    scorer = ProtectedScorer(summary)
    late = False

    def expired() -> bool:
        nonlocal late
        late = late or (time_limit is not None and time.perf_counter() - began > time_limit)
        return late

    with progress.step("Searching combinations") as step:
        if scorer.estimator == "tables" and not summary.verdicts:
            search = TablesSearch(scorer, top, expired)
            leading = search.run()
            seen, complete = search.seen, search.complete
        else:
            leading, seen, complete = _looked_through(summary, scorer, top, expired, step)
    scored = [(f"best-{i + 1}", choice, value) for i, (choice, value) in enumerate(leading)]
    stopped = "time limit" if late else None if leading else _unsaid(summary)
    seconds = time.perf_counter() - began
    looked = _Looked(seen, complete, scorer.estimator == "tables", seconds, stopped)
    advice = _advice(summary, scorer, scored, policy, looked)
    return replace(advice, timings={"total": time.perf_counter() - began})


@dataclass(frozen=True)
class _Looked:
    """The number of scored combinations, whether the result is proven, and the time.

    `bounded` states whether sets of combinations were excluded without scoring them. `stopped`
    states why the search ended early, as in `SearchFigures`.
    """

    seen: int
    complete: bool
    bounded: bool
    seconds: float
    stopped: str | None

    def figures(self, combinations: int, best: float | None) -> SearchFigures:
        """Return these figures as `SearchFigures`, for an advice."""
        proven = self.complete and best is not None
        return SearchFigures(
            objective=MEASURE,
            optimal=proven,
            exact=self.bounded,
            best=best,
            bound=best if proven else None,
            gap=0.0 if proven else None,
            work=SearchWork(combinations, self.seen, 0, self.seconds, rule_monotone=False),
            stopped=self.stopped,
        )


def _unsaid(summary: ProtectedSummary) -> str | None:
    """Return "verdicts" if these leave open whether any combination meets the rule; else None."""
    refused = sum(verdict.admissible is False for verdict in summary.verdicts)
    return "verdicts" if refused < summary.combinations else None


def _looked_through(
    summary: ProtectedSummary,
    scorer: ProtectedScorer,
    top: int,
    expired: Callable[[], bool],
    step: Step,
) -> tuple[list[tuple[Choice, float]], int, bool]:
    """Score choices until none is left or time runs out.

    Return the best choices, the number of scored choices, and whether these are all.
    """
    best: dict[Choice, float] = {}
    seen, complete = 0, True
    for choice, whole in _candidates(summary, scorer):
        if expired():
            complete = False
            break
        complete = whole
        seen += 1
        best[choice] = scorer.score(choice)
        if len(best) > 4 * top + 100:
            best = dict(_leading(best, top))
        step.advance()
    return _leading(best, top), seen, complete


def _leading(best: Mapping[Choice, float], top: int) -> list[tuple[Choice, float]]:
    return sorted(best.items(), key=lambda entry: (-entry[1], entry[0]))[:top]


def _candidates(
    summary: ProtectedSummary, scorer: ProtectedScorer
) -> Iterator[tuple[Choice, bool]]:
    """Yield choices to score, each with whether all admissible choices have been yielded."""
    if summary.verdicts:
        for verdict in summary.verdicts:
            if verdict.admissible:
                yield verdict.choice, len(summary.verdicts) == summary.combinations
        return
    sizes = [len(a.candidates) for a in summary.attributes.values()]
    if summary.combinations <= ENUMERATED:
        for choice in product(*map(range, sizes)):
            yield choice, True
        return
    alone = tuple(_strongest(scorer, i, size) for i, size in enumerate(sizes))
    yield alone, False
    yield from ((choice, False) for choice in _exchanged(scorer, alone, sizes))


def _strongest(scorer: ProtectedScorer, index: int, size: int) -> int:
    """Return the index of the attribute's candidate that alone is most strongly associated with the
    label.
    """
    return max(range(size), key=lambda place: scorer.masked(index, place).strength)


def _exchanged(scorer: ProtectedScorer, start: Choice, sizes: Sequence[int]) -> Iterator[Choice]:
    """Yield choices that differ in one mask from the best so far, until none is better."""
    current, value = start, scorer.score(start)
    while True:
        better, gained = current, value
        for i, size in enumerate(sizes):
            for place in range(size):
                if place == current[i]:
                    continue
                changed = (*current[:i], place, *current[i + 1 :])
                yield changed
                score = scorer.score(changed)
                if score > gained:
                    better, gained = changed, score
        if better == current:
            return
        current, value = better, gained


def _stated(summary: ProtectedSummary) -> list[Configuration]:
    """Return the configurations for which the owner states whether they meet the rule."""
    width = len(str(len(summary.verdicts)))
    return [
        summary.configuration(f"c{i + 1:0{width}d}", verdict.choice)
        for i, verdict in enumerate(summary.verdicts)
    ]


def _advice(
    summary: ProtectedSummary,
    scorer: ProtectedScorer,
    scored: Sequence[tuple[str, Choice, float]],
    policy: Policy | None,
    looked: _Looked | None = None,
) -> Advice:
    """Build the advice of a ranking, or of a search over combinations."""
    order = sorted(scored, key=lambda s: (summary.verdict(s[1]) is False, -s[2], s[0]))
    replicates = Replicates(summary)
    ranking = _with_errors(_ranked(scorer, order), replicates, [choice for _, choice, _ in order])
    known = bool(order) and ranking[0].admissible is not False
    search = None
    if looked is not None:
        search = looked.figures(summary.combinations, order[0][2] if order else None)
    return with_caveats(
        Advice(
            measure=MEASURE,
            ranking=tuple(ranking),
            unmasked=scorer.unmasked,
            optimal=search is not None and search.optimal,
            combinations=summary.combinations,
            summary={**summary.to_dict(), "rows": round(summary.rows)},
            policy={} if policy is None else policy_mapping(policy),
            warnings=_warnings(summary, search),
            search=search,
            owner_rule=summary.owner,
            estimated=EstimatedScores(
                scorer.estimator, _changes(scorer, replicates, order[0][1]) if known else ()
            ),
        )
    )


def _ranked(scorer: ProtectedScorer, scored: Sequence[tuple[str, Choice, float]]) -> list[Ranked]:
    """Return the entries of a ranking."""
    summary, finest = scorer.summary, scorer.attributes(scorer.finest)
    ranking = []
    for name, choice, score in scored:
        pairs = zip(summary.all_attributes, choice, strict=True)
        alone = scorer.attributes(choice)
        ranking.append(
            Ranked(
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
        )
    return ranking


def _with_errors(
    ranking: Sequence[Ranked], replicates: Replicates, choices: Sequence[Choice]
) -> list[Ranked]:
    """Add standard errors and ties to the first entries of the ranking."""
    if not ranking:
        return []
    summary = replicates.summary
    errors, apart = replicates.errors(choices[:COMPARED])
    drawn = [
        drawing_error(ranked.score, len(summary.classes), summary.rows)
        for ranked in ranking[:COMPARED]
    ]
    return marked(ranking, np.hypot(errors, drawn), DIFFERENT * apart)


def _warnings(summary: ProtectedSummary, search: SearchFigures | None) -> tuple[str, ...]:
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
    if search is not None and not search.optimal:
        warnings.append(
            f"{search.work.nodes:,} of {amount(summary.combinations)} combinations were looked at, and nothing is "
            "proven"
        )
    if summary.protection.public:
        warnings.append(
            "values and cuts were taken as public: " + ", ".join(summary.protection.public)
        )
    return (*warnings, *summary.notes)


def what_if(summary: ProtectedSummary, choice: Choice) -> tuple[MaskChange, ...]:
    """Return, for every other mask of every attribute, its effect on the score if all other
    attributes keep their masks.

    Parameters
    ----------
    summary
        The protected summary.
    choice
        Index of each attribute's candidate, as returned by `ProtectedSummary.choose`.

    Raises
    ------
    PolicyError
        A candidate does not exist.
    """
    sizes = [len(a.candidates) for a in summary.all_attributes]
    if len(choice) != len(sizes) or any(not 0 <= c < n for c, n in zip(choice, sizes, strict=True)):
        raise PolicyError(
            f"{tuple(choice)} names candidates that the summary does not have.",
            hint="Pass the result of ProtectedSummary.choose for a configuration.",
        )
    return _changes(ProtectedScorer(summary), Replicates(summary), tuple(choice))


def _changes(
    scorer: ProtectedScorer, replicates: Replicates, choice: Choice
) -> tuple[MaskChange, ...]:
    """Return the effect of every other mask of every attribute on the score of a choice."""
    others = [
        (attribute.name, candidate.declared, (*choice[:i], place, *choice[i + 1 :]))
        for i, attribute in enumerate(scorer.summary.all_attributes)
        for place, candidate in enumerate(attribute.candidates)
        if place != choice[i]
    ]
    _, errors = replicates.errors([choice, *(other for *_, other in others)])
    score = scorer.score(choice)
    changes = []
    for (name, mask, other), error in zip(others, errors[1:].tolist(), strict=True):
        changed = scorer.score(other)
        tied = abs(changed - score) <= DIFFERENT * error + 1e-12
        changes.append(MaskChange(name, str(mask), changed, changed - score, error, tied))
    return tuple(changes)
