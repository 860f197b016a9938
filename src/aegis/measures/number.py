"""Cross-validate the R2 of linear models for a numeric label, from counts and sums by fold.

The rows are divided into K folds. For each fold, ridge regression is fitted to the counts of pairs
of levels and the sums of the label over all other folds. Its squared error on the held-out fold is
a function of the counts and sums of that fold. So the cross-validated error of the regression is
exact (theory.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from aegis.arrays import Floats, cached_method
from aegis.errors import InternalError, PolicyError
from aegis.measures.by_fold import CountsByFold, Response, side, with_and_without
from aegis.measures.cooccurrence import Encoding, LabelKind, Measure, Need, Scope, Trace
from aegis.measures.merits import R2, STANDS_FOR, Learner, OfModels, learners_of
from aegis.measures.numerics import solved
from aegis.measures.pillai import whitened

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence


PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""Ridge penalties, in rows; the best one counts. A label that can be predicted well needs weak
penalties.
"""
_ROUNDING = 1e-9


def response_of(counts: CountsByFold) -> Response:
    """Return the sums of the numeric label by fold; raise `InternalError` if it has classes."""
    if counts.response is None:
        raise InternalError("The counts hold no sums of a number.")
    return counts.response


def squared_errors(counts: CountsByFold) -> Floats:
    """Return the squared errors of ridge regression on each held-out fold, shape (K, P), for the P
    `PENALTIES`.

    `counts` must have the sums of the numeric label. Let x be the vector that encodes the masked
    values of a row (indicators, thresholds and numbers), and y its label. Over the rows outside
    fold k, let x0 and y0 be the means, S the sum of (x - x0)(x - x0)', and s the sum of (x - x0)(y
    - y0). For the penalty p, the coefficients are b = (S + p I)^-1 s, and the error is the sum of
    (y - y0 - b'(x - x0))^2 over fold k. If no row is outside a fold, the mean of all rows is the
    prediction.
    """
    of_rows, response = side(counts, None), response_of(counts)
    n, joint, square = of_rows.rows, of_rows.joint, of_rows.square.border
    total_square = square.sum(axis=0)
    errors = np.zeros((len(n), len(PENALTIES)))
    for fold in range(len(n)):
        others = n.sum() - n[fold]
        if others < 1:
            errors[fold] = spread(response, n)[fold]
            continue
        outside = joint.sum(axis=0) - joint[fold]
        middle, mean = outside / others, (response.total.sum() - response.total[fold]) / others
        slopes = np.zeros((len(PENALTIES), joint.shape[1]))
        if joint.shape[1]:
            scatter = total_square - square[fold] - np.outer(outside, middle)
            both = response.sums.sum(axis=0) - response.sums[fold] - outside * mean
            slopes = solved(scatter, both[:, None], PENALTIES)[..., 0]
        fold_squares = response.squares[fold] - 2 * mean * response.total[fold] + n[fold] * mean**2
        along = response.sums[fold] - joint[fold] * mean
        along = along - middle * (response.total[fold] - n[fold] * mean)
        errors[fold] = fold_squares - 2 * slopes @ along
        errors[fold] += _quadratic(square[fold], slopes)
        scores, offsets = slopes @ joint[fold], slopes @ middle
        errors[fold] += offsets * (n[fold] * offsets - 2 * scores)
    if not np.isfinite(errors).all():
        raise InternalError("Held-out squared errors are not finite, because the sums are not.")
    return np.maximum(errors, 0.0)


def _quadratic(square: Floats, slopes: Floats) -> Floats:
    """Return b'Gb, shape (P,), for the directions b in `slopes`, shape (P, d). `square` has the
    entries of G on and below the diagonal.
    """
    products: Floats = ((slopes @ square) * slopes).sum(axis=1)
    return 2 * products - slopes**2 @ square.diagonal()


def spread(response: Response, rows: Floats) -> Floats:
    """Return the sum of squared differences between the label and its mean over all folds, shape
    (K,).
    """
    mean = response.total.sum() / max(float(rows.sum()), 1.0)
    away: Floats = response.squares - 2 * mean * response.total + rows * mean**2
    return np.maximum(away, 0.0)


def held_out_r2(counts: Cooccurrence, encoding: Encoding) -> Floats:
    """Return the R2 of ridge regression on held-out rows under the best penalty, at least 0: for
    all folds (entry 0) and without each single fold, shape (1 + K,). The result is cached in
    `counts`.
    """
    return _held_out_r2(counts, counts.same_as(encoding))


@cached_method
def _held_out_r2(counts: Cooccurrence, encoding: Encoding) -> Floats:
    of = counts.by_fold(encoding)
    errors = squared_errors(of)
    away = spread(response_of(of), of.rows.sum(axis=1))
    variants = with_and_without(len(away))
    total = (variants @ away)[:, None]
    error_share = np.divide(
        variants @ errors, total, out=np.ones_like(total @ errors[:1]), where=total > 0
    )
    reached: Floats = np.maximum(1.0 - error_share, 0.0).max(axis=1)
    return reached


def explained_share(counts: CountsByFold) -> float:
    """Return the R2 of least squares on all rows, an upper bound on the held-out R2 under these
    masks or coarser ones.

    It is a bound because a ridge regression has at least the squared errors of least squares, and
    held-out rows have at least the squared errors of a fit to all rows (theory.md, section 5).
    """
    of_rows, response = side(counts, None), response_of(counts)
    n = float(of_rows.rows.sum())
    count = of_rows.joint.sum(axis=0)
    away = float(spread(response, of_rows.rows).sum())
    square = of_rows.square.border.sum(axis=0)
    square = square + np.tril(square, -1).T
    variance = count * (1 - count / n) if n else count
    varying = np.flatnonzero(variance > 0)
    if not len(varying) or away <= 0:
        return 0.0
    scale = 1 / np.sqrt(variance[varying])
    scatter = square[varying[:, None], varying] - np.outer(count[varying] / n, count[varying])
    both = response.sums.sum(axis=0)[varying] - count[varying] * (response.total.sum() / n)
    _, white = whitened(scatter * scale[:, None] * scale, (both * scale)[:, None])
    share = float((white**2).sum()) / away
    return min(share * (1 + _ROUNDING) + _ROUNDING, 1.0)


@dataclass(frozen=True)
class ExpectedR2(OfModels):
    """The R2 that linear models are predicted to reach on held-out rows, for a numeric label.

    Attributes
    ----------
    merit
        The name of the metric, R2.
    learners
        The models to predict; empty for the better of linear models and trees.

    Raises
    ------
    PolicyError
        The R2 of a model cannot be predicted.
    """

    merit: str = field(default=R2, init=False)
    learners: tuple[Learner, ...] = ()

    def __post_init__(self) -> None:
        for learner in self.learners:
            if learner not in STANDS_FOR:
                raise PolicyError(
                    f"Aegis cannot predict the R2 of {learner.value!r}.",
                    hint=f"Allowed: {', '.join(STANDS_FOR)}; or leave the models out.",
                )

    def held_out(self, counts: Cooccurrence, encoding: Encoding) -> Floats:
        """Return R2 if masked values are encoded in this way, shape (1 + K,)."""
        return held_out_r2(counts, encoding)

    def with_pair(self, figures: Floats, gain: Floats | np.float64) -> Floats:
        """Return values of R2 plus the gain from the interaction of two attributes, at most 1."""
        return np.minimum(figures + gain, 1.0)


def r2_measure(what: ExpectedR2) -> Measure:
    """Return the measure that predicts R2 for the models in `ExpectedR2`."""
    of = f": {', '.join(what.learners)}" if what.learners else ""
    return Measure(
        name=what.name,
        title=f"Expected R2 on rows held out{of}",
        description=(
            "An estimate of the share of the variance of a numeric label that models explain on "
            "rows that took no part in their fit. Aegis fits ridge regressions with several "
            "penalties and takes the best. It reads numbers and dates in two ways: as numbers, and "
            "as thresholds between ranges. Texts are categories."
        ),
        formula=(
            "largest over p = 1, 10, 100, 1,000 rows of 1 - sum_k |y - y_k - (x - x_k)' (S_k + p I)^-1 s_k|^2"
            " / |y - mean|^2; means, scatter S_k and s_k of the rows outside of fold k"
        ),
        reference=(
            "Hoerl, Kennard, Ridge regression, Technometrics 12, 1970; Stone, Cross-validatory "
            "choice and assessment of statistical predictions, Journal of the Royal Statistical "
            "Society B 36, 1974; the choice of the best penalty and coding is ours"
        ),
        range="0 .. 1",
        unit="R2",
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d, for each of five folds and each penalty"
        + (
            "; m (m - 1) / 2 tables of 8 x 8 cells for m attributes, by fold"
            if what.interacting
            else ""
        ),
        compute=what.compute,
        needs=(Need.CV_FOLDS,),
        without_folds=what.without_folds,
        trace=None if what.interacting else Trace.BELOW,
        label=LabelKind.NUMBER,
    )


def r2_of_learners(learners: str) -> Measure:
    """Return the measure that predicts R2 for named models, such as `lr+gbdt`."""
    return r2_measure(ExpectedR2(learners_of(learners)))
