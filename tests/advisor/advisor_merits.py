"""Expected figures of merit from the rows themselves: explicit discriminants, scores and moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.measures import merits
from aegis.measures.discriminant import grid_points

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
        fitted = _fitted(features, own, part != k, penalty)
        if fitted is not None:
            slope, middle = fitted
            scores[part == k] = (features[part == k] - middle) @ slope
    return scores


def _fitted(features: Floats, own: Any, train: Any, penalty: float) -> tuple[Floats, Floats] | None:
    """Return the discriminant of some rows and the middle of both means."""
    sides = [features[train & side] for side in (own, ~own)]
    if not all(map(len, sides)):
        return None
    within = sum(np.atleast_2d(np.cov(side.T, bias=True)) for side in sides) / 2
    ridge = penalty / train.sum() * np.eye(features.shape[1])
    one, rest = (side.mean(axis=0) for side in sides)
    return np.linalg.solve(within + ridge, one - rest), (one + rest) / 2


def shape(
    columns: Sequence[Sequence[Any]],
    features: Sequence[Floats],
    label: Sequence[Any],
    part: Any,
) -> float:
    """Return what the shape of scores takes from the distance between two classes.

    `features` are what is made of each column. Of the direction of ten rows: the AUC of sums of independent attributes, convolved one by one,
    against that of normal scores with their means and variances, as distances.
    """
    classes = sorted(set(label))
    varying = [
        (c, own) for c, own in zip(columns, features, strict=True) if np.ptp(own, axis=0).any()
    ]
    if len(classes) != 2 or not varying:
        return 1.0
    own = np.array([y == classes[1] for y in label])
    coded = [made for _, made in varying]
    shown = [np.array([[v == d for d in dict.fromkeys(c)] for v in c], float) for c, _ in varying]
    first = [one.argmax(axis=0) for one in shown]
    weighed = np.zeros(2)
    for k in range(int(part.max()) + 1):
        here = [(part == k) & side for side in (~own, own)]
        fitted = _fitted(np.hstack(coded), own, part != k, 10.0)
        if min(side.sum() for side in here) < 5 or fitted is None:
            return 1.0
        by_column = np.split(fitted[0], np.cumsum([made.shape[1] for made in coded])[:-1])
        slopes = [
            made[rows] @ slope for made, rows, slope in zip(coded, first, by_column, strict=True)
        ]
        told = _independent(shown, slopes, here)
        if told is None:
            return 1.0
        weighed += here[1].sum() * told
    apart = [NormalDist().inv_cdf(min(max(a, 0.5), 1 - 1e-9)) for a in weighed / own.sum()]
    return min(apart[0] / apart[1], 1.0) if apart[1] > 1e-9 else 1.0


def shaped_area(area: float, factor: float) -> float:
    """Return an AUC with the distance between classes multiplied."""
    if area <= 0.5 or factor >= 1:
        return area
    return NormalDist().cdf(factor * NormalDist().inv_cdf(min(area, 1 - 1e-16)))


def _independent(shown: list[Floats], slopes: list[Floats], here: list[Any]) -> Floats | None:
    """Return the AUC of a sum of independent attributes, on a grid, and that of normal scores."""
    points, gap, spread, size = grid_points(len(shown)), 0.0, 0.0, 0.0
    reach = sum(np.ptp(slope) for slope in slopes)
    step = (points // 2 - 2 - len(shown)) / (reach if reach > 0 else 1.0)
    sums = [np.ones(1), np.ones(1)]
    for matrix, slope in zip(shown, slopes, strict=True):
        at = (slope - slope.min()) * step
        low = np.floor(at).astype(int)
        for side, rows in enumerate(here):
            share = matrix[rows].mean(axis=0)
            mean = share @ slope
            gap += (2 * side - 1) * mean
            spread += share @ slope**2 - mean**2
            size += share @ slope**2
            grid = np.zeros(low.max() + 2)
            for where, place, weight in zip(low, at, share, strict=True):
                grid[where] += weight * (1 - (place - where))
                grid[where + 1] += weight * (place - where)
            sums[side] = np.convolve(sums[side], grid)
    if spread <= 1e-9 * size:
        return None
    rest, one = sums
    before = np.concatenate([[0.0], np.cumsum(rest)])[: len(one)]
    area = float(one @ (before + rest / 2))
    return np.array([area, NormalDist().cdf(gap / math.sqrt(spread))])


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
