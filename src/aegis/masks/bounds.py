"""Bounds and cut points that masks learn from a column, rounded so that they reveal no single value.

Often, only one person has the smallest value of a column, and only one has the largest, but a mask
shows its bounds to everyone. So a bound is the smallest or largest value itself only if enough rows
have this value. Otherwise the bound is the end of an interval that contains enough rows. The width
of the interval is 1, 2 or 5 times a power of ten, and the interval starts at a multiple of its
width; of all such intervals, the narrowest is used. A cut point is the roundest number in a range
(`roundest`).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from aegis.arrays import Array, Floats
from aegis.masks.base import SHARED_ROWS
from aegis.masks.parameters import as_fraction, plain

LEARNS = (
    "bounds that are learnt under this rule are values that at least {rows} rows hold, or rounded "
    "outward to the end of an interval that as many rows share"
)
"""Text in a certificate about a mask whose bounds come from `shared_range`."""
_FINEST = 1000
"""The narrowest interval is about this fraction of the range: one in so many."""


def rows_to_share(smallest_class: int) -> int:
    """Return the number of rows that must share a learnt bound.

    `smallest_class` is the class size that the rule requires.
    """
    return max(SHARED_ROWS, smallest_class)


def shared_range(numbers: Floats, counts: Array, rows: int) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound of the numbers, each rounded outward so that at least
    `rows` rows share it.

    If no interval narrower than the range of the numbers contains `rows` rows, the bound is a
    multiple of a step that is at least as large as this range. The step is 1, 2 or 5 times a power
    of ten.

    Parameters
    ----------
    numbers
        V finite numbers in ascending order, shape (V,), at least one.
    counts
        Number of rows with each of the V numbers, shape (V,).
    rows
        Number of rows that share a bound.
    """
    low = _lower(numbers, counts, rows)
    return low, -_lower(-numbers[::-1], counts[::-1], rows)


def _lower(numbers: Floats, counts: Array, rows: int) -> Fraction:
    least = as_fraction(float(numbers[0]))
    if counts[0] >= rows:
        return least
    span = as_fraction(float(numbers[-1])) - least or max(abs(least), Fraction(1))
    exponent = int(np.floor(np.log10(float(span) / _FINEST)))
    if (numbers == np.floor(numbers)).all():
        exponent = max(exponent, 0)
    while True:
        for factor in (1, 2, 5):
            step = factor * Fraction(10) ** exponent
            bound = least // step * step
            inside = np.searchsorted(numbers, float(bound + step), side="left")
            if step >= span or int(counts[:inside].sum()) >= rows:
                return bound
        exponent += 1


def roundest(low: Fraction, high: Fraction, near: Fraction) -> int | float:
    """Return the roundest number above `low` and at most `high`.

    The roundest number is 0 if it is in the range. Otherwise it is a multiple of the largest step
    that has a multiple in the range; steps are 1 and 5 times the powers of ten. If several
    multiples are in the range, the one nearest to `near` is returned; if two are equally near, the
    smaller.

    Examples
    --------
    >>> from fractions import Fraction
    >>> roundest(Fraction(41_180), Fraction(41_310), Fraction(41_237))
    41200
    >>> roundest(Fraction("3.2698"), Fraction("3.2705"), Fraction("3.2704"))
    3.27
    """
    if low < 0 <= high:
        return 0
    exponent = int(np.floor(np.log10(float(max(abs(low), abs(high)))))) + 1
    while True:
        for factor in (5, 1):
            step = factor * Fraction(10) ** exponent
            first, last = low // step + 1, high // step
            if first > last:
                continue
            nearest = min(max(ceil(near / step - Fraction(1, 2)), first), last)
            rounded = plain(nearest * step)
            # A step below the precision of floats may return to `low`: take a finer one.
            if low < as_fraction(rounded) <= high or high % step == 0:
                return rounded
        exponent -= 1
