"""Bound the expected AUC by the largest AUC of any linear score of the masked values.

The out-of-fold scores of a fold are linear in the level indicators, for every direction that was
fitted without the fold. So all scores together are a linear function of indicators that are
separate for each fold. The function of this kind that separates the classes best has a closed form,
and coarser masks allow fewer such functions (theory.md, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aegis.measures.by_fold import (
    OWN_COVARIANCES,
    CountsByFold,
    Side,
    against_the_rest,
    compared_classes,
    side,
)
from aegis.measures.numerics import cumulative
from aegis.measures.pillai import whitened
from aegis.measures.several import reachable_alike

_ROUNDING = 1e-9


def reachable_auc(counts: CountsByFold) -> float:
    """Return an upper bound on the AUC that any learner can reach on held-out rows, under these
    masks or coarser masks.

    The result bounds the measure `held-out-auc`. Compare one class (index 1) with all other classes
    (the rest, index 0). In fold k, let the vectors J_1k and J_0k contain the number of rows that
    have each level (masked value), and let the matrices G_1k and G_0k contain the number of rows
    that have both levels of each pair. Let n_1 and n_0 be the numbers of rows in all scored folds.
    Then

        V = sum_k c_k' M_k^+ c_k,  c_k = (J_1k / n_1 - J_0k / n_0) / 2,
        M_k = (G_1k / n_1 + G_0k / n_0) / 2

    is an R^2: least squares, fitted separately in each fold, predicts +1 for the class and -1 for
    the rest from the indicators of levels, and class and rest have the same total weight. If scores
    are normal, no scores that are linear in the indicators have an AUC above Phi(sqrt(2 V / (1 -
    V))), where Phi is the normal distribution function. The result is the mean over classes, or 1/2
    if no class can be scored. If there are more than `OWN_COVARIANCES` classes, it is the bound of
    `reachable_alike`.
    """
    compared, scored = compared_classes(counts.rows)
    if len(compared) > OWN_COVARIANCES:
        return reachable_alike(counts, side(counts, None), compared, scored)
    aucs = []
    for position, sides in enumerate(against_the_rest(counts, compared)):
        folds = np.flatnonzero(scored[:, position])
        n = [float(side.rows[folds].sum()) for side in sides]
        if min(n) <= 0:
            continue
        weights = [0.5 / rows for rows in n]
        explained = sum(_explained(sides, int(fold), weights) for fold in folds)
        explained = min(explained * (1 + _ROUNDING) + _ROUNDING, 1.0)
        ratio = 2 * explained / (1 - explained) if explained < 1 else np.inf
        aucs.append(float(cumulative(np.sqrt(ratio))))
    return float(np.mean(aucs)) if aucs else 0.5


def _explained(sides: tuple[Side, Side], fold: int, weights: Sequence[float]) -> float:
    """Return how much one fold adds to the R^2 in `reachable_auc`: c' M^+ c, where c has the
    weighted rows of the class minus those of the rest by level, and M the weighted rows of both by
    pair. `sides` are the counts of the rest and of the class.
    """
    rest, class_rows = (w * side.joint[fold] for w, side in zip(weights, sides, strict=True))
    both = rest + class_rows
    # A level that no row shows is a row and a column of zeros, which add nothing to the rank.
    scale = np.divide(1.0, np.sqrt(both), out=np.zeros_like(both), where=both > 0)
    matrix = weights[0] * sides[0].square.of_fold(fold)
    matrix += weights[1] * sides[1].square.of_fold(fold)
    matrix *= scale[:, None]
    matrix *= scale
    # What is read is the upper triangle: that of the transpose is counted in any case.
    _, solved = whitened(matrix.T, ((class_rows - rest) * scale)[:, None])
    return float((solved**2).sum())
