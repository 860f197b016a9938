"""Estimate the trade-off between privacy and utility from a protected summary.

A protected summary has no joint counts of quasi-identifiers, so the size of the smallest class
cannot be computed from it. Instead, this module computes how many rows are expected to agree with a
row in every quasi-identifier, as if attributes were independent: the number of rows times the
probability that two rows agree. Real attributes depend on each other, so more rows agree. The
provider's agent checks on the data whether a configuration meets the rule.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.policy import Configuration
from aegis.safe.protect.model import ProtectedAttribute, ProtectedCandidate, ProtectedSummary
from aegis.safe.protect.scores import Choice, ProtectedScorer
from aegis.words import json_fields

if TYPE_CHECKING:
    from aegis.advisor.search.problem import Box

_WIDTH = 400
"""Largest number of partial choices that are kept from one attribute to the next."""


@dataclass(frozen=True)
class ProtectedPoint:
    """A configuration on the front: no other configuration is better in both privacy and utility.

    Attributes
    ----------
    alike
        Expected number of rows that agree with a random row in all quasi-identifiers, if the
        quasi-identifiers were independent. The row itself counts, so the number is at least 1.
    score, utility_kept
        The score from the protected summary, and the score in percent of the score without masks;
        None if that is not positive.
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

    None is worse than another one in both utility and privacy.

    To find them, utility is estimated as the sum of the attributes' separate associations with the
    label. Then the score of a ranking is used, which takes into account that attributes share
    information: one mask of each configuration is changed at a time, as long as this raises the
    score and as many rows are alike.

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
    """Return how many rows would agree with a random row in all quasi-identifiers if the
    quasi-identifiers were independent. `chances` is from `_log_chances`, and `choice` has the index
    of each attribute's candidate mask.
    """
    log = math.fsum(own[place] for own, place in zip(chances, choice, strict=True))
    return max(summary.rows * math.exp(log), 1.0)


def _log_chances(summary: ProtectedSummary, quasi_identifiers: Collection[str]) -> list[Floats]:
    """Return the log probability that two rows have the same masked value, from noisy cell counts.

    There is an array for each attribute, with a figure for each candidate; it is 0 for attributes
    that are not quasi-identifiers.
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
    """Change one or two masks as long as the score rises and no fewer rows are alike."""
    from aegis.advisor.search.neighbours import LocalSearch, others  # taking long to load
    from aegis.safe.protect.search import choice_of, space_of

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
    """Return at most `count` choices of masks on the front, spread over the whole range of privacy:
    no other choice is better in both privacy and utility. Only part of the choices is examined if
    there are many.
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
    """Return the indices of at most `most` choices, spread evenly over privacy, such that no other
    choice is better in both privacy and utility. `private` and `useful` have both figures of each
    choice.
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
