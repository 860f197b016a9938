"""Which of several configurations with about the same score is recommended.

How much a configuration masks is its own figure, which owes nothing to the label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer
from aegis.errors import PolicyError
from aegis.measures import Direction, Measure
from aegis.summary import AttributeSummary, Candidate, level_channel

AUC_MARGIN = 0.002
"""How far below the best an AUC, or an accuracy, counts as equal."""
UTILITY_MARGIN = 0.005
"""The same of any other measure, as a share of the utility of the unmasked table."""

Floats = npt.NDArray[np.float64]


class Prefer(StrEnum):
    """The preference among configurations with about the same score."""

    LEAST_MASKING = "least-masking"
    MOST_PRIVATE = "most-private"
    SCORE = "score"

    @classmethod
    def of(cls, name: str) -> Prefer:
        """Return the preference of a name.

        Raises
        ------
        PolicyError
            There is no such preference.
        """
        if name not in list(cls):
            raise PolicyError.unknown("preference", name, list(cls))
        return cls(name)

    @property
    def sign(self) -> int:
        """1 if more masking comes first, -1 if less masking does."""
        return 1 if self is Prefer.MOST_PRIVATE else -1


def hidden_share(
    attribute: AttributeSummary, candidate: Candidate, channel: Floats | None = None
) -> float:
    """Return the share of an attribute's entropy that a mask hides, from 0 to 1.

    1 - I(value; what is shown) / H(value): 0 where each value can be told from what is shown, 1
    where nothing can. 0 for an attribute of one value.

    Parameters
    ----------
    attribute
        The attribute, with its values' counts.
    candidate
        The mask.
    channel
        Of noise, P(level | atom), shape (A, L); None for any other mask.
    """
    counts = attribute.counts.astype(np.float64)
    whole = _entropy(counts)
    if whole <= 0:
        return 0.0
    if channel is None:
        groups = np.bincount(candidate.groups, weights=counts)
        return max(0.0, 1 - _entropy(groups.astype(np.float64)) / whole)
    atoms = np.bincount(attribute.atoms, weights=counts, minlength=len(channel))
    share = atoms / atoms.sum()
    told = _entropy(share @ channel)
    told -= sum(float(p) * _entropy(row) for p, row in zip(share, channel, strict=True) if p > 0)
    return min(max(0.0, 1 - told / whole), 1.0)


def _entropy(weights: Floats) -> float:
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())


def configuration_masking(choice: Choice, scorer: Scorer) -> float:
    """Return how much a configuration masks: the mean of `hidden_share` over its attributes."""
    attributes = {a.name: a for a in scorer.summary.all_attributes}
    shares = [
        hidden_share(attributes[name], candidate, _channel(attributes[name], candidate, scorer))
        for name, candidate in choice.items()
        if name in attributes
    ]
    return sum(shares) / max(len(shares), 1)


def _channel(attribute: AttributeSummary, candidate: Candidate, scorer: Scorer) -> Floats | None:
    if candidate.noise is None:
        return None
    return level_channel(attribute, candidate, scorer.summary.max_levels)


def tie_margin(
    measure: Measure,
    unmasked: float,
    best: float,
    error: float | None,
    label_rows: Sequence[float],
) -> float:
    """Return how far below the best a score counts as equal to it.

    `AUC_MARGIN` of an AUC or an accuracy; of any other measure `UTILITY_MARGIN` of the utility of the
    unmasked table. Infinite where no score distinguishes masks: the unmasked table has no utility, or the
    best score is within two standard errors of none.

    Parameters
    ----------
    measure
        What scores.
    unmasked, best
        The score of the unmasked table, and the best one.
    error
        Standard error of the best score; None if it is not known.
    label_rows
        Labelled rows of each class.
    """
    sign, none = measure.direction.sign, measure.worst(label_rows)
    utility = sign * (unmasked - none)
    bounded = measure.direction is Direction.HIGHER or measure.constant is not None
    if bounded and (not utility > 0 or sign * (best - none) < 2 * (error or 0.0)):
        return math.inf
    return AUC_MARGIN if measure.unit in ("AUC", "accuracy") else UTILITY_MARGIN * abs(utility)


def preferred_first(
    ranking: Sequence[Ranked],
    choices: Sequence[Choice],
    scorer: Scorer,
    measure: Measure,
    prefer: Prefer,
) -> tuple[list[Ranked], str | None]:
    """Return a ranking with the preferred one of the ties first, and why that one is.

    Parameters
    ----------
    ranking
        Configurations, best first.
    choices
        What each admissible one masks with, in the same order.
    scorer, measure
        What scored them.
    prefer
        What decides; with `SCORE` the ranking stays.
    """
    if prefer is Prefer.SCORE or not ranking[0].admissible:
        return list(ranking), None
    best, sign = ranking[0], measure.direction.sign
    unmasked = scorer.value(scorer.unmasked, measure)
    margin = tie_margin(measure, unmasked, best.score, best.stderr, scorer.label_rows)
    told = list(ranking)
    ties = [
        place
        for place, (ranked, _) in enumerate(zip(ranking, choices, strict=False))
        if ranked.admissible and sign * (best.score - ranked.score) <= margin
    ]
    for place in ties:
        told[place] = replace(told[place], masking=configuration_masking(choices[place], scorer))

    def order(place: int) -> tuple[float, int, int]:
        ranked = told[place]
        # Equal where only the last digits differ.
        return (-prefer.sign * round(ranked.masking or 0.0, 9), ranked.suppressed_rows or 0, place)

    first = min(ties, key=order)
    if first == 0:
        return told, None
    chosen = told[first]
    why = why_first(prefer, best.score, margin, chosen.masking or 0.0, told[0].masking or 0.0)
    return [chosen, *told[:first], *told[first + 1 :]], why


def why_first(prefer: Prefer, best: float, margin: float, first: float, highest: float) -> str:
    """Return why a configuration comes before the one with the best score, as a clause.

    Parameters
    ----------
    prefer
        What decides.
    best, margin
        The best score, and how far below it a score counts as equal.
    first, highest
        How much the first one masks, and how much the one with the best score does, from 0 to 1.
    """
    most = "least" if prefer is Prefer.LEAST_MASKING else "most"
    equal = (
        "all scores"
        if math.isinf(margin)
        else f"scores within {margin:.2g} of the highest, {best:.4f},"
    )
    return (
        f"{equal} count as equal. Of these we recommend the one that masks {most}: it hides "
        f"{100 * first:.3g} % of the attributes' entropy, the top scorer {100 * highest:.3g} %"
    )
