"""Compare the ranking of configurations by a measure with the metrics of trained models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aegis.arrays import Floats
from aegis.papers.figures import Agreement

TIE = 1e-9
"""Scores count as equal if their difference, divided by the largest score, is below this limit."""


@dataclass(frozen=True)
class Judged:
    """The scores that one measure or comparator gives to all configurations.

    Attributes
    ----------
    name
        Name of the measure or comparator.
    sign
        1 if a higher score is better, -1 if a lower score is better.
    scores
        The score of each configuration.
    kind
        "measure" or "comparator".
    """

    name: str
    sign: int
    scores: Mapping[str, float]
    kind: str = "measure"


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Return Spearman's rank correlation; None if all values of `first` or of `second` are equal.

    Equal values have the mean of their ranks.
    """
    return _correlation("spearmanr", first, second)


def kendall(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Return Kendall's tau-b; None if all values of `first` or of `second` are equal."""
    return _correlation("kendalltau", first, second)


def _correlation(name: str, first: Any, second: Any) -> float | None:
    left, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(two) == 0:
        return None
    from scipy import stats

    return float(getattr(stats, name)(left, two).statistic)


def agree(
    judged: Judged, model: str, metric: str, values: Mapping[str, float], *, sign: int, share: bool
) -> Agreement:
    """Return how well a measure orders the configurations, judged by the mean metrics of a model.

    Parameters
    ----------
    judged
        The measure and its scores.
    model, metric
        The names of the model and the metric, for the result.
    values
        The mean metric of each configuration; at least one entry.
    sign
        1 if a higher metric is better, -1 if a lower metric is better.
    share
        Whether the metric is a share, such as accuracy.
    """
    names = list(values)
    scores = judged.sign * np.array([judged.scores[name] for name in names])
    merit = sign * np.array([values[name] for name in names])
    best = scores >= scores.max() - TIE * max(1.0, float(np.abs(scores).max()))
    loss = float(merit.max() - merit[best].mean())
    return Agreement(
        judged.name,
        model,
        metric,
        spearman(scores, merit),
        kendall(scores, merit),
        loss,
        100.0 * loss if share else loss,
        tuple(name for name, chosen in zip(names, best, strict=True) if chosen),
    )


def reliability(values: Mapping[str, Mapping[int, float]]) -> float | None:
    """Return the Spearman correlation between mean metrics over even splits and over odd splits.

    With the metrics of these splits, no measure can be expected to correlate more strongly than
    these two halves with each other. If there is only one split, return None.

    Parameters
    ----------
    values
        The metric of each configuration on each split.
    """
    halves: list[list[float]] = [[], []]
    for by_split in values.values():
        for half in (0, 1):
            figures = [value for split, value in by_split.items() if split % 2 == half]
            if not figures:
                return None
            halves[half].append(float(np.mean(figures)))
    return spearman(*halves)
