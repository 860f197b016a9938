"""Measure interactions: how much better two attributes predict together than by the sum of their
effects.

Linear scores of masked values add up the effects of the attributes. Trees of depth two also use
interactions: the effect of a value of one attribute may depend on the value of another. The counts
contain, for every pair of attributes, a table by class and fold. So for each pair, an interaction
can be fitted without a fold and tested on that fold (theory.md, section 3). Interactions of three
attributes are not covered.
"""

from __future__ import annotations

import numpy as np

from aegis.arrays import Flags, Floats
from aegis.measures.by_fold import compared_classes, with_and_without
from aegis.measures.numerics import quantile

BELIEVED = 100.0
"""Ridge penalty, in rows: a cell with this many rows keeps half of its effect beyond the sum of
effects.
"""
_ROUNDING = 1e-9
"""Relative difference up to which two scores count as equal."""
_FAR = 1e-9
"""Smallest distance of an AUC from 0 or 1; closer values are moved to this distance."""


def pair_gains(tables: Floats) -> Floats:
    """Return, for each pair of attributes, how much better their joint table predicts the label
    than the sum of their effects.

    The shape is (M, T, 1 + K), for M pairs and T classes that are compared with the rest; the last
    axis is for all K folds (entry 0) and without each single fold. Compare class t with the rest
    (if there are two classes, the second with the first), and leave out fold k. Each of the n_1
    rows of the class outside the fold has the weight 1 / (2 n_1), and each of the n_0 other rows
    outside the fold has the weight 1 / (2 n_0). Let w_ab be the total weight of cell (a, b), y_ab
    the weight of its rows of the class minus the weight of its other rows, and n = n_1 + n_0. The
    sum of effects f(a, b) = u_a + v_b + c is the ridge regression of +-1 on the centred values of
    both attributes, with penalty p / n, where p is `BELIEVED`. The interaction of a cell is its
    residual, shrunk towards 0:

        r(a, b) = (y_ab - w_ab f(a, b)) / (w_ab + p / n).

    The AUC of f, and of f + r, on the rows of fold k can be computed exactly from the cells. Let A
    be its mean over the folds, weighted by the rows of the class, and z = Phi^-1(A) the normal
    quantile. The gain is the difference of z |z| between f + r and f. A fold is not scored if it
    lacks the class or the rest, or if all other folds together lack the class or the rest.

    Parameters
    ----------
    tables
        For M pairs, the number of rows by fold, class (C classes) and the A and B values of both
        attributes, shape (M, K, C, A, B). All pairs have the same rows in total.
    """
    if not len(tables):
        return np.zeros((0, 0, 1 + tables.shape[1]))
    compared, scored = compared_classes(tables[0].sum(axis=(2, 3)))
    gains = [_gains_of_class(tables, int(t), scored[:, i]) for i, t in enumerate(compared)]
    return np.stack(gains, axis=1) if gains else np.zeros((len(tables), 0, 1 + tables.shape[1]))


def pair_gains_of_number(rows: Floats, deviations: Floats, squares: Floats) -> Floats:
    """Return, for each pair of attributes, the gain in R2 of a numeric label if their joint table
    is used instead of the sum of their effects.

    The shape is (M, 1, 1 + K), for M pairs; the last axis is for all K folds (entry 0) and without
    each single fold. Leave out fold k. Of the n rows outside the fold, let w_ab be the share in
    cell (a, b), and y_ab the sum of the label's deviations from its mean, divided by n. The sum of
    effects f(a, b) = u_a + v_b + c is the ridge regression of the label on the centred values of
    both attributes, with penalty p / n, where p is `BELIEVED`. The interaction of a cell is its
    residual, shrunk towards 0:

        r(a, b) = (y_ab - w_ab f(a, b)) / (w_ab + p / n).

    On fold k, adding r to f changes the squared errors by

        sum_ab (n_ab r^2 - 2 r (Y_ab - n_ab f)),

    where n_ab are the rows of the cell in the fold, and Y_ab their summed deviations. The gain is
    the decrease, summed over the folds, as a share of the label's squared deviations. If no row is
    outside a fold, the fold has no gain.

    Parameters
    ----------
    rows, deviations
        For M pairs, the number of rows and the summed deviations of the label from its mean over
        all rows, by fold and the A and B values of both attributes, shape (M, K, A, B).
    squares
        Sum of the squared deviations of the label from its mean, by fold, shape (K,).
    """
    folds = rows.shape[1]
    if not len(rows):
        return np.zeros((0, 1, 1 + folds))
    outside = rows.sum(axis=1, keepdims=True) - rows
    n = np.maximum(outside.sum(axis=(-2, -1)), 1.0)
    aim = (deviations.sum(axis=1, keepdims=True) - deviations) / n[..., None, None]
    mean = aim.sum(axis=(-2, -1), keepdims=True)
    weight = outside / n[..., None, None]
    together, residual = _ridge(weight, aim - weight * mean, BELIEVED / n)
    left = deviations - rows * (mean + together)
    fallen = (2 * residual * left - rows * residual**2).sum(axis=(-2, -1))  # (M, K)
    variants = with_and_without(folds)
    total = variants @ squares
    gains: Floats = np.divide(
        fallen @ variants.T, total, out=np.zeros((len(rows), 1 + folds)), where=total > 0
    )
    return gains[:, None]


def strongest(gains: Floats) -> Floats:
    """Return the gain of the strongest pair of attributes, for all K folds (entry 0) and without
    each single fold, shape (1 + K,).

    Each pair has a gain g over all folds, and a gain g_k without fold k. The strongest pair is the
    one whose smallest gain m is largest, because a gain in a single fold is chance. The first entry
    is m, and the entry without fold k is m + g_k - g, at least 0. Gains of several pairs overlap,
    so they are not added up. The strongest pair is chosen for each class. The result is the mean
    over classes, and 0 if no pair has a positive gain.

    Parameters
    ----------
    gains
        The gains of M pairs for T classes, for all K folds (entry 0) and without each single fold,
        shape (M, T, 1 + K).
    """
    if not gains.size:
        return np.zeros(gains.shape[2])
    least = gains.min(axis=2)  # (M, T)
    pair, classes = least.argmax(axis=0), np.arange(least.shape[1])
    moved = least[pair, classes][:, None] + gains[pair, classes] - gains[pair, classes, :1]
    gain: Floats = np.where(least[pair, classes][:, None] > 0, np.maximum(moved, 0.0), 0.0)
    return np.asarray(gain.mean(axis=0))


def _gains_of_class(tables: Floats, target: int, scored: Flags) -> Floats:
    """Return, for each of M pairs, the gain of the joint table over the sum of effects (see
    `pair_gains`) for one class against the rest, shape (M, 1 + K): on all folds, then without each
    fold. `scored` says which folds can be scored.
    """
    class_rows = tables[:, :, target]
    inside = np.stack([tables.sum(axis=2) - class_rows, class_rows], axis=2)  # (M, K, 2, A, B)
    together, residual = _fitted(inside.sum(axis=1, keepdims=True) - inside)
    weight = inside.sum(axis=(3, 4)).prod(axis=2) > 0
    weight = np.where(weight, inside[:, :, 1].sum(axis=(2, 3)), 0.0) * scored
    folds = weight.shape[1]
    variants = with_and_without(folds)
    squares = []
    for score in (together, together + residual):
        summed = (weight * _aucs(score, inside)) @ variants.T
        total = weight @ variants.T
        area = np.divide(summed, total, out=np.full_like(summed, 0.5), where=total > 0)
        distance = quantile(np.clip(area, _FAR, 1 - _FAR))
        squares.append(distance * np.abs(distance))
    return squares[1] - squares[0]


def _aucs(score: Floats, inside: Floats) -> Floats:
    """Return the AUC of each pair in each fold, shape (M, K): P(score of a row of the class > score
    of another row) + P(equal) / 2. `score` has the score of each cell, (M, K, A, B); scores that
    differ only by rounding count as equal. `inside` has the rows of the rest and of the class in
    the fold by cell, (M, K, 2, A, B).
    """
    pairs, folds = score.shape[:2]
    flat, cells = score.reshape(pairs, folds, -1), score[0, 0].size
    order = np.argsort(flat, axis=2, kind="stable")
    ranked = np.take_along_axis(flat, order, axis=2)
    step = np.diff(ranked, axis=2) > _ROUNDING * np.abs(flat).max(axis=2, keepdims=True)
    group = np.zeros(flat.shape, dtype=np.int64)
    np.cumsum(step, axis=2, out=group[:, :, 1:])
    group += cells * np.arange(pairs * folds).reshape(pairs, folds, 1)
    rest, class_rows = (
        np.bincount(
            group.ravel(),
            np.take_along_axis(inside[:, :, side].reshape(flat.shape), order, axis=2).ravel(),
            flat.size,
        ).reshape(flat.shape)
        for side in range(2)
    )
    below = np.cumsum(rest, axis=2) - rest / 2
    count = class_rows.sum(axis=2) * rest.sum(axis=2)
    area: Floats = np.divide(
        (class_rows * below).sum(axis=2), count, out=np.full(count.shape, 0.5), where=count > 0
    )
    return area


def _fitted(outside: Floats) -> tuple[Floats, Floats]:
    """Return the sum of effects and the interaction of each cell, shape (.., A, B) each, from the
    rows of the rest and of the class outside a fold by cell, (.., 2, A, B). `pair_gains` has the
    formulas.
    """
    rows = np.maximum(outside.sum(axis=(-2, -1)), 1.0)  # (.., 2)
    share = outside / (2 * rows[..., None, None])
    weight, aim = share.sum(axis=-3), share[..., 1, :, :] - share[..., 0, :, :]
    return _ridge(weight, aim, BELIEVED / rows.sum(axis=-1))


def _ridge(weight: Floats, aim: Floats, ridge: Floats) -> tuple[Floats, Floats]:
    """Return the sum of effects f(a, b) and the interaction r(a, b), shape (.., A, B) each, from
    the shares of rows w_ab (`weight`) and the sums y_ab (`aim`). `pair_gains` has the formulas.
    """
    first, second = weight.sum(axis=-1), weight.sum(axis=-2)
    height = weight.shape[-2]
    mean = np.concatenate([first, second], axis=-1)
    squares = np.zeros((*mean.shape, mean.shape[-1]))
    diagonal = np.arange(mean.shape[-1])
    squares[..., diagonal, diagonal] = mean + ridge[..., None]
    squares[..., :height, height:] = weight
    squares[..., height:, :height] = weight.swapaxes(-1, -2)
    squares -= mean[..., :, None] * mean[..., None, :]
    right = np.concatenate([aim.sum(axis=-1), aim.sum(axis=-2)], axis=-1)
    right = right - mean * aim.sum(axis=(-2, -1))[..., None]
    slopes = np.linalg.solve(squares, right[..., None])[..., 0]
    together = slopes[..., :height, None] + slopes[..., None, height:]
    together = together - (slopes * mean).sum(axis=-1)[..., None, None]
    residual = (aim - weight * together) / (weight + ridge[..., None, None])
    return together, residual
