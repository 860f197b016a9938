"""What linear discriminants reach on rows that they were not fitted to, from counts by fold.

The rows are divided into K parts. On all parts but one a penalised discriminant direction is fitted
to the second-order counts by class; on the part left out it has a sum and a sum of squares per
class, which are functions of that part's counts. So every row is scored by a direction that has not
seen it, and no row is read. The log-odds of naive Bayes are such a direction, too. Under normal
scores these moments give the area under the ROC curve (AUC) here, and in `merits` the accuracy and
the log loss that a model is expected to reach (theory.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.by_part import OtherParts, PartCounts, sides_of, varying_only
from aegis.measures.normal import cumulative
from aegis.measures.shape import shape_factors
from aegis.measures.split import SplitCounts

Floats = npt.NDArray[np.float64]

PENALTIES = (1.0, 10.0, 100.0)
"""Rows that a masked value needs before half of what they say of it is believed."""
_ROUNDING = 1e-12
"""Share of a mean square, or of means, up to which what is left of a difference is rounding."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Moments of the scores of rows by directions that have not seen them.

    Attributes
    ----------
    rows
        Rows per part and class, shape (K, C).
    told
        The classes that are told from the rest, shape (T,).
    scored
        Whether a part has a direction for a class, shape (K, T).
    first
        Sum of the scores of a class's rows by each direction, P a class: (K, C, T, P).
    second
        Sum of the products of two directions' scores, shape (K, C, T, T, P).
    drawn
        What noise adds to `second` of one class and of the rest, (K, T, 2, P); None without noise.
    log_odds
        Whether the scores are a model's own log-odds, so that nothing is left to calibrate.
    shape
        `shape_factors`, shape (1 + K,), of two classes; None where nothing is known of a shape.
    """

    rows: Floats
    told: npt.NDArray[np.int64]
    scored: npt.NDArray[np.bool_]
    first: Floats
    second: Floats
    drawn: Floats | None = None
    log_odds: bool = False
    shape: Floats | None = None

    @cached_property
    def variants(self) -> Floats:
        """Which parts count: all of them, and all but one, shape (1 + K, K)."""
        parts = len(self.rows)
        return np.vstack([np.ones((1, parts)), 1.0 - np.eye(parts)])

    def summed(self, values: Floats) -> Floats:
        """Return values by part, shape (K, ...), added up over the parts of each variant."""
        flat = self.variants @ values.reshape(len(values), math.prod(values.shape[1:]))
        return flat.reshape(len(flat), *values.shape[1:])

    @cached_property
    def sides(self) -> tuple[Floats, Floats, Floats]:
        """Rows (V, T, 2), means and variances (V, T, 2, P) of the rest and of each class told.

        One entry per variant. A variance within rounding of the mean square counts as none.
        """
        told = np.arange(len(self.told))
        sides = sides_of(self.told, self.rows.shape[1])
        rows = (self.rows[:, None, :] * self.scored[:, :, None])[..., None]  # (K, T, C, 1)
        first = self.first.swapaxes(1, 2)  # (K, T, C, P)
        second = self.second[:, :, told, told].swapaxes(1, 2)
        rows, first, second = (sides @ values for values in (rows, first, second))
        if self.drawn is not None:
            second = second + self.drawn
        rows, first, second = map(self.summed, (rows, first, second))
        count = np.maximum(rows, 1.0)
        mean, square = first / count, second / count
        spread = square - mean**2
        return rows[..., 0], mean, np.where(spread > _ROUNDING * square, spread, 0.0)

    @cached_property
    def areas(self) -> Floats:
        """The AUC of each direction under normal scores, mean over classes, shape (1 + K, P).

        P(score of a row of the class > score of another) = Phi((m_1 - m_0) / sqrt(v_1 + v_0)),
        one class against the rest; classes of which no row was scored take no part, and where
        that leaves none, nothing can be told: 1/2. First of all parts, then without each.
        """
        rows, mean, spread = self.sides
        if not len(self.told):
            return np.full((len(rows), self.first.shape[-1]), 0.5)
        known: Floats = np.array(rows > 0, dtype=np.float64).min(axis=2)[..., None]  # (V, T, 1)
        gap = mean[:, :, 1] - mean[:, :, 0]
        gap[np.abs(gap) <= _ROUNDING * np.abs(mean).sum(axis=2)] = 0.0
        area = cumulative(_ratio(gap, spread.sum(axis=2)))
        count = known.sum(axis=1)
        mean_area: Floats = (area * known).sum(axis=1) / np.maximum(count, 1.0)
        return np.where(count > 0, mean_area, 0.5)

    def auc(self) -> Floats:
        """Return the AUC of each direction over all parts, shape (P,)."""
        whole: Floats = self.areas[0]
        return whole


def _ratio(gap: Floats, variance: Floats) -> Floats:
    """Return the gap in standard deviations; without variance its sign decides, if it has one."""
    certain = np.where(gap != 0, np.copysign(np.inf, gap), 0.0)
    return np.divide(gap, np.sqrt(variance), out=certain, where=variance > 0)


@dataclass(frozen=True, eq=False)
class _Others:
    """What is known of all rows outside of each part.

    Attributes
    ----------
    counts
        By part, less the levels that all rows show, or none.
    outside
        The rows behind it.
    """

    counts: PartCounts | SplitCounts
    outside: OtherParts

    @classmethod
    def of(cls, counts: PartCounts | SplitCounts) -> _Others:
        if isinstance(counts, SplitCounts):
            return cls(counts, counts.outside)
        return cls(varying_only(counts)[0], counts.outside or OtherParts.of(counts.rows))

    @property
    def told(self) -> npt.NDArray[np.int64]:
        return self.outside.told

    @property
    def rows(self) -> Floats:
        return self.outside.rows

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        return self.outside.scored

    @cached_property
    def means(self) -> Floats:
        """Means of the level indicators, shape (K, T, 2, d)."""
        return self.outside.means(self.counts.joint)

    def scores(
        self, slopes: Floats, offsets: Floats, drawn: Floats | None = None, **more: bool
    ) -> Scores:
        """Return the moments of the scores b'x - o.

        Parameters
        ----------
        slopes, offsets
            b and o per part and class told, shapes (K, T, d, P) and (K, T, P).
        drawn
            As of `Scores`.
        """
        counts, told = self.counts, len(self.told)
        parts, classes, levels = counts.joint.shape
        shape = (parts, classes, told, slopes.shape[-1])
        turned = np.ascontiguousarray(slopes.transpose(0, 1, 3, 2))  # (K, T, P, d)
        across = turned.reshape(parts, 1, told * shape[3], levels)
        along = (across @ counts.joint[..., None]).reshape(shape)
        products = counts.products(across).reshape(*shape, levels)
        rows, middle = counts.rows[:, :, None, None], offsets[:, None]
        if told == 1:
            second = (products * turned[:, None]).sum(axis=4)[:, :, None]
        else:
            second = np.einsum("kctpd,kupd->kctup", products, turned, optimize=True)
        if counts.below:
            second += second.swapaxes(2, 3)
        size = np.einsum("kcttp->kctp", second) + rows * middle**2
        second -= middle[:, :, :, None] * along[:, :, None]
        second -= middle[:, :, None] * along[:, :, :, None]
        second += rows[..., None] * middle[:, :, :, None] * middle[:, :, None]
        # What is left of terms that cancel is rounding, and no score.
        first = along - rows * middle
        first[np.abs(first) <= _ROUNDING * (np.abs(along) + rows * np.abs(middle))] = 0.0
        own = np.einsum("kcttp->kctp", second)
        own[own <= _ROUNDING * size] = 0.0
        scored = self.scored[:, None, :, None]
        first *= scored
        second *= scored[:, :, :, None] & scored[:, :, None]
        if not np.isfinite(second).all():
            raise InternalError("Scores out of fold are no numbers: the counts hold none.")
        return Scores(
            counts.rows,
            self.told,
            self.scored,
            first,
            second,
            drawn,
            shape=self._shape(slopes[..., slopes.shape[3] // 2]),
            **more,
        )

    def _shape(self, slopes: Floats) -> Floats | None:
        """Return `shape_factors` of one direction per part and class told, shape (K, T, d)."""
        counts = self.counts
        if len(self.told) != 1 or counts.bounds is None or not self.scored.all():
            return None
        seen = np.flatnonzero(counts.rows.sum(axis=0))
        rest = np.setdiff1d(seen, self.told, assume_unique=True)
        classes = np.concatenate([rest, self.told])
        return shape_factors(
            slopes[:, 0], counts.joint[:, classes], counts.rows[:, classes], counts.bounds
        )


def out_of_fold(counts: PartCounts | SplitCounts, penalties: Sequence[float] = PENALTIES) -> Scores:
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
    others = _Others.of(counts)
    counts = others.counts
    parts, _, levels = counts.joint.shape
    slopes = np.zeros((parts, len(others.told), levels, len(penalties)))
    noise = None if counts.chance is None else np.zeros((*others.rows.shape, len(penalties)))
    for target in range(len(others.told) if levels else 0):
        if isinstance(counts, SplitCounts):
            own = counts.directions(others.means, target, tuple(penalties))
            slopes[:, target] = own.swapaxes(1, 2)
            continue
        within = others.outside.within(counts.total, others.means, target)
        means = others.means[:, target]
        for part in np.flatnonzero(others.scored[:, target]):
            n = others.rows[part, target]
            right = (means[part, 1] - means[part, 0])[:, None]
            if counts.chance is not None:
                chance = counts.chance * np.sqrt(n.sum() / n.prod() / counts.rows.sum())
                right = np.hstack([right, chance])
            ridges = others.outside.ridges(int(part), target, penalties)
            solved = _solved(within[part], right, ridges)
            slopes[part, target] = solved[:, :, 0].T
            if noise is not None:
                noise[part, target] = _noise(others, counts, int(part), target, solved[:, :, 1:])
    offsets = (others.means.mean(axis=2)[:, :, None] @ slopes)[:, :, 0]
    return others.scores(slopes, offsets, noise)


NB_PRIOR = 1.0
"""Rows that naive Bayes adds to each cell of a label table (Laplace)."""


def naive_bayes(counts: PartCounts | SplitCounts) -> Scores:
    """Return the moments of the log-odds of naive Bayes on rows that it was not fitted to.

    For class t against the rest the log-odds are those of independent level indicators (Bernoulli),
    with p_v = (n_v + 1) / (n + 2) for level v of n rows: log n_1 / n_0 + sum_v log((1 - p_1v) /
    (1 - p_0v)) + sum_v x_v (logit p_1v - logit p_0v). They are fitted to label tables alone; what
    they vary by on the part left out takes the pairs, too, since what attributes share counts twice.
    """
    others = _Others.of(counts)
    counts = others.counts
    rows = others.rows[..., None]
    prior = np.maximum(rows, 1.0)
    share = np.clip((others.means * rows + NB_PRIOR) / (prior + 2 * NB_PRIOR), 1e-300, 1 - 1e-16)
    present, absent = np.log(share), np.log1p(-share)
    odds = present - absent
    slopes = (odds[:, :, 1] - odds[:, :, 0])[..., None]
    constant = (np.log(prior[:, :, 1]) - np.log(prior[:, :, 0]))[..., 0]
    constant = constant + (absent[:, :, 1] - absent[:, :, 0]).sum(axis=2)
    noise = None
    if isinstance(counts, PartCounts) and counts.chance is not None:
        noise = np.zeros((*others.rows.shape, 1))
        pooled = (share * (1 - share)).mean(axis=2)
        for part, target in zip(*np.nonzero(others.scored), strict=True):
            n = others.rows[part, target]
            scale = np.sqrt(n.sum() / n.prod() / counts.rows.sum())
            drawn = scale * counts.chance / pooled[part, target][:, None]
            noise[part, target] = _noise(others, counts, int(part), int(target), drawn[None])
    return others.scores(slopes, -constant[..., None], noise, log_odds=True)


def _noise(others: _Others, counts: PartCounts, part: int, target: int, drawn: Floats) -> Floats:
    """Return what directions that were fitted to drawn rows vary more by, as squares, (2, P).

    `drawn` is what they vary by, shape (P, d, k): the product with its transpose is a covariance.
    """
    own = others.told[target]
    squares = np.zeros((2, len(drawn)))
    rest = np.arange(counts.rows.shape[1]) != own
    for side, classes in enumerate((rest, ~rest)):
        n = counts.rows[part, classes].sum()
        if n > 0:
            sums = counts.joint[part, classes].sum(axis=0)
            covariance = counts.total[part, classes].sum(axis=0) - np.outer(sums, sums / n)
            squares[side] = np.einsum("pik,ij,pjk->p", drawn, covariance, drawn, optimize=True)
    return squares


def _solved(matrix: Floats, right: Floats, ridges: Sequence[float]) -> Floats:
    """Return (matrix + r I)^-1 right for each ridge r, shape (P, d, k); read below the diagonal."""
    from scipy.linalg.lapack import dposv

    shifted = np.empty((len(ridges), *matrix.shape))
    shifted[:] = matrix
    diagonal = np.arange(len(matrix))
    shifted[:, diagonal, diagonal] += np.asarray(ridges)[:, None]
    solutions = np.empty((len(ridges), *right.shape))
    for place, own in enumerate(shifted):
        # LAPACK reads the transpose, whose upper triangle it factorises faster than a lower one.
        _, solved, info = dposv(own.T, right, lower=0, overwrite_a=1)
        if info:
            raise InternalError(f"LAPACK dposv failed with code {info}: the counts are no counts.")
        solutions[place] = solved
    return solutions
