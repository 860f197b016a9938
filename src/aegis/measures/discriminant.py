"""What linear discriminants reach on rows that they were not fitted to, from counts by fold.

The rows are divided into K parts. On all parts but one a penalised discriminant direction is fitted
to the second-order counts by class; on the part left out it has a sum and a sum of squares per
class, which are functions of that part's counts. So every row is scored by a direction that has not
seen it, and no row is read. Under normal scores these moments give the area under the ROC curve
(AUC), the accuracy and the log loss that a model is expected to reach (theory.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError

Floats = npt.NDArray[np.float64]

PENALTIES = (1.0, 10.0, 100.0)
"""Rows that a masked value needs before half of what they say of it is believed."""
_ROUNDING = 1e-12
"""Share of a mean square, or of means, up to which what is left of a difference is rounding."""


@dataclass(frozen=True, eq=False)
class PartCounts:
    """Second-order counts of one configuration by part of the rows and class.

    Attributes
    ----------
    rows
        Rows per part and class, shape (K, C).
    joint
        Rows per part, class and level, shape (K, C, d).
    total
        Co-occurrence of levels per part and class, shape (K, C, d, d), symmetric.
    chance
        As of `Cooccurrence`, shape (d, k): how much more the counts of drawn rows vary than the
        expected ones that are given. None where the counts are of rows.
    """

    rows: Floats
    joint: Floats
    total: Floats
    chance: Floats | None = None

    def __post_init__(self) -> None:
        levels = self.joint.shape[-1]
        if (
            self.joint.shape[:2] != self.rows.shape
            or self.total.shape != (*self.joint.shape, levels)
            or (self.chance is not None and len(self.chance) != levels)
        ):
            raise InternalError(
                f"Counts by part of shapes {self.rows.shape}, {self.joint.shape}, {self.total.shape}."
            )


@dataclass(frozen=True, eq=False)
class Scores:
    """Moments of the scores of rows by directions that have not seen them.

    Attributes
    ----------
    rows
        Rows per part, class that is told from the rest, and side (rest, class): (K, T, 2).
    first, second
        Sum of the scores and of their squares, shape (K, T, 2, P), one column per direction.
    """

    rows: Floats
    first: Floats
    second: Floats

    def moments(self, without: int | None = None) -> tuple[Floats, Floats, Floats]:
        """Return rows (T, 2), means and variances (T, 2, P) over all parts, or all but one.

        A variance within rounding of the mean square counts as none.
        """
        parts = [part for part in range(len(self.rows)) if part != without]
        rows = self.rows[parts].sum(axis=0)
        count = np.maximum(rows, 1.0)[..., None]
        mean = self.first[parts].sum(axis=0) / count
        square = self.second[parts].sum(axis=0) / count
        spread = square - mean**2
        return rows, mean, np.where(spread > _ROUNDING * square, spread, 0.0)

    def auc(self, without: int | None = None) -> Floats:
        """Return the AUC of each direction under normal scores, mean over classes, shape (P,).

        P(score of a row of the class > score of another) = Phi((m_1 - m_0) / sqrt(v_1 + v_0)),
        one class against the rest; classes of which no row was scored take no part, and where
        that leaves none, nothing can be told: 1/2.
        """
        rows, mean, spread = self.moments(without)
        known = (rows > 0).all(axis=1)
        if not known.any():
            return np.full(mean.shape[-1], 0.5)
        gap = mean[known, 1] - mean[known, 0]
        gap[np.abs(gap) <= _ROUNDING * np.abs(mean[known]).sum(axis=1)] = 0.0
        area: Floats = normal_cdf(_ratio(gap, spread[known].sum(axis=1))).mean(axis=0)
        return area


def normal_cdf(values: Floats) -> Floats:
    """Return Phi of each value."""
    from scipy.special import ndtr

    found: Floats = ndtr(values)
    return found


def _ratio(gap: Floats, variance: Floats) -> Floats:
    """Return the gap in standard deviations; without variance its sign decides, if it has one."""
    certain = np.where(gap != 0, np.copysign(np.inf, gap), 0.0)
    return np.divide(gap, np.sqrt(variance), out=certain, where=variance > 0)


def out_of_fold(counts: PartCounts, penalties: Sequence[float] = PENALTIES) -> Scores:
    """Return the moments of out-of-fold scores under penalised discriminant directions.

    For class t against the rest (two classes: the second against the first) and the part k left
    out, with m_1, m_0 the means of the level indicators over the rows of the class and over the
    others outside of part k, S_1, S_0 their covariances there and n rows in all,

        b = (W + (p / n) I)^-1 (m_1 - m_0),   W = (S_1 + S_0) / 2,

    and a row x of part k has the score b'(x - (m_1 + m_0) / 2). Both classes weigh alike in W,
    however rare one of them is. A part outside of which a class has no row is not scored for it.

    Parameters
    ----------
    counts
        Counts by part and class; levels without rows do no harm.
    penalties
        Ridge penalties p, each above 0, in rows.

    Raises
    ------
    InternalError
        There is NaN in the counts.
    """
    parts, classes = counts.rows.shape
    told = _told_apart(counts.rows)
    shape = (parts, len(told), 2)
    rows = np.zeros(shape)
    first, second = np.zeros((*shape, len(penalties))), np.zeros((*shape, len(penalties)))
    kept = _varying(counts)
    if not told.size or not kept.size:
        for place, target in enumerate(told):
            rows[:, place] = _sides(counts.rows, target, classes)
        return Scores(rows, first, second)
    joint, total = counts.joint[..., kept], counts.total
    if len(kept) < counts.joint.shape[-1]:
        total = total[:, :, kept[:, None], kept]
    chance = None
    if counts.chance is not None:
        chance = counts.chance[kept] / np.sqrt(counts.rows.sum())
    for place, target in enumerate(told):
        n, sums, products = (_sides(a, target, classes) for a in (counts.rows, joint, total))
        products_of_all = products.sum(axis=0)
        for part in range(parts):
            others = n.sum(axis=0) - n[part]
            if (others < 0.5).any():
                continue
            fit = _directions(
                others,
                sums.sum(axis=0) - sums[part],
                products_of_all - products[part],
                penalties,
                chance,
            )
            rows[part, place] = n[part]
            first[part, place], second[part, place] = fit.scores(
                n[part], sums[part], products[part]
            )
    if not np.isfinite(second).all():
        raise InternalError("Scores out of fold are no numbers: the counts hold none.")
    return Scores(rows, first, second)


def _told_apart(rows: Floats) -> npt.NDArray[np.int64]:
    """Return the classes to tell from the rest: all that have rows, of two the second."""
    seen = np.flatnonzero(rows.sum(axis=0) > 0)
    return seen[:0] if len(seen) < 2 else seen[1:] if len(seen) == 2 else seen


def _varying(counts: PartCounts) -> npt.NDArray[np.int64]:
    """Return the levels that some rows show and others do not."""
    count = counts.joint.sum(axis=(0, 1))
    return np.flatnonzero((count > 0) & (count < counts.rows.sum()))


def _sides(values: Floats, target: int, classes: int) -> Floats:
    """Return values by part and side, the rest first: shape (K, 2, ...) from (K, C, ...)."""
    if classes == 2:
        return values if target == 1 else values[:, ::-1]
    own = values[:, target]
    return np.stack([values.sum(axis=1) - own, own], axis=1)


@dataclass(frozen=True, eq=False)
class _Directions:
    """Fitted directions: b, shape (d, P), their offsets (P,), and what noise adds to a variance."""

    slopes: Floats
    offsets: Floats
    drawn: Floats | None

    def scores(self, n: Floats, sums: Floats, products: Floats) -> tuple[Floats, Floats]:
        """Return sum and sum of squares of the scores of rows by side, shape (2, P) each."""
        along = sums @ self.slopes
        rows = n[:, None]
        first = along - rows * self.offsets
        squares = np.stack([(self.slopes * (side @ self.slopes)).sum(axis=0) for side in products])
        second = squares - 2 * self.offsets * along + rows * self.offsets**2
        if self.drawn is not None:
            for side, count in enumerate(n):
                second[side] += self._noise(products[side], sums[side], count)
        return first, second

    def _noise(self, products: Floats, sums: Floats, n: float) -> Floats:
        """Return what directions that were fitted to drawn rows vary more by, as squares."""
        assert self.drawn is not None
        if n <= 0:
            return np.zeros(self.drawn.shape[0])
        covariance = products - np.outer(sums, sums / n)
        noise: Floats = np.einsum("pik,ij,pjk->p", self.drawn, covariance, self.drawn)
        return noise


def _directions(
    n: Floats, sums: Floats, products: Floats, penalties: Sequence[float], chance: Floats | None
) -> _Directions:
    """Return the directions fitted to counts by side: rows (2,), sums (2, d), products (2, d, d)."""
    means = sums / n[:, None]
    gap = means[1] - means[0]
    within = (0.5 / n[0]) * products[0]
    within += (0.5 / n[1]) * products[1]
    within -= 0.5 * (means.T @ means)
    right = gap[:, None]
    if chance is not None:
        right = np.hstack([right, chance * np.sqrt(n.sum() / n.prod())])
    solved = _solved(within, right, [penalty / n.sum() for penalty in penalties])
    slopes = np.ascontiguousarray(solved[:, :, 0].T)
    drawn = None if chance is None else solved[:, :, 1:]
    return _Directions(slopes, means.mean(axis=0) @ slopes, drawn)


def _solved(matrix: Floats, right: Floats, ridges: Sequence[float]) -> Floats:
    """Return (matrix + r I)^-1 right for each ridge r, shape (P, d, k)."""
    from scipy.linalg.lapack import dposv

    found = np.empty((len(ridges), *right.shape))
    diagonal = np.diagonal(matrix).copy()
    for place, ridge in enumerate(ridges):
        shifted = matrix.copy(order="K").T
        np.fill_diagonal(shifted, diagonal + ridge)
        _, solved, info = dposv(shifted, right, lower=1, overwrite_a=1)
        if info:
            raise InternalError(f"LAPACK dposv failed with code {info}: the counts are no counts.")
        found[place] = solved
    return found


def in_thresholds(
    counts: PartCounts, offsets: npt.NDArray[np.int64], ordered: Sequence[bool]
) -> PartCounts:
    """Return counts with thresholds for the levels of ordered attributes, as `thresholds` does.

    The indicator of level t becomes that of t or a later level, so that the coefficient of a
    threshold is the step between neighbours. Levels that no row shows are left out: two thresholds
    with nothing between them are one.

    Parameters
    ----------
    counts
        Levels in the order of their values.
    offsets
        Where each attribute's levels start, shape (m + 1,).
    ordered
        Per attribute whether its levels have an order.
    """
    shown = np.flatnonzero(counts.joint.sum(axis=(0, 1)) > 0)
    joint, total = counts.joint[..., shown], counts.total[:, :, shown[:, None], shown]
    chance = None if counts.chance is None else counts.chance[shown]
    bounds = np.searchsorted(shown, offsets)
    for place, known in enumerate(ordered):
        if known:
            own = slice(int(bounds[place]), int(bounds[place + 1]))
            joint[:, :, own] = _later(joint[:, :, own], 2)
            total[:, :, own] = _later(total[:, :, own], 2)
            total[:, :, :, own] = _later(total[:, :, :, own], 3)
            if chance is not None:
                chance[own] = _later(chance[own], 0)
    return PartCounts(counts.rows, joint, total, chance)


def _later(values: Floats, axis: int) -> Floats:
    """Return the sums of each entry and all later ones along an axis."""
    turned: Floats = np.flip(np.cumsum(np.flip(values, axis), axis), axis)
    return turned
