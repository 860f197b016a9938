"""Correct the AUC of scores that are not normal because they are sums of few coefficients.

Counts of pairs of levels give the means and variances of a linear score, not the shape of its
distribution. A score that depends on few levels has few values, so it is not normal. For example,
normal theory overestimates the AUC for a rare class if a mask separates only a part of it. The rows
by level and class give the exact distribution of each attribute's contribution to the score. If
attributes were independent within classes, the score would be the sum of independent contributions.
The AUC of this sum is compared with the AUC that normal theory gives for the sum. Each of these
AUCs corresponds to a distance between two normal classes. The ratio of the two distances corrects
the AUC that normal theory gives for the true means and variances.
"""

from __future__ import annotations

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.measures.by_fold import with_and_without
from aegis.measures.normal import cumulative, quantile

_POINTS = 8192
"""Number of grid points of all attributes together, on which distributions are added."""
_COARSEST = 512
"""Smallest number of points of a grid, so that it separates the values of a few attributes."""
_FEWEST = 5
"""Smallest number of rows of either class in a part for which a shape is estimated."""
_FAR = 1e-9
"""Smallest distance of an AUC from 0 or 1; closer values are moved to this distance."""


def shape_factors(slopes: Floats, joint: Floats, rows: Floats, bounds: Ints) -> Floats | None:
    """Return the factors that correct the distance between two classes along a linear score, first
    for all K folds together, then without each fold, shape (1 + K,).

    A factor is the ratio of two distances between the classes. One distance follows from the AUC of
    the exact distributions, the other from the AUC of normal distributions; both assume independent
    attributes. Factors are from 0 to 1, so that an upper bound for normal scores remains an upper
    bound. The result is None if a fold has too few rows of a class, if there are no levels, or if
    the score is constant in a fold.

    Parameters
    ----------
    slopes
        Coefficient that each of d levels (masked values) has in the score of each of K folds, shape
        (K, d).
    joint
        Number of rows per fold, class and level, shape (K, 2, d). Index 1 is the class, index 0 all
        other rows.
    rows
        Number of rows per fold and class, shape (K, 2).
    bounds
        Index of the first level of each of m attributes, shape (m + 1,).
    """
    if rows.min(initial=np.inf) < _FEWEST or not slopes.shape[1]:
        return None
    starts = bounds[:-1][np.diff(bounds) > 0]
    share = joint / rows[..., None]
    means = np.add.reduceat(share * slopes[:, None], starts, axis=2)  # (K, 2, m)
    squares = (share * slopes[:, None] ** 2).sum(axis=2)
    gap = means[:, 1].sum(axis=1) - means[:, 0].sum(axis=1)
    spread = squares.sum(axis=1) - (means**2).sum(axis=(1, 2))
    if not (spread > _FAR * squares.sum(axis=1)).all():
        return None
    told = np.stack([_areas(slopes, share, starts), cumulative(gap / np.sqrt(spread))], axis=1)
    parts = len(rows)
    left = with_and_without(parts) * rows[:, 1]
    area = (left @ told) / np.maximum(left.sum(axis=1, keepdims=True), 1.0)  # (1 + K, 2)
    apart = quantile(np.clip(area, 0.5, 1 - _FAR))
    factors: Floats = np.ones(1 + parts)
    np.divide(apart[:, 0], apart[:, 1], out=factors, where=apart[:, 1] > _FAR)
    return np.minimum(factors, 1.0)


def grid_points(attributes: int) -> int:
    """Return the number of points of the grid on which the distribution of one attribute's
    contribution to a score is rounded. A score adds the contributions of `attributes` attributes.
    Half of the points are below 0, for differences between two rows.

    >>> [grid_points(attributes) for attributes in (1, 3, 12, 100)]
    [8192, 2048, 512, 1024]
    """
    points = _COARSEST
    while 2 * points * attributes <= _POINTS or points < 8 * attributes:
        points *= 2
    return points


def _area(slopes: Floats, share: Floats) -> float:
    """Return the AUC in one fold if there is only one attribute: P(score of a row of the class >
    score of another row) + P(equal) / 2.

    The levels of the attribute are sorted by their coefficients.

    Parameters
    ----------
    slopes
        Coefficient of each of d levels (masked values), shape (d,).
    share
        Share of the rows by level, for all other rows and for the class, shape (2, d).
    """
    order = slopes.argsort()
    ascending, (rest, own) = slopes[order], share[:, order]
    # Coefficients that rounding alone tells apart are equal.
    apart = np.diff(ascending) > _FAR * (ascending[-1] - ascending[0])
    value = np.concatenate([[0], np.cumsum(apart)])
    rest, own = (np.bincount(value, shares) for shares in (rest, own))
    return float(own @ (rest.cumsum() - 0.5 * rest))


def _areas(slopes: Floats, share: Floats, starts: Ints) -> Floats:
    """Return the AUC of the class against all other rows for each of K folds, shape (K,), as if
    attributes were independent. `slopes` are the coefficients by fold and level (masked value),
    shape (K, d), `share` the shares of rows by level, for other rows and the class, shape (K, 2,
    d), and `starts` the index of each attribute's first level.

    The difference of two sums is a convolution. The distribution of each attribute's contribution
    is put on a grid, where each coefficient is shared between the two nearest points. Then the
    Fourier transforms are multiplied. Scores that differ by less than a grid point count as partly
    equal.
    """
    parts, levels = slopes.shape
    attributes = len(starts)
    if attributes == 1:
        return np.array([_area(*part) for part in zip(slopes, share, strict=True)])
    points = grid_points(attributes)
    sizes = np.diff(np.append(starts, levels))
    own = np.repeat(np.arange(attributes), sizes)  # the attribute of each level
    low = np.minimum.reduceat(slopes, starts, axis=1)
    reach = (np.maximum.reduceat(slopes, starts, axis=1) - low).sum(axis=1, keepdims=True)
    scale = (points // 2 - 2 - attributes) / np.where(reach > 0, reach, 1.0)
    at = (slopes - low[:, own]) * scale
    below = np.floor(at)
    above = (at - below)[:, None] * share
    first = (np.arange(parts)[:, None, None] * 2 + np.arange(2)[:, None]) * attributes + own
    place = first * points + below[:, None].astype(np.int64)
    size = parts * 2 * attributes * points
    spread = np.bincount(place.ravel(), (share - above).ravel(), size + 1)
    spread += np.bincount(place.ravel() + 1, above.ravel(), size + 1)
    turned = np.fft.rfft(spread[:size].reshape(parts, 2, attributes, points)).prod(axis=2)
    gap = np.fft.irfft(turned[:, 1] * turned[:, 0].conj(), points)
    area: Floats = gap[:, 1 : points // 2].sum(axis=1) + 0.5 * gap[:, 0]
    return area
