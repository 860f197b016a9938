"""Choose which configuration to recommend among those that score about the same.

The choice is by the amount of masking, which does not depend on the label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer
from aegis.arrays import Floats
from aegis.errors import PolicyError
from aegis.measures import Direction, Measure
from aegis.measures.information import entropy
from aegis.summary import AttributeSummary, Candidate

AUC_MARGIN = 0.002
"""An AUC or accuracy counts as equal to the best one if it is lower by at most this."""
UTILITY_MARGIN = 0.005
"""A score by any other measure counts as equal to the best one if it is lower by at most this share
of the unmasked table's utility.
"""


class Prefer(StrEnum):
    """Which configuration Aegis recommends among several that score about the same."""

    LEAST_MASKING = "least-masking"
    MOST_PRIVATE = "most-private"
    SCORE = "score"

    @classmethod
    def of(cls, name: str) -> Prefer:
        """Return the preference with this name.

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
        """1 if the user prefers the configuration that masks more, otherwise -1."""
        return 1 if self is Prefer.MOST_PRIVATE else -1


def hidden_share(
    attribute: AttributeSummary, candidate: Candidate, channel: Floats | None = None
) -> float:
    """Return which share of the entropy of an attribute's values a mask hides, from 0 to 1.

    The share is 1 - I(value; masked value) / H(value). It is 0 if each value follows from its
    masked value, and 1 if the masked value carries no information. It is 0 for an attribute with
    one value.

    Parameters
    ----------
    attribute
        The attribute, with the counts of its values.
    candidate
        The mask.
    channel
        For a noise mask, the probability of each of L masked values for each of A atoms (sets of
        original values), shape (A, L); None for any other mask.
    """
    counts = attribute.counts.astype(np.float64)
    whole = entropy(counts)
    if whole <= 0:
        return 0.0
    if channel is None:
        groups = np.bincount(candidate.groups, weights=counts)
        return max(0.0, 1 - entropy(groups.astype(np.float64)) / whole)
    atoms = np.bincount(attribute.atoms, weights=counts, minlength=len(channel))
    share = atoms / atoms.sum()
    told = entropy(share @ channel)
    told -= sum(float(p) * entropy(row) for p, row in zip(share, channel, strict=True) if p > 0)
    return min(max(0.0, 1 - told / whole), 1.0)


def configuration_masking(choice: Choice, scorer: Scorer) -> float:
    """Return how much a configuration masks: the mean of `hidden_share` over its attributes, from 0
    (nothing is masked) to 1.
    """
    shares = []
    for attribute in scorer.summary.all_attributes:
        if (candidate := choice.get(attribute.name)) is not None:
            channel = None if candidate.noise is None else scorer.levels(attribute, candidate)
            shares.append(hidden_share(attribute, candidate, channel))
    return sum(shares) / max(len(shares), 1)


def tie_margin(
    measure: Measure,
    unmasked: float,
    best: float,
    error: float | None,
    label_rows: Sequence[float],
) -> float:
    """Return how far a score may be below the best score and still count as equal to it.

    This margin is `AUC_MARGIN` for an AUC or an accuracy. For any other measure, it is the share
    `UTILITY_MARGIN` of the unmasked utility. It is infinite if scores cannot distinguish masks: if
    the unmasked table has no utility, or if the best score is within two standard errors of a
    constant prediction's score.

    Parameters
    ----------
    measure
        The measure of the scores.
    unmasked, best
        The score of the unmasked table, and the best score.
    error
        Standard error of the best score; None if it is not known.
    label_rows
        Number of labelled rows of each class.
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
    """Return the ranking with the recommended configuration first. If this configuration does not
    have the best score, also return the reason (else None).

    The recommended configuration is the one that masks least (or most, as the user prefers) among
    those whose scores are about equal to the best score.

    Parameters
    ----------
    ranking
        Configurations, best first.
    choices
        The candidates of each admissible configuration, in the same order.
    scorer, measure
        The scorer and the measure that scored the configurations.
    prefer
        What the user prefers; under `SCORE` the ranking does not change.
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
    """Explain in a clause why the first configuration is not the one with the best score.

    Parameters
    ----------
    prefer
        The preference.
    best, margin
        The best score, and how far below it a score may be and still count as equal.
    first, highest
        The amount of masking, from 0 to 1, of the first configuration and of the one with the best
        score.
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
