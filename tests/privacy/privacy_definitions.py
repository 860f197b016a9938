"""What each privacy model measures of a class, by its definition, value by value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from privacy_brute import (
    LEVELS,
    VALUES,
    entropy,
    gains,
    log_ratios,
    moved,
    recursive,
    shares,
    tree_distance,
)

from aegis.privacy import Criterion


@dataclass(frozen=True)
class Class:
    """A class: its sensitive values, its people in the population, and the values of all rows."""

    values: Sequence[int]
    people: int
    all_classes: Sequence[Sequence[int]]

    @property
    def everyone(self) -> list[int]:
        return [value for values in self.all_classes for value in values]

    @property
    def rows(self) -> int:
        return len(self.values)


def ordered(given: Class) -> float:
    """Return the earth mover's distance over the ranks that occur."""
    total = given.everyone
    ranks = [value for value in range(VALUES) if value in total]
    steps = np.abs(np.subtract.outer(range(len(ranks)), range(len(ranks))))
    q, p = ([shares(values)[v] for v in ranks] for values in (given.values, total))
    return moved(q, p, steps / max(len(ranks) - 1, 1))


def enhanced(given: Class) -> float:
    """Return the largest gain; infinity where one is above the logarithm of its value's share."""
    total = given.everyone
    p = [share for share in shares(total) if share]
    own = gains(given.values, total)
    broken = any(g > -math.log(share) + 1e-9 for g, share in zip(own, p, strict=True))
    return math.inf if broken else max(own)


def grassberger(n: int) -> float:
    """Return G(n) by its recurrence: G(1), G(2), then one step for each second number."""
    at_one = -0.5772156649015329 - math.log(2)
    if n == 1:
        return at_one
    return 2 + at_one + sum(2 / (2 * i + 1) for i in range(1, n // 2))


def corrected(given: Class) -> float:
    """Return exp of the corrected entropy, at most the values that the class holds."""
    counts = Counter(given.values).values()
    left = sum(n * grassberger(n) for n in counts) / given.rows
    return min(math.exp(grassberger(given.rows) - left), len(counts))


def unique_share(given: Class) -> float:
    unique = sum(len(values) == 1 for values in given.all_classes)
    return unique / len(given.everyone) if given.rows == 1 else 0.0


DEFINITIONS: Mapping[str, Callable[[Class, Criterion], float]] = {
    "k": lambda given, _: given.rows,
    "k_map": lambda given, _: given.people,
    "alpha_k": lambda given, _: max(shares(given.values)),
    "l_diversity.distinct": lambda given, _: len(set(given.values)),
    "l_diversity.entropy": lambda given, _: math.exp(entropy(given.values)),
    "l_diversity.recursive": lambda given, asked: recursive(given.values, int(asked["l"])),
    "l_diversity.entropy-grassberger": lambda given, _: corrected(given),
    "t_closeness.equal": lambda given, _: (
        sum(map(abs, np.subtract(shares(given.values), shares(given.everyone)))) / 2
    ),
    "t_closeness.ordered": lambda given, _: ordered(given),
    "t_closeness.hierarchical": lambda given, _: moved(
        shares(given.values), shares(given.everyone), tree_distance(LEVELS)
    ),
    "beta_likeness.basic": lambda given, _: max(gains(given.values, given.everyone)),
    "beta_likeness.enhanced": lambda given, _: enhanced(given),
    "delta_disclosure.all": lambda given, asked: (
        max(log_ratios(given.values, given.everyone)) / math.log(asked["base"])
    ),
    "delta_disclosure.present": lambda given, asked: (
        max(r for r in log_ratios(given.values, given.everyone) if r < math.inf)
        / math.log(asked["base"])
    ),
    "delta_presence": lambda given, _: given.rows / given.people,
    "max_risk.prosecutor": lambda given, _: 1 / given.rows,
    "max_risk.journalist": lambda given, _: 1 / given.people,
    "max_risk.marketer": lambda given, _: 1 / given.people,
    "sample_uniqueness": lambda given, _: unique_share(given),
    "no_attack.prosecutor": lambda given, asked: asked["gain"] / given.rows,
    "no_attack.journalist": lambda given, asked: asked["gain"] / given.people,
}
"""The figure of a class by the model's name."""


def too_lonely(classes: Sequence[Class], asked: Criterion) -> list[bool]:
    """Return which classes go, those with the fewest people first, until the mean risk is low enough."""
    for fewest in [*sorted({one.people for one in classes}), math.inf]:
        left = [one for one in classes if one.people >= fewest]
        rows = sum(one.rows for one in left)
        if not rows or sum(one.rows / one.people for one in left) / rows <= asked["threshold"]:
            break
    return [one.people < fewest for one in classes]


def alone_or_alike(classes: Sequence[Class], asked: Criterion) -> list[bool]:
    return [
        one.rows < asked["k"] or max(shares(one.values)) > asked["alpha"] + 1e-9 for one in classes
    ]


def outside(classes: Sequence[Class], asked: Criterion) -> list[bool]:
    low, high = asked["minimum"] - 1e-9, asked["maximum"] + 1e-9
    return [not low <= one.rows / one.people <= high for one in classes]


FAILING: Mapping[str, Callable[[Sequence[Class], Criterion], list[bool]]] = {
    "alpha_k": alone_or_alike,
    "delta_presence": outside,
    "max_risk.marketer": too_lonely,
}
"""Which classes fail, by the name of a model that decides this by more than its figure."""

ELSEWHERE = {
    "population_uniqueness.dankar": "test_privacy_uniqueness.py",
    "population_uniqueness.pitman": "test_privacy_uniqueness.py",
    "population_uniqueness.zayatz": "test_privacy_uniqueness.py",
    "population_uniqueness.snb": "test_privacy_uniqueness.py",
    "profitability.prosecutor": "../advisor/test_advisor_profitability.py",
    "profitability.journalist": "../advisor/test_advisor_profitability.py",
}
"""Models whose figure is held against its definition in a module of its own."""
