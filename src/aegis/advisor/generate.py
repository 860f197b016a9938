"""Configurations to rank: drawn at random, seeded and without repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aegis.errors import PolicyError
from aegis.policy import Configuration
from aegis.summary import AttributeSummary, Summary


def combinations(summary: Summary) -> int:
    """Return how many configurations the candidate masks make."""
    return math.prod(len(a.candidates) for a in summary.all_attributes)


def generate(summary: Summary, count: int, *, seed: int = 0) -> list[Configuration]:
    """Draw different configurations, each mask uniformly from its attribute's candidates.

    Parameters
    ----------
    summary
        Holds the candidate masks.
    count
        How many; fewer are returned when the candidates do not make as many combinations.
    seed
        The same seed draws the same configurations.

    Raises
    ------
    PolicyError
        `count` is below 1.
    """
    if count < 1:
        raise PolicyError(
            f"{count} configurations cannot be generated.", hint="Ask for at least 1."
        )
    attributes = summary.all_attributes
    total = combinations(summary)
    random = np.random.default_rng(seed)
    if total <= 4 * count:
        numbers: Sequence[int] = sorted(random.permutation(total)[:count].tolist())
        choices = [_decode(number, attributes) for number in numbers]
    else:
        choices = _distinct(attributes, count, random)
    width = len(str(len(choices)))
    return [
        Configuration(
            f"c{i + 1:0{width}d}",
            {a.name: a.candidates[c].mask for a, c in zip(attributes, chosen, strict=True)},
        )
        for i, chosen in enumerate(choices)
    ]


def _decode(number: int, attributes: Sequence[AttributeSummary]) -> tuple[int, ...]:
    """Return the combination with this number in mixed-radix order."""
    digits = []
    for attribute in reversed(attributes):
        number, digit = divmod(number, len(attribute.candidates))
        digits.append(digit)
    return tuple(reversed(digits))


def _distinct(
    attributes: Sequence[AttributeSummary], count: int, random: np.random.Generator
) -> list[tuple[int, ...]]:
    sizes = [len(a.candidates) for a in attributes]
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found[tuple(int(random.integers(size)) for size in sizes)] = None
    return list(found)
