"""Cut ranges of ordered numbers in two, where the numbers within a range differ most.

Ranges of equally many rows join the largest numbers with much smaller ones, if numbers have a long
tail or a normal distribution. A linear model depends most on these largest numbers.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from aegis.arrays import Floats, Int32s


def share_within(ranges: Int32s, rows: Floats, numbers: Floats) -> float:
    """Return which share of the variance of the numbers is within ranges, from 0 to 1; 0 if the
    numbers do not vary.

    `ranges`, `rows` and `numbers` have the range, number of rows and number of each of V ordered
    groups, shape (V,) each.

    Examples
    --------
    >>> import numpy as np
    >>> rows, numbers = np.ones(4), np.array([0.0, 1, 3, 4])
    >>> share_within(np.array([0, 0, 1, 1], dtype=np.int32), rows, numbers)
    0.1
    """
    away = numbers - rows @ numbers / max(float(rows.sum()), 1e-300)
    range_rows = np.maximum(np.bincount(ranges, rows), 1e-300)
    residuals = away - (np.bincount(ranges, rows * away) / range_rows)[ranges]
    total = float(rows @ away**2)
    return float(rows @ residuals**2) / total if total > 0 else 0.0


def cut_further(ranges: Int32s, rows: Floats, numbers: Floats, most: int) -> Int32s:
    """Cut ranges of V ordered groups in two until there are `most`, and return the range of each
    group, shape (V,).

    Each cut is the one that most reduces the squared deviations of the numbers of all rows from the
    means of their ranges; of equal cuts, the first. Ranges that show a single number stay as they
    are.

    Parameters
    ----------
    ranges
        The range of each group before, ascending from 0, shape (V,).
    rows
        Number of rows per group, shape (V,).
    numbers
        The number of each group, shape (V,).
    most
        The number of ranges to reach.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.array([1.0, 2, 3, 4, 5, 6, 7, 90])
    >>> before = np.array([0, 0, 0, 1, 1, 2, 2, 2], dtype=np.int32)
    >>> cut_further(before, np.ones(8), numbers, 4).tolist()
    [0, 0, 0, 1, 1, 2, 2, 3]
    """
    starts = np.flatnonzero(np.diff(ranges, prepend=-1)).tolist()
    cuts = [_best_cut(rows, numbers, *ends) for ends in pairwise([*starts, len(rows)])]
    while 0 < len(starts) < most:
        best = max(range(len(cuts)), key=lambda at: cuts[at][0])
        gain, middle = cuts[best]
        if gain <= 0:
            break
        starts.insert(best + 1, middle)
        start, _, stop = (*starts, len(rows))[best : best + 3]
        cuts[best : best + 1] = [
            _best_cut(rows, numbers, start, middle),
            _best_cut(rows, numbers, middle, stop),
        ]
    first = np.zeros(len(rows), dtype=np.int32)
    first[starts[1:]] = 1
    return np.cumsum(first, dtype=np.int32)


def _best_cut(rows: Floats, numbers: Floats, start: int, stop: int) -> tuple[float, int]:
    """Return by how much the best cut of the groups from `start` to before `stop` reduces the
    squared deviations of the numbers of all rows, and the first group behind the cut.
    """
    group_rows = rows[start:stop]
    sums = np.cumsum(group_rows * (numbers[start:stop] - numbers[start]))
    cumulated = np.cumsum(group_rows)
    total = float(cumulated[-1])
    both = cumulated[:-1] * (total - cumulated[:-1])
    # The difference of the means on both sides of the cut, times the rows on both sides.
    difference = sums[:-1] * total - sums[-1] * cumulated[:-1]
    gains = np.divide(difference**2, both * total, out=np.zeros_like(both), where=both > 0)
    if not len(gains):
        return 0.0, start
    best = int(gains.argmax())
    return float(gains[best]), start + best + 1
