"""Measure the sensitive values in each equivalence class: their diversity, and their distance from
those of the whole table.

All functions are pure functions of a `SensitiveCounts` and return one figure per class,
shape (n_classes,). The diversity of a class does not depend on any other class. For distances, q_v
and p_v are the shares of the value v in the class and in the whole table. Values that no row of the
table has are ignored.
"""

from __future__ import annotations

import numpy as np

from aegis.arrays import Floats, Ints, ranks
from aegis.privacy.classes import SensitiveCounts


def distinct_values(counts: SensitiveCounts) -> Ints:
    """Return how many distinct sensitive values each class has, at least 1.

    This is the l of distinct l-diversity (Li et al. 2007, section 2); null counts as a value. If
    persons are counted and all persons of a class share some value, the number is 1, because this
    value is certain whatever other values the persons have.
    """
    return np.where(counts.certain, 1, counts.lengths)


def entropy(counts: SensitiveCounts) -> Floats:
    """Return the entropy of the sensitive values in each class, in nats. It lies between 0 and ln V
    for V values.

    For a class with n rows, of which n_v have the value v, the entropy is

        H = ln n - (1/n) sum_v n_v ln n_v.

    The class is entropy l-diverse if H >= ln l (Machanavajjhala et al. 2007, Definition 4.1).
    """
    weighted = counts.sum_by_class(counts.counts * np.log(counts.counts))
    return np.maximum(np.log(counts.sizes) - weighted / counts.sizes, 0.0)


def effective_values(counts: SensitiveCounts) -> Floats:
    """Return exp(entropy) of the sensitive values in each class, from 1 to the number of sensitive
    values.

    This is the largest l for which the class is entropy l-diverse; it need not be an integer. A
    figure within 1e-9 of an integer is rounded to the integer, so that a class of l equally
    frequent values has exactly l.
    """
    figures = np.where(counts.certain, 1.0, np.exp(entropy(counts)))
    integers = np.rint(figures)
    return np.where(np.abs(figures - integers) < 1e-9, integers, figures)


def corrected_values(counts: SensitiveCounts) -> Floats:
    """Return exp(entropy) of the sensitive values in each class, where the entropy is Grassberger's
    estimate. The result is at most the number of values in the class.

    The estimate is correct on average, but exp(entropy) may exceed the number of values: it is
    exp(2) for two rows with two values. So it is limited to the number of values in the class, as
    in ARX.

    For n rows, of which n_v have the value v, the entropy is

        G(n) - (1/n) sum_v n_v G(n_v),  G(n) = psi(n) + (-1)^n / 2 (psi((n + 1) / 2) - psi(n / 2)),

    where psi is the digamma function. Reference: Grassberger, Entropy Estimates from Insufficient
    Samplings (arXiv physics/0307138, 2003).
    """
    weighted = counts.sum_by_class(counts.counts * _grassberger(counts.counts))
    figures = np.exp(_grassberger(counts.sizes) - weighted / counts.sizes)
    distinct = np.where(counts.certain, 1, counts.lengths)
    return np.asarray(np.minimum(figures, distinct))


def _grassberger(numbers: Ints) -> Floats:
    from scipy.special import digamma  # taking long to load, and seldom asked for

    n = numbers.astype(np.float64)
    sign = np.where(numbers % 2, -1.0, 1.0)
    parts: Floats = digamma(n) + sign / 2 * (digamma((n + 1) / 2) - digamma(n / 2))
    return parts


def largest_share(counts: SensitiveCounts) -> Floats:
    """Return, for each class, the share of its members who have the most frequent value of the
    class, in (0, 1].

    This is the alpha of (alpha, k)-anonymity if every value is protected (Wong et al. 2006).
    """
    if counts.persons is None:
        return counts.max_by_class(counts.shares)
    return counts.max_by_class(counts.counts.astype(np.float64)) / counts.persons


def recursive_ratio(counts: SensitiveCounts, l: int) -> Floats:  # noqa: E741 - the field's term
    """Return r_1 / (r_l + ... + r_m) for each class, where r_1 is the frequency of its most
    frequent value. The ratio is infinite if a class has fewer than l values.

    r_1 >= r_2 >= ... are the frequencies of the sensitive values in the class. A class is recursive
    (c, l)-diverse if the ratio is below c (Machanavajjhala et al. 2007, Definition 4.2; r_1 is the
    *most* frequent value).

    Parameters
    ----------
    counts
        The number of rows by class and sensitive value.
    l
        At least 1; for l = 1 the ratio is the largest share.
    """
    ordered = counts.descending
    top = np.zeros(len(counts.starts), dtype=np.int64)
    for rank in range(l - 1):
        inside = counts.lengths > rank
        top[inside] += ordered[counts.starts[inside] + rank]
    rest = counts.sizes - top
    ratio = np.full(len(top), np.inf)
    possible = rest > 0 if l == 1 else (rest > 0) & ~counts.certain
    np.divide(ordered[counts.starts], rest, out=ratio, where=possible)
    return ratio


TOLERANCE = 1e-9
"""Tolerance for floating-point rounding when a figure is compared with a limit."""


def equal_distance(counts: SensitiveCounts) -> Floats:
    """Return the total variation distance between each class and the table: 0.5 sum_v |q_v - p_v|,
    from 0 to 1, where q_v and p_v are the shares of the value v in the class and in the table.

    This is the earth mover's distance if all values are equally far apart (Li et al. 2007, section
    5.2). It is computed as the sum of the positive differences q_v - p_v; a value that the class
    lacks has none.
    """
    gains = np.maximum(counts.shares - counts.reference[counts.values], 0.0)
    return counts.sum_by_class(gains)


def ordered_distance(counts: SensitiveCounts) -> Floats:
    """Return the earth mover's distance between each class and the table, from 0 to 1, if the
    distance of two values is the difference of their ranks.

    The distance of a class is

        sum_i |sum_{j<=i} (q_j - p_j)| / (m - 1),

    where q_j and p_j are the shares of the value j in the class and in the table, and m is the
    number of values that occur in the table (Li et al. 2007, section 5.1, ordered distance). It is
    0 if m is 1.
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
    return np.maximum(total / (m - 1), 0.0)


def _steps(counts: SensitiveCounts, below: Floats, area: Floats, first: Ints, last: Ints) -> Floats:
    """Return, for each cell (class and value), the sum of |Q - P_i| over the steps i in [first,
    last) between values. Q is the cumulative share of values in the class up to the cell, and P_i
    the cumulative share in the table up to step i.

    `below` is P, in ascending order, and `area` has the prefix sums of P.
    """
    through = np.cumsum(counts.counts)
    before = through[counts.starts] - counts.counts[counts.starts]
    q = (through - np.repeat(before, counts.lengths)) / np.repeat(counts.sizes, counts.lengths)
    split = np.clip(np.searchsorted(below, q), first, last)
    return q * (2 * split - first - last) - 2 * area[split] + area[first] + area[last]


def hierarchical_distance(counts: SensitiveCounts, levels: Ints) -> Floats:
    """Return the earth mover's distance between each class and the table, from 0 to 1, if the
    distance of two values is given by a tree of the values.

    The distance of two values is the height of their lowest common ancestor, divided by the height
    H of the tree. The distance of a class is the sum over the inner nodes N of

        height(N) / H * min(pos_extra(N), neg_extra(N)).

    Here pos_extra and neg_extra are the total surplus and the total deficit of N's children (Li et
    al. 2007, section 5.2).

    Parameters
    ----------
    counts
        The number of rows by class and sensitive value.
    levels
        The group of each of V values at the L heights 0, 1, ..., shape (V, L); groups are nested.
        If the last level has several groups, a root is added. Values in one group at height 0 have
        the distance 0.
    """
    tree = _with_root(levels)
    height = tree.shape[1] - 1
    total = np.zeros(len(counts.starts))
    if height == 0:
        return total
    # In depth-first order the children of every node are neighbours, on all levels.
    order = np.lexsort(tree.T)
    cells = np.argsort(counts.classes * len(order) + ranks(order)[counts.values])
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


def _with_root(levels: Ints) -> Ints:
    columns = [
        np.unique(levels[:, height], return_inverse=True)[1] for height in range(levels.shape[1])
    ]
    tree = np.stack([column.reshape(-1) for column in columns], axis=1).astype(np.int64)
    if len(tree) and tree[:, -1].max() > 0:
        tree = np.concatenate([tree, np.zeros((len(tree), 1), dtype=np.int64)], axis=1)
    return tree


def _runs(classes: Ints, codes: Ints) -> Ints:
    new = (np.diff(classes, prepend=-1) != 0) | (np.diff(codes, prepend=-1) != 0)
    return np.flatnonzero(new).astype(np.int64, copy=False)


def relative_gain(counts: SensitiveCounts) -> Floats:
    """Return, for each class, the smallest beta for which the class meets basic beta-likeness:
    max_v (q_v - p_v) / p_v, at least 0, where q_v and p_v are the shares of the value v in the
    class and in the table.

    This is how much an adversary's belief in any one value can grow (Cao and Karras 2012).
    """
    ratio = counts.shares / counts.reference[counts.values]
    return np.maximum(counts.max_by_class(ratio) - 1.0, 0.0)


def enhanced_gain(counts: SensitiveCounts) -> Floats:
    """Return, for each class, the smallest beta for which the class meets enhanced beta-likeness.
    The result is infinite if there is no such beta.

    Enhanced beta-likeness requires (q_v - p_v) / p_v <= min(beta, -ln p_v) for every value v (Cao
    and Karras 2012), where q_v and p_v are the shares of v in the class and in the table. A gain
    above -ln p_v violates it for any beta.
    """
    p = counts.reference[counts.values]
    gain = np.maximum(counts.shares / p - 1.0, 0.0)
    gain[gain > -np.log(p) + TOLERANCE] = np.inf
    return counts.max_by_class(gain)


def log_ratio(counts: SensitiveCounts, *, absent: bool = True) -> Floats:
    """Return, for each class, the delta of delta-disclosure privacy: max_v |ln(q_v / p_v)|, at
    least 0, where q_v and p_v are the shares of the value v in the class and in the table.

    Brickell and Shmatikov 2008 define it, with the natural logarithm.

    Parameters
    ----------
    counts
        The number of rows by class and sensitive value.
    absent
        True also includes values that occur in the table but not in the class. For these, ln 0 is
        minus infinity, so the figure is infinite, as in the definition. False includes only the
        values of the class, as several tools do.
    """
    ratios = np.abs(np.log(counts.shares / counts.reference[counts.values]))
    figures = counts.max_by_class(ratios)
    if absent:
        figures = np.where(counts.lengths < int((counts.totals > 0).sum()), np.inf, figures)
    return figures
