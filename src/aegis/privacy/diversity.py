"""Measure the diversity of the sensitive values in each equivalence class.

All functions are pure functions of a `SensitiveCounts` and return one figure per class,
shape (n_classes,). The figure of a class does not depend on any other class.
"""

from __future__ import annotations

import numpy as np

from aegis.arrays import Floats, Ints
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
    whole = np.rint(figures)
    return np.where(np.abs(figures - whole) < 1e-9, whole, figures)


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
    held = np.where(counts.certain, 1, counts.lengths)
    return np.asarray(np.minimum(figures, held))


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
    for place in range(l - 1):
        inside = counts.lengths > place
        top[inside] += ordered[counts.starts[inside] + place]
    rest = counts.sizes - top
    ratio = np.full(len(top), np.inf)
    possible = rest > 0 if l == 1 else (rest > 0) & ~counts.certain
    np.divide(ordered[counts.starts], rest, out=ratio, where=possible)
    return ratio
