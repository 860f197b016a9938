"""Plain versions of the package's figures, row by row, for comparison on small tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from aegis.privacy import ClassTable

VALUES = 4
LABELS = tuple("abcd")
LEVELS = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]])

Rows = list[tuple[int, int]]
"""Each row's class and sensitive value."""

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, VALUES - 1)), min_size=1, max_size=40)


def table_of(given: Rows, population: Sequence[int] | None = None, **options: object) -> ClassTable:
    """Return the class table of `given`; `population` is per class, in ascending order."""
    ids = [one for one, _ in given]
    people = None
    if population is not None:
        first: dict[int, int] = {}
        for place, one in enumerate(ids):
            first.setdefault(one, place)
        people = np.zeros(len(ids), dtype=np.int64)
        for size, one in zip(population, sorted(first), strict=True):
            people[first[one]] = size
    return ClassTable.from_cells(
        ids,
        np.ones(len(ids), dtype=np.int64),
        {"s": ([value for _, value in given], LABELS)},
        population=people,
        hierarchies={"s": LEVELS},
        **options,
    )


def groups(given: Rows) -> list[list[int]]:
    """Return the sensitive values of each class, classes in ascending order."""
    return [[v for c, v in given if c == one] for one in sorted({c for c, _ in given})]


def shares(values: Sequence[int]) -> list[float]:
    """Return the share of each of the possible values."""
    found = Counter(values)
    return [found[v] / len(values) for v in range(VALUES)]


def entropy(values: Sequence[int]) -> float:
    return -sum(q * math.log(q) for q in shares(values) if q)


def recursive(values: Sequence[int], l: int) -> float:  # noqa: E741
    counts = sorted(Counter(values).values(), reverse=True)
    tail = sum(counts[l - 1 :])
    return counts[0] / tail if tail else math.inf


def moved(q: Sequence[float], p: Sequence[float], distance: np.ndarray) -> float:
    """Return the earth mover's distance by its definition, a linear programme."""
    size = len(p)
    leave = [[float(i == a) for i, _ in product(range(size), repeat=2)] for a in range(size)]
    arrive = [[float(j == b) for _, j in product(range(size), repeat=2)] for b in range(size)]
    solved = linprog(distance.ravel(), A_eq=np.array(leave + arrive), b_eq=np.array([*q, *p]))
    assert solved.status == 0
    return float(solved.fun)


def tree_distance(levels: np.ndarray) -> np.ndarray:
    """Return height of the lowest common ancestor over tree height, for all pairs of values."""
    height = levels.shape[1] - 1
    return np.array(
        [
            [int(np.flatnonzero(levels[a] == levels[b])[0]) / height for b in range(len(levels))]
            for a in range(len(levels))
        ]
    )


def gains(values: Sequence[int], everyone: Sequence[int]) -> list[float]:
    return [(q - p) / p for q, p in zip(shares(values), shares(everyone), strict=True) if p]


def log_ratios(values: Sequence[int], everyone: Sequence[int]) -> list[float]:
    return [
        abs(math.log(q / p)) if q else math.inf
        for q, p in zip(shares(values), shares(everyone), strict=True)
        if p
    ]
