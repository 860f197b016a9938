"""The information of two attributes together beyond that of each given the other, from counts of
pairs.

Linear scores of masked values add up what each attribute says. Trees of depth two see more: that a
value of one attribute means another thing beside a value of the other. Second-order counts hold the
table of every pair by class and part of the rows, so that this can be fitted without a part and
tested on it, pair by pair (theory.md, section 3); tables of three attributes they do not hold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.measures.by_fold import told_apart
from aegis.measures.normal import quantile

Floats = npt.NDArray[np.float64]

BELIEVED = 100.0
"""Rows that a cell of a pair needs before half of what it says beyond the sum is believed."""
_ROUNDING = 1e-9
"""Share of the largest score up to which two scores are equal."""
_FAR = 1e-9
"""Least distance of an AUC from 0 or 1 that is looked at."""


def pair_gains(tables: Floats) -> Floats:
    """Return by how much a pair's own table beats the sum of its attributes, shape (M, T, 1 + K).

    For class t against the rest (two classes: the second against the first) and part k left out,
    let a row of the class or of the rest weigh 1 / (2 n_1) or 1 / (2 n_0), w_ab be the weight of
    cell (a, b) outside of part k, y_ab the same with the rest negative, and n = n_1 + n_0. First
    f(a, b) = u_a + v_b + c is the ridge regression of +-1 on the values of both attributes, centred,
    with penalty p / n, p = `BELIEVED`. Then each cell adds what is left in it, as far as it is
    believed:

        r(a, b) = (y_ab - w_ab f(a, b)) / (w_ab + p / n).

    Of the rows of part k both f and f + r have an AUC, exact from the cells; A is its mean over the
    parts, each weighing as the rows of the class in it. The gain is what Phi^-1(A)^2, with the sign of
    Phi^-1(A), is larger for f + r than for f: over all parts, and without each one. A part outside of
    which the class or the rest has no row is not scored, nor is one that lacks either.

    Parameters
    ----------
    tables
        Rows of M pairs by part, class and the values of both attributes, shape (M, K, C, A, B), of
        the same rows all.
    """
    if not len(tables):
        return np.zeros((0, 0, 1 + tables.shape[1]))
    told, scored = told_apart(tables[0].sum(axis=(2, 3)))
    gains = [_gains_of_class(tables, int(t), scored[:, i]) for i, t in enumerate(told)]
    return np.stack(gains, axis=1) if gains else np.zeros((len(tables), 0, 1 + tables.shape[1]))


def strongest(gains: Floats) -> Floats:
    """Return how much the strongest pair adds to Phi^-1(AUC)^2, for all folds and without each, (1
    + K,).

    A pair counts with the smallest of its gains, over all parts and without each one: what a single
    part shows is chance. Gains of several pairs overlap, and each is held against two attributes alone,
    not against all that others tell: one pair is what adds to the others for sure. Of each class its
    own; mean over classes, nothing where no pair gains. Without a part it moves as the gain does.

    Parameters
    ----------
    gains
        As `pair_gains` returns them, shape (M, T, 1 + K).
    """
    if not gains.size:
        return np.zeros(gains.shape[2])
    least = gains.min(axis=2)  # (M, T)
    pair, own = least.argmax(axis=0), np.arange(least.shape[1])
    moved = least[pair, own][:, None] + gains[pair, own] - gains[pair, own, :1]
    added: Floats = np.where(least[pair, own][:, None] > 0, np.maximum(moved, 0.0), 0.0)
    return np.asarray(added.mean(axis=0))


def _gains_of_class(tables: Floats, target: int, scored: npt.NDArray[np.bool_]) -> Floats:
    """Return the gains for one class against the rest, shape (M, 1 + K)."""
    own = tables[:, :, target]
    inside = np.stack([tables.sum(axis=2) - own, own], axis=2)  # (M, K, 2, A, B)
    together, residual = _fitted(inside.sum(axis=1, keepdims=True) - inside)
    weight = inside.sum(axis=(3, 4)).prod(axis=2) > 0
    weight = np.where(weight, inside[:, :, 1].sum(axis=(2, 3)), 0.0) * scored
    parts = weight.shape[1]
    variants = np.vstack([np.ones((1, parts)), 1.0 - np.eye(parts)])
    squares = []
    for score in (together, together + residual):
        summed = (weight * _areas(score, inside)) @ variants.T
        total = weight @ variants.T
        area = np.divide(summed, total, out=np.full_like(summed, 0.5), where=total > 0)
        apart = quantile(np.clip(area, _FAR, 1 - _FAR))
        squares.append(apart * np.abs(apart))
    gains: Floats = squares[1] - squares[0]
    return gains


def _areas(score: Floats, inside: Floats) -> Floats:
    """Return P(score of the class > of the rest) + P(equal) / 2 by pair and part, shape (M, K).

    Scores of cells, (M, K, A, B), that differ by rounding alone are equal.
    """
    pairs, parts = score.shape[:2]
    flat, cells = score.reshape(pairs, parts, -1), score[0, 0].size
    order = np.argsort(flat, axis=2, kind="stable")
    ranked = np.take_along_axis(flat, order, axis=2)
    step = np.diff(ranked, axis=2) > _ROUNDING * np.abs(flat).max(axis=2, keepdims=True)
    group = np.zeros(flat.shape, dtype=np.int64)
    np.cumsum(step, axis=2, out=group[:, :, 1:])
    group += cells * np.arange(pairs * parts).reshape(pairs, parts, 1)
    rest, own = (
        np.bincount(
            group.ravel(),
            np.take_along_axis(inside[:, :, side].reshape(flat.shape), order, axis=2).ravel(),
            flat.size,
        ).reshape(flat.shape)
        for side in range(2)
    )
    below = np.cumsum(rest, axis=2) - rest / 2
    count = own.sum(axis=2) * rest.sum(axis=2)
    area: Floats = np.divide(
        (own * below).sum(axis=2), count, out=np.full(count.shape, 0.5), where=count > 0
    )
    return area


def _fitted(outside: Floats) -> tuple[Floats, Floats]:
    """Return f and r of `pair_gains` for rows (.., 2, A, B) of the rest and of the class."""
    rows = np.maximum(outside.sum(axis=(-2, -1)), 1.0)  # (.., 2)
    share = outside / (2 * rows[..., None, None])
    weight, aim = share.sum(axis=-3), share[..., 1, :, :] - share[..., 0, :, :]
    ridge = BELIEVED / rows.sum(axis=-1)
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
