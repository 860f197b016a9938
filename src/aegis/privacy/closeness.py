"""The distance between the sensitive values of each equivalence class and those of the whole table.

All functions are pure functions of a `SensitiveCounts` and return one figure per class, shape
(n_classes,). q is the distribution in the class, p the one in the whole table that is given. A
value that no row of the table holds is left out of everything: it is not a value of the table.
"""

from __future__ import annotations

import numpy as np

from aegis.privacy.classes import FloatArray, IntArray, SensitiveCounts

TOLERANCE = 1e-9
"""Slack for rounding in floating point where a figure is compared with a limit."""


def equal_distance(counts: SensitiveCounts) -> FloatArray:
    """Return the total variation distance 0.5 sum_v |q_v - p_v| per class, 0..1.

    The earth mover's distance when all values are equally far apart (Li et al. 2007, section
    5.2). Computed as the sum of the positive differences: values absent from the class have none.
    """
    gains = np.maximum(counts.shares - counts.reference[counts.values], 0.0)
    return counts.sum_by_class(gains)


def ordered_distance(counts: SensitiveCounts) -> FloatArray:
    """Return the earth mover's distance over the ranks of the values per class, 0..1.

    sum_i |sum_{j<=i} (q_j - p_j)| / (m - 1), m the number of values that occur in the table
    (Li et al. 2007, section 5.1, ordered distance); 0 where m is 1.
    """
    present = counts.totals > 0
    m = int(present.sum())
    if m < 2:
        return np.zeros(len(counts.starts))
    below = np.cumsum(counts.reference[present])
    below[-1] = 1.0
    area = np.concatenate([[0.0], np.cumsum(below)])
    first = (np.cumsum(present) - 1)[counts.values]
    last = np.append(first[1:], m)
    ends = np.append(counts.starts[1:], len(first)) - 1
    last[ends] = m
    moved = _steps(counts, below, area, first, last)
    # Before a class's first value its cumulative share is 0, so the distance is that of p alone.
    moved[counts.starts] += area[first[counts.starts]]
    total = counts.sum_by_class(moved)
    result: FloatArray = np.maximum(total / (m - 1), 0.0)
    return result


def _steps(
    counts: SensitiveCounts, below: FloatArray, area: FloatArray, first: IntArray, last: IntArray
) -> FloatArray:
    """Return sum |Q - P_i| over i in [first, last) per cell, Q the cumulative share up to the cell.

    P is sorted, so where it passes Q splits the range in two, and prefix sums give both parts.
    """
    through = np.cumsum(counts.counts)
    before = through[counts.starts] - counts.counts[counts.starts]
    q = (through - np.repeat(before, counts.lengths)) / np.repeat(counts.sizes, counts.lengths)
    split = np.clip(np.searchsorted(below, q), first, last)
    result: FloatArray = q * (2 * split - first - last) - 2 * area[split] + area[first] + area[last]
    return result


def hierarchical_distance(counts: SensitiveCounts, levels: IntArray) -> FloatArray:
    """Return the earth mover's distance over a tree of the values per class, 0..1.

    Two values are as far apart as their lowest common ancestor is high: height / H. The distance
    is sum_N height(N)/H min(pos_extra(N), neg_extra(N)) over the inner nodes N, where pos_extra
    and neg_extra add up the surplus and the lack of N's children (Li et al. 2007, section 5.2).

    Parameters
    ----------
    counts
        The contingency table.
    levels
        Group of each value at height 0, 1, ..., shape (V, L), nested; a root is put on top where
        the last level has several groups. Values in one group at height 0 are zero apart.
    """
    tree = _with_root(levels)
    height = tree.shape[1] - 1
    total = np.zeros(len(counts.starts))
    if height == 0:
        return total
    # In depth-first order the children of every node are neighbours, on all levels.
    order = np.lexsort(tree.T)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    cells = np.argsort(counts.classes * len(order) + rank[counts.values])
    classes, leaves, q = counts.classes[cells], counts.values[cells], counts.shares[cells]
    gains = np.zeros(len(q))
    for level in range(height + 1):
        codes = tree[:, level]
        starts = _runs(classes, codes[leaves])
        gains = np.add.reduceat(gains, starts) if len(starts) else gains
        q = np.add.reduceat(q, starts) if len(starts) else q
        classes, leaves = classes[starts], leaves[starts]
        extra = q - np.bincount(codes, weights=counts.reference)[codes[leaves]]
        cost = np.minimum(gains, np.maximum(gains - extra, 0.0)) * (level / height)
        total += np.bincount(classes, weights=cost, minlength=len(total))
        gains = np.maximum(extra, 0.0)
    return total


def _with_root(levels: IntArray) -> IntArray:
    columns = [
        np.unique(levels[:, height], return_inverse=True)[1] for height in range(levels.shape[1])
    ]
    tree = np.stack([column.reshape(-1) for column in columns], axis=1).astype(np.int64)
    if len(tree) and tree[:, -1].max() > 0:
        tree = np.concatenate([tree, np.zeros((len(tree), 1), dtype=np.int64)], axis=1)
    return tree


def _runs(classes: IntArray, codes: IntArray) -> IntArray:
    new = (np.diff(classes, prepend=-1) != 0) | (np.diff(codes, prepend=-1) != 0)
    return np.flatnonzero(new).astype(np.int64, copy=False)


def relative_gain(counts: SensitiveCounts) -> FloatArray:
    """Return max_v (q_v - p_v) / p_v per class, from 0: the beta of basic beta-likeness.

    Cao and Karras 2012: how much an adversary's belief in any one value can grow.
    """
    ratio = counts.shares / counts.reference[counts.values]
    return np.maximum(counts.max_by_class(ratio) - 1.0, 0.0)


def enhanced_gain(counts: SensitiveCounts) -> FloatArray:
    """Return the smallest beta of enhanced beta-likeness per class; infinite if there is none.

    Enhanced beta-likeness asks (q_v - p_v) / p_v <= min(beta, -ln p_v) of every value (Cao and
    Karras 2012). A gain above -ln p_v breaks it whatever the beta.
    """
    p = counts.reference[counts.values]
    gain = np.maximum(counts.shares / p - 1.0, 0.0)
    gain[gain > -np.log(p) + TOLERANCE] = np.inf
    return counts.max_by_class(gain)


def log_ratio(counts: SensitiveCounts, *, absent: bool = True) -> FloatArray:
    """Return max_v |ln(q_v / p_v)| per class, from 0: the delta of delta-disclosure privacy.

    Brickell and Shmatikov 2008, with the natural logarithm.

    Parameters
    ----------
    counts
        The contingency table.
    absent
        Whether a value that the table has and the class lacks counts: ln 0 is minus infinity, so
        the figure is infinite, as the definition says. False looks only at the values that the
        class has, as several tools do.
    """
    ratios = np.abs(np.log(counts.shares / counts.reference[counts.values]))
    figures = counts.max_by_class(ratios)
    if absent:
        figures = np.where(counts.lengths < int((counts.totals > 0).sum()), np.inf, figures)
    return figures
