"""Cross-validate linear discriminants from counts by fold, without reading rows.

The rows are divided into K folds. For each fold, a penalised discriminant direction is fitted to
the counts of pairs of levels by class in all other folds. The sums and sums of squares (the
moments) of its scores on the held-out fold are functions of the counts of that fold. So every row
is scored by a direction that was fitted without the row. The log-odds of naive Bayes are such a
direction, too. If scores are normal, these moments give the area under the ROC curve (AUC).
`merits` computes the expected accuracy and log loss from them (theory.md, section 3). `by_fold`
explains the letters of the shapes.

The AUC is corrected if scores are sums of few coefficients, so that they are not normal. Counts of
pairs of levels give the means and variances of a linear score, not the shape of its distribution. A
score that depends on few levels has few values, so it is not normal. For example, normal theory
overestimates the AUC for a rare class if a mask separates only a part of it. The rows by level and
class give the exact distribution of each attribute's contribution to the score. If attributes were
independent within classes, the score would be the sum of independent contributions. The AUC of this
sum is compared with the AUC that normal theory gives for the sum. Each of these AUCs corresponds to
a distance between two normal classes. The ratio of the two distances corrects the AUC that normal
theory gives for the true means and variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import InternalError
from aegis.measures.by_fold import (
    CountsByFold,
    OtherFolds,
    Side,
    against_the_rest,
    side,
    with_and_without,
)
from aegis.measures.numerics import cumulative, quantile, solved
from aegis.measures.several import sums_alike

_POINTS = 8192
"""Number of grid points of all attributes together, on which distributions are added."""
_COARSEST = 512
"""Smallest number of points of a grid, so that it separates the values of a few attributes."""
_FEWEST = 5
"""Smallest number of rows of either class in a part for which a shape is estimated."""
_FAR = 1e-9
"""Smallest distance of an AUC from 0 or 1; closer values are moved to this distance."""


def shape_factors(slopes: Floats, joint: Floats, rows: Floats, bounds: Ints) -> Floats | None:
    """Return the factors that correct the distance between two classes along a linear score, for
    all folds (entry 0) and without each single fold, shape (1 + K,).

    A factor is the ratio of two distances. One follows from the AUC of the exact distributions, the
    other from the AUC of normal distributions; both assume independent attributes. Factors are at
    most 1, so that an upper bound for normal scores remains one. The result is None if a fold has
    too few rows of a class, if there are no levels, or if the score is constant in a fold.

    Parameters
    ----------
    slopes
        Coefficient of each level in the score of each fold, shape (K, d).
    joint, rows
        Rows by fold, side and level, (K, 2, d), and by fold and side, (K, 2). Index 1 is the class,
        index 0 the rest.
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
    aucs = np.stack([_aucs(slopes, share, starts), cumulative(gap / np.sqrt(spread))], axis=1)
    folds = len(rows)
    weights = with_and_without(folds) * rows[:, 1]
    area = (weights @ aucs) / np.maximum(weights.sum(axis=1, keepdims=True), 1.0)  # (1 + K, 2)
    distances = quantile(np.clip(area, 0.5, 1 - _FAR))
    factors: Floats = np.ones(1 + folds)
    np.divide(distances[:, 0], distances[:, 1], out=factors, where=distances[:, 1] > _FAR)
    return np.minimum(factors, 1.0)


def grid_points(attributes: int) -> int:
    """Return the number of points of the grid on which the contribution of one of so many
    attributes to a score is rounded. Half of them are below 0, for differences between two rows.

    >>> [grid_points(attributes) for attributes in (1, 3, 12, 100)]
    [8192, 2048, 512, 1024]
    """
    points = _COARSEST
    while 2 * points * attributes <= _POINTS or points < 8 * attributes:
        points *= 2
    return points


def _auc(slopes: Floats, share: Floats) -> float:
    """Return the AUC in one fold for a single attribute: P(score of a row of the class > score of
    another row) + P(equal) / 2.

    `slopes` has the coefficient of each level, (d,), and `share` the shares of the rest and of the
    class by level, (2, d).
    """
    order = slopes.argsort()
    ascending, (rest, class_share) = slopes[order], share[:, order]
    # Coefficients that rounding alone tells apart are equal.
    distinct = np.diff(ascending) > _FAR * (ascending[-1] - ascending[0])
    value = np.concatenate([[0], np.cumsum(distinct)])
    rest, class_share = (np.bincount(value, shares) for shares in (rest, class_share))
    return float(class_share @ (rest.cumsum() - 0.5 * rest))


def _aucs(slopes: Floats, share: Floats, starts: Ints) -> Floats:
    """Return the AUC of a linear score for the class against the rest, by fold, shape (K,), as if
    attributes were independent. Scores that differ by less than a grid point count as partly equal.

    `slopes` has the coefficients, (K, d), `share` the shares of the rest and of the class by level,
    (K, 2, d), and `starts` the index of each attribute's first level.
    """
    folds, levels = slopes.shape
    attributes = len(starts)
    if attributes == 1:
        return np.array([_auc(*fold) for fold in zip(slopes, share, strict=True)])
    # The difference of two sums is a convolution: each coefficient is shared between the two nearest
    # points of a grid, and the Fourier transforms are multiplied.
    points = grid_points(attributes)
    sizes = np.diff(np.append(starts, levels))
    attribute = np.repeat(np.arange(attributes), sizes)  # the attribute of each level
    low = np.minimum.reduceat(slopes, starts, axis=1)
    span = (np.maximum.reduceat(slopes, starts, axis=1) - low).sum(axis=1, keepdims=True)
    scale = (points // 2 - 2 - attributes) / np.where(span > 0, span, 1.0)
    at = (slopes - low[:, attribute]) * scale
    below = np.floor(at)
    above = (at - below)[:, None] * share
    first = (np.arange(folds)[:, None, None] * 2 + np.arange(2)[:, None]) * attributes + attribute
    position = first * points + below[:, None].astype(np.int64)
    size = folds * 2 * attributes * points
    spread = np.bincount(position.ravel(), (share - above).ravel(), size + 1)
    spread += np.bincount(position.ravel() + 1, above.ravel(), size + 1)
    turned = np.fft.rfft(spread[:size].reshape(folds, 2, attributes, points)).prod(axis=2)
    gap = np.fft.irfft(turned[:, 1] * turned[:, 0].conj(), points)
    area: Floats = gap[:, 1 : points // 2].sum(axis=1) + 0.5 * gap[:, 0]
    return area


PENALTIES = (10.0, 100.0, 1000.0)
"""Ridge penalties, in rows. With a penalty of n rows, a masked value with n rows keeps half of its
effect.
"""
_SHAPED_BY = 10.0
"""The penalty whose scores determine the shape that is used for all penalties."""
_ROUNDING = 1e-12
"""Relative difference, of a mean square or of means, that counts as rounding."""


class JointMoments(NamedTuple):
    """Moments of the scores that the rows of each class get from the directions of all classes. A
    direction has the coefficients of a linear score that separates a class from the rest.

    Attributes
    ----------
    first
        Sums of the scores by fold, class of the rows, class of the direction and penalty, shape (K,
        C, T, P).
    second
        Sums of the products of the scores from two directions, shape (K, C, T, T, P).
    """

    first: Floats
    second: Floats


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums of the out-of-fold scores of rows, and of the squared scores.

    Attributes
    ----------
    rows
        Number of rows by fold and class, shape (K, C).
    compared
        The classes that are compared with the rest, shape (T,).
    scored
        Whether each fold has a direction for each of these classes, shape (K, T).
    counted
        Number of rows of the rest and of the class in each scored fold, shape (K, T, 2).
    first, second
        Sums of the scores and of the squared scores of these rows, shape (K, T, 2, P). The squares
        include the contribution of noise.
    together
        The moments of the scores in the directions of all classes; None if they were not requested.
    log_odds
        Whether the scores are the log-odds of a model, so that they need no calibration.
    shape
        For two classes, the factors that correct for scores that are not normal (`shape_factors`),
        shape (1 + K,); None if the shape of the distributions is unknown.
    """

    rows: Floats
    compared: Ints
    scored: Flags
    counted: Floats
    first: Floats
    second: Floats
    together: JointMoments | None = None
    log_odds: bool = False
    shape: Floats | None = None

    @cached_property
    def variants(self) -> Floats:
        """All folds together (row 0), and without each single fold, as 0/1 flags, shape (1 + K, K)."""
        return with_and_without(len(self.rows))

    def summed(self, values: Floats) -> Floats:
        """Sum values by fold, shape (K, ...), by `variants`; the result has shape (1 + K, ...)."""
        flat = self.variants @ values.reshape(len(values), math.prod(values.shape[1:]))
        return flat.reshape(len(flat), *values.shape[1:])

    @cached_property
    def sides(self) -> tuple[Floats, Floats, Floats]:
        """The numbers of rows, (1 + K, T, 2), and the means and variances of the scores, (1 + K, T,
        2, P), of each rest and class, by `variants`.

        A variance counts as 0 if it is only a rounding error of the mean square.
        """
        rows, first, second = map(self.summed, (self.counted, self.first, self.second))
        rows = rows[..., None]
        count = np.maximum(rows, 1.0)
        mean, square = first / count, second / count
        spread = square - mean**2
        return rows[..., 0], mean, np.where(spread > _ROUNDING * square, spread, 0.0)

    @cached_property
    def aucs(self) -> Floats:
        """The AUC that each of P directions reaches if scores are normal, averaged over classes:
        for all K folds (entry 0) and without each single fold, shape (1 + K, P).

        For one class (1) against the rest (0), the probability that a row of the class has a higher
        score than another row is

            Phi((m_1 - m_0) / sqrt(v_1 + v_0)),

        where m and v are the means and variances of the scores, and Phi is the normal distribution
        function. Classes without a scored row are left out; if none remains, the AUC is 1/2.
        """
        rows, mean, spread = self.sides
        if not len(self.compared):
            return np.full((len(rows), self.first.shape[-1]), 0.5)
        has_rows: Floats = np.array(rows > 0, dtype=np.float64).min(axis=2)[..., None]  # (V, T, 1)
        gap = mean[:, :, 1] - mean[:, :, 0]
        gap[np.abs(gap) <= _ROUNDING * np.abs(mean).sum(axis=2)] = 0.0
        area = cumulative(_ratio(gap, spread.sum(axis=2)))
        count = has_rows.sum(axis=1)
        mean_area: Floats = (area * has_rows).sum(axis=1) / np.maximum(count, 1.0)
        return np.where(count > 0, mean_area, 0.5)


def _ratio(gap: Floats, variance: Floats) -> Floats:
    """Return `gap` / sqrt(`variance`); for a variance of 0, infinity with the sign of the gap."""
    certain = np.where(gap != 0, np.copysign(np.inf, gap), 0.0)
    return np.divide(gap, np.sqrt(variance), out=certain, where=variance > 0)


class _Directions(NamedTuple):
    """Discriminant directions of G classes against the rest, fitted without each fold.

    Attributes
    ----------
    slopes, offsets
        b and o of the scores b'x - o of a row with level indicators x, shapes (K, G, P, d) and (K,
        G, P).
    noise
        Contribution of noise to the squared scores of the rest and of the class, shape (2, K, G,
        P).
    """

    slopes: Floats
    offsets: Floats
    noise: Floats | float = 0.0


@dataclass(frozen=True, eq=False)
class _Others:
    """Out-of-fold scores: for each fold, directions are fitted to the rows outside the fold."""

    counts: CountsByFold

    @property
    def outside(self) -> OtherFolds:
        return self.counts.outside

    @property
    def compared(self) -> Ints:
        return self.outside.compared

    @property
    def chance(self) -> Floats:
        """`CountsByFold.chance`, with no columns if there is no noise."""
        chance = self.counts.chance
        return np.zeros((self.counts.joint.shape[-1], 0)) if chance is None else chance

    @cached_property
    def means(self) -> Floats:
        """Share of rows outside each fold that have each level, of the rest and the class, (K, T,
        2, d).
        """
        return self.outside.means(self.counts.joint)

    def noise(
        self,
        targets: slice,
        sides: tuple[Side, Side],
        fitted: Callable[[int, int], Floats],
        width: int,
    ) -> Floats | float:
        """Return the contribution of noise to the squared scores of the rest and of G classes,
        shape (2, K, G, P); 0 without noise.

        Parameters
        ----------
        targets
            Positions in `compared` of the G classes.
        sides
            The counts of the rest, and of the class.
        fitted
            Function that returns, for the position of a class and a fold, a matrix V, shape (P, d,
            k): noise gives the slopes the covariance V V'.
        width
            Number of directions, P.
        """
        counts = self.counts
        if counts.chance is None or not counts.joint.shape[-1]:
            return 0.0
        scored = self.outside.scored[:, targets]
        noise = np.zeros((2, *scored.shape, width))
        for fold, at in np.argwhere(scored).tolist():
            position = targets.start + at
            n = self.outside.rows[fold, position]
            varied = fitted(position, fold) * np.sqrt(n.sum() / n.prod() / counts.rows.sum())
            class_rows = counts.rows[fold, self.compared[position]]
            here = counts.rows[fold].sum() - class_rows, class_rows
            for of, rows, squares in zip(sides, here, noise, strict=True):
                # Of many classes the squares of all rows are known, of which a side has its share.
                share = rows / max(of.rows[fold], 1.0)
                squares[fold, at] = share * _squares(of, fold, varied)
        return noise

    def scores(
        self,
        directions: Callable[[slice, tuple[Side, Side]], _Directions],
        width: int,
        *,
        shaped_by: int,
        jointly: bool,
        log_odds: bool = False,
    ) -> Scores:
        """Return the moments of the scores of all classes, each against the rest.

        Parameters
        ----------
        directions
            Returns the directions for classes, given their positions in `compared`, the counts of
            the rest and of the class.
        width
            Number of directions, P.
        shaped_by
            Index of the direction whose scores determine `Scores.shape`.
        jointly, log_odds
            Whether to also compute the scores of each class by the directions of all classes; and
            whether scores are the log-odds of a model.
        """
        counts, compared = self.counts, self.compared
        folds, _, levels = counts.joint.shape
        slopes = np.zeros((folds, len(compared), width, levels))
        offsets = np.zeros((folds, len(compared), width))
        rows = np.zeros((folds, len(compared), 2))
        along, squares, noise = np.zeros((3, folds, len(compared), 2, width))
        for targets, sides in self._sides():
            fitted = directions(targets, sides)
            slopes[:, targets], offsets[:, targets] = fitted.slopes, fitted.offsets
            if not isinstance(fitted.noise, float):
                noise[:, targets] = np.moveaxis(fitted.noise, 0, 2)
            for at, of in enumerate(sides if not self.outside.pooled else ()):
                position = targets.start
                rows[:, position, at] = of.rows
                sums = _sums(of, slopes[:, position])
                along[:, position, at], squares[:, position, at] = sums
        if self.outside.pooled:
            rows, along, squares = sums_alike(counts, side(counts, None), compared, slopes)
        first, second = _moments(rows, along, squares, offsets)
        second += noise
        rows = rows * self.outside.scored[..., None]
        scored = self.outside.scored[:, :, None, None]
        first, second = np.where(scored, first, 0.0), np.where(scored, second, 0.0)
        if not np.isfinite(second).all():
            raise InternalError("Held-out scores are not finite, because the counts are not.")
        return Scores(
            counts.rows,
            compared,
            self.outside.scored,
            rows,
            first,
            second,
            self._together(slopes, offsets) if jointly and len(compared) > 1 else None,
            log_odds,
            self._shape(slopes[:, :, shaped_by]),
        )

    def _sides(self) -> Iterator[tuple[slice, tuple[Side, Side]]]:
        """Yield the positions of classes in `compared`, the counts of the rest, and of the class.
        If one covariance serves all classes, yield all positions once, with the counts of all rows
        twice.
        """
        if self.outside.pooled:
            every = side(self.counts, None)
            yield slice(0, len(self.compared)), (every, every)
            return
        for position, sides in enumerate(against_the_rest(self.counts, self.compared)):
            yield slice(position, position + 1), sides

    def _together(self, slopes: Floats, offsets: Floats) -> JointMoments:
        """Return the moments of each class's scores by the directions of all compared classes,
        whose `slopes` and `offsets` have the shapes (K, T, P, d) and (K, T, P).
        """
        counts, (folds, compared, width, levels) = self.counts, slopes.shape
        classes = counts.rows.shape[1]
        first = np.zeros((folds, classes, compared, width))
        second = np.zeros((folds, classes, compared, compared, width))
        scored = self.outside.scored[:, :, None]
        for target in range(classes):
            of = side(counts, target)
            across = slopes.reshape(folds, compared * width, levels)
            along = (across @ of.joint[:, :, None]).reshape(offsets.shape)
            products = of.products(across).reshape(slopes.shape)
            both = products.swapaxes(1, 2) @ slopes.transpose(0, 2, 3, 1)  # (K, P, T, T)
            squares = np.moveaxis(both + both.swapaxes(2, 3), 1, 3)
            rows = of.rows[:, None, None]
            squares = squares - offsets[:, :, None] * along[:, None]
            squares -= offsets[:, None] * along[:, :, None]
            squares += rows[..., None] * offsets[:, :, None] * offsets[:, None]
            first[:, target] = (along - rows * offsets) * scored
            second[:, target] = squares * (scored[:, :, None] & scored[:, None])
        return JointMoments(first, second)

    def _shape(self, slopes: Floats) -> Floats | None:
        """Return `shape_factors` for the coefficients of one direction, shape (K, T, d); None if
        the factors are unknown.
        """
        counts = self.counts
        if len(self.compared) != 1 or counts.by_attribute is None or not self.outside.scored.all():
            return None
        present_classes = np.flatnonzero(counts.rows.sum(axis=0))
        rest = np.setdiff1d(present_classes, self.compared, assume_unique=True)
        classes = np.concatenate([rest, self.compared])
        ends = np.cumsum([levels.matrix.shape[1] for levels in counts.by_attribute])[:-1]
        scored_levels = [
            (levels.joint[:, classes], by_column @ levels.matrix.T)
            for levels, by_column in zip(
                counts.by_attribute, np.split(slopes[:, 0], ends, axis=1), strict=True
            )
            if by_column.shape[1]
        ]
        if not scored_levels:
            return None
        joint, by_level = (np.concatenate(of, axis=-1) for of in zip(*scored_levels, strict=True))
        bounds = np.cumsum([0, *(len(levels.T) for levels, _ in scored_levels)])
        return shape_factors(by_level, joint, counts.rows[:, classes], bounds)


def _sums(of: Side, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the sum of b'x and of its square over the rows of `of`, for the directions b, (K, P)
    each.
    """
    along = (slopes @ of.joint[:, :, None])[..., 0]
    return along, 2 * (of.products(slopes) * slopes).sum(axis=2)


def _moments(
    rows: Floats, along: Floats, squares: Floats, offsets: Floats
) -> tuple[Floats, Floats]:
    """Return the sums of the scores b'x - o, and of their squares, shape (K, T, 2, P) each.

    `rows` are the rows of the rest and of the class, (K, T, 2). `along` and `squares` are the sums
    of b'x and of its square, (K, T, 2, P), and `offsets` are o, (K, T, P).
    """
    offsets = offsets[:, :, None]
    constant = rows[..., None] * offsets
    size = squares + constant * offsets
    second = size - 2 * offsets * along
    # What is left of terms that cancel is rounding, and no score.
    first = along - constant
    first[np.abs(first) <= _ROUNDING * (np.abs(along) + np.abs(constant))] = 0.0
    second[second <= _ROUNDING * size] = 0.0
    return first, second


def out_of_fold(
    counts: CountsByFold,
    penalties: Sequence[float] = PENALTIES,
    *,
    jointly: bool = False,
) -> Scores:
    """Return the moments of the scores that held-out rows get from penalised discriminant
    directions.

    Compare class t with the rest (if there are two classes, the second with the first), and leave
    out fold k. Over the n rows outside fold k, let m_1 and m_0 be the means of the indicators of
    levels in the class and in the rest, and S_1 and S_0 the covariances. Then

        b = (W + (p / n) I)^-1 (m_1 - m_0),   W = (S_1 + S_0) / 2,

    and a row x of fold k has the score b'(x - (m_1 + m_0) / 2). Class and rest have the same weight
    in W, even if the class is rare. If more than `OWN_COVARIANCES` classes are scored, W is the
    average of S_1 and S_0 weighted by rows, so that all classes use the same factorisation, and
    sums of squares are estimated by `sums_alike`. A fold is not scored for a class that has no row
    outside the fold. Memory is needed only for the counts of one class.

    Parameters
    ----------
    counts
        Counts by fold and class.
    penalties
        The ridge penalties p, in rows, each above 0.
    jointly
        Whether to also compute the scores of each class by the directions of all classes, if there
        are more than two classes. The time grows with the cube of the number of classes.

    Raises
    ------
    InternalError
        The counts contain NaN.
    """
    others = _Others(counts)
    fitted = _Fitted(others, tuple(penalties))

    def directions(targets: slice, sides: tuple[Side, Side]) -> _Directions:
        slopes = fitted.slopes(targets, sides)
        middle = others.means[:, targets].mean(axis=2)
        noise = others.noise(targets, sides, fitted.varied, len(penalties))
        return _Directions(slopes, (slopes @ middle[..., None])[..., 0], noise)

    shaped_by = penalties.index(_SHAPED_BY) if _SHAPED_BY in penalties else len(penalties) // 2
    return others.scores(directions, len(penalties), shaped_by=shaped_by, jointly=jointly)


class _Fitted:
    """Discriminant directions with P penalties, fitted without each fold, for one class or for all
    classes that share a covariance.
    """

    def __init__(self, others: _Others, penalties: tuple[float, ...]) -> None:
        self._others = others
        self._penalties = penalties
        self._last_fit: tuple[slice, Floats, dict[int, Floats]] | None = None

    def slopes(self, targets: slice, sides: tuple[Side, Side]) -> Floats:
        """Return the directions that separate each of G classes from the rest, shape (K, G, P, d).
        `targets` are the positions of the classes in `compared`, and `sides` the counts of the rest
        and of the class.
        """
        self._last_fit = targets, *self._solved(targets, sides)
        return self._last_fit[1]

    def varied(self, position: int, fold: int) -> Floats:
        """Return a matrix V, shape (P, d, k): noise gives the slopes of the class at this position
        the covariance V V' in a fold. Call `slopes` first.
        """
        if self._last_fit is None:
            raise InternalError("Slopes were not set before they were varied.")
        targets, slopes, varied = self._last_fit
        if not self._others.outside.pooled:
            return varied[fold]
        gap, between = self._between(slice(position, position + 1))
        along = gap[fold, :, 0] @ varied[fold]  # (P, k)
        slope = slopes[fold, position - targets.start]
        all_of_it: Floats = varied[fold] + between[fold, 0] * slope[:, :, None] * along[:, None]
        return all_of_it

    def _between(self, targets: slice) -> tuple[Floats, Floats]:
        """Return the means of levels in G classes minus their means in the rest, outside each fold,
        (K, d, G), and the share of the class times the share of the rest, (K, G).
        """
        others = self._others
        rows = others.outside.rows[:, targets]
        between = rows.prod(axis=2) / np.maximum(rows.sum(axis=2), 1.0) ** 2
        return (others.means[:, targets, 1] - others.means[:, targets, 0]).swapaxes(1, 2), between

    def _solved(self, targets: slice, sides: tuple[Side, Side]) -> tuple[Floats, dict[int, Floats]]:
        others, penalties = self._others, self._penalties
        counts, outside, means = others.counts, others.outside, others.means
        squares = [counts.square(None)] if outside.pooled else [side.square for side in sides]
        gaps, between = self._between(targets)
        varied: dict[int, Floats] = {}
        if counts.common is not None:
            slopes = counts.common.directions(counts, squares, means, gaps, targets, penalties)
        else:
            within = outside.within([of.border for of in squares], means, targets)
            classes = gaps.shape[2]
            slopes = np.zeros((len(within), classes, len(penalties), within.shape[1]))
            for fold in outside.scored_in(targets) if within.size else ():
                right = np.hstack([gaps[fold], others.chance])
                fitted = solved(within[fold], right, outside.ridges(fold, penalties))
                slopes[fold] = np.moveaxis(fitted[..., :classes], 2, 0)
                varied[fold] = fitted[..., classes:]
        if outside.pooled:  # (W + r I)^-1 g of W + p q g g', by Sherman and Morrison
            along = (slopes @ gaps.swapaxes(1, 2)[..., None])[..., 0]  # (K, G, P)
            slopes /= (1.0 - between[..., None] * along)[..., None]
        return slopes, varied


NB_PRIOR = 1.0
"""Number of rows that naive Bayes adds to each cell of the counts by level and class (Laplace)."""


def naive_bayes(counts: CountsByFold, *, jointly: bool = False) -> Scores:
    """Return the moments of the out-of-fold log-odds of naive Bayes.

    Naive Bayes treats the level indicators x_v as independent (Bernoulli) within the class and
    within the rest. Their probability is p_v = (n_v + 1) / (n + 2) if n_v of n rows have level v.
    The log-odds of class (1) against rest (0) are

        log(n_1 / n_0) + sum_v log((1 - p_1v) / (1 - p_0v)) + sum_v x_v (logit p_1v - logit p_0v).

    They are fitted only to the rows by level and class. Their variance on the held-out fold also
    uses the counts of pairs, because naive Bayes counts twice the information that two attributes
    share. `jointly` is as in `out_of_fold`.
    """
    others = _Others(counts)

    def directions(targets: slice, sides: tuple[Side, Side]) -> _Directions:
        rows = others.outside.rows[:, targets, :, None]
        prior = np.maximum(rows, 1.0)
        share = (others.means[:, targets] * rows + NB_PRIOR) / (prior + 2 * NB_PRIOR)
        share = np.clip(share, 1e-300, 1 - 1e-16)  # (K, G, 2, d)
        present, absent = np.log(share), np.log1p(-share)
        odds, constant = present - absent, np.log(prior)[..., 0] + absent.sum(axis=3)
        pooled = (share * (1 - share)).mean(axis=2)

        def varied(position: int, fold: int) -> Floats:
            varying: Floats = others.chance / pooled[fold, position - targets.start][:, None]
            return varying[None]

        noise = others.noise(targets, sides, varied, 1)
        slopes = (odds[:, :, 1] - odds[:, :, 0])[:, :, None]
        return _Directions(slopes, (constant[..., 0] - constant[..., 1])[..., None], noise)

    return others.scores(directions, 1, shaped_by=0, jointly=jointly, log_odds=True)


def _squares(of: Side, fold: int, varied: Floats) -> Floats:
    """Return how much noise adds to the sum of squared scores of the rows `of` in one fold, shape
    (P,). Noise gives direction p the covariance V V' with V = `varied[p]`, shape (d, k).
    """
    n = of.rows[fold]
    if n <= 0:
        return np.zeros(len(varied))
    sums, below = of.joint[fold], of.square.of_fold(fold)
    covariance = below + np.tril(below, -1).T - np.outer(sums, sums / n)
    squares: Floats = np.einsum("pik,ij,pjk->p", varied, covariance, varied, optimize=True)
    return squares
