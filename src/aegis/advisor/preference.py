"""Which configuration comes first of those whose scores cannot be told apart.

How much a configuration masks is a figure of its own, which owes nothing to the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer
from aegis.errors import PolicyError
from aegis.summary import AttributeSummary, Candidate, level_channel

Floats = npt.NDArray[np.float64]


class Prefer(StrEnum):
    """Which of several configurations comes first that their scores cannot tell apart."""

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
        """1 where more masking comes first, -1 where less does."""
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


def preferred_first(
    ranking: Sequence[Ranked], choices: Sequence[Choice], scorer: Scorer, prefer: Prefer
) -> tuple[list[Ranked], str | None]:
    """Return a ranking with the preferred one of the ties first, and why that one is.

    Parameters
    ----------
    ranking
        Configurations, best first, with those marked that tie with the best.
    choices
        What each masks with, in the same order.
    scorer
        Holds the summary.
    prefer
        What decides; with `SCORE` the ranking stays.
    """
    if prefer is Prefer.SCORE:
        return list(ranking), None
    tied = [i for i, ranked in enumerate(ranking) if i == 0 or ranked.tied_with_best]
    told = list(ranking)
    for i in tied:
        told[i] = replace(told[i], masking=configuration_masking(choices[i], scorer))
    first = preferred(told, tied, prefer)
    if first == 0:
        return told, None
    chosen = told[first]
    return [chosen, *told[:first], *told[first + 1 :]], why_first(prefer, chosen, told[0])


def preferred(ranking: Sequence[Ranked], tied: Sequence[int], prefer: Prefer) -> int:
    """Return which of the ties comes first; equal in masking, the one that leaves out fewest rows."""

    def order(place: int) -> tuple[float, int, int]:
        ranked = ranking[place]
        # Equal where only the last digits differ.
        return (-prefer.sign * round(ranked.masking or 0.0, 9), ranked.suppressed_rows, place)

    return min(tied, key=order)


def why_first(prefer: Prefer, first: Ranked, best: Ranked) -> str:
    """Return why a configuration comes before the one with the best score, as a clause."""
    less = "less" if prefer is Prefer.LEAST_MASKING else "more"
    return (
        f"the first masks {less} ({100 * (first.masking or 0):.3g} % of what the attributes tell, "
        f"against {100 * (best.masking or 0):.3g} %) than the best by score, {best.score:.6g}, from "
        "which its score cannot be told"
    )
