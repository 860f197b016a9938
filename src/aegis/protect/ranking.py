"""Advice from a protected summary: scores, their uncertainty, ties, and what is known of the rule.

The score is the target-coded trace of the masked attributes (`aegis.measures.target_coded`), put
together from label tables and moments of codes. A summary without moments scores the mean square
contingency of each attribute and adds up, as if attributes did not overlap. Nothing here sees an
exact count, so that scoring as often as one likes gives nothing more away.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.blas import one_blas_thread
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.measures import adjusted_for
from aegis.policy import Configuration
from aegis.progress import SILENT, Progress
from aegis.protect.codes import coefficients, explained, weights_of
from aegis.protect.model import GRID, Moments, ProtectedSummary

Floats = npt.NDArray[np.float64]
Choice = tuple[int, ...]
FINEST = -1
"""In a choice: everything that the cells of an attribute tell apart."""
REPLICATES = 24
"""Draws of what protection added, behind standard errors."""
DIFFERENT = 1.96
"""Errors of a difference beyond which two scores are told apart: two-sided, five percent."""
ENUMERATED = 200_000
"""Most combinations that a search looks at one by one."""
COMPARED = 10
_MAIN = 0.02
"""Directions of a mask's codes below this share of the strongest one count as uncorrelated."""
SCHEMA = 1


@dataclass(frozen=True)
class ProtectedRanked:
    """One configuration as a protected summary sees it.

    Attributes
    ----------
    configuration
        The masks as fitted.
    declared
        Attribute to mask as the policy wrote it.
    score
        Estimate of the target-coded trace, adjusted for chance.
    utility_kept
        Percent of what all masks together show; None where that is nothing.
    stderr
        Standard error of the score: protection and drawing of the rows. None where it was not
        computed.
    tied_with_best
        Whether it cannot be told from the best one, as far as protection blurs both; None where it
        was not compared.
    admissible
        What the owner of the exact counts said of the rule; None where nothing was said.
    attributes
        Mean square contingency of each masked attribute alone.
    """

    configuration: Configuration
    declared: Mapping[str, str]
    score: float
    utility_kept: float | None
    admissible: bool | None
    attributes: Mapping[str, float]
    stderr: float | None = None
    tied_with_best: bool | None = None

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.configuration.name

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of `ranking` in the JSON of protected advice."""
        return {
            "name": self.name,
            "score": self.score,
            "utility_kept": self.utility_kept,
            "stderr": self.stderr,
            "tied_with_best": self.tied_with_best,
            "admissible": self.admissible,
            "masks": self.configuration.spec(),
            "attributes": dict(self.attributes),
        }


@dataclass(frozen=True, eq=False)
class ProtectedAdvice:
    """A ranking from a protected summary, best first.

    Attributes
    ----------
    ranking
        Configurations: those that are admissible or of which nothing is known before the others.
    unmasked
        The score of what all masks together show.
    estimator
        `codes`, or `tables` where the summary has no moments.
    combinations
        How many configurations the candidates make.
    searched
        How many of them were looked at by a search; None for a ranking of given ones.
    optimal
        Whether the first is proven to have the best score of all combinations that may be taken,
        as this summary scores them.
    summary
        Figures of the protected summary.
    warnings
        What a reader should know.
    seconds
        Time that it took.
    """

    ranking: tuple[ProtectedRanked, ...]
    unmasked: float
    estimator: str
    combinations: int
    searched: int | None
    optimal: bool
    summary: Mapping[str, Any]
    warnings: tuple[str, ...]
    seconds: float

    @property
    def best(self) -> ProtectedRanked | None:
        """The first configuration unless it is known to break the rule."""
        first = self.ranking[0] if self.ranking else None
        return None if first is None or first.admissible is False else first

    def require_best(self) -> ProtectedRanked:
        """Return the best configuration; raise `NoAdmissibleConfiguration` without one."""
        if self.best is None:
            raise NoAdmissibleConfiguration(
                f"None of the {len(self.ranking):,} configurations meets the rule, as the owner of "
                "the data says.",
                hint="Ask for verdicts on others, or allow coarser masks.",
            )
        return self.best

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "schema": SCHEMA,
            "best": None if self.best is None else self.best.name,
            "optimal": self.optimal,
            "measure": "target-coded",
            "estimator": self.estimator,
            "unmasked": self.unmasked,
            "combinations": self.combinations,
            "searched": self.searched,
            "ranking": [r.to_dict() for r in self.ranking],
            "summary": dict(self.summary),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        best = self.best
        said = "none admissible" if best is None else f"best {best.name!r}: {best.score:.4g}"
        return f"ProtectedAdvice({len(self.ranking)} configurations by {self.estimator}, {said})"


@dataclass(frozen=True, eq=False)
class _Masked:
    """One attribute under one mask.

    Attributes
    ----------
    strength
        Mean square contingency.
    main
        Roots of the strengths of its main directions, times the directions, shape (r, C).
    rest
        Strength of the other directions.
    onto
        Regression of the main directions, each of variance one, on the attribute's codes, (q, r).
    clear
        Groups that speak.
    """

    strength: float
    main: Floats
    rest: float
    onto: Floats
    clear: int


class ProtectedScorer:
    """Scores choices of candidate masks from one protected summary.

    Parameters
    ----------
    summary
        What is scored from.
    replicate
        None for the summary as it is; else the seed of a draw of what protection may have added,
        which is added once more.
    """

    def __init__(self, summary: ProtectedSummary, replicate: int | None = None) -> None:
        self.summary = summary
        self._random = None if replicate is None else np.random.default_rng(replicate)
        self._attributes = list(summary.attributes.values())
        self._tables = [
            self._blurred(
                a.table.astype(np.float64), summary.cell_error * np.sqrt(a.units)[:, None]
            )
            for a in self._attributes
        ]
        self._moments = self._matrix(summary.moments)
        self._known: dict[tuple[int, int], _Masked] = {}
        self._cross: dict[tuple[int, int, int, int], Floats] = {}

    @property
    def estimator(self) -> str:
        """What scores come from."""
        return "tables" if self._moments is None else "codes"

    @property
    def finest(self) -> Choice:
        """The choice of everything that the cells tell apart."""
        return (FINEST,) * len(self._attributes)

    def _blurred(self, figures: Floats, error: float | Floats) -> Floats:
        if self._random is None:
            return figures
        blurred: Floats = figures + error * self._random.standard_normal(figures.shape)
        return blurred

    def _matrix(self, moments: Moments | None) -> Floats | None:
        if moments is None:
            return None
        if self._random is None:
            return moments.matrix
        upper = np.triu(self._blurred(moments.matrix, moments.error), 1)
        blurred: Floats = np.where(moments.matrix != 0, upper + upper.T, 0.0)
        return blurred

    def masked(self, index: int, place: int) -> _Masked:
        """Return attribute number `index` under its candidate number `place`, or `FINEST`."""
        key = (index, place)
        if key not in self._known:
            self._known[key] = self._mask(index, place)
        return self._known[key]

    def _mask(self, index: int, place: int) -> _Masked:
        summary, attribute, table = self.summary, self._attributes[index], self._tables[index]
        groups = np.arange(len(table)) if place == FINEST else attribute.candidates[place].groups
        noise = attribute.noise(summary.cell_error)
        told = explained(table, groups, summary.shares, noise, summary.rows)
        values, vectors = np.linalg.eigh(told.covariance)
        strength = float(values.sum())
        chosen = values > max(_MAIN * float(values.max(initial=0.0)), 1e-12)
        values, vectors = values[chosen], vectors[:, chosen]
        main = np.sqrt(values)[:, None] * vectors.T
        onto = np.zeros((0, len(values)))
        if attribute.codes is not None and self._moments is not None:
            codes = attribute.codes.astype(np.float64) / GRID
            target = told.codes[groups] @ (vectors / np.sqrt(values))
            weight = weights_of(table, summary.rows)
            onto = coefficients(codes, target, weight) if codes.size else np.zeros((0, len(values)))
        return _Masked(strength, main, max(strength - float(values.sum()), 0.0), onto, told.clear)

    def score(self, choice: Choice) -> float:
        """Return the estimate of the target-coded trace of a choice, adjusted for chance."""
        masked = [self.masked(i, place) for i, place in enumerate(choice)]
        if self._moments is None:
            return math.fsum(m.strength for m in masked)
        main = np.concatenate([m.main for m in masked])
        trace = math.fsum(m.rest for m in masked)
        if len(main):
            solved = np.linalg.solve(self._correlations(choice, masked), main)
            trace += float((main * solved).sum())
        classes = len(self.summary.classes)
        freedom = sum(max(m.clear - 1, 0) for m in masked)
        return adjusted_for(min(trace, float(classes - 1)), freedom, classes, self.summary.rows)

    def _correlations(self, choice: Choice, masked: Sequence[_Masked]) -> Floats:
        """Return the correlations of the main directions, positive definite."""
        sizes = [len(m.main) for m in masked]
        places = np.concatenate([[0], np.cumsum(sizes)])
        matrix = np.eye(int(places[-1]))
        for i in range(len(masked)):
            for j in range(i):
                block = self._block(i, choice[i], j, choice[j])
                matrix[places[i] : places[i + 1], places[j] : places[j + 1]] = block
                matrix[places[j] : places[j + 1], places[i] : places[i + 1]] = block.T
        moments = self.summary.moments
        error = 0.0 if moments is None else moments.error
        floor = max(error * math.sqrt(len(matrix)), 1e-3)
        values, vectors = np.linalg.eigh(matrix)
        positive: Floats = (vectors * (np.maximum(values, 0.0) + floor)) @ vectors.T
        return positive

    def _block(self, i: int, own: int, j: int, other: int) -> Floats:
        key = (i, own, j, other)
        if key not in self._cross:
            offsets = self.summary.offsets
            moments = self._moments
            if moments is None:
                raise ValueError("A summary without moments has no correlations.")
            part = moments[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            block = self.masked(i, own).onto.T @ part @ self.masked(j, other).onto
            self._cross[key] = np.clip(block, -1.0, 1.0)
        return self._cross[key]

    def attributes(self, choice: Choice) -> dict[str, float]:
        """Return the mean square contingency of each masked attribute alone."""
        return {a.name: self.masked(i, choice[i]).strength for i, a in enumerate(self._attributes)}


def drawing_error(score: float, classes: int, rows: float) -> float:
    """Return the error of a trace that comes from drawing the rows.

    sqrt(4 r (1 - r)^2 / N) of r = V / (C - 1), the delta method for a squared multiple correlation
    (Olkin and Finn, Correlations redux, Psychological Bulletin 118, 1995), times C - 1.
    """
    limit = max(classes - 1, 1)
    share = min(max(score / limit, 0.0), 1.0)
    return limit * math.sqrt(4 * share * (1 - share) ** 2 / max(rows, 1.0))


class _Replicates:
    """Scorers of the same summary with what protection adds drawn anew."""

    def __init__(self, summary: ProtectedSummary) -> None:
        self.scorers = [ProtectedScorer(summary, replicate=seed) for seed in range(REPLICATES)]

    def scores(self, choices: Sequence[Choice]) -> Floats:
        """Return the scores of choices, shape (replicates, len(choices))."""
        return np.array([[s.score(c) for c in choices] for s in self.scorers])


@one_blas_thread
def rank_protected(
    summary: ProtectedSummary,
    configurations: Mapping[str, Configuration] | Iterable[Configuration] | None = None,
    *,
    generate_count: int | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> ProtectedAdvice:
    """Rank configurations from a protected summary, best first.

    Parameters
    ----------
    summary
        What `aegis.protect.protect` or `load_protected` returned.
    configurations
        What to rank; by default those that verdicts were stated on, else random ones.
    generate_count
        Rank so many random combinations instead.
    seed
        Seed of the random combinations.

    Raises
    ------
    PolicyError
        Both or none can be ranked, or a configuration names a mask that is no candidate.
    """
    began = time.perf_counter()
    named = _choices(summary, configurations, generate_count, seed)
    with progress.step("Scoring configurations", len(named)) as step:
        scorer = ProtectedScorer(summary)
        scored = []
        for name, choice in named:
            scored.append((name, choice, scorer.score(choice)))
            step.advance()
    advice = _advice(summary, scorer, scored, searched=None, optimal=False)
    return replace(advice, seconds=time.perf_counter() - began)


@one_blas_thread
def search_protected(
    summary: ProtectedSummary,
    *,
    top: int = 5,
    time_limit: float | None = None,
    progress: Progress = SILENT,
) -> ProtectedAdvice:
    """Return the best configurations among all combinations, as a protected summary scores them.

    Where the summary has verdicts, only configurations that were found admissible are taken. Scores
    from label tables add up over attributes, so that the best one follows attribute by attribute,
    with proof. Scores from codes have no bound: combinations are looked at one by one, all of them
    where they are at most 200,000 and time allows; else the best found by exchanging one mask at a
    time is returned, and nothing is proven.

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
    best: dict[Choice, float] = {}
    seen, complete = 0, True
    with progress.step("Searching combinations") as step:
        for choice, whole in _candidates(summary, scorer):
            if time_limit is not None and time.perf_counter() - began > time_limit:
                complete = False
                break
            complete = whole
            seen += 1
            best[choice] = scorer.score(choice)
            if len(best) > 4 * top + 100:
                best = dict(_leading(best, top))
            step.advance()
    leading = _leading(best, top)
    scored = [(f"best-{i + 1}", choice, value) for i, (choice, value) in enumerate(leading)]
    advice = _advice(summary, scorer, scored, searched=seen, optimal=complete and bool(scored))
    return replace(advice, seconds=time.perf_counter() - began)


def _leading(best: Mapping[Choice, float], top: int) -> list[tuple[Choice, float]]:
    return sorted(best.items(), key=lambda entry: (-entry[1], entry[0]))[:top]


def _candidates(
    summary: ProtectedSummary, scorer: ProtectedScorer
) -> Iterator[tuple[Choice, bool]]:
    """Yield choices to look at, and whether all that may be taken were seen after each."""
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
    yield alone, scorer.estimator == "tables"
    yield from (
        (choice, scorer.estimator == "tables") for choice in _exchanged(scorer, alone, sizes)
    )


def _strongest(scorer: ProtectedScorer, index: int, size: int) -> int:
    """Return the place of the candidate that says most of the label by itself."""
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


def _choices(
    summary: ProtectedSummary,
    configurations: Mapping[str, Configuration] | Iterable[Configuration] | None,
    count: int | None,
    seed: int,
) -> list[tuple[str, Choice]]:
    if configurations is not None and count is not None:
        raise PolicyError(
            "Both explicit configurations and a number to generate were given.",
            hint="Give one of them.",
        )
    if configurations is not None:
        given = configurations.values() if isinstance(configurations, Mapping) else configurations
        listed = [(c.name, summary.choose(c)) for c in given]
        if not listed:
            raise PolicyError("No configurations were given.", hint="Give at least one.")
        return listed
    if count is None and summary.verdicts:
        chosen = [v.choice for v in summary.verdicts]
    else:
        chosen = _random(summary, 50 if count is None else count, seed)
    width = len(str(len(chosen)))
    return [(f"c{i + 1:0{width}d}", choice) for i, choice in enumerate(chosen)]


def _random(summary: ProtectedSummary, count: int, seed: int) -> list[Choice]:
    if count < 1:
        raise PolicyError(
            f"{count} configurations cannot be generated.", hint="Ask for at least 1."
        )
    random = np.random.default_rng(seed)
    sizes = [len(a.candidates) for a in summary.attributes.values()]
    wanted = min(count, summary.combinations)
    if summary.combinations <= 4 * count:
        every = list(product(*map(range, sizes)))
        return [every[i] for i in sorted(random.permutation(len(every))[:wanted].tolist())]
    found: dict[Choice, None] = {}
    while len(found) < wanted:
        found[tuple(int(random.integers(size)) for size in sizes)] = None
    return list(found)


def _advice(
    summary: ProtectedSummary,
    scorer: ProtectedScorer,
    scored: Sequence[tuple[str, Choice, float]],
    *,
    searched: int | None,
    optimal: bool,
) -> ProtectedAdvice:
    unmasked = scorer.score(scorer.finest)
    order = sorted(scored, key=lambda s: (summary.verdict(s[1]) is False, -s[2], s[0]))
    ranking = [_ranked(summary, scorer, *entry, unmasked) for entry in order]
    leading = [choice for _, choice, _ in order[:COMPARED]]
    if leading:
        ranking = _with_errors(summary, ranking, leading)
    return ProtectedAdvice(
        ranking=tuple(ranking),
        unmasked=unmasked,
        estimator=scorer.estimator,
        combinations=summary.combinations,
        searched=searched,
        optimal=optimal,
        summary=summary.to_dict(),
        warnings=_warnings(summary, searched, optimal),
        seconds=0.0,
    )


def _ranked(
    summary: ProtectedSummary,
    scorer: ProtectedScorer,
    name: str,
    choice: Choice,
    score: float,
    unmasked: float,
) -> ProtectedRanked:
    pairs = zip(summary.attributes.values(), choice, strict=True)
    return ProtectedRanked(
        configuration=summary.configuration(name, choice),
        declared={a.name: str(a.candidates[place].declared) for a, place in pairs},
        score=score,
        utility_kept=100 * score / unmasked if unmasked > 0 else None,
        admissible=summary.verdict(choice),
        attributes=scorer.attributes(choice),
    )


def _with_errors(
    summary: ProtectedSummary, ranking: Sequence[ProtectedRanked], choices: Sequence[Choice]
) -> list[ProtectedRanked]:
    """Return the ranking with standard errors and ties of its first entries."""
    scores = _Replicates(summary).scores(choices)
    errors = scores.std(axis=0, ddof=1)
    apart = (scores - scores[:, :1]).std(axis=0, ddof=1)
    best = ranking[0].score
    classes = len(summary.classes)
    marked = [
        replace(
            ranked,
            stderr=math.hypot(float(error), drawing_error(ranked.score, classes, summary.rows)),
            tied_with_best=abs(best - ranked.score) <= DIFFERENT * float(difference) + 1e-12,
        )
        for ranked, error, difference in zip(ranking, errors, apart, strict=False)
    ]
    return [*marked, *ranking[len(marked) :]]


def _warnings(summary: ProtectedSummary, searched: int | None, optimal: bool) -> tuple[str, ...]:
    found = [
        "scores are estimates from a protected summary; kept and lost are measured against all that "
        "the masks together show"
    ]
    if not summary.verdicts:
        found.append(
            "the summary says nothing of the privacy rule: ask its owner for verdicts before a "
            "configuration is released"
        )
    elif any(v.admissible is None for v in summary.verdicts):
        found.append("for some configurations noise leaves open whether they meet the rule")
    if searched is not None and not optimal:
        found.append(
            f"{searched:,} of {summary.combinations:,} combinations were looked at, and nothing is "
            "proven"
        )
    if summary.protection.public:
        found.append(
            "values and cuts were taken as public: " + ", ".join(summary.protection.public)
        )
    return (*found, *summary.notes)
