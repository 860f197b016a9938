"""Compute the mean of plug-in mutual information over all permutations of the label."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.measures.contingency import Contingency

_NEGLECTED = 1e-17
"""Largest probability that the window of summation may leave out."""
_STRIDE_FROM = 8.0
"""Standard deviation from which the sum visits only every h-th count (see the docstring below)."""
_CHUNK = 1 << 18
"""Number of counts visited at once, which bounds memory."""
_SMALL = 32
_SMALL_REMAINDER = np.array(
    [math.lgamma(o + 1) - (o * math.log(o) - o if o else 0.0) for o in range(_SMALL)]
)


def expected_mutual_information(table: Contingency) -> float:
    """Return E0[MI] in bits: the mean of plug-in MI over all permutations of the label.

    MI is the mutual information of the attribute and the label, and N the number of rows. A cell is
    a pair of a value, which a rows have, and a class, which b rows have. Permutations do not change
    a and b. The count o of a cell is then hypergeometric with mean e = a b / N, and

        E0[MI] = sum over cells of E[o log2(o / e)] / N
               = sum over cells of E[o ln(o / e) - o + e] / (N ln 2),

    because E[o] = e (Vinh, Epps and Bailey, Information theoretic measures for clusterings
    comparison, JMLR 11, 2010, section 4). The terms of the second sum are at least 0, so no digits
    cancel at large N.

    The work depends only on the number of distinct row and column totals. Each expectation E is a
    sum over counts o in a window around the mean. A hypergeometric count is a sum of independent
    indicators, so Bernstein's inequality shows that the probability outside the window is below
    1e-16. If the standard deviation s of the count is 8 or more, the sum visits only every h-th
    count, with h = floor(s / 2.5). By Poisson summation, the error depends on the characteristic
    function at 2 pi / h. For a sum of independent indicators, this function is at most exp(-s^2
    (1 - cos(2 pi / h))) < exp(-50). So N = 1e9 takes no longer than N = 1e4.

    The value is at least 0. It is 0 for a constant attribute, a label of one class or an empty
    table.
    """
    if table.trivial:
        return 0.0
    a, row_weight = _distinct(table.row_totals, table.multiplicity)
    b, column_weight = _distinct(table.column_totals, np.ones(table.columns, dtype=np.int64))
    binary = table.columns == 2
    if binary:
        # The second class is the complement of the first, and its deviance comes along.
        b, column_weight = table.column_totals[:1], np.ones(1, dtype=np.int64)
    pairs_a, pairs_b = np.repeat(a, len(b)), np.tile(b, len(a))
    weight = np.outer(row_weight, column_weight).ravel()
    deviance = _expected_deviance(pairs_a, pairs_b, table.n, complement=binary)
    return float(weight @ deviance) / (table.n * math.log(2))


def _distinct(totals: Ints, weights: Ints) -> tuple[Ints, Ints]:
    values, inverse = np.unique(totals, return_inverse=True)
    summed = np.zeros(len(values), dtype=np.int64)
    np.add.at(summed, inverse, weights)
    return values, summed


def _expected_deviance(a: Ints, b: Ints, n: int, *, complement: bool) -> Floats:
    """Return E[o ln(o / e) - o + e] for each pair of totals a and b, where the count o is
    hypergeometric with mean e = a b / n. With `complement`, add the same term of the other a - o
    rows, which have the value but another class.
    """
    low, stride, points = _windows(a, b, n)
    result = np.empty(len(a))
    chunk = np.cumsum(points) // _CHUNK
    for part in np.split(np.arange(len(a)), np.flatnonzero(np.diff(chunk)) + 1):
        window = (low[part], stride[part], points[part])
        result[part] = _sum_windows(a[part], b[part], n, window, complement=complement)
    return result


def _windows(a: Ints, b: Ints, n: int) -> tuple[Ints, ...]:
    """Return the counts over which to sum an expectation: for each pair of totals a and b, the
    first count, the step from a count to the next, and the number of counts. A count is the number
    of rows in one cell, hypergeometric for a row total a, a column total b and n rows. Counts
    outside have a negligible probability.
    """
    share = b / n
    mean = a * share
    variance = mean * (1 - share) * (n - a) / (n - 1)
    exponent = math.log(2 / _NEGLECTED)
    reach = exponent / 3 + np.sqrt((exponent / 3) ** 2 + 2 * exponent * variance)
    low = np.maximum(np.maximum(0, a + b - n), np.floor(mean - reach).astype(np.int64))
    high = np.minimum(np.minimum(a, b), np.ceil(mean + reach).astype(np.int64))
    deviation = np.sqrt(variance)
    stride = np.where(deviation >= _STRIDE_FROM, np.floor(deviation / 2.5), 1).astype(np.int64)
    return low, stride, (high - low) // stride + 1


def _sum_windows(a: Ints, b: Ints, n: int, window: tuple[Ints, ...], *, complement: bool) -> Floats:
    low, stride, points = window
    start = np.cumsum(points) - points
    within = np.arange(int(points.sum())) - np.repeat(start, points)
    count = np.repeat(low, points) + np.repeat(stride, points) * within
    # The four cells of value or not against class or not, and their expectations.
    observed = np.array([count, np.repeat(a, points), np.repeat(b, points), count], dtype=float)
    observed[1:3] -= observed[0]
    observed[3] += n - np.repeat(a + b, points)
    share = b / n
    expected = np.array([a * share, a * (1 - share), (n - a) * share, (n - a) * (1 - share)])
    deviance = _deviance(observed, np.repeat(expected, points, axis=1))
    # ln P(o) = constant - sum of ln o! over the cells; written as deviances it keeps its digits.
    exponent = -(deviance + _factorial_remainder(observed)).sum(axis=0)
    exponent -= np.repeat(np.maximum.reduceat(exponent, start), points)
    mass = np.exp(exponent)
    gain = deviance[:2].sum(axis=0) if complement else deviance[0]
    return np.add.reduceat(mass * gain, start) / np.add.reduceat(mass, start)


def _deviance(observed: Floats, expected: Floats) -> Floats:
    """Return o ln(o / e) - o + e for each observed count o and expected count e; it equals e if o
    is 0.
    """
    difference = observed - expected
    ratio = np.where(observed > 0, difference / expected, 0.0)
    return observed * np.log1p(ratio) - difference


def _factorial_remainder(observed: Floats) -> Floats:
    """Return ln o! - o ln o + o for each observed count o, from a table for small o, else by
    Stirling's series.
    """
    large = np.maximum(observed, _SMALL)
    inverse = 1 / large
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square / 1260))
    stirling = 0.5 * np.log(2 * math.pi * large) + series
    small: Any = np.minimum(observed, _SMALL - 1).astype(np.int64)
    return np.where(observed < _SMALL, _SMALL_REMAINDER[small], stirling)
