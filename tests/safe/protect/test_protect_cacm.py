"""The block of seven persons of Garfinkel, Abowd and Martindale, CACM 62(3), 2019, has one solution.

"Understanding database reconstruction attacks on public data" publishes counts, medians and means of
groups of one block, with counts below three suppressed. The linear programs of the leak audit, with whole
counts, find the only table that agrees: every person's age, sex, race and marital status.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from aegis.safe.protect.derive.cells import Range, ranges

AGES = np.arange(0, 116)
KINDS = [(s, r, m) for s in "FM" for r in "BW" for m in "SM"]
PERSONS = [
    (8, "FBS"),
    (18, "MWS"),
    (24, "FWS"),
    (30, "MWM"),
    (36, "FBM"),
    (66, "FBM"),
    (84, "MBM"),
]
MEAN = {"all": 266, "F": 134, "M": 132, "B": 194, "W": 72, "married": 216, "BF": 110}
"""Sum of the ages of each group: count times published mean."""


def cells(condition):
    """Return 1 for each cell (age, kind) that a condition selects."""
    return np.array([float(condition(age, *kind)) for age in AGES for kind in KINDS])


GROUPS = {
    "all": (7, 30, lambda a, s, r, m: True),
    "F": (4, 30, lambda a, s, r, m: s == "F"),
    "M": (3, 30, lambda a, s, r, m: s == "M"),
    "B": (4, 51, lambda a, s, r, m: r == "B"),
    "W": (3, 24, lambda a, s, r, m: r == "W"),
    "married": (4, 51, lambda a, s, r, m: m == "M"),
    "BF": (3, 36, lambda a, s, r, m: r == "B" and s == "F"),
}
FEW = [
    lambda a, s, r, m: m == "S" and a >= 18,
    lambda a, s, r, m: r == "B" and s == "M",
    lambda a, s, r, m: r == "W" and s == "M",
    lambda a, s, r, m: r == "W" and s == "F",
    lambda a, s, r, m: a < 5,
    lambda a, s, r, m: a < 18,
    lambda a, s, r, m: a >= 64,
]
"""Groups whose counts are suppressed: fewer than three."""
IMPOSSIBLE = [lambda a, s, r, m: m == "M" and a < 18]
"""Married persons are tabulated as adults."""


class Block:
    """The published figures as ranges of sums; a pair of middle ages is one more unknown each."""

    def __init__(self):
        self.size = len(AGES) * len(KINDS)
        self.rows, self.least, self.most = [], [], []
        self.more = 0

    def add(self, row, least, most, extra=None):
        self.rows.append((row, extra or {}))
        self.least.append(least)
        self.most.append(most)

    def median(self, condition, count, median):
        """An odd group has its median in it; of an even one two middle ages have it as their mean."""
        below = cells(lambda a, *k: condition(a, *k) and a < median)
        above = cells(lambda a, *k: condition(a, *k) and a > median)
        if count % 2:
            self.add(below, 0, count // 2)
            self.add(above, 0, count // 2)
            return
        half = count // 2
        gaps = range(min(median, AGES[-1] - median) + 1)
        chosen = {gap: self.size + self.more + gap for gap in gaps}
        self.more += len(chosen)
        self.add(np.zeros(self.size), 1, 1, dict.fromkeys(chosen.values(), 1.0))
        for gap, place in chosen.items():
            low, high = median - gap, median + gap
            for row, least in (
                (cells(lambda a, *k, low=low: condition(a, *k) and a <= low), half),
                (cells(lambda a, *k, high=high: condition(a, *k) and a >= high), half),
            ):
                self.add(row, 0, np.inf, {place: -float(least)})
            for row, most in (
                (cells(lambda a, *k, low=low: condition(a, *k) and a < low), half - 1),
                (cells(lambda a, *k, high=high: condition(a, *k) and a > high), half - 1),
            ):
                self.add(row, -np.inf, count, {place: float(count - most)})

    def matrix(self):
        full = np.zeros((len(self.rows), self.size + self.more))
        for i, (row, extra) in enumerate(self.rows):
            full[i, : self.size] = row
            for place, value in extra.items():
                full[i, place] = value
        return sparse.csr_array(full)


def test_the_block_of_seven_has_one_solution():
    block = Block()
    ages = np.repeat(AGES, len(KINDS)).astype(float)
    for name, (count, median, condition) in GROUPS.items():
        inside = cells(condition)
        block.add(inside, count, count)
        block.add(inside * ages, MEAN[name], MEAN[name])
        block.median(condition, count, median)
    for condition in FEW:
        block.add(cells(condition), 0, 2)
    for condition in IMPOSSIBLE:
        block.add(cells(condition), 0, 0)
    matrix = block.matrix()
    size = matrix.shape[1]
    high = np.concatenate([np.full(block.size, 7.0), np.ones(block.more)])
    places = [age * len(KINDS) + KINDS.index(tuple(kind)) for age, kind in PERSONS]
    found = ranges(
        np.zeros(size),
        high,
        **{"sums": matrix, "least": block.least, "most": block.most},
        cells=places,
        integers=True,
    )
    assert found == [Range(1, 1)] * 7
