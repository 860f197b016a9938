"""Measure tables without a label: how well all other columns predict each column on held-out rows,
and the association among all columns.

The rows are divided into K folds. For each fold, ridge regression on the rows of all other folds
predicts each column from all other columns. A single inverse matrix gives the coefficients for all
columns, and a product with the counts of the held-out fold gives the squared errors on this fold
(theory.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from aegis.arrays import Array, Floats, cached_method
from aegis.errors import InternalError
from aegis.measures.by_fold import CountsByFold, ShownLevels, side, with_and_without
from aegis.measures.cooccurrence import (
    UNLABELLED_MEASURE,
    ColumnCounts,
    LabelKind,
    Measure,
    Need,
    PairSide,
    Scope,
)
from aegis.measures.numerics import inverted, left_by_others

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

PENALTIES = (10.0, 100.0, 1000.0)
"""Ridge penalties, in rows. Each column is predicted with the penalty that is best for it."""
_SMALL = 1e-7
"""Penalty in rows that keeps the bound of many configurations solvable; see `explained_by_others`."""
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class ColumnFigures:
    """How well each of m columns is predicted from the others on held-out rows.

    Attributes
    ----------
    learnt
        V / (1 + V), from 0 to 1, shape (1 + K, m): for all K folds (entry 0) and without each
        single fold. V is the sum over the column's levels (masked values) of the reduction in
        squared errors, divided by the rows of the level. Neighbouring levels of a number may count
        as one, if V is then larger (see `groupings`). For two columns, V is the mean square
        contingency, and V / (1 + V) is the square of Pearson's contingency coefficient.
    explained
        Share of the variance of the column's levels that the other columns explain, with the
        penalty that is best over all folds, shape (m,).
    """

    learnt: Floats
    explained: Floats


def column_errors(counts: CountsByFold) -> Floats:
    """Return the squared errors of a ridge regression that predicts each column from all other
    columns.

    The shape is (K, P, R): the errors are summed over each of the K held-out folds, for each of the
    P `PENALTIES`, and for the indicator of each of the R levels and unions of levels that the
    columns have together (see `groupings`). If the counts have several classes, these are added up.

    Let x be the indicators of a row. Over the rows outside fold k, let x_k be their means and S
    their scatter (sums of squares and products of the deviations from the means), and let Q = (S +
    p I)^-1 for the penalty p. The residual of column A is T'(x - x_k) with T = Q_.A Q_AA^-1, where
    Q_.A are the columns of Q that belong to A. For the indicators of A, T is the identity; for all
    others, T has the coefficients times -1. The squared errors are the diagonal of T' M T, where M
    is the scatter of x - x_k over fold k. If one fold has all rows, the prediction is the mean of
    all rows.
    """
    of_rows, column_levels = side(counts, None), _column_levels(counts)
    n, joint, square = of_rows.rows, of_rows.joint, of_rows.square.border
    square = square + np.tril(square, -1).swapaxes(1, 2)
    columns = blocks_of(column_levels)
    to_levels = [np.vstack(groupings(column)) @ level_map(column) for column in column_levels]
    errors = np.zeros((len(n), len(PENALTIES), sum(map(len, to_levels))))
    levels = [slice(*ends) for ends in pairwise(np.cumsum([0, *map(len, to_levels)]).tolist())]
    total, total_square = joint.sum(axis=0), square.sum(axis=0)
    for fold, rows in enumerate(n):
        others = n.sum() - rows
        left_in = others >= 1
        outside = total - joint[fold] if left_in else total
        middle = outside / max(others if left_in else n.sum(), 1.0)
        along = np.outer(joint[fold], middle)
        away = square[fold] - along - along.T + rows * np.outer(middle, middle)
        scatter = total_square - square[fold] - np.outer(outside, middle)
        for index, penalty in enumerate(PENALTIES):
            residual = np.eye(len(scatter))
            if left_in:
                residual = _residuals(scatter, penalty, columns)
            missed = away @ residual
            for column, level, to_level in zip(columns, levels, to_levels, strict=True):
                error_scatter = residual[:, column].T @ missed[:, column]
                errors[fold, index, level] = ((to_level @ error_scatter) * to_level).sum(axis=1)
    if not np.isfinite(errors).all():
        raise InternalError("Squared errors of columns are not finite, because the counts are not.")
    return errors


def _residuals(scatter: Floats, penalty: float, columns: Sequence[slice]) -> Floats:
    """Return the matrix T, shape (d, d), that maps the codes of all columns to the residuals of
    each column after ridge regression on all other columns. `scatter` has the sums of squares and
    products of the centred codes, shape (d, d).
    """
    inverse = inverted(scatter, penalty)
    residual = np.empty_like(inverse)
    for column in columns:
        residual[:, column] = inverse[:, column] @ np.linalg.inv(inverse[column, column])
    return residual


def _column_levels(counts: CountsByFold) -> Sequence[ShownLevels]:
    if counts.by_attribute is None:
        raise InternalError("The counts do not state which values the columns show.")
    return counts.by_attribute


def blocks_of(column_levels: Sequence[ShownLevels]) -> list[slice]:
    """Return the slice of each column's codes among the codes of all columns."""
    ends = np.cumsum([0, *(column.matrix.shape[1] for column in column_levels)]).tolist()
    return [slice(*two) for two in pairwise(ends)]


def level_map(column: ShownLevels) -> Floats:
    """Return the matrix B, shape (L, d), that converts the d codes x of a column into indicators of
    its L levels.

    The indicators are B x plus a constant. For indicators B is the identity; for thresholds it
    takes differences.
    """
    levels, width = column.matrix.shape
    if levels == width or not width:
        return np.eye(levels)[:, :width]
    with_constant = np.column_stack([column.matrix, np.ones(levels)])
    solved: Array = np.linalg.lstsq(with_constant, np.eye(levels), rcond=None)[0]
    return solved[:-1].T


def groupings(column: ShownLevels) -> list[Floats]:
    """Return the groupings of a column's L levels among which the best predicted one counts: for
    each, which levels belong to each group, as 0 and 1, shape (groups, L).

    In the first grouping, each level is a group. If levels are ranges of numbers, each further
    grouping unites pairs of neighbouring groups, until two groups are left. So a mask with wide
    ranges does not score better than one whose ranges can be united to them.

    Examples
    --------
    >>> import numpy as np
    >>> [len(of) for of in groupings(ShownLevels(np.ones((1, 1, 5)), np.tri(5)[:, 1:]))]
    [5, 3, 2]
    """
    levels, width = column.matrix.shape
    finer = [np.eye(levels)]
    while width < levels and len(finer[-1]) > 2:
        finer.append(np.add.reduceat(finer[-1], np.arange(0, len(finer[-1]), 2), axis=0))
    return finer


@cached_method
def column_figures(counts: Cooccurrence) -> ColumnFigures:
    """Return how well each column is predicted from the others; computed once per `counts`."""
    of = _columns(counts).count()
    column_levels, errors = _column_levels(of), column_errors(of)
    rows, groups = of.rows.sum(axis=1), [groupings(column) for column in column_levels]
    variants = with_and_without(len(rows))
    by_group = [
        column.joint.sum(axis=1) @ np.vstack(of_column).T
        for column, of_column in zip(column_levels, groups, strict=True)
    ]
    group_rows = variants @ np.concatenate(by_group, axis=1)
    spread = group_rows * (1 - group_rows / np.maximum(variants @ rows, 1.0)[:, None])
    saved = spread[:, None] - np.tensordot(variants, errors, (1, 0))  # (1 + K, P, R)
    ratio = saved / np.maximum(group_rows, 1e-300)[:, None] * (group_rows > 0)[:, None]
    starts = np.cumsum([0, *(len(grouping) for of_column in groups for grouping in of_column)])[:-1]
    finest = np.cumsum([0, *map(len, groups)])[:-1]
    by_grouping = np.maximum(np.add.reduceat(ratio, starts, axis=2), 0.0)
    by_penalty: Floats = np.maximum.reduceat(by_grouping, finest, axis=2)  # (1 + K, P, m)
    best = by_penalty[0].argmax(axis=0)
    value: Floats = by_penalty.max(axis=1)
    each = np.add.reduceat(saved[0], starts, axis=1)[:, finest]
    explained = each[best, np.arange(len(column_levels))]
    column_spread = np.add.reduceat(spread[0], starts)[finest]
    share = explained / np.maximum(column_spread, 1e-300) * (column_spread > 0)
    return ColumnFigures(value / (1 + value), np.maximum(share, 0.0))


def _columns(counts: Cooccurrence) -> ColumnCounts:
    if counts.columns is None:
        raise InternalError("The counts of all columns by fold were not filled in.")
    return counts.columns


def explained_by_others(counts: CountsByFold) -> list[Floats]:
    """Return, for each column, how much of the scatter of its L levels (masked values) all other
    columns explain, as a matrix of shape (L, L). The scatter has the sums of squares and products
    of the centred 0/1 indicators.

    `counts` must encode each level by an indicator. No ridge regression on coarser masks explains
    more of any sum of levels, on the same or on held-out rows (theory.md, section 5). A small
    penalty keeps the equations solvable if columns determine each other. The matrices are scaled up
    slightly to compensate for this penalty.
    """
    of_rows, column_levels = side(counts, None), _column_levels(counts)
    n = max(float(of_rows.rows.sum()), 1.0)
    count, square = of_rows.joint.sum(axis=0), of_rows.square.border.sum(axis=0)
    # Above the diagonal, the counts may be missing, but no row shows two levels of one column.
    scatter = square - np.outer(count / n, count)
    penalty = _SMALL * max(1.0, n / 1e5)
    most = max((len(column.matrix) for column in column_levels), default=1)
    scale = 1 / (1 - min(penalty * most**2 / (2 * min(PENALTIES)), 0.5)) + _ROUNDING
    columns = blocks_of(column_levels)
    explained = []
    for column, residual in zip(columns, left_by_others(scatter, penalty, columns), strict=True):
        explained_scatter = scatter[column, column] - residual
        explained_scatter.flat[:: len(explained_scatter) + 1] += penalty
        explained.append(scale * explained_scatter)
    return explained


def weighted(learnt: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of `learnt`, shape (..., m), over its columns; 0 if all weights are
    0.
    """
    total = float(weights.sum())
    return learnt @ weights / total if total > 0 else np.zeros(learnt.shape[:-1])


def held_out_any(counts: Cooccurrence) -> float:
    """Return how well each column is predicted from all others, as a weighted mean."""
    return float(weighted(column_figures(counts).learnt[0], _columns(counts).weights))


def _without_folds(counts: Cooccurrence) -> Floats:
    return weighted(column_figures(counts).learnt[1:], _columns(counts).weights)


HELD_OUT_ANY = Measure(
    name=UNLABELLED_MEASURE,
    title="Each column predicted from the others, on rows held out",
    description=(
        "The measure shows how well linear models predict each column from all other columns, on "
        "rows that took no part in their fit. It is a mean over columns. Use it for a table "
        "without a label, if you do not know which column somebody will predict. Columns that "
        "determine each other count once. A number is predicted in ranges: neighbouring ranges "
        "are united as long as this improves the prediction. The measure ignores a label."
    ),
    formula=(
        "weighted mean over columns A of V_A/(1 + V_A), V_A = largest over p = 10, 100, 1,000 rows and over"
        " unions of neighbouring ranges of sum over levels c of (n_c (1 - n_c/N) - sum_k SSE_kc)/n_c, SSE_kc the diagonal of T' M_k T,"
        " T = P_.A P_AA^-1, P = (S_k + p I)^-1, S_k the scatter of all columns outside of fold k, M_k the"
        " squares over fold k about the same means"
    ),
    reference=(
        "Hoerl, Kennard, Ridge regression, Technometrics 12, 1970; several targets by a weighted sum:"
        " LeFevre, DeWitt, Ramakrishnan, Workload-aware anonymization, KDD 2006; of two columns without"
        " penalty V is Pearson's phi2; the computation of all columns from one inverse is ours"
    ),
    range="0 .. 1",
    scope=Scope.CONFIGURATION,
    cost="O(d^3) in the number of masked levels d, for each of five folds and each penalty",
    compute=held_out_any,
    needs=(Need.COLUMNS,),
    without_folds=_without_folds,
    label=LabelKind.NONE,
)


def contingencies(block: Floats, first: PairSide, second: PairSide) -> Floats:
    """Return the squared contingency coefficient, corrected for chance, of each of m attributes
    with each of k others, shape (m, k).

    Pearson's mean square contingency of two columns is

        phi^2 = sum_ab n_ab^2 / (n_a n_b) - 1,

    where n_ab of N rows have the values a and b. If one column is permuted at random, the mean of
    phi^2 is (K_a - 1) (K_b - 1) / (N - 1), where K_a and K_b are the numbers of values (Bartlett,
    1937). Let x be phi^2 minus this mean. The result is x / (1 + |x|). Without the correction, this
    is Pearson's C^2 = phi^2 / (1 + phi^2), which no coarsening of either column can raise. C^2 has
    no divisor that depends on the number of values, so tables under different masks can be
    compared. The result is below 1, and below 0 only by chance. It is 0 if a column has only one
    value, or if there are no rows.

    Parameters
    ----------
    block
        Number of rows by the values of the m attributes and the values of the k attributes, shape
        (d, e); the expected number if a mask adds noise.
    first, second
        The m attributes, whose d values are the rows of `block`, and the k attributes.
    """
    n = float(first.rows[: first.bounds[1]].sum()) if len(first.told_apart) else 0.0
    if n <= 1:
        return np.zeros((len(first.told_apart), len(second.told_apart)))
    # A value without rows has only zeros, which count nothing.
    shares = block / np.where(first.rows > 0, first.rows, 1)[:, None]
    shares *= block / np.where(second.rows > 0, second.rows, 1)
    by_pair = np.add.reduceat(shares, first.bounds[:-1], axis=0)
    phi_squared = np.add.reduceat(by_pair, second.bounds[:-1], axis=1) - 1
    by_chance = np.outer(first.told_apart - 1, second.told_apart - 1) / (n - 1)
    beyond = phi_squared - by_chance
    several = (first.told_apart > 1)[:, None] & (second.told_apart > 1)
    values: Floats = np.where(several, beyond / (1 + np.abs(beyond)), 0.0)
    return values


def mean_contingency(counts: Cooccurrence) -> float:
    """Return the mean of `contingencies` over all pairs of attributes; 0 for fewer than two."""
    side = PairSide.of(counts.joint.sum(axis=1), counts.offsets)
    return mean_of_pairs(contingencies(counts.total, side, side))


def mean_of_pairs(values: Floats) -> float:
    """Return the mean of the values of all pairs, shape (m, m); 0 for fewer than two attributes."""
    above = values[np.triu_indices(len(values), 1)]
    return float(np.mean(above)) if len(above) else 0.0
