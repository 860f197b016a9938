"""Combine the scores for several labels into one figure; the measures of the labels may have
different units.

The share kept of a label is (score - floor) / (reference - floor), limited to the range from 0 to
1. The floor is the score of a constant prediction, and the reference is the score of the unmasked
table. All three are by the measure of the label.

This module also scores many label classes from one co-occurrence matrix of all rows, instead of one
matrix per class. The number of co-occurrence counts by class grows with the number of classes.
Under two assumptions (decision 0091), one co-occurrence matrix and the counts of levels by class
are enough. The first assumption is that all classes share one covariance matrix. The second is that
the variances of the scores, of a class and of all other rows (the rest), have the same ratio as if
attributes were independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import InternalError, require_known
from aegis.measures.by_fold import CountsByFold, ShownLevels, Side
from aegis.measures.cooccurrence import SHARE_KEPT, Cooccurrence, LabelKind, Measure, Scope
from aegis.measures.numerics import cumulative
from aegis.measures.pillai import whitened

_SERVED = {
    "mean": ("Mean share kept", "the weighted mean of them", "sum_t w_t kept_t / sum_t w_t"),
    "worst": ("Worst share kept", "the smallest of them", "min_t kept_t"),
}
"""By how labels are served: title, description and formula."""


def share_kept(serve: str) -> Measure:
    """Return the measure that combines the shares kept of all labels, by their mean or by the
    smallest of them (`serve` is `mean` or `worst`). A share kept is the part of a label's score
    that remains after masking, from 0 to 1.

    Raises
    ------
    PolicyError
        `serve` is neither `mean` nor `worst`.
    """
    require_known("way to serve several labels", serve, _SERVED)
    title, combined, formula = _SERVED[serve]
    return Measure(
        name=f"{SHARE_KEPT}({serve})",
        title=title,
        description=f"The share of each of several labels that is kept, and {combined}: each label "
        "is scored by its own measure, between what a constant prediction and the unmasked table reach.",
        formula=f"{formula}; kept_t = (score_t - floor_t) / (reference_t - floor_t)",
        reference="Aegis, theory.md",
        range="0 to 1",
        unit="share",
        scope=Scope.CONFIGURATION,
        cost="that of the measures of all labels",
        compute=_no_single_counts,
        label=LabelKind.SEVERAL,
    )


def combined(serve: str, shares: Sequence[float | None], weights: Sequence[float]) -> float:
    """Return one figure that combines the shares kept of several labels; it is 0 if all shares are
    None.

    A share is None if the label cannot be predicted; such a label is left out.

    Parameters
    ----------
    serve
        `mean` or `worst`.
    shares
        The share of each label, from 0 to 1.
    weights
        The weight of each label in the mean, above zero.

    Examples
    --------
    >>> combined("mean", [0.5, 1.0], [1, 3]), combined("worst", [0.5, None], [1, 1])
    (0.875, 0.5)
    """
    pairs = [(share, w) for share, w in zip(shares, weights, strict=True) if share is not None]
    if not pairs:
        return 0.0
    if serve == "worst":
        return min(share for share, _ in pairs)
    return sum(share * weight for share, weight in pairs) / sum(weight for _, weight in pairs)


def _no_single_counts(counts: Cooccurrence) -> NoReturn:
    raise InternalError(
        f"Shares of several labels cannot be computed from {type(counts)}, the counts of one label."
    )


_ROUNDING = 1e-12
_BOUND = 1e-9


def sums_alike(
    counts: CountsByFold, every: Side, compared: Ints, slopes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the number of rows, the sum of the scores and the sum of the squared scores, for each
    class and for its rest.

    The rest are the rows of all other classes. The score of a row is b'x: x has an indicator for
    each of the d levels (masked values), and the direction b their coefficients. The shapes are (K,
    T, 2), (K, T, 2, P) and (K, T, 2, P), for K folds, T classes, and P directions per class and
    fold; on the axis of length 2, the rest is first. The sum of squares over the rest and the class
    together is exact. The variance of each attribute's separate score in the rest and in the class
    shows how to divide this sum between both; the division is an estimate.

    Parameters
    ----------
    counts
        Counts by fold. The co-occurrence by class is not used.
    every
        The counts of all rows, not by class.
    compared
        The classes that are compared with the rest, shape (T,).
    slopes
        The directions b, shape (K, T, P, d).
    """
    class_rows = counts.rows[:, compared]
    rows = np.stack([every.rows[:, None] - class_rows, class_rows], axis=2)
    per_row = 1.0 / np.maximum(rows, 1.0)[..., None]
    class_along = (slopes @ counts.joint[:, compared][..., None])[..., 0]
    all_along = (slopes @ every.joint[:, None, :, None])[..., 0]
    along = np.stack([all_along - class_along, class_along], axis=2)  # (K, T, 2, P)
    folds, classes, penalties, levels = slopes.shape
    flat = slopes.reshape(folds, classes * penalties, levels)  # there may be no level
    squares = (every.products(flat) * flat).sum(axis=2)
    squares = 2 * squares.reshape(slopes.shape[:3])
    within = squares - (along**2 * per_row).sum(axis=2)
    within[within <= _ROUNDING * squares] = 0.0
    spread = np.zeros(along.shape)
    for joint, by_level in _by_attribute(counts, slopes):
        of_class, of_all = joint[:, compared, :, None], joint.sum(axis=1)[:, None, :, None]
        sums, of_squares = (
            np.stack([power @ of_all - power @ of_class, power @ of_class], axis=2)[..., 0]
            for power in (by_level, by_level**2)
        )
        alone = of_squares - sums**2 * per_row
        spread += np.where(alone > _ROUNDING * of_squares, alone, 0.0)
    total = spread.sum(axis=2, keepdims=True)
    share = np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)
    return rows, along, within[:, :, None] * share + along**2 * per_row


def _by_attribute(counts: CountsByFold, slopes: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield two arrays for each attribute: the rows by level (masked value), shape (K, C, L), and
    the score of each level, (K, T, P, L), for K folds, C classes, T compared classes, P directions
    and L levels. A direction (in `slopes`) has the coefficients of a linear score for all d levels,
    shape (K, T, P, d).
    """
    attributes = counts.by_attribute
    if attributes is None:  # levels stand for themselves
        columns = range(counts.joint.shape[-1])
        attributes = [ShownLevels(counts.joint[..., j : j + 1]) for j in columns]
    start = 0
    for attribute in attributes:
        matrix = attribute.matrix
        stop = start + matrix.shape[1]
        if stop > start:
            yield attribute.joint, slopes[..., start:stop] @ matrix.T
        start = stop


def reachable_alike(counts: CountsByFold, every: Side, compared: Ints, scored: Flags) -> float:
    """Return an upper bound on the AUC of any linear score of the masked values, if one covariance
    serves all classes. The bound holds for scores whose squares are estimated by `sums_alike`.

    Let p and q be the shares of the class and of the rest in the scored folds, v_1 and v_0 the
    variances of a score in the class and in the rest, and v = p v_1 + q v_0. Then v_1 + v_0 is at
    least v / max(p, q). Consider all scores that are linear in the indicators of each fold. For
    these scores, the squared difference of the means of class and rest, divided by v, is at most

        U / (1 - p q U),  U = n sum_k c_k' E_k^+ c_k,  c_k = J_1k / n_1 - J_0k / n_0,

    summed over folds k. Here p q U is the R^2 of least squares. J_1k and J_0k are the rows by level
    in fold k, of the class and of the rest; n_1 and n_0 are the numbers of rows of the class and of
    the rest in all folds, and n is n_1 + n_0; E_k is the co-occurrence of all rows of fold k.

    Parameters
    ----------
    counts, every, compared
        Counts by fold, the counts of all rows, and the indices of the T compared classes.
    scored
        Whether each of K folds has a direction for each class, shape (K, T).
    """
    class_rows = np.where(scored, counts.rows[:, compared], 0.0).sum(axis=0)
    all_rows = np.where(scored, every.rows[:, None], 0.0).sum(axis=0)
    rest = all_rows - class_rows
    scorable = (class_rows > 0) & (rest > 0)
    if not scorable.any():
        return 0.5
    per_class, per_rest = (1.0 / np.maximum(rows, 1.0) for rows in (class_rows, rest))
    reached = np.zeros(len(compared))
    for fold in np.flatnonzero(scored.any(axis=1)).tolist():
        joint = counts.joint[fold, compared].T  # (d, T)
        gap = joint * per_class - (every.joint[fold][:, None] - joint) * per_rest
        count = every.joint[fold]
        scale = np.divide(1.0, np.sqrt(count), out=np.zeros_like(count), where=count > 0)
        matrix = every.square.of_fold(fold)
        matrix *= scale[:, None]
        matrix *= scale
        _, solved = whitened(matrix.T, gap * scale[:, None])
        reached += np.where(scored[fold], (solved**2).sum(axis=0), 0.0)
    explained = class_rows * rest * reached / np.maximum(all_rows, 1.0)  # p q U
    explained = np.minimum(explained * (1 + _BOUND) + _BOUND, 1.0)
    with np.errstate(divide="ignore"):
        squared = all_rows**2 / np.maximum(class_rows * rest, 1.0) * explained / (1 - explained)
    larger = np.maximum(class_rows, rest) / np.maximum(all_rows, 1.0)
    aucs: Floats = cumulative(np.sqrt(larger * squared))
    return float(aucs[scorable].mean())
