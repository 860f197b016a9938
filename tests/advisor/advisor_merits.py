"""Expected figures of merit from the rows themselves: explicit discriminants, scores and moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.measures import merits

Floats = npt.NDArray[np.float64]


def areas(features: Floats, label: Sequence[Any], part: Any, penalty: float) -> float:
    """Return the AUC under normal scores out of fold, mean over classes against the rest."""
    classes = sorted(set(label))
    if len(classes) < 2:
        return 0.5
    own = [np.array([y == c for y in label]) for c in classes]
    found = [_area(features, one, part, penalty) for one in (own[1:] if len(own) == 2 else own)]
    known = [area for area in found if area is not None]
    return float(np.mean(known)) if known else 0.5


def scores_of(features: Floats, own: Any, part: Any, penalty: float) -> Floats:
    """Return the score of each row by a discriminant that has not seen its part; NaN without one."""
    scores = np.full(len(own), np.nan)
    for k in set(part.tolist()):
        train = part != k
        sides = [features[train & side] for side in (own, ~own)]
        if not all(map(len, sides)):
            continue
        within = sum(np.atleast_2d(np.cov(side.T, bias=True)) for side in sides) / 2
        ridge = penalty / train.sum() * np.eye(features.shape[1])
        one, rest = (side.mean(axis=0) for side in sides)
        slope = np.linalg.solve(within + ridge, one - rest)
        scores[part == k] = (features[part == k] - (one + rest) / 2) @ slope
    return scores


def _area(features: Floats, own: Any, part: Any, penalty: float) -> float | None:
    scores = scores_of(features, own, part, penalty)
    seen = ~np.isnan(scores)
    high, low = scores[seen & own], scores[seen & ~own]
    if not len(high) or not len(low):
        return None
    gap, variance = high.mean() - low.mean(), high.var() + low.var()
    size = np.sqrt((high**2).mean() + (low**2).mean())
    if variance > 1e-11 * size**2:
        return NormalDist().cdf(gap / math.sqrt(variance))
    return 0.5 if abs(gap) <= 1e-11 * size else float(gap > 0)


def merit_of(name: str, features: Floats, label: Sequence[Any], part: Any, penalty: float) -> float:
    """Return the merit of normal scores with the moments of rows; see `aegis.measures.merits`."""
    classes = sorted(set(label))
    own = np.array([[y == c for y in label] for c in classes])  # (C, n)
    share = own.mean(axis=1)
    accurate = name == "held-out-accuracy"
    constant = float(share.max() if accurate else -(share * np.log(share)).sum())
    better = max if accurate else min
    if len(classes) < 2:
        return constant
    told = own[1:] if len(own) == 2 else own
    scores = np.stack([scores_of(features, one, part, penalty) for one in told], axis=1)
    seen = ~np.isnan(scores).any(axis=1)
    if not all((seen & one).any() for one in own):
        return constant
    rows = [scores[seen & one] for one in own]
    mean = np.array([r.mean(axis=0) for r in rows])
    spread = np.array([np.atleast_2d(np.cov(r.T, bias=True)) for r in rows])
    if len(own) > 2:
        return better(merits._together(share, mean, spread)[0 if accurate else 1], constant)
    middle, deviation = mean[:, 0], np.sqrt(spread[:, 0, 0])
    size = abs(middle[1] - middle[0]) + deviation.sum()
    if size <= 1e-11 * np.abs(scores[seen]).max(initial=0.0) or size == 0:
        return constant
    deviation = np.maximum(deviation, 1e-7 * size)
    shaped = share[None, None], middle[None, None], deviation[None, None]
    curve = merits._best_threshold if accurate else merits._least_loss
    return better(float(curve(*shaped)[0, 0]), constant)
